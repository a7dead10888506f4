// run_count as users may give it (qsub and qalter -W run_count). The server counts on it to tell the runs of a job apart: moms refuse a run they have seen
// (docs/reference/execution.md 6), so the number never goes back and does not change under a run.

import { PBSE, reject } from "#model/pbse.ts";

const RUN_COUNT_MAX = 1_000_000;

/** Refuses with 15014 a number below the present one or beyond all sense. */
export function checkRunCount(before: unknown, after: unknown): void {
  if (Number(after ?? 0) < Number(before ?? 0) || Number(after ?? 0) > RUN_COUNT_MAX) throw reject(PBSE.BADATVAL, "run_count");
}
