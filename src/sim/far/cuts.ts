// Directions in which the network carries nothing for a time, or carries data slowly because it loses many packets, which TCP
// sends again. A host can be cut off in one direction or in both.

/** up: from the host to the server; down: from the server to the host */
export type Way = "up" | "down";

export type Slowness = { readonly delay_ms: number; readonly loss: number };

export type Cuts = {
  /** Cuts off a host in these directions for a time. If the direction is already cut for longer, that does not change. */
  cut(host: string, ways: readonly Way[], for_ms: number): void;
  /** Slows a direction down for a time: each frame takes up to delay_ms longer, and datagrams are lost with this probability. */
  slow(host: string, ways: readonly Way[], slowness: Slowness, for_ms: number): void;
  /** Returns how slow the direction is now; null: it is not slow. */
  slowness(host: string, way: Way): Slowness | null;
  /** Returns the time in ms for which the direction is still cut; 0: it is not cut. */
  left_ms(host: string, way: Way): number;
  /** Ends all cuts, and makes all directions fast again. */
  mend(): void;
};

/** now_ms: returns the time of the simulation. */
export function createCuts(now_ms: () => number): Cuts {
  const until_ms = new Map<string, number>();
  const slow = new Map<string, { readonly until_ms: number; readonly slowness: Slowness }>();
  return {
    slow(host, ways, slowness, for_ms) {
      for (const way of ways) slow.set(`${way} ${host}`, { until_ms: now_ms() + for_ms, slowness });
    },
    slowness(host, way) {
      const found = slow.get(`${way} ${host}`);
      return found === undefined || found.until_ms <= now_ms() ? null : found.slowness;
    },
    cut(host, ways, for_ms) {
      for (const way of ways) {
        const key = `${way} ${host}`;
        until_ms.set(key, Math.max(until_ms.get(key) ?? 0, now_ms() + for_ms));
      }
    },
    left_ms: (host, way) => Math.max(0, (until_ms.get(`${way} ${host}`) ?? 0) - now_ms()),
    mend() {
      until_ms.clear();
      slow.clear();
    },
  };
}
