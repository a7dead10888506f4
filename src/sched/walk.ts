// The order in which hosts are walked: by node_sort_key, then by definition.

import { compareRanks } from "./node-sets.ts";
import type { Host } from "./universe.ts";

/** Whether a host is walked before another. */
export function precedes(rankA: readonly number[], a: Host, rankB: readonly number[], b: Host): boolean {
  const order = compareRanks(rankA, rankB);
  return order < 0 || (order === 0 && a.order < b.order);
}
