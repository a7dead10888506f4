// Chooses among the hosts that can take a chunk (`backfill.matcher:` of sched_config; Maui's Matcher, BACKFILLPOLICY FIRSTFIT and BESTFIT). A matcher
// decides between hosts that node_sort_key does not distinguish. If it finds hosts equal, the order of definition decides. These functions search and
// change nothing.
//
// M1. A matcher never decides whether a job can be placed, only where: every host that it considers can take at least one copy.
// M2. Its result depends only on what the vnodes have left and on the chunk, so it finds the hosts of one bucket equal.

import { present } from "#support/assert.ts";
import type { MatcherName } from "../shapes/policy.ts";
import type { Chunk } from "../shapes/request.ts";
import { amountAt } from "../shapes/resource-space.ts";
import type { Checks } from "../shapes/vnode-fit.ts";
import { isChecked, matchesAll } from "../shapes/vnode-fit.ts";
import type { HostView } from "./host-fit.ts";

/** How well copies of a chunk fit on a host. */
export type Fit = {
  /** how many of the needed copies fit on the host */
  readonly copies: number;
  /** the sum, over the requested resources, of (what the host has left with these copies) / (total of the node set) */
  readonly left: number;
};

export type Matcher = {
  readonly name: string;
  /** Returns whether a host with fit a is better than one with fit b. null: the matcher computes no fits, and the first host is taken. */
  readonly isBetter: ((a: Fit, b: Fit) => boolean) | null;
};

/** Takes the first host in the order of the walk. */
const FIRST_FIT: Matcher = { name: "first_fit", isBetter: null };

/** Takes the host on which most copies fit and, among several, the one with least left. Gaps then stay few and large, so that large jobs find room. */
const BEST_FIT: Matcher = {
  name: "best_fit",
  isBetter: (a, b) => a.copies > b.copies || (a.copies === b.copies && a.left < b.left - ROUNDING),
};

/** Tolerance for `left`: fractions are summed in different orders. */
const ROUNDING = 1e-9;

export const MATCHERS: Readonly<Record<MatcherName, Matcher>> = { first_fit: FIRST_FIT, best_fit: BEST_FIT };

/**
 * Returns how well a chunk fits on a host that can take it. need: copies that have not been placed yet. total: the amounts of the node set. Copies are
 * counted over all vnodes that the job may use, because a chunk that fits on no single vnode is split over several (placement.ts P3).
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
