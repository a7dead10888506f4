// Time as a parameter: only shells hold a Clock; the core receives times as values. Tests and the simulator advance the manual
// clock themselves.

export type Clock = {
  /** epoch seconds, whole (PBS times) */
  now_s(): number;
  /** epoch milliseconds, with a fraction if the source has one */
  now_ms(): number;
  /** milliseconds since an arbitrary start; never goes back */
  monotonic_ms(): number;
};

export const realClock: Clock = {
  now_s: () => Math.floor(Date.now() / 1000),
  now_ms: () => performance.timeOrigin + performance.now(),
  monotonic_ms: () => performance.now(),
};

/**
 * Milliseconds of CLOCK_MONOTONIC, as a whole number. The clock is the same in all processes of a host, is never set, and stops
 * while the host is suspended. Used for durations: walltime, timeouts.
 */
export const steady_ms = (): number => Number(process.hrtime.bigint() / 1_000_000n);

export type ManualClock = Clock & {
  /** advances wall clock and monotonic clock by ms >= 0 */
  advance(ms: number): void;
  /** sets the wall clock alone, as an administrator's `date -s` does; the monotonic clock stays */
  jump(now_ms: number): void;
};

/** A clock that moves only on request. start_ms: epoch milliseconds. */
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
