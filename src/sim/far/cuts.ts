// Directions in which the network carries nothing for a time. A host can be cut off in one direction or in both.

/** up: from the host to the server; down: from the server to the host */
export type Way = "up" | "down";

export type Cuts = {
  /** Cuts off a host in these directions for a time. If the direction is already cut for longer, that does not change. */
  cut(host: string, ways: readonly Way[], for_ms: number): void;
  /** the time in ms for which the direction is still cut; 0: it is not */
  left_ms(host: string, way: Way): number;
  /** Ends all cuts. */
  mend(): void;
};

/** now_ms: returns the time of the simulation. */
export function createCuts(now_ms: () => number): Cuts {
  const until_ms = new Map<string, number>();
  return {
    cut(host, ways, for_ms) {
      for (const way of ways) {
        const key = `${way} ${host}`;
        until_ms.set(key, Math.max(until_ms.get(key) ?? 0, now_ms() + for_ms));
      }
    },
    left_ms: (host, way) => Math.max(0, (until_ms.get(`${way} ${host}`) ?? 0) - now_ms()),
    mend: () => until_ms.clear(),
  };
}
