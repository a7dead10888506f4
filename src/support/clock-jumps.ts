// Detects that the wall clock was set. Pure: both clocks are passed as parameters.

/** If the difference of wall clock and monotonic clock changes by this much between two calls, the wall clock counts as set. */
const CLOCK_JUMP_MS = 1000;

/**
 * Returns a function that returns by how many ms the wall clock was set since its last call; 0: it was not set. The gradual corrections of an NTP daemon do not
 * count.
 */
export function clockJumps(wall_ms: () => number, monotonic_ms: () => number): () => number {
  let before_ms = wall_ms() - monotonic_ms();
  return () => {
    const now_ms = wall_ms() - monotonic_ms();
    const by_ms = now_ms - before_ms;
    before_ms = now_ms;
    return Math.abs(by_ms) >= CLOCK_JUMP_MS ? by_ms : 0;
  };
}

/**
 * Returns a function that reads the wall clock. If the clock was set, it calls clockSet before it returns the new time. by_ms: by how much the clock was set.
 */
export function watchedClock(
  clockSet: (by_ms: number, now_ms: number) => void,
  { wall_ms, steady_ms }: { wall_ms(): number; steady_ms(): number },
): () => number {
  const jumped = clockJumps(wall_ms, steady_ms);
  return () => {
    const by_ms = jumped();
    const now_ms = wall_ms();
    if (by_ms !== 0) clockSet(by_ms, now_ms);
    return now_ms;
  };
}

/** Returns the amount by which a clock was set as text for a log: `172800 seconds forward`. */
export function jumpText(by_ms: number): string {
  const seconds = Math.round(Math.abs(by_ms) / 1000);
  return `${seconds} seconds ${by_ms < 0 ? "back" : "forward"}`;
}
