// The largest amounts that the open hosts of a node set have left, and which of these hosts is walked first. A chunk that is too large for all of them is refused
// without checking each host, and its job gets the reason. It is made when a search has failed, because the next searches will hardly find more.
//
// F1. It holds until a host of the set is added or removed (node-sets.ts: attach, detach); then it is dropped.
// F2. No window, sharing or place makes more free than it says, so its no is right. Placement decides whether its yes is.

import type { Chunk } from "../shapes/request.ts";
import { amountAt } from "../shapes/resource-space.ts";
import type { HostBucket, NodeSet, SetFront } from "../shapes/vnode.ts";
import { type Checks, isChecked } from "../shapes/vnode-fit.ts";
import { firstHost } from "./node-sets.ts";
import { precedes } from "./walk.ts";

/** Amounts left, by resource. */
type Left = readonly number[];

/** Number of corners that are checked for a chunk. If there are more, some are merged into one with the maximum of each: then a yes is less often right. */
const CORNERS_MAX = 32;

/** The front of a set as it is now; made when there is none. */
export function frontOf(set: NodeSet): SetFront {
  return (set.front ??= makeFront(set));
}

/** Whether a chunk requests more than any open host has left, as far as that is known already. */
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
