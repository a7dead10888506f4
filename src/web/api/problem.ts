// Refusals as problem details (RFC 9457): one form for every answer of the interface that is not a success.

import { PBSE, pbseText } from "#model/pbse.ts";
import type { ErrorReply } from "#protocol/wire/reply.ts";

/** pbs_code: the error number of PBS, if the server has refused the request. */
export type Problem = { readonly status: number; readonly title: string; readonly detail: string; readonly pbs_code?: number };

const TITLES: { readonly [status: number]: string } = {
  400: "Bad Request",
  401: "Unauthorized",
  403: "Forbidden",
  404: "Not Found",
  405: "Method Not Allowed",
  409: "Conflict",
  413: "Content Too Large",
  415: "Unsupported Media Type",
  421: "Misdirected Request",
  429: "Too Many Requests",
  500: "Internal Server Error",
  503: "Service Unavailable",
  504: "Gateway Timeout",
};

export const problem = (status: number, detail: string): Problem => ({ status, title: TITLES[status] ?? "Error", detail });

/** HTTP statuses of refusals of the server; every other refusal is 400. */
const STATUSES: ReadonlyMap<number, number> = new Map([
  [PBSE.UNKJOBID, 404],
  [PBSE.UNKQUE, 404],
  [PBSE.UNKNODE, 404],
  [PBSE.UNKRESVID, 404],
  [PBSE.UNKSCHED, 404],
  [PBSE.PERM, 403],
  [PBSE.ATTRRO, 403],
  [PBSE.QACESS, 403],
  [PBSE.BADSTATE, 409],
  [PBSE.HISTJOBID, 409],
  [PBSE.SYSTEM, 503],
  [PBSE.INTERNAL, 503],
]);

/** Turns a refusal of the server into a problem. */
export function refusalProblem({ code, text }: Pick<ErrorReply, "code" | "text">): Problem {
  return { ...problem(STATUSES.get(code) ?? 400, (text || pbseText(code) || `error ${code}`).trim()), pbs_code: code };
}
