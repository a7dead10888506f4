// How many copies of each chunk the hosts of a set could take, kept up to date while hosts move between buckets. The counts give a quick "no" for most times
// at which a job does not fit. The counts are never too small, so a "no" is right. After a "yes", placement decides whether the copies fit together.

import { present } from "#support/assert.ts";
import type { Window } from "../shapes/booking.ts";
import type { Chunk, Request } from "../shapes/request.ts";
import { amountAt } from "../shapes/resource-space.ts";
import type { Universe } from "../shapes/universe.ts";
import type { HostBucket, NodeSet, VnodeState } from "../shapes/vnode.ts";
import { type Checks, copiesThatFit, ineligible, isChecked, matchesAll } from "../shapes/vnode-fit.ts";
import { statesDuring } from "./outlook.ts";

export type CopyCounts = {
  /** Counts again from the present buckets. */
  reset(): void;
  /** Must be called when a host has moved from one bucket to another. */
  move(from: HostBucket, to: HostBucket): void;
  /** Returns whether the hosts could take enough copies of each chunk in a window. */
  allow(window: Window): boolean;
};

/** Creates the counts for a request on a node set. */
export function createCopyCounts({ checks }: Universe, set: NodeSet, request: Request): CopyCounts {
  const { chunks, place } = request;
  const packed = place.arrangement === "pack" && request.chunk_count > 1;
  /** a chunk that names a host is not counted, because placement looks at that host directly */
  const isNamed = ({ host, vnode }: Chunk): boolean => host !== undefined || vnode !== undefined;
  const need = packed ? [1] : chunks.map((chunk) => (isNamed(chunk) ? 0 : chunk.count));
  const sums = need.map(() => 0);
  const known = new Map<HostBucket, readonly number[]>();

  const copies = (states: readonly VnodeState[]): number[] =>
    packed
      ? [chunks.every((chunk) => isNamed(chunk) || copiesOn(checks, request, states, chunk) >= chunk.count) ? 1 : 0]
      : chunks.map((chunk, at) => (need[at] === 0 ? 0 : copiesOn(checks, request, states, chunk)));

  const add = (bucket: HostBucket, hosts: number): void => {
    if (bucket.outlook !== null || bucket.free_count === 0) return;
    let counts = known.get(bucket);
    if (counts === undefined) known.set(bucket, (counts = copies(bucket.states)));
    for (let at = 0; at < sums.length; at++) sums[at] = amountAt(sums, at) + hosts * amountAt(counts, at);
  };

  return {
    reset() {
      sums.fill(0);
      for (const bucket of set.open) add(bucket, bucket.count);
    },
    move(from, to) {
      add(from, -1);
      add(to, 1);
    },
    allow(window) {
      if (need.every((count, at) => count <= amountAt(sums, at))) return true;
      const all = [...sums];
      for (const bucket of set.booked) {
        const counts = copies(statesDuring(bucket, window));
        for (let at = 0; at < all.length; at++) all[at] = amountAt(all, at) + bucket.count * amountAt(counts, at);
      }
      return need.every((count, at) => count <= amountAt(all, at));
    },
  };
}

const NOBODY = { user: 0, group: 0 };

/** Returns the largest number of copies of a chunk that a host could take. */
export function copiesOn(checks: Checks, request: Request, states: readonly VnodeState[], chunk: Chunk): number {
  const { arrangement } = request.place;
  const open = states.filter((state) => ineligible(request, state, states, () => NOBODY) === null && matchesAll(checks, state.spec, chunk));
  if (open.length === 0) return 0;
  const most = arrangement === "scatter" ? 1 : chunk.count;
  const whole = open.map((state) => copiesThatFit(checks, state, chunk, most));
  if (arrangement === "vscatter") return whole.filter((count) => count > 0).length;
  if (open.length === 1) return present(whole[0], "amount");
  return Math.min(most, Math.max(copiesTogether(checks, open, chunk, most), ...whole));
}

/** Returns the number of copies as if all free resources of the vnodes were on one of them. */
function copiesTogether(checks: Checks, states: readonly VnodeState[], chunk: Chunk, most: number): number {
  let copies = most;
  for (const { index, amount } of chunk.amounts) {
    if (amount <= 0 || !isChecked(checks, index)) continue;
    const left = states.reduce((sum, { spec, used }) => sum + Math.max(0, amountAt(spec.avail, index) - amountAt(used, index)), 0);
    copies = Math.min(copies, Math.floor(left / amount));
  }
  return copies;
}
