// A campaign as the planner sees it: a bag of independent tasks that differ only in their parameter, and the clusters on which
// they may run. Pure.

/** test: one job on each cluster of the campaign. default: every task runs once on any of its clusters. */
export type CampaignKind = "test" | "default";

export type Campaign = {
  /** unique in the grid; a smaller number was submitted earlier */
  readonly id: number;
  readonly user: string;
  readonly kind: CampaignKind;
  readonly clusters: ReadonlyMap<string, CampaignOnCluster>;
  /** settings of the campaign that have precedence over the policy of the grid */
  readonly wishes?: CampaignWishes;
};

/**
 * at_end: the last jobs are copied when every task was submitted. late_factor: a job that runs longer than this multiple of the median is copied; null: never.
 * canary: a cluster gets one job first, then ten, and only then the others.
 */
export type CampaignWishes = { readonly at_end: boolean; readonly late_factor: number | null; readonly canary: boolean };

/** What a campaign says about one of its clusters. */
export type CampaignOnCluster = {
  /** resources that each job requests there */
  readonly resources: number;
  readonly walltime_s: number;
  /** most jobs of the campaign on the cluster at a time; null: no limit */
  readonly jobs_max: number | null;
};
