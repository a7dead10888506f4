// qmsg: writes a message into the output of running jobs (docs/reference/commands.md 3).

import type { Command, CommandIo } from "../../command.ts";
import { asCommand, type Complex } from "../../complex.ts";
import { jobRefusal, PBSE_NOSUP } from "../../errors.ts";
import { optionFault, scanOptions } from "../../getopt.ts";
import { requestForJobs } from "../../job-requests.ts";

const USAGE = `usage: qmsg [-O] [-E] msg_string job_identifier...
       qmsg --version
`;

export const run: Command = asCommand("qmsg", USAGE, qmsg);

export async function qmsg(io: CommandIo, complex: Complex): Promise<number> {
  const scan = scanOptions(io.argv, "EO");
  let [faults, files] = ["", ""];
  for (const event of scan.events) {
    const fault = optionFault("qmsg", event);
    if (fault !== null) faults += `${fault}\n`;
    else if (!files.includes(event.letter.toLowerCase())) files += event.letter.toLowerCase();
  }
  const [message, ...jobs] = scan.operands;
  if (faults !== "" || message === undefined || jobs.length === 0) {
    io.err(faults + USAGE);
    return 2;
  }
  return requestForJobs(io, complex, {
    command: "qmsg",
    operands: jobs,
    request: (job) => ({ kind: "message-job", job, files: files || "e", message }),
    refusal: (reply, id) =>
      reply.code === PBSE_NOSUP && id.includes("[") ? `qmsg: not supported for Array Jobs ${id}\n` : jobRefusal("qmsg", reply, id),
  });
}
