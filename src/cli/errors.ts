// What the user sees of refusals and failures (docs/reference/commands.md 0): text on stderr, and exit status. Pure.

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

/** Returns the exit status for a refusal of the server: its number modulo 256. That is never 0, because no such number is a multiple of 256. */
export function refusalStatus(code: number): number {
  return code % 256 || 1;
}

/** Returns the message about a refused request for one job. If the job has finished, the message does not have its id. */
export function jobRefusal(command: string, refusal: Refusal, id: string): string {
  if (refusal.code === PBSE_HISTJOBID) return `${command}: Job has finished\n`;
  if (refusal.text === null || refusal.text === "") return `${command}: Server returned error ${refusal.code} for job ${id}\n`;
  return `${command}: ${refusal.text} ${id}\n`;
}
