// The names of the algorithms that a replay can use: fcfs, easy, sjbf, log, depthN, depthinf, cons (docs/sim.md explains them).

import type { BackfillOrder } from "#model/sched-policies.ts";

export type Algorithm = { readonly kind: "fcfs" } | Backfilling | { readonly kind: "cons" };

/** Up to `depth` blocked jobs get a plan in each pass. order: the order of jobs. behind: the order of the jobs behind those with plans. */
export type Backfilling = {
  readonly kind: "depth";
  readonly depth: number;
  readonly order: JobOrder;
  readonly behind: Exclude<BackfillOrder, "formula">;
};

/**
 * The order of jobs: submission + walltime_s * log2(walltime / 60) + width_s * log2(slots), in seconds, smallest first. walltime_s and width_s say for how many
 * seconds of waiting a job makes up when it requests twice the walltime or twice the slots. Both 0: the order of arrival. 3600 and 0: the policy log.
 */
export type JobOrder = { readonly walltime_s: number; readonly width_s: number };
export const ARRIVAL: JobOrder = { walltime_s: 0, width_s: 0 };
const LOG: JobOrder = { walltime_s: 3600, width_s: 0 };

export const EASY: Backfilling = { kind: "depth", depth: 1, order: ARRIVAL, behind: "queue" };

const NAMED: ReadonlyMap<string, Algorithm> = new Map<string, Algorithm>([
  ["fcfs", { kind: "fcfs" }],
  ["cons", { kind: "cons" }],
  ["easy", EASY],
  ["sjbf", { ...EASY, behind: "shortest" }],
  ["log", { ...EASY, order: LOG, behind: "shortest" }],
]);

/** Returns the algorithm of that name, or null for an unknown name. easy is depth1. */
export function algorithmNamed(name: string): Algorithm | null {
  const named = NAMED.get(name);
  if (named !== undefined) return named;
  const depth = /^depth([1-9][0-9]{0,8}|inf)$/.exec(name)?.[1];
  return depth === undefined ? null : { ...EASY, depth: depth === "inf" ? Number.POSITIVE_INFINITY : Number(depth) };
}
