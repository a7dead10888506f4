// When the server looks whether moms and schedulers still answer (moms/heartbeat.ts, scheds/heartbeat.ts). Times: epoch milliseconds of the core's clock.

/** The server asks so often within the time after which it gives up. */
export const BEATS = 4;

/** The next look: after an interval, or sooner when the time of a daemon is over. heard_ms: when each daemon said its last word. */
export function nextLook(now_ms: number, silence_ms: number, heard_ms: Iterable<number>): number {
  let next_ms = now_ms + silence_ms / BEATS;
  for (const heard of heard_ms) {
    const over_ms = heard + silence_ms;
    if (over_ms > now_ms) next_ms = Math.min(next_ms, over_ms);
  }
  return next_ms;
}

/** Whether the server itself stood still since the look that was due: nobody else is silent then. */
export const stoodStill = (now_ms: number, due_ms: number, silence_ms: number): boolean => now_ms - due_ms > silence_ms / BEATS;
