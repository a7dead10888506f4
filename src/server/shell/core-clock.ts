// The time that the core is told: the wall clock. When it was set, the core hears of that before it is told a time of after.

import { jumpWatch } from "#support/clock.ts";

/** now_ms of the core's calls. wall_ms, monotonic_ms: for tests. */
export function coreClock(
  clockSet: (by_ms: number, now_ms: number) => void,
  wall_ms: () => number = Date.now,
  monotonic_ms?: () => number,
): () => number {
  const jumped = jumpWatch(wall_ms, monotonic_ms);
  return () => {
    const by_ms = jumped();
    const now_ms = wall_ms();
    if (by_ms !== 0) clockSet(by_ms, now_ms);
    return now_ms;
  };
}
