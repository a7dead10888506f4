// Whether somebody set the wall clock. Pure: both clocks are parameters.

/** A wall clock that moves by so much against the monotonic clock between two looks was set. */
const CLOCK_JUMP_MS = 1000;

/** How far the wall clock was set since the last look, in ms; 0: it was not. A drift that an NTP daemon corrects bit by bit is none. */
export function clockJumps(wall_ms: () => number, monotonic_ms: () => number): () => number {
  let before_ms = wall_ms() - monotonic_ms();
  return () => {
    const now_ms = wall_ms() - monotonic_ms();
    const by_ms = now_ms - before_ms;
    before_ms = now_ms;
    return Math.abs(by_ms) >= CLOCK_JUMP_MS ? by_ms : 0;
  };
}
