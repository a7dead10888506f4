// Eligible time as a scheduler sees it (docs/reference/scheduler.md 4). The server counts it. Jobs behind the same limits share a clock. For each queued job
// the server sends the id of its clock and an amount to add. For each clock it sends the value and whether the clock is running. Eligible times therefore grow
// without further messages.

import { ACCRUE } from "#model/job-state.ts";
import type { SchedClock, SchedJob } from "#protocol/sched-link.ts";

export type Eligible = { readonly eligible_s: number; readonly accrue_type: number };

/** Returns a job's eligible time and accrue type at a time. */
export function eligibleAt(clocks: ReadonlyMap<string, SchedClock>, job: SchedJob, now_s: number): Eligible {
  const base_s = job.eligible_time_s ?? 0;
  const clock = job.clock === undefined ? undefined : clocks.get(job.clock);
  if (clock === undefined) return { eligible_s: base_s, accrue_type: job.accrue_type ?? ACCRUE.INITIAL };
  return { eligible_s: base_s + shown(clock, now_s), accrue_type: clock.goes ? ACCRUE.ELIGIBLE : ACCRUE.INELIGIBLE };
}

const shown = ({ value_s, at_s, goes }: SchedClock, now_s: number): number => value_s + (goes ? Math.max(0, now_s - at_s) : 0);
