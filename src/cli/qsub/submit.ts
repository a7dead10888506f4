// What a single submission and a batch share: the server's default arguments, and how a refusal is told.

import type { ErrorReply } from "#protocol/messages.ts";
import { type Link, statusItems } from "../complex.ts";
import { PBSE_NOATTR } from "../errors.ts";

/** The server's default_qsub_arguments; "" when unset. */
export async function defaultArguments(link: Link): Promise<string> {
  const { items } = await statusItems(link, { kind: "status", object: "server", ids: [], attrs: ["default_qsub_arguments"] });
  const [server] = items;
  const text = server !== undefined && "attrs" in server ? server.attrs["default_qsub_arguments"] : undefined;
  return typeof text === "string" ? text : "";
}

/** An unknown attribute is told by its number, without its text (pbs/commands.md 1.3). */
export function submitRefusal(reply: Pick<ErrorReply, "code" | "text">): string {
  return reply.text === null || reply.text === "" || reply.code === PBSE_NOATTR
    ? `qsub: Error (${reply.code}) submitting job\n`
    : `qsub: ${reply.text}\n`;
}
