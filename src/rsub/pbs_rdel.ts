// pbs_rdel: deletes reservations with all their jobs (docs/reference/commands.md 5).

import type { Command, CommandIo } from "#cli/command.ts";
import { asCommand, type Complex, cannotConnect, foreignServer, type Link, mustBeOurs } from "#cli/complex.ts";
import { refusalStatus } from "#cli/errors.ts";
import { optionFault, scanOptions } from "#cli/getopt.ts";
import { completeResvId } from "./resv-options.ts";

const USAGE = "usage:\tpbs_rdel [-q dest] resv_identifier...\n\tpbs_rdel --version\n";
const USAGE_STATUS = 2;

export const run: Command = asCommand("pbs_rdel", USAGE, pbsRdel);

/** Deletes the reservations in the given order, also after a failure. Returns the exit status of the last failure, or 0. */
export async function pbsRdel(io: CommandIo, complex: Complex): Promise<number> {
  const scan = scanOptions(io.argv, "q:");
  const faults = scan.events.flatMap((event) => optionFault("pbs_rdel", event) ?? []);
  if (faults.length > 0 || scan.operands.length === 0) {
    io.err(faults.map((fault) => `${fault}\n`).join("") + USAGE);
    return USAGE_STATUS;
  }
  for (const event of scan.events) {
    if (event.kind === "option") await mustBeOurs(complex, event.value.split("@")[1] ?? null);
  }
  const { server } = complex.conf();
  let status = 0;
  let link: Link | null = null;
  try {
    for (const operand of scan.operands) {
      const id = completeResvId(operand, server);
      const foreign = id === null ? null : await foreignServer(complex, operand.split("@")[1] ?? null);
      if (id === null) {
        io.err(`pbs_rdel: illegally formed reservation identifier: ${operand}\n`);
        status = USAGE_STATUS;
      } else if (foreign !== null) status = cannotConnect(io, "pbs_rdel", complex, foreign);
      else {
        link ??= await complex.connect();
        const reply = await link.request({ kind: "delete-resv", resv: id });
        if (reply.ok) continue;
        io.err(`pbs_rdel: ${reply.text ?? `Server returned error ${reply.code}`} ${id}\n`);
        status = refusalStatus(reply.code);
      }
    }
    return status;
  } finally {
    link?.close();
  }
}
