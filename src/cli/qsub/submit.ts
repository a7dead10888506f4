// Code that single submissions and batches share: the server's default arguments, and the message about a refusal.

import type { ErrorReply } from "#protocol/wire/reply.ts";
import { type Complex, type Link, statusItems } from "../complex.ts";
import { PBSE_NOATTR } from "../errors.ts";

/**
 * Returns the server's default_qsub_arguments; "": they are unset. In system mode root does not get them: operators may set the attribute, and with `-S` or
 * `-v` in it they would decide what root's job runs.
 */
export async function defaultArguments(link: Link, complex: Complex): Promise<string> {
  if (complex.uid() === 0 && complex.conf().mode === "system") return "";
  const { items } = await statusItems(link, { kind: "status", object: "server", ids: [], attrs: ["default_qsub_arguments"] });
  const [server] = items;
  const text = server !== undefined && "attrs" in server ? server.attrs["default_qsub_arguments"] : undefined;
  return typeof text === "string" ? text : "";
}

/** Returns the message about a refused submission. An unknown attribute is reported by its error number alone (docs/reference/commands.md 1.3). */
export function submitRefusal(reply: Pick<ErrorReply, "code" | "text">): string {
  return reply.text === null || reply.text === "" || reply.code === PBSE_NOATTR
    ? `qsub: Error (${reply.code}) submitting job\n`
    : `qsub: ${reply.text}\n`;
}
