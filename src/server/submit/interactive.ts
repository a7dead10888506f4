// Interactive jobs (qsub -I): what the server makes of them. Where their qsub waits goes with the job to its mom and is shown to nobody.

import { PBSE, reject } from "#model/pbse.ts";
import type { TerminalTicket } from "#protocol/terminal/link.ts";
import { type JobOwn, NOTHING_OWN } from "../state/job-own.ts";
import type { JobAttrs } from "../state/state.ts";

/**
 * What the server keeps for itself of a new job: the ticket of an interactive one. Refuses an interactive job that nobody waits for, and one that is an
 * array: each subjob would need a terminal of its own.
 */
export function enterTerminal(attrs: JobAttrs, terminal: TerminalTicket | undefined): JobOwn {
  const { interactive } = attrs as { interactive?: number };
  if (interactive === undefined) return NOTHING_OWN;
  if (interactive === 0) {
    delete (attrs as { interactive?: number }).interactive;
    return NOTHING_OWN;
  }
  if (terminal === undefined || attrs.array === true) throw reject(PBSE.BADATVAL, "interactive");
  // Whoever sat at the terminal has gone when it would run again.
  attrs.Rerunable = false;
  return { terminal };
}
