// The errors of a client that cannot reach its server.

import { nameOf } from "#support/caught.ts";

/**
 * The error if no server can be reached. It has the errno of `cannot connect to server X (errno=N)`, and the line that the
 * PBS library prints before that message.
 */
export class ServerUnreachable extends Error {
  override readonly name = "ServerUnreachable";
  readonly pbse: number;
  /** the line printed first: `Connection refused`, `No Permission.`, `Communication failure.` */
  readonly line: string;
  /** whether another attempt may succeed in a moment */
  readonly again: boolean;
  constructor(line: string, pbse: number, cause?: unknown, again = false) {
    super(line, { cause });
    this.line = line;
    this.pbse = pbse;
    this.again = again;
  }
}

/** Converts a ServerUnreachable of another bundle, which has a class of its own, to one of ours. Any other error is returned as it is. */
export function ownUnreachable(error: unknown): unknown {
  if (error instanceof ServerUnreachable || nameOf(error) !== "ServerUnreachable") return error;
  const { line, pbse, again } = error as ServerUnreachable;
  return new ServerUnreachable(line, pbse, error, again);
}

/** Numbers of errors that clients report (model/pbse.ts, which is too large for the start of a command). */
export const PBSE_SYSTEM = 15010;
export const PBSE_PERM = 15007;
export const PBSE_BADHOST = 15008;
export const PBSE_BADCRED = 15019;
export const PBSE_PROTOCOL = 15031;
export const PBSE_NOCONNECTS = 15033;

/** Converts a frame `refused` of the server: it has too many connections, or it cannot identify the peer. */
export function refusal(data: unknown): ServerUnreachable {
  const { code, text } = (data ?? {}) as { readonly code?: unknown; readonly text?: unknown };
  return new ServerUnreachable(typeof text === "string" ? text : "Communication failure.", typeof code === "number" ? code : PBSE_SYSTEM);
}
