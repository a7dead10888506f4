// qdel: deletes jobs (docs/reference/commands.md 3). With -W dead, which PBS does not have, the lost runner of the job counts as dead, and the job is held (docs/runners.md).

import type { Command, CommandIo } from "../../command.ts";
import { asCommand, type Complex } from "../../complex.ts";
import { jobRefusal, PBSE_HISTJOBID } from "../../errors.ts";
import { optionFault, scanOptions } from "../../getopt.ts";
import { requestForJobs } from "../../job-requests.ts";

const USAGE = `usage:
	qdel [-W force|suppress_email=X] [-x] job_identifier...
	qdel --version
`;
/** the server sends mail for at most this number of the jobs of one qdel, the first ones */
const MAILS_MAX = 1000;

export const run: Command = asCommand("qdel", USAGE, qdel);

type Manner = { readonly force: boolean; readonly dead: boolean; readonly mails_max: number };

export async function qdel(io: CommandIo, complex: Complex): Promise<number> {
  const scan = scanOptions(io.argv, "W:x");
  let [faults, history] = ["", false];
  let manner: Manner = { force: false, dead: false, mails_max: MAILS_MAX };
  for (const event of scan.events) {
    const fault = optionFault("qdel", event);
    if (fault !== null) faults += `${fault}\n`;
    else if (event.kind === "option" && event.letter === "x") history = true;
    else if (event.kind === "option") {
      const changed = readManner(event.value, manner);
      if (changed === null) faults += "qdel: illegal -W value\n";
      else manner = changed;
    }
  }
  if (faults !== "" || scan.operands.length === 0) {
    io.err(faults + USAGE);
    return 2;
  }
  const { force, dead, mails_max } = manner;
  if (dead && (force || history)) {
    io.err("qdel: -W dead decides about the runner of a job and deletes nothing: it cannot be used with -W force or -x\n");
    return 2;
  }
  return requestForJobs(io, complex, {
    command: "qdel",
    operands: scan.operands,
    request: (job, index) =>
      dead
        ? { kind: "confirm-dead", names: [job], age_s: 0 }
        : {
            kind: "delete-job",
            job,
            ...(force ? { force } : {}),
            ...(history ? { history } : {}),
            ...(index >= mails_max ? { suppressMail: true } : {}),
          },
    refusal: (reply, id) => (reply.code === PBSE_HISTJOBID ? `qdel: Job has finished ${id}\n` : jobRefusal("qdel", reply, id)),
    unreachable: (error) => `${error.line}\nqdel: Couldn't connect to cluster: ${complex.serverMeant()}\n`,
  });
}

/** Parses -W force, -W dead and -W suppress_email=N, joined by a comma. Returns null if the text contains anything else. */
function readManner(text: string, before: Manner): Manner | null {
  let manner = before;
  for (const word of text.split(",")) {
    const suppress = /^suppress_email=(-?\d+)$/.exec(word.trim());
    if (word.trim() === "force") manner = { ...manner, force: true };
    else if (word.trim() === "dead") manner = { ...manner, dead: true };
    else if (suppress !== null) manner = { ...manner, mails_max: Math.max(0, Number(suppress[1])) };
    else return null;
  }
  return manner;
}
