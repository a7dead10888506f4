// Compares the schedules of one trace under many settings of a scheduler (docs/tune.md). Pure.
//
// U1. The interval of a difference is that of a bootstrap over weeks of submission: whole weeks are drawn, because jobs of one week share queues and are not
//     independent. The drawing is the same in every run.

import { nth } from "#support/assert.ts";
import { ARRIVAL, type Backfilling, EASY } from "./algorithm.ts";
import { type Metrics, metricsOf } from "./metrics.ts";
import { type PoolSpec, replay } from "./replay.ts";
import type { TraceJob } from "./trace.ts";

export const GOALS = ["slowdown", "wait", "longest"] as const;
/** The figure that is to be lowest, and the longest wait that is allowed, in percent of that of easy. */
export type Goal = { readonly figure: (typeof GOALS)[number]; readonly longest_percent: number };

export type Tried = {
  readonly name: string;
  readonly algorithm: Backfilling;
  readonly metrics: Metrics;
  readonly starts_s: readonly number[];
  /** difference of the mean bounded slowdown to easy, with the bounds of its 95 % interval */
  readonly change: { readonly mean: number; readonly low: number; readonly high: number };
  /** whether the longest wait is allowed by the goal */
  readonly allowed: boolean;
};

const WALLTIMES_S = [0, 1800, 3600, 4600, 7200];
const BEHIND = ["queue", "shortest", "smallest_area", "expansion"] as const;
const DEPTHS = [2, 4];

/** Returns the settings that are tried, easy first. */
export function candidates(): { readonly name: string; readonly algorithm: Backfilling }[] {
  const made = WALLTIMES_S.flatMap((walltime_s) =>
    BEHIND.map((behind): Backfilling => ({ ...EASY, order: { ...ARRIVAL, walltime_s }, behind })),
  );
  for (const depth of DEPTHS)
    for (const walltime_s of [0, 3600]) made.push({ ...EASY, depth, order: { ...ARRIVAL, walltime_s }, behind: "shortest" });
  return made.map((algorithm) => ({ name: nameOf(algorithm), algorithm }));
}

function nameOf({ order, behind, depth }: Backfilling): string {
  const first = order.walltime_s === 0 ? "arrival" : order.walltime_s === 3600 ? "log" : `log ${order.walltime_s} s`;
  return `${first}, ${behind}${depth === 1 ? "" : `, depth ${depth}`}`;
}

/** Replays the jobs under each of the settings. tell: called with the name of each before its replay. */
export function tryAll(jobs: readonly TraceJob[], pools: readonly PoolSpec[], goal: Goal, tell: (name: string) => void): Tried[] {
  const procs = pools.reduce((sum, pool) => sum + pool.procs, 0);
  let easy: { readonly slowdowns: readonly number[]; readonly longest_s: number } | null = null;
  return candidates().map(({ name, algorithm }) => {
    tell(name);
    const { starts_s } = replay({ jobs, pools, algorithm });
    const metrics = metricsOf(jobs, starts_s, procs);
    const slowdowns = jobs.map(({ submit_s, run_s }, at) => Math.max(1, (nth(starts_s, at) - submit_s + run_s) / Math.max(run_s, 10)));
    easy ??= { slowdowns, longest_s: metrics.wait_s.max };
    const change = changeOf(jobs, easy.slowdowns, slowdowns);
    return { name, algorithm, metrics, starts_s, change, allowed: metrics.wait_s.max * 100 <= easy.longest_s * goal.longest_percent };
  });
}

/** Returns the settings with the lowest figure among those that the goal allows. The first is easy, which is always allowed. */
export function bestOf(tried: readonly Tried[], { figure }: Goal): Tried {
  const figureOf = ({ metrics }: Tried): number =>
    figure === "slowdown" ? metrics.bounded_slowdown.mean : figure === "wait" ? metrics.wait_s.mean : metrics.wait_s.max;
  return tried.filter(({ allowed }) => allowed).reduce((best, one) => (figureOf(one) < figureOf(best) ? one : best), nth(tried, 0));
}

const WEEK_S = 7 * 86_400;
const DRAWS = 1000;

function changeOf(jobs: readonly TraceJob[], before: readonly number[], after: readonly number[]): Tried["change"] {
  const weeks = new Map<number, { sum: number; jobs: number }>();
  jobs.forEach(({ submit_s }, at) => {
    const key = Math.floor(submit_s / WEEK_S);
    const week = weeks.get(key) ?? { sum: 0, jobs: 0 };
    week.sum += nth(after, at) - nth(before, at);
    week.jobs++;
    weeks.set(key, week);
  });
  const all = [...weeks.values()];
  const meanOf = (some: typeof all): number =>
    some.reduce((sum, week) => sum + week.sum, 0) / some.reduce((sum, week) => sum + week.jobs, 0);
  if (all.length === 0) return { mean: 0, low: 0, high: 0 };
  const random = numbersFrom(1);
  const draws = Array.from({ length: DRAWS }, () => meanOf(all.map(() => nth(all, Math.floor(random() * all.length))))).sort(
    (a, b) => a - b,
  );
  return { mean: meanOf(all), low: nth(draws, Math.floor(0.025 * DRAWS)), high: nth(draws, Math.ceil(0.975 * DRAWS) - 1) };
}

/** Returns a function that gives numbers from 0 to 1, the same ones for the same seed (the generator of Numerical Recipes). */
function numbersFrom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

/** The jobs of one user or of one size under two settings. */
export type Share = { readonly name: string; readonly jobs: number; readonly wait_s: readonly [before: number, after: number] };

/** Returns the mean waits of users with at least `least` jobs under two schedules, those who lose most first. */
export function usersOf(jobs: readonly TraceJob[], before: readonly number[], after: readonly number[], least = 20): Share[] {
  const users = new Map<number, { jobs: number; before: number; after: number }>();
  jobs.forEach(({ user = -1, submit_s }, at) => {
    const sum = users.get(user) ?? { jobs: 0, before: 0, after: 0 };
    sum.jobs++;
    sum.before += nth(before, at) - submit_s;
    sum.after += nth(after, at) - submit_s;
    users.set(user, sum);
  });
  const shares = [...users].flatMap(([user, sum]): Share[] =>
    sum.jobs < least || user < 0 ? [] : [{ name: `user ${user}`, jobs: sum.jobs, wait_s: [sum.before / sum.jobs, sum.after / sum.jobs] }],
  );
  return shares.sort((a, b) => b.wait_s[1] - b.wait_s[0] - (a.wait_s[1] - a.wait_s[0]));
}

/** Returns the mean waits by size of the job under two schedules, small jobs first. */
export function sizesOf(before: Metrics, after: Metrics): Share[] {
  return before.by_procs.map(({ upto, jobs, wait_s_mean }, at) => ({
    name: upto === null ? "more slots" : `<= ${upto} slots`,
    jobs,
    wait_s: [wait_s_mean, after.by_procs[at]?.wait_s_mean ?? wait_s_mean],
  }));
}
