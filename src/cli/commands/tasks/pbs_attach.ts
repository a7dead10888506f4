// pbs_attach: adds a session of processes to a job that did not start them. The mom then counts the usage of these processes
// as the job's, and ends them with the job (docs/reference/commands.md 6).

import { spawn } from "node:child_process";
import { constants } from "node:os";
import type { Command, CommandIo } from "../../command.ts";
import { asCommand, type Complex } from "../../complex.ts";
import { optionFault, scanOptions } from "../../getopt.ts";
import { connectMom, runOf, TaskRefused } from "../../task-client.ts";

const USAGE = `usage: pbs_attach [-j jobid] [-m port] -p pid
       pbs_attach [-j jobid] [-m port] [-P] [-s] cmd [arg1 ...]
       pbs_attach --version
`;
const FAILED = 1;

export const run: Command = asCommand("pbs_attach", USAGE, pbsAttach);

/** Runs pbs_attach. Three options have no effect: -m (the mom is found through the job), -P and -s (the whole session is always attached). */
async function pbsAttach(io: CommandIo, complex: Complex): Promise<number> {
  const scan = scanOptions(io.argv, "j:m:p:Ps", false);
  let id: string | undefined;
  let pid: number | null = null;
  for (const event of scan.events) {
    const fault = optionFault("pbs_attach", event);
    if (fault !== null) {
      io.err(`${fault}\n${USAGE}`);
      return FAILED;
    }
    if (event.kind !== "option") continue;
    if (event.letter === "j") id = event.value;
    if (event.letter !== "p") continue;
    pid = /^[1-9]\d{0,8}$/.test(event.value) ? Number(event.value) : -1;
  }
  if (pid === -1) return refused(io, "illegal -p value");
  if (pid === null && scan.operands.length === 0) {
    io.err(`pbs_attach: must specify pid or command\n${USAGE}`);
    return FAILED;
  }
  const inside = runOf(io.env);
  const job = id === undefined || id === inside?.job ? inside : { job: id, run_count: null, cookie: null };
  if (job === null) return refused(io, "not executing under PBS");
  try {
    const mom = await connectMom(io, complex, job);
    await mom.attach(pid ?? process.pid);
    mom.close();
  } catch (error) {
    if (error instanceof TaskRefused) return refused(io, error.message);
    throw error;
  }
  return pid === null ? execute(io, scan.operands) : 0;
}

function refused(io: CommandIo, why: string): number {
  io.err(`pbs_attach: ${why}\n`);
  return FAILED;
}

/** Runs the program with our streams. Resolves with its exit status. */
function execute(io: CommandIo, [program = "", ...args]: readonly string[]): Promise<number> {
  return new Promise((resolve) => {
    const child = spawn(program, args, { stdio: "inherit", cwd: io.cwd, env: { ...io.env } });
    child.once("error", (error) => resolve(refused(io, `${program}: ${error.message}`)));
    child.once("exit", (code, signal) => resolve(code ?? 128 + (signal === null ? 0 : constants.signals[signal])));
  });
}
