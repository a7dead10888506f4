// How many jobs of a campaign a cluster can take: the job ratio (jobs per free resource) of each pair of campaign and cluster,
// adapted from cycle to cycle (docs/campaigns.md). Pure.
//
// A predictor looks at the last batch: how many of its jobs were accepted, how many run, and how many of the campaign's jobs
// wait beyond what is allowed (the excess). The inverse of the ratio is the number of resources that one job takes.
//
// R1. 1 / resources of the cluster <= ratio <= RATIO_MAX. The lower bound is "one job on the cluster".
// R2. If the last batch was empty, the ratio stays as it is: nothing was tried, so nothing was learned. Only `simple` does not
//     look at the last batch; its ratio follows from the measured resources of the jobs.

import type { Batch } from "../shapes/universe.ts";

/** The names of the predictors, in the order in which tables show them. */
export const PREDICTORS = ["slow-start", "two-way", "exponential-up", "simple", "tap"] as const;
export type PredictorName = (typeof PREDICTORS)[number];

const RATIO_MAX = 4;
/** The ratio of `simple` before any job has been measured. */
const RATIO_UNMEASURED = 0.5;

/** What the cluster shows of a campaign at the beginning of a cycle. */
export type Observation = {
  /** all resources of the cluster */
  readonly resources: number;
  readonly free: number;
  /** jobs of the campaign that wait on the cluster */
  readonly waiting: number;
  /** how many may wait (allowedWaiting) */
  readonly allowed: number;
  /** jobs of the last batch that run */
  readonly running: number;
  /** resources that are assigned to the jobs of the last batch that have started */
  readonly used: number;
  /** mean resources of a job of the campaign on the cluster; null: no job has been measured */
  readonly resources_per_job: number | null;
};

/** Returns the number of jobs of a campaign that may wait on a cluster. flood_rate: share of the cluster's resources. */
export const allowedWaiting = (resources: number, flood_rate: number): number => Math.floor(flood_rate * resources);

export const excessOf = ({ waiting, allowed }: Pick<Observation, "waiting" | "allowed">): number => Math.max(0, waiting - allowed);

/** Returns the ratio of a pair before its first batch. requested: the resources that each job requests; null: unknown. */
export function firstRatio(predictor: PredictorName, resources: number, requested: number | null): number {
  if (predictor === "slow-start") return bounded(1 / resources, resources);
  if (predictor === "simple" && requested === null) return RATIO_UNMEASURED;
  return bounded(requested === null ? 1 : 1 / requested, resources);
}

/** Returns the ratio for this cycle. ratio: the ratio of the last cycle. batch: the last batch; null: there was none. */
export function nextRatio(predictor: PredictorName, ratio: number, batch: Batch | null, seen: Observation): number {
  if (predictor === "simple") {
    return seen.resources_per_job === null ? ratio : bounded(1 / seen.resources_per_job, seen.resources);
  }
  if (predictor === "tap" || batch === null || batch.submitted === 0) return ratio;
  return bounded(adapted(predictor, ratio, batch, seen), seen.resources);
}

function adapted(predictor: "slow-start" | "two-way" | "exponential-up", ratio: number, batch: Batch, seen: Observation): number {
  const excess = excessOf(seen);
  if (excess > 0) {
    if (predictor === "slow-start") return 0;
    return (ratio * Math.max(0, batch.submitted - excess)) / batch.submitted;
  }
  if (predictor === "slow-start") return 2 * ratio;
  if (seen.free === 0) return ratio;
  return predictor === "exponential-up" ? 2 * ratio : ratio * Math.min(2, growth(batch, seen));
}

/**
 * Returns the growth of the two-way predictor. The first term exceeds 1 if a part of the batch has already ended: the jobs are short. The second term exceeds 1 if
 * resources were left that the batch did not use.
 */
function growth(batch: Batch, { running, waiting, used }: Observation): number {
  return Math.max(batch.submitted / Math.max(1, running + waiting), batch.free / Math.max(1, used));
}

const bounded = (ratio: number, resources: number): number => Math.min(RATIO_MAX, Math.max(1 / resources, ratio));

/** Returns the number of jobs to submit for a ratio: at least one if any resource is free, and none otherwise. */
export function jobsFor(ratio: number, free: number): number {
  // A ratio is the result of divisions, so a product that should be whole may be a little smaller.
  return free < 1 ? 0 : Math.max(1, Math.floor(ratio * free + ROUNDING));
}
const ROUNDING = 1e-9;
