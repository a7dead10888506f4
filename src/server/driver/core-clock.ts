// The time given to the core: the wall clock. If that clock was set, the core is told before it gets a later time.

import { clockJumps } from "#support/clock-jumps.ts";
import type { ClockPort } from "./ports.ts";

/** now_ms of the core's calls. */
export function coreClock(
  clockSet: (by_ms: number, now_ms: number) => void,
  { wall_ms, steady_ms }: Pick<ClockPort, "wall_ms" | "steady_ms">,
): () => number {
  const jumped = clockJumps(wall_ms, steady_ms);
  return () => {
    const by_ms = jumped();
    const now_ms = wall_ms();
    if (by_ms !== 0) clockSet(by_ms, now_ms);
    return now_ms;
  };
}
