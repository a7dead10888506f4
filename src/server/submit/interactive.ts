// The server's part of interactive jobs (qsub -I). The address of the waiting qsub goes with the job to its mom and is never shown.

import { PBSE, reject } from "#model/pbse.ts";
import type { TerminalTicket } from "#protocol/terminal/link.ts";
import { type JobOwn, NOTHING_OWN } from "../state/job-own.ts";
import type { JobAttrs } from "../state/state.ts";

/**
 * The server's own data of a new job: the ticket of an interactive one. Refuses an interactive job without a waiting qsub, and one that is an
 * array, because each subjob would need a terminal.
 */
export function enterTerminal(attrs: JobAttrs, terminal: TerminalTicket | undefined): JobOwn {
  const { interactive } = attrs as { interactive?: number };
  if (interactive === undefined) return NOTHING_OWN;
  if (interactive === 0) {
    delete (attrs as { interactive?: number }).interactive;
    return NOTHING_OWN;
  }
  if (terminal === undefined || attrs.array === true) throw reject(PBSE.BADATVAL, "interactive");
  // The user at the terminal would have gone when the job ran again.
  attrs.Rerunable = false;
  return { terminal };
}
