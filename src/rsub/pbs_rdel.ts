// pbs_rdel: deletes reservations with all their jobs (pbs/commands.md 5).

import type { Command, CommandIo } from "#cli/command.ts";
import { asCommand, type Complex } from "#cli/complex.ts";
import { refusalStatus } from "#cli/errors.ts";
import { optionFault, scanOptions } from "#cli/getopt.ts";
import { completeResvId } from "./resv-options.ts";

const USAGE = "usage:\tpbs_rdel [-q dest] resv_identifier...\n\tpbs_rdel --version\n";
const USAGE_STATUS = 2;

export const run: Command = asCommand("pbs_rdel", USAGE, pbsRdel);

/** Every id is tried; the exit status is that of the last failure. */
export async function pbsRdel(io: CommandIo, complex: Complex): Promise<number> {
  const scan = scanOptions(io.argv, "q:");
  const faults = scan.events.flatMap((event) => optionFault("pbs_rdel", event) ?? []);
  if (faults.length > 0 || scan.operands.length === 0) {
    io.err(faults.map((fault) => `${fault}\n`).join("") + USAGE);
    return USAGE_STATUS;
  }
  const { server } = complex.conf();
  let status = 0;
  const ids: string[] = [];
  for (const operand of scan.operands) {
    const id = completeResvId(operand, server);
    if (id !== null) ids.push(id);
    else {
      io.err(`pbs_rdel: illegally formed reservation identifier: ${operand}\n`);
      status = USAGE_STATUS;
    }
  }
  if (ids.length === 0) return status;
  const link = await complex.connect();
  try {
    for (const id of ids) {
      const reply = await link.request({ kind: "delete-resv", resv: id });
      if (reply.ok) continue;
      io.err(`pbs_rdel: ${reply.text ?? `Server returned error ${reply.code}`} ${id}\n`);
      status = refusalStatus(reply.code);
    }
    return status;
  } finally {
    link.close();
  }
}
