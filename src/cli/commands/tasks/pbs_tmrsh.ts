// pbs_tmrsh: a replacement of rsh inside a job. The command runs as a task of the job on one of its hosts
// (docs/reference/commands.md 6). As with rsh, the words of the command are joined by blanks, and the user's shell on that
// host interprets them.

import type { Command, CommandIo } from "../../command.ts";
import { asCommand, type Complex } from "../../complex.ts";
import { connectMom, exitOf, runOf, TaskRefused } from "../../task-client.ts";

const USAGE = `Usage: pbs_tmrsh host [-n][-l username] command [args]...
       pbs_tmrsh --version
`;
/** Exit status if the command could not be started. */
const FAILED = 255;

export const run: Command = asCommand("pbs_tmrsh", USAGE, pbsTmrsh);

async function pbsTmrsh(io: CommandIo, complex: Complex): Promise<number> {
  const words = [...io.argv];
  let host = "";
  // As in rsh, options may come before or after the host. The user after -l is ignored, because tasks run as the job's owner.
  for (;;) {
    const word = words[0];
    if (word === "-n") words.shift();
    else if (word === "-l") words.splice(0, 2);
    else if (word !== undefined && !word.startsWith("-") && host === "") host = words.shift() as string;
    else break;
  }
  if (host === "" || words.length === 0 || words[0]?.startsWith("-")) {
    io.err(USAGE);
    return FAILED;
  }
  const job = runOf(io.env);
  if (job === null) {
    io.err("pbs_tmrsh: not executing under PBS\n");
    return FAILED;
  }
  try {
    const mom = await connectMom(io, complex, job);
    const { exited } = await mom.spawn({ host, argv: words, shell: true });
    const status = await exited;
    mom.close();
    return exitOf(status);
  } catch (error) {
    if (!(error instanceof TaskRefused)) throw error;
    io.err(`pbs_tmrsh: ${error.message}\n`);
    return FAILED;
  }
}
