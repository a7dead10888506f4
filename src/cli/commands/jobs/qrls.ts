// qrls: releases holds of jobs (docs/reference/commands.md 3).

import type { Command, CommandIo } from "../../command.ts";
import { asCommand, type Complex } from "../../complex.ts";
import { holdUsage, requestHolds } from "../../holds.ts";

export const run: Command = asCommand("qrls", holdUsage("qrls"), qrls);

export async function qrls(io: CommandIo, complex: Complex): Promise<number> {
  return requestHolds(io, complex, "qrls");
}
