// Common code of a single submission and a batch: the server's default arguments, and the text of a refusal.

import type { ErrorReply } from "#protocol/wire/reply.ts";
import { type Complex, type Link, statusItems } from "../complex.ts";
import { PBSE_NOATTR } from "../errors.ts";

/**
 * The server's default_qsub_arguments, or "" if unset. In system mode root ignores them: operators may set the attribute, and
 * `-S` or `-v` in it would let them decide what root's job runs.
 */
export async function defaultArguments(link: Link, complex: Complex): Promise<string> {
  if (complex.uid() === 0 && complex.conf().mode === "system") return "";
  const { items } = await statusItems(link, { kind: "status", object: "server", ids: [], attrs: ["default_qsub_arguments"] });
  const [server] = items;
  const text = server !== undefined && "attrs" in server ? server.attrs["default_qsub_arguments"] : undefined;
  return typeof text === "string" ? text : "";
}

/** The refusal of an unknown attribute shows its number without its text (docs/reference/commands.md 1.3). */
export function submitRefusal(reply: Pick<ErrorReply, "code" | "text">): string {
  return reply.text === null || reply.text === "" || reply.code === PBSE_NOATTR
    ? `qsub: Error (${reply.code}) submitting job\n`
    : `qsub: ${reply.text}\n`;
}
