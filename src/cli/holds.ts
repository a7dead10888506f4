// Code that qhold and qrls share: the letters of holds, and the request (docs/reference/commands.md 3).

import type { CommandIo } from "./command.ts";
import type { Complex } from "./complex.ts";
import { optionFault, scanOptions } from "./getopt.ts";
import { requestForJobs } from "./job-requests.ts";

/** Whether a text is a list of hold letters. qalter -h and qselect -h use it too. */
export const isHoldList = (text: string): boolean => /^[uosnp]+$/.test(text);

export const holdUsage = (command: string): string => `usage: ${command} [-h hold_list] job_identifier...\n       ${command} --version\n`;

export async function requestHolds(io: CommandIo, complex: Complex, command: "qhold" | "qrls"): Promise<number> {
  const scan = scanOptions(io.argv, "h:");
  let [faults, holds] = ["", "u"];
  for (const event of scan.events) {
    const fault = optionFault(command, event);
    if (fault !== null) faults += `${fault}\n`;
    else if (event.kind === "option" && !isHoldList(event.value)) faults += `${command}: illegal -h value\n`;
    else if (event.kind === "option") holds = event.value;
  }
  if (faults !== "" || scan.operands.length === 0) {
    io.err(faults + holdUsage(command));
    return 2;
  }
  const kind = command === "qhold" ? "hold-job" : "release-job";
  return requestForJobs(io, complex, { command, operands: scan.operands, request: (job) => ({ kind, job, holds }) });
}
