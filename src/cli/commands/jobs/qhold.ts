// qhold: puts holds on jobs (docs/reference/commands.md 3).

import type { Command, CommandIo } from "../../command.ts";
import { asCommand, type Complex } from "../../complex.ts";
import { holdUsage, requestHolds } from "../../holds.ts";

export const run: Command = asCommand("qhold", holdUsage("qhold"), qhold);

export async function qhold(io: CommandIo, complex: Complex): Promise<number> {
  return requestHolds(io, complex, "qhold");
}
