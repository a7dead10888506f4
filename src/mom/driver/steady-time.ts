// Job times are measured by the monotonic clock (support/clock.ts steady_ms), so that setting the wall clock ends no job. A
// starter of an earlier release, or a record made by one, may still have times of the wall clock. These are recognised by
// their size and converted.

import type { StarterRun } from "../job/starter-link.ts";
import type { SavedRun } from "../run/state.ts";

/** Times from this value on are of the wall clock: no host is up for 31 years, and no wall clock shows the year 2001 any more. */
const WALL_MS_MIN = 1e12;

/** Converts a time to the monotonic clock. ahead_ms: by how much the wall clock is ahead of that clock. */
export const steadyTime = (at_ms: number, ahead_ms: number): number => (at_ms >= WALL_MS_MIN ? at_ms - ahead_ms : at_ms);

export const steadyRun = (run: StarterRun, ahead_ms: number): StarterRun => {
  const at_ms = steadyTime(run.at_ms, ahead_ms);
  return run.state === "ended" ? { ...run, at_ms, exit: { ...run.exit, at_ms: steadyTime(run.exit.at_ms, ahead_ms) } } : { ...run, at_ms };
};

export function steadyRecord(record: SavedRun, ahead_ms: number): SavedRun {
  const { suspended_ms, ending } = record;
  return {
    ...record,
    suspended_ms: suspended_ms === null ? null : steadyTime(suspended_ms, ahead_ms),
    ending: ending === null || ending.kill_at_ms === null ? ending : { ...ending, kill_at_ms: steadyTime(ending.kill_at_ms, ahead_ms) },
  };
}
