// Decides whether a host can take a chunk, whole on a vnode or split over its vnodes, and how the chunk is split. These functions
// search and change nothing.

import { present } from "#support/assert.ts";
import type { Amount, Chunk } from "../shapes/request.ts";
import { amountAt } from "../shapes/resource-space.ts";
import type { HostBucket, Vnode, VnodeState } from "../shapes/vnode.ts";
import type { Checks } from "../shapes/vnode-fit.ts";
import { copiesThatFit, isChecked, matchesAll } from "../shapes/vnode-fit.ts";

/** A host, or what is true of every host of a bucket. Each array has an entry for each vnode, in the order of definition. */
export type HostView = {
  readonly vnodes: readonly Vnode[];
  readonly bucket: HostBucket;
  /** amounts that are taken of each vnode */
  readonly used: readonly (readonly number[])[];
  /** whether the job may use each vnode */
  readonly usable: readonly boolean[];
  /** whether each vnode already has a chunk of the job; null: none has */
  readonly taken: readonly boolean[] | null;
};

const stateAt = (view: HostView, at: number): VnodeState => present(view.bucket.states[at], "state");
const leftAt = (view: HostView, at: number, index: number): number =>
  Math.max(0, amountAt(stateAt(view, at).spec.avail, index) - present(view.used[at]?.[index], "amount"));

/** Returns whether a vnode may take a chunk, judged only by names and by the job's other chunks. apart: a vnode may take at most one chunk. */
export function mayTake(view: HostView, at: number, chunk: Chunk, apart: boolean): boolean {
  if (view.usable[at] !== true || (apart && view.taken?.[at] === true)) return false;
  return chunk.vnode === undefined || view.vnodes[at]?.name === chunk.vnode;
}

/** Returns whether one copy of a chunk fits on a host. apart: it must fit whole on one vnode that has no other chunk of the job. */
export function fitsHost(checks: Checks, view: HostView, chunk: Chunk, apart: boolean): boolean {
  for (let at = 0; at < view.usable.length; at++) {
    if (!mayTake(view, at, chunk, apart)) continue;
    if (copiesThatFit(checks, { spec: stateAt(view, at).spec, used: present(view.used[at], "amounts") }, chunk, 1) > 0) return true;
  }
  return !apart && canSplit(checks, view, chunk);
}

/** Returns whether the vnodes that match a chunk together have enough for it. */
export function canSplit(checks: Checks, view: HostView, chunk: Chunk): boolean {
  if (view.usable.length === 1 || chunk.vnode !== undefined) return false;
  const matching = matchingVnodes(checks, view, chunk);
  if (matching.length === 0) return false;
  return chunk.amounts.every(
    ({ index, amount }) => !isChecked(checks, index) || matching.reduce((sum, at) => sum + leftAt(view, at, index), 0) >= amount,
  );
}

/**
 * Splits a chunk for which canSplit is true: takes from each vnode what it has left, in the order of the walk. Amounts that
 * are not checked and do not fit are taken from the first vnode.
 */
export function splitChunk(checks: Checks, view: HostView, chunk: Chunk): { readonly at: number; readonly amounts: readonly Amount[] }[] {
  const need = new Map(chunk.amounts.map(({ index, amount }) => [index, amount]));
  const parts: { at: number; amounts: Amount[] }[] = [];
  const matching = new Set(matchingVnodes(checks, view, chunk));
  for (const at of view.bucket.walk) {
    if (!matching.has(at)) continue;
    const amounts: Amount[] = [];
    for (const [index, wanted] of need) {
      const amount = Math.min(leftAt(view, at, index), wanted);
      if (amount <= 0) continue;
      amounts.push({ index, amount });
      need.set(index, wanted - amount);
    }
    if (amounts.length > 0) parts.push({ at, amounts });
  }
  const [first] = parts;
  if (first !== undefined) first.amounts = withRest(first.amounts, need);
  return parts;
}

function withRest(amounts: readonly Amount[], rest: ReadonlyMap<number, number>): Amount[] {
  const sums = new Map(amounts.map(({ index, amount }) => [index, amount]));
  for (const [index, amount] of rest) if (amount > 0) sums.set(index, (sums.get(index) ?? 0) + amount);
  return [...sums].map(([index, amount]) => ({ index, amount }));
}

function matchingVnodes(checks: Checks, view: HostView, chunk: Chunk): number[] {
  return view.usable.flatMap((can, at) => (can && matchesAll(checks, stateAt(view, at).spec, chunk) ? [at] : []));
}
