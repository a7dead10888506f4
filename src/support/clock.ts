// Clocks. Only shells have a Clock; the cores receive times as values. Tests and the simulator move the manual clock
// themselves.

export type Clock = {
  /** whole seconds since the epoch, as in times of PBS */
  now_s(): number;
  /** milliseconds since the epoch, with a fraction if the source has one */
  now_ms(): number;
  /** milliseconds since an arbitrary start; never decreases */
  monotonic_ms(): number;
};

export const realClock: Clock = {
  now_s: () => Math.floor(Date.now() / 1000),
  now_ms: () => performance.timeOrigin + performance.now(),
  monotonic_ms: () => performance.now(),
};

/**
 * Returns whole milliseconds of CLOCK_MONOTONIC. This clock is the same in all processes of a host, is never set, and stands still while the host is suspended.
 * It is used for durations: walltime, time limits.
 */
export const steady_ms = (): number => Number(process.hrtime.bigint() / 1_000_000n);

export type ManualClock = Clock & {
  /** moves wall clock and monotonic clock forward. ms must not be negative */
  advance(ms: number): void;
  /** sets only the wall clock, as an administrator's `date -s` does */
  jump(now_ms: number): void;
};

/** Returns a clock that moves only when told to. start_ms: epoch milliseconds. */
export function manualClock(start_ms: number): ManualClock {
  let wall_ms = start_ms;
  let monotonic_ms = 0;
  return {
    now_s: () => Math.floor(wall_ms / 1000),
    now_ms: () => wall_ms,
    monotonic_ms: () => monotonic_ms,
    advance(ms) {
      if (!(ms >= 0)) throw new RangeError(`a clock cannot advance by ${ms} ms`);
      wall_ms += ms;
      monotonic_ms += ms;
    },
    jump(now_ms) {
      wall_ms = now_ms;
    },
  };
}
