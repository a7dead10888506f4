// qrerun: stops running jobs and puts them back into their queues (docs/reference/commands.md 3).

import type { Command, CommandIo } from "../../command.ts";
import { asCommand, type Complex } from "../../complex.ts";
import { optionFault, scanOptions } from "../../getopt.ts";
import { requestForJobs } from "../../job-requests.ts";

const USAGE = `usage: qrerun [-W force] job_identifier...
       qrerun --version
`;

export const run: Command = asCommand("qrerun", USAGE, qrerun);

export async function qrerun(io: CommandIo, complex: Complex): Promise<number> {
  const scan = scanOptions(io.argv, "W:");
  let [faults, force] = ["", false];
  for (const event of scan.events) {
    const fault = optionFault("qrerun", event);
    if (fault !== null) faults += `${fault}\n`;
    else if (event.kind === "option" && event.value !== "force") faults += "qrerun: illegal -W value\n";
    else force = true;
  }
  if (faults !== "" || scan.operands.length === 0) {
    io.err(faults + USAGE);
    return 2;
  }
  return requestForJobs(io, complex, {
    command: "qrerun",
    operands: scan.operands,
    request: (job) => ({ kind: "rerun-job", job, ...(force ? { force } : {}) }),
  });
}
