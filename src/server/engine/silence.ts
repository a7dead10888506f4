// Computes when the server checks whether moms and schedulers still answer (moms/heartbeat.ts, scheds/heartbeat.ts).
// Times are epoch milliseconds of the core's clock.

/** A daemon that sends nothing for a certain time counts as silent. This is the number of checks within that time. */
const BEATS = 4;

/**
 * The time of the next check: after one interval, or sooner if a daemon will have been silent too long before then.
 * heard_ms: times of the last messages of the daemons.
 */
export function nextLook(now_ms: number, silence_ms: number, heard_ms: Iterable<number>): number {
  let next_ms = now_ms + silence_ms / BEATS;
  for (const heard of heard_ms) {
    const over_ms = heard + silence_ms;
    if (over_ms > now_ms) next_ms = Math.min(next_ms, over_ms);
  }
  return next_ms;
}

/** Whether a check comes so late that the server itself must have stood still. Then no daemon counts as silent. */
export const stoodStill = (now_ms: number, due_ms: number, silence_ms: number): boolean => now_ms - due_ms > silence_ms / BEATS;
