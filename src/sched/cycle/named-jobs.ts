// Jobs that are named and tried alone, regardless of the order: the job of a qrun, and jobs of a further pass.

import { LOG_EVENT } from "#support/log-event.ts";
import { attempt } from "./attempt.ts";
import type { Run } from "./run.ts";
import { refuseQrun, tellNamed } from "./tell.ts";

/** Tries only the job of a qrun, regardless of limits. */
export function tryQrun(run: Run, id: string): void {
  run.log({ event: LOG_EVENT.JOB, class: "Job", object: id, text: "Received qrun request" });
  const entry = run.candidates.entryOf(id);
  if (entry === undefined) return refuseQrun(run, id, "Unknown Job Id");
  const why = attempt(run, entry);
  if (why !== null) tellNamed(run, entry, id, why);
}

/** Tries these jobs in this order, except those that no longer wait. */
export function tryAgain(run: Run, ids: readonly string[]): void {
  for (const id of ids) {
    const entry = run.candidates.entryOf(id);
    if (entry === undefined || entry.line === null) continue;
    const why = attempt(run, entry);
    if (why !== null) tellNamed(run, entry, id, why);
  }
}
