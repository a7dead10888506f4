// The front of a node set says the largest amounts that its open hosts have left, and which of these hosts is the first in the walk. A chunk that exceeds these
// amounts is refused without checking each host, and the first host gives the reason. The front is made when a search has failed, because the next searches
// will hardly find more.
//
// F1. A front is valid until a host is put into a bucket of the set or taken out (node-sets.ts: attach, detach). Then it is dropped.
// F2. Bookings in the job's window, and the sharing and place that it requests, can only reduce what a host has left for it. So a "no" of the front is right.
//     After a "yes", placement decides.

import type { Chunk } from "../shapes/request.ts";
import { amountAt } from "../shapes/resource-space.ts";
import type { HostBucket, NodeSet, SetFront } from "../shapes/vnode.ts";
import { type Checks, isChecked } from "../shapes/vnode-fit.ts";
import { firstHost } from "./node-sets.ts";
import { precedes } from "./walk.ts";

/** The amounts left on a host, by resource index. */
type Left = readonly number[];

/**
 * Largest number of corners (amounts left on some host) that are compared with a chunk. If there are more, some are merged
 * into one with the maximum of each amount. A "yes" is then less often right.
 */
const CORNERS_MAX = 32;

/** Returns the front of a set as it is now. Makes it if there is none. */
export function frontOf(set: NodeSet): SetFront {
  return (set.front ??= makeFront(set));
}

/** Returns true if a chunk requests more than any open host has left. Returns false also if there is no front, so that this is not known. */
export function isBeyond(checks: Checks, { front }: NodeSet, chunk: Chunk): boolean {
  return front !== null && !front.corners.some((left) => isWithin(checks, chunk, left));
}

function isWithin(checks: Checks, { amounts }: Chunk, left: Left): boolean {
  for (const { index, amount } of amounts) if (amount > amountAt(left, index) && isChecked(checks, index)) return false;
  return true;
}

function makeFront(set: NodeSet): SetFront {
  let corners: Left[] = [];
  let first: SetFront["first"] = null;
  for (const bucket of set.open) {
    const host = firstHost(bucket);
    if (host === undefined) continue;
    if (first === null || precedes(bucket.rank, host, first.bucket.rank, first.host)) first = { host, bucket };
    corners = withCorner(corners, leftOn(bucket, set.total.length));
  }
  return { corners, first };
}

function withCorner(corners: Left[], left: Left): Left[] {
  if (corners.some((corner) => covers(corner, left))) return corners;
  const kept = corners.filter((corner) => !covers(left, corner));
  if (kept.length < CORNERS_MAX) return [...kept, left];
  const last = kept.pop() as Left;
  return [...kept, last.map((amount, index) => Math.max(amount, amountAt(left, index)))];
}

const covers = (all: Left, left: Left): boolean => all.every((amount, index) => amount >= amountAt(left, index));

function leftOn({ states, walk }: HostBucket, width: number): Left {
  const left = Array.from({ length: width }, () => 0);
  for (const at of walk) {
    const state = states[at];
    if (state === undefined || state.closed !== undefined) continue;
    for (let index = 0; index < width; index++)
      left[index] = amountAt(left, index) + Math.max(0, amountAt(state.spec.avail, index) - amountAt(state.used, index));
  }
  return left;
}
