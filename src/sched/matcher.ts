// Which of the hosts that can take a chunk gets it (`backfill.matcher:` of sched_config; Maui's Matcher, BACKFILLPOLICY FIRSTFIT and BESTFIT). A matcher
// decides between hosts that node_sort_key does not tell apart; between those that are equal to it the order of definition decides. Leaf functions.
//
// M1. A matcher never changes whether a job can be placed on one host, only on which: every host it is asked about can take at least one copy.
// M2. What it says follows from what the vnodes have left and from the chunk, so that hosts of one bucket are equal to it.

import type { HostView } from "./host-fit.ts";
import type { Chunk } from "./request.ts";
import type { Checks } from "./vnode-fit.ts";
import { isChecked, matchesAll } from "./vnode-fit.ts";

/** How well copies of a chunk go on a host. */
export type Fit = {
  /** how many of those that are still needed it takes */
  readonly copies: number;
  /** what it then has left of what the chunk asks, as shares of what the node set has, added up */
  readonly left: number;
};

export type Matcher = {
  readonly name: string;
  /** Whether a host with one fit is better than one with another; null: none is, the first host is taken and no fit is computed. */
  readonly isBetter: ((a: Fit, b: Fit) => boolean) | null;
};

/** The first host in the order of walking. */
const FIRST_FIT: Matcher = { name: "first_fit", isBetter: null };

/** The host that takes most of what is needed, of those the one that has least left: holes stay few and large, and so do the places for large jobs. */
const BEST_FIT: Matcher = {
  name: "best_fit",
  isBetter: (a, b) => a.copies > b.copies || (a.copies === b.copies && a.left < b.left - ROUNDING),
};

/** Shares are fractions that were added up in different orders. */
const ROUNDING = 1e-9;

export const MATCHERS = { first_fit: FIRST_FIT, best_fit: BEST_FIT } as const;
export type MatcherName = keyof typeof MATCHERS;
export const MATCHER_NAMES = Object.keys(MATCHERS) as readonly MatcherName[];

/**
 * How well a chunk goes on a host that can take it. need: copies that still look for a place. total: what the node set has of each resource.
 * Copies are counted over all vnodes that the job may use, since what no vnode takes whole is split over them (placement.ts P3).
 */
export function fitOf(checks: Checks, view: HostView, chunk: Chunk, need: number, total: readonly number[]): Fit {
  const levels = chunk.amounts.flatMap(({ index, amount }) => {
    if (amount <= 0 || !isChecked(checks, index)) return [];
    const left = leftOn(checks, view, chunk, index);
    return left === Number.POSITIVE_INFINITY ? [] : [{ left, amount, of: total[index] as number }];
  });
  const copies = levels.reduce((least, { left, amount }) => Math.min(least, Math.floor(left / amount)), need);
  return { copies, left: levels.reduce((sum, { left, amount, of }) => sum + (left - copies * amount) / of, 0) };
}

function leftOn(checks: Checks, { bucket, used, usable }: HostView, chunk: Chunk, index: number): number {
  let sum = 0;
  for (let at = 0; at < usable.length; at++) {
    const spec = bucket.states[at]?.spec;
    if (usable[at] !== true || spec === undefined || !matchesAll(checks, spec, chunk)) continue;
    sum += Math.max(0, (spec.avail[index] as number) - (used[at]?.[index] as number));
  }
  return sum;
}
