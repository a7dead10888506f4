// Refusals and failures as the user sees them (docs/reference/commands.md 0): text on stderr, and exit status. Pure.

import type { ErrorReply } from "#protocol/wire/reply.ts";

export const PBSE_UNKJOBID = 15001;
export const PBSE_NOATTR = 15002;
export const PBSE_BADHOST = 15008;
export const PBSE_UNKQUE = 15018;
export const PBSE_NOSUP = 15029;
export const PBSE_UNKNODE = 15062;
export const PBSE_HOOKERROR = 15136;
export const PBSE_HISTJOBID = 15139;
export const PBSE_JOBHISTNOTSET = 15140;

export type Refusal = Pick<ErrorReply, "code" | "text">;

/** The exit status of a server's refusal: the number modulo 256. It is never 0, because no number is a multiple of 256. */
export function refusalStatus(code: number): number {
  return code % 256 || 1;
}

/** The line for a refused request about one job. The line for a finished job does not contain its id. */
export function jobRefusal(command: string, refusal: Refusal, id: string): string {
  if (refusal.code === PBSE_HISTJOBID) return `${command}: Job has finished\n`;
  if (refusal.text === null || refusal.text === "") return `${command}: Server returned error ${refusal.code} for job ${id}\n`;
  return `${command}: ${refusal.text} ${id}\n`;
}
