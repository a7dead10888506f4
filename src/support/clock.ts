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

/** A wall clock that moves by so much against the monotonic clock between two looks was set. */
export const CLOCK_JUMP_MS = 1000;

/** How far the wall clock was set since the last look, in ms; 0: it was not. A drift that an NTP daemon corrects bit by bit is none. */
export function jumpWatch(wall_ms: () => number = Date.now, monotonic_ms: () => number = () => performance.now()): () => number {
  let before_ms = wall_ms() - monotonic_ms();
  return () => {
    const now_ms = wall_ms() - monotonic_ms();
    const by_ms = now_ms - before_ms;
    before_ms = now_ms;
    return Math.abs(by_ms) >= CLOCK_JUMP_MS ? by_ms : 0;
  };
}

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
