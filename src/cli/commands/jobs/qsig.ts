// qsig: sends a signal to running jobs, or suspends or resumes them (docs/reference/commands.md 3).

import type { Command, CommandIo } from "../../command.ts";
import { asCommand, type Complex } from "../../complex.ts";
import { optionFault, scanOptions } from "../../getopt.ts";
import { requestForJobs } from "../../job-requests.ts";

const USAGE = `usage: qsig [-s signal] job_identifier...
       qsig --version
`;

export const run: Command = asCommand("qsig", USAGE, qsig);

export async function qsig(io: CommandIo, complex: Complex): Promise<number> {
  const scan = scanOptions(io.argv, "s:");
  let [faults, signal] = ["", "SIGTERM"];
  for (const event of scan.events) {
    const fault = optionFault("qsig", event);
    if (fault !== null) faults += `${fault}\n`;
    else if (event.kind === "option") signal = event.value;
  }
  if (faults !== "" || scan.operands.length === 0) {
    io.err(faults + USAGE);
    return 2;
  }
  return requestForJobs(io, complex, { command: "qsig", operands: scan.operands, request: (job) => ({ kind: "signal-job", job, signal }) });
}
