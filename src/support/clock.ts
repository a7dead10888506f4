// Time as a parameter: the shells hold a Clock, the core is only ever told a time. The manual clock is what tests and the simulator turn by hand.

export type Clock = {
  /** epoch seconds, whole (PBS times) */
  now_s(): number;
  /** epoch milliseconds; with a fraction where the source has one */
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
 * Milliseconds of CLOCK_MONOTONIC, whole: the same in all processes of a host, never set, standing while the host is suspended. For what lasts: walltime, timeouts.
 */
export const steady_ms = (): number => Number(process.hrtime.bigint() / 1_000_000n);

export type ManualClock = Clock & {
  /** moves wall clock and monotonic clock on by ms >= 0 */
  advance(ms: number): void;
  /** sets the wall clock alone, as an administrator's `date -s` does; the monotonic clock stays */
  jump(now_ms: number): void;
};

/** A clock that stands still until it is moved. start_ms: epoch milliseconds. */
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
