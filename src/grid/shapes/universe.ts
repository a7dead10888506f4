// What a cycle of the grid sees: the clusters as they were read last, and of each campaign the work left and its jobs on each
// cluster. The cycle (cycle/grid-cycle.ts) does not change it. Pure.

import type { Campaign } from "./campaign.ts";

export type ClusterView = {
  readonly name: string;
  readonly resources: number;
  readonly free: number;
  /** whether the cluster takes jobs now: it answers, is not under stress and has not been closed by an administrator */
  readonly isOpen: boolean;
};

/** A job that was submitted to a cluster and has not ended. id: unique in the grid; a larger id was submitted later. */
export type LiveJob = {
  readonly id: number;
  readonly task: number;
  readonly submitted_s: number;
  /** null: the job waits on its cluster */
  readonly started_s: number | null;
};

/** The jobs that were submitted last. submitted: how many the cluster accepted. free: free resources of the cluster at that time. */
export type Batch = { readonly submitted: number; readonly free: number };

/** The rate of a tap (plan/tap.ts). rate: jobs in the next batch. closed_s: since when the tap is closed; null: it is open. submitted: jobs of the last batch. */
export type Tap = { readonly rate: number; readonly closed_s: number | null; readonly submitted: number };

/** A campaign on one of its clusters. */
export type PairView = {
  readonly ratio: number;
  readonly batch: Batch | null;
  readonly tap: Tap;
  /** waiting jobs, then running ones, each in the order of submission */
  readonly waiting: readonly LiveJob[];
  readonly running: readonly LiveJob[];
  /** of the last batch: jobs that run, and jobs that have started (those that ended since are included) */
  readonly batch_running: number;
  readonly batch_started: number;
  /** jobs of the campaign that ended well on the cluster, and the sum of their run times */
  readonly results: number;
  readonly results_run_s: number;
};

export type CampaignView = {
  readonly campaign: Campaign;
  /** tasks that are not submitted now and not done */
  readonly tasks_left: number;
  readonly pairs: ReadonlyMap<string, PairView>;
};

export type GridUniverse = {
  readonly now_s: number;
  readonly clusters: ReadonlyMap<string, ClusterView>;
  /** campaigns with unfinished tasks, in the order of submission */
  readonly campaigns: readonly CampaignView[];
};
