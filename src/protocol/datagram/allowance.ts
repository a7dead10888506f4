// How many datagrams may be decrypted: some at once, and then a number per second.

export type Allowance = {
  /** Takes one datagram from the allowance. Returns false if nothing is left. now_ms: time of a clock that is never set */
  take(now_ms: number): boolean;
};

/** burst: number of datagrams at once; rate_per_s: how fast the allowance grows again */
export function allowance({ burst, rate_per_s, now_ms }: { burst: number; rate_per_s: number; now_ms: number }): Allowance {
  let left = burst;
  let counted_ms = now_ms;
  return {
    take(at_ms) {
      left = Math.min(burst, left + (Math.max(0, at_ms - counted_ms) / 1000) * rate_per_s);
      counted_ms = at_ms;
      if (left < 1) return false;
      left--;
      return true;
    },
  };
}
