// What a single submission and a batch share: the server's default arguments, and how a refusal is told.

import type { ErrorReply } from "#protocol/wire/reply.ts";
import { type Complex, type Link, statusItems } from "../complex.ts";
import { PBSE_NOATTR } from "../errors.ts";

/**
 * The server's default_qsub_arguments; "" when unset. In system mode root does not take them: operators may set the attribute, and `-S` or `-v` in it would
 * let them say what root's job runs.
 */
export async function defaultArguments(link: Link, complex: Complex): Promise<string> {
  if (complex.uid() === 0 && complex.conf().mode === "system") return "";
  const { items } = await statusItems(link, { kind: "status", object: "server", ids: [], attrs: ["default_qsub_arguments"] });
  const [server] = items;
  const text = server !== undefined && "attrs" in server ? server.attrs["default_qsub_arguments"] : undefined;
  return typeof text === "string" ? text : "";
}

/** An unknown attribute is told by its number, without its text (docs/reference/commands.md 1.3). */
export function submitRefusal(reply: Pick<ErrorReply, "code" | "text">): string {
  return reply.text === null || reply.text === "" || reply.code === PBSE_NOATTR
    ? `qsub: Error (${reply.code}) submitting job\n`
    : `qsub: ${reply.text}\n`;
}
