// The order in which hosts are walked: by node_sort_key, then by the matcher, then in the order of definition.

import type { Host, HostBucket } from "../shapes/vnode.ts";
import { compareRanks } from "./host-bucket.ts";
import type { Fit, Matcher } from "./matcher.ts";

/** A host that could be next. fit: how well the chunk fits on it, for the matcher; null: the matcher computes none. */
export type Option = { readonly bucket: HostBucket; readonly host: Host; readonly fit: Fit | null };

/** Returns whether a host comes before another in the walk. */
export function precedes(rankA: readonly number[], a: Host, rankB: readonly number[], b: Host): boolean {
  const order = compareRanks(rankA, rankB);
  return order < 0 || (order === 0 && a.order < b.order);
}

/** Returns the function that orders options for a matcher. */
export function orderOf({ isBetter }: Matcher): (a: Option, b: Option) => boolean {
  if (isBetter === null) return (a, b) => precedes(a.bucket.rank, a.host, b.bucket.rank, b.host);
  return (a, b) => {
    const order = compareRanks(a.bucket.rank, b.bucket.rank);
    if (order !== 0 || a.fit === null || b.fit === null) return order < 0;
    return isBetter(a.fit, b.fit) || (!isBetter(b.fit, a.fit) && a.host.order < b.host.order);
  };
}
