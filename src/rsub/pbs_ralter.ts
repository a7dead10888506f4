// pbs_ralter: alters a reservation (docs/reference/commands.md 5).

import type { Command, CommandIo } from "#cli/command.ts";
import { asCommand, type Complex } from "#cli/complex.ts";
import { refusalStatus } from "#cli/errors.ts";
import { optionFault, scanOptions } from "#cli/getopt.ts";
import type { AttrValueText } from "#protocol/messages.ts";
import { completeResvId, readResvOption } from "./resv-options.ts";

const USAGE = `usage: pbs_ralter [-I seconds] [-m mail_points] [-M mail_list]
                [-N reservation_name] [-R start_time] [-E end_time]
                [-U (+/-)username[,(+/-)username]...]
                [-G [(+/-)group[,(+/-)group]...]]
                [-D duration]
                [-W force]
                resv_id
       pbs_ralter --version
`;
const USAGE_STATUS = 2;

export const run: Command = asCommand("pbs_ralter", USAGE, pbsRalter);

export async function pbsRalter(io: CommandIo, complex: Complex): Promise<number> {
  const scan = scanOptions(io.argv, "D:E:I:l:m:M:N:R:U:G:W:");
  const attrs: AttrValueText[] = [];
  let [faults, force] = ["", false];
  for (const event of scan.events) {
    const fault = optionFault("pbs_ralter", event);
    if (fault !== null) faults += `${fault}\n`;
    if (event.kind !== "option") continue;
    if (event.letter === "W" && event.value === "force") force = true;
    else if (event.letter === "D") attrs.push({ name: "reserve_duration", value: event.value });
    else {
      const read = readResvOption("pbs_ralter", event.letter, event.value, { now_ms: complex.now_ms() });
      if (!read.ok) faults += read.text;
      else if (read.attrs.some(({ name, resource }) => name === "Resource_List" && resource !== "select"))
        faults += "pbs_ralter -l only allows for select\n";
      else attrs.push(...read.attrs);
    }
  }
  if (faults !== "" || scan.operands.length !== 1) {
    io.err(faults + USAGE);
    return USAGE_STATUS;
  }
  const [operand = ""] = scan.operands;
  const resv = completeResvId(operand, complex.conf().server, true);
  if (resv === null) {
    io.err(`pbs_ralter: illegally formed reservation identifier: ${operand}\n`);
    return USAGE_STATUS;
  }
  const link = await complex.connect();
  try {
    const reply = await link.request({ kind: "modify-resv", resv, attrs, ...(force ? { force } : {}) });
    if (!reply.ok) {
      io.err(`pbs_ralter: ${reply.text ?? `Server returned error ${reply.code}`}\n`);
      return refusalStatus(reply.code);
    }
    const { id, word } = reply.value as { readonly id: string; readonly word: string };
    io.out(`pbs_ralter: ${id} ${word}\n`);
    return 0;
  } finally {
    link.close();
  }
}
