// Detects that the wall clock was set. Pure: both clocks are parameters.

/** If the wall clock moves by this much against the monotonic clock between two calls, it was set. */
const CLOCK_JUMP_MS = 1000;

/**
 * Returns a function that gives the amount by which the wall clock was set since the last call, in ms; 0 if it was not set. The
 * gradual corrections of an NTP daemon do not count.
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

/** The wall clock. If it was set, clockSet is called before a later time is returned. by_ms: the amount. */
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

/** `172800 seconds forward`, for a log. */
export function jumpText(by_ms: number): string {
  const seconds = Math.round(Math.abs(by_ms) / 1000);
  return `${seconds} seconds ${by_ms < 0 ? "back" : "forward"}`;
}
