// The names of the algorithms that a replay can use: fcfs, easy, sjbf, log, depthN, depthinf, cons (docs/sim.md explains them).

import type { BackfillOrder } from "#model/sched-policies.ts";
import type { Policy } from "#sched/shapes/policy.ts";

export type Algorithm = { readonly kind: "fcfs" } | Backfilling | { readonly kind: "cons" };

/** Up to `depth` blocked jobs get a plan in each pass. order: the order of jobs. behind: the order of the jobs behind those with plans. */
export type Backfilling = {
  readonly kind: "depth";
  readonly depth: number;
  readonly order: NonNullable<Policy["job_order"]>;
  readonly behind: Exclude<BackfillOrder, "formula">;
};

const EASY: Backfilling = { kind: "depth", depth: 1, order: "arrival", behind: "queue" };

const NAMED: ReadonlyMap<string, Algorithm> = new Map<string, Algorithm>([
  ["fcfs", { kind: "fcfs" }],
  ["cons", { kind: "cons" }],
  ["easy", EASY],
  ["sjbf", { ...EASY, behind: "shortest" }],
  ["log", { ...EASY, order: "log", behind: "shortest" }],
]);

/** Returns the algorithm of that name, or null for an unknown name. easy is depth1. */
export function algorithmNamed(name: string): Algorithm | null {
  const named = NAMED.get(name);
  if (named !== undefined) return named;
  const depth = /^depth([1-9][0-9]{0,8}|inf)$/.exec(name)?.[1];
  return depth === undefined ? null : { ...EASY, depth: depth === "inf" ? Number.POSITIVE_INFINITY : Number(depth) };
}
