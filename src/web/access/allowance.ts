// How many requests a user may make: a bucket that fills at a fixed rate. One bucket for each user, whatever tokens the user has.

export type Allowance = {
  /** Takes one request. Returns 0, or the seconds after which the next request is accepted. */
  take(user: string, now_ms: number): number;
};

/** burst: requests that may come at once. per_s: requests a second that are allowed over a long time. users_max: most buckets that are kept. */
export function allowance(limits: { readonly burst: number; readonly per_s: number; readonly users_max: number }): Allowance {
  const buckets = new Map<string, { level: number; at_ms: number }>();
  return {
    take(user, now_ms) {
      const found = buckets.get(user);
      const level =
        found === undefined ? limits.burst : Math.min(limits.burst, found.level + ((now_ms - found.at_ms) / 1000) * limits.per_s);
      // The bucket that was used last is the last of the map, so the first is the one that nobody has used for the longest time.
      buckets.delete(user);
      buckets.set(user, { level: level < 1 ? level : level - 1, at_ms: now_ms });
      if (buckets.size > limits.users_max) for (const first of buckets.keys()) if (buckets.delete(first)) break;
      return level < 1 ? Math.ceil((1 - level) / limits.per_s) : 0;
    },
  };
}
