// qorder: swaps the places of two jobs in their queues (docs/reference/commands.md 3).

import type { Command, CommandIo } from "../../command.ts";
import { asCommand, type Complex, mustBeOurs } from "../../complex.ts";
import { jobRefusal, PBSE_HISTJOBID, refusalStatus } from "../../errors.ts";
import { optionFault, scanOptions } from "../../getopt.ts";
import { completeJobId } from "../../job-ids.ts";

const USAGE = `usage: qorder job_identifier job_identifier
       qorder --version
`;

export const run: Command = asCommand("qorder", USAGE, qorder);

export async function qorder(io: CommandIo, complex: Complex): Promise<number> {
  const scan = scanOptions(io.argv, "");
  const faults = scan.events.map((event) => `${optionFault("qorder", event)}\n`).join("");
  if (faults !== "" || scan.operands.length !== 2) {
    io.err(faults + USAGE);
    return 2;
  }
  const ids: string[] = [];
  for (const operand of scan.operands) {
    const id = await completeJobId(complex, operand);
    if (id.kind === "malformed") {
      io.err(`qorder: illegally formed job identifier: ${operand}\n`);
      return 1;
    }
    if (id.kind === "elsewhere") await mustBeOurs(complex, id.server);
    else ids.push(id.id);
  }
  const [job, other] = ids as [string, string];
  const link = await complex.connect();
  try {
    const reply = await link.request({ kind: "order-job", job, other });
    if (reply.ok) return 0;
    io.err(reply.code === PBSE_HISTJOBID ? "qorder: Job has finished\n" : jobRefusal("qorder", reply, `${job} or ${other}`));
    return refusalStatus(reply.code);
  } finally {
    link.close();
  }
}
