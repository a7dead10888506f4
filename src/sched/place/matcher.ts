// The matcher chooses among the hosts that can take a chunk (`backfill.matcher:` of sched_config; Maui's Matcher, BACKFILLPOLICY FIRSTFIT and BESTFIT). It
// decides between hosts that node_sort_key does not distinguish; between hosts that it finds equal, the order of definition decides. Leaf functions.
//
// M1. A matcher never changes whether a job can be placed, only where: every host that it considers can take at least one copy.
// M2. Its result depends only on what the vnodes have left and on the chunk, so hosts of one bucket are equal.

import { present } from "#support/assert.ts";
import type { MatcherName } from "../shapes/policy.ts";
import type { Chunk } from "../shapes/request.ts";
import { amountAt } from "../shapes/resource-space.ts";
import type { Checks } from "../shapes/vnode-fit.ts";
import { isChecked, matchesAll } from "../shapes/vnode-fit.ts";
import type { HostView } from "./host-fit.ts";

/** How well copies of a chunk fit on a host. */
export type Fit = {
  /** the number of needed copies that it takes */
  readonly copies: number;
  /** the remaining requested resources on it, as shares of the node set's totals, summed */
  readonly left: number;
};

export type Matcher = {
  readonly name: string;
  /** Whether a host with one fit is better than one with another; null: no fit is computed, and the first host is taken. */
  readonly isBetter: ((a: Fit, b: Fit) => boolean) | null;
};

/** The first host in the order of walking. */
const FIRST_FIT: Matcher = { name: "first_fit", isBetter: null };

/** The host that takes most copies, and among several the one with the least left: gaps stay few and large, and so do the places for large jobs. */
const BEST_FIT: Matcher = {
  name: "best_fit",
  isBetter: (a, b) => a.copies > b.copies || (a.copies === b.copies && a.left < b.left - ROUNDING),
};

/** Shares are fractions that are summed in different orders. */
const ROUNDING = 1e-9;

export const MATCHERS: Readonly<Record<MatcherName, Matcher>> = { first_fit: FIRST_FIT, best_fit: BEST_FIT };

/**
 * How well a chunk fits on a host that can take it. need: copies that have no place yet. total: amounts of the node set. Copies are counted over all vnodes
 * that the job may use, because a chunk that fits on no single vnode is split over them (placement.ts P3).
 */
export function fitOf(checks: Checks, view: HostView, chunk: Chunk, need: number, total: readonly number[]): Fit {
  const levels = chunk.amounts.flatMap(({ index, amount }) => {
    if (amount <= 0 || !isChecked(checks, index)) return [];
    const left = leftOn(checks, view, chunk, index);
    return left === Number.POSITIVE_INFINITY ? [] : [{ left, amount, of: amountAt(total, index) }];
  });
  const copies = levels.reduce((least, { left, amount }) => Math.min(least, Math.floor(left / amount)), need);
  return { copies, left: levels.reduce((sum, { left, amount, of }) => sum + (left - copies * amount) / of, 0) };
}

function leftOn(checks: Checks, { bucket, used, usable }: HostView, chunk: Chunk, index: number): number {
  let sum = 0;
  for (let at = 0; at < usable.length; at++) {
    const spec = bucket.states[at]?.spec;
    if (usable[at] !== true || spec === undefined || !matchesAll(checks, spec, chunk)) continue;
    sum += Math.max(0, amountAt(spec.avail, index) - present(used[at]?.[index], "amount"));
  }
  return sum;
}
