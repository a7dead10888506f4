// qmove: moves jobs to another queue (docs/reference/commands.md 3).

import type { Command, CommandIo } from "../../command.ts";
import { asCommand, type Complex } from "../../complex.ts";
import { parseDestination } from "../../destinations.ts";
import { optionFault, scanOptions } from "../../getopt.ts";
import { requestForJobs } from "../../job-requests.ts";

const USAGE = `usage: qmove destination job_identifier...
       qmove --version
`;

export const run: Command = asCommand("qmove", USAGE, qmove);

export async function qmove(io: CommandIo, complex: Complex): Promise<number> {
  const scan = scanOptions(io.argv, "");
  const faults = scan.events.map((event) => `${optionFault("qmove", event)}\n`).join("");
  const [destination, ...jobs] = scan.operands;
  if (faults !== "" || destination === undefined || jobs.length === 0) {
    io.err(faults + USAGE);
    return 2;
  }
  if (parseDestination(destination) === null) {
    io.err(`qmove: illegally formed destination: ${destination}\n`);
    return 2;
  }
  return requestForJobs(io, complex, { command: "qmove", operands: jobs, request: (job) => ({ kind: "move-job", job, destination }) });
}
