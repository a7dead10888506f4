// run_count as users may set it (qsub and qalter -W run_count). The server uses it to distinguish the runs of a job, and moms refuse a run that they have seen
// (docs/reference/execution.md 6). Therefore the number never decreases and does not change during a run.

import { PBSE, reject } from "#model/pbse.ts";

const RUN_COUNT_MAX = 1_000_000;

/** Refuses with 15014 a number below the present one or an absurdly large one. */
export function checkRunCount(before: unknown, after: unknown): void {
  if (Number(after ?? 0) < Number(before ?? 0) || Number(after ?? 0) > RUN_COUNT_MAX) throw reject(PBSE.BADATVAL, "run_count");
}
