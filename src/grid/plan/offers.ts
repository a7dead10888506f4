// The metascheduler: which campaigns may use which clusters in this cycle, and in which order. A strategy is a function from
// the campaigns with work left to a list of offers; the campaign schedulers (launches.ts) then decide how many jobs each offer
// becomes. Pure.
//
// M1. Campaigns of kind `test` come before all others in every strategy.
// M2. Campaigns of one rank keep the order of their submission.

import type { Campaign } from "../shapes/campaign.ts";

/** The clusters that a campaign may use now, in order. */
export type Offer = { readonly campaign: Campaign; readonly clusters: readonly string[] };

export const STRATEGIES = ["fifo", "affinity", "fairshare"] as const;
export type StrategyName = (typeof STRATEGIES)[number];

/** What a strategy may look at besides the campaigns. */
export type Standing = {
  /** clusters that take jobs now */
  readonly open: ReadonlySet<string>;
  /** returns the clusters that a user's jobs prefer, for example the clusters of the user's own site */
  readonly affinity: (user: string) => ReadonlySet<string>;
  /** returns the priority of a user, 0 for most; a user with a larger number comes first */
  readonly priority: (user: string) => number;
  /** return what the jobs of a user, and those of a campaign, have used lately, in resource seconds */
  readonly userUsage: (user: string) => number;
  readonly campaignUsage: (campaign: Campaign) => number;
  /** returns whether a campaign has results already. Under fairshare, campaigns without any get their first jobs early */
  readonly hasResults: (campaign: Campaign) => boolean;
};

type Strategy = (campaigns: readonly Campaign[], standing: Standing) => readonly Offer[];

const TABLE: Readonly<Record<StrategyName, Strategy>> = { fifo, affinity, fairshare };

/** Returns the offers of a cycle. campaigns: those with work left, in the order of submission. */
export const offersOf = (strategy: StrategyName, campaigns: readonly Campaign[], standing: Standing): readonly Offer[] =>
  TABLE[strategy](inRank(campaigns, standing), standing);

/** Sorts campaigns by kind (M1), by the priority of their users, and by submission (M2: sort is stable). */
function inRank(campaigns: readonly Campaign[], { priority }: Standing): readonly Campaign[] {
  return [...campaigns].sort((a, b) => Number(b.kind === "test") - Number(a.kind === "test") || priority(b.user) - priority(a.user));
}

const openOf = ({ clusters }: Campaign, { open }: Standing): string[] => [...clusters.keys()].filter((cluster) => open.has(cluster));

const offered = (campaign: Campaign, clusters: readonly string[]): Offer[] => (clusters.length === 0 ? [] : [{ campaign, clusters }]);

/** Offers each cluster only to the first campaign that may use it. A test campaign runs only one job there, so the cluster is also offered to the next one. */
function fifo(campaigns: readonly Campaign[], standing: Standing): readonly Offer[] {
  const given = new Set<string>();
  return campaigns.flatMap((campaign) => {
    const clusters = openOf(campaign, standing).filter((cluster) => !given.has(cluster));
    if (campaign.kind !== "test") for (const cluster of clusters) given.add(cluster);
    return offered(campaign, clusters);
  });
}

/** Offers each campaign the clusters that its user prefers. After all these offers, offers each campaign its other clusters. */
function affinity(campaigns: readonly Campaign[], standing: Standing): readonly Offer[] {
  const part = (isPreferred: boolean): Offer[] =>
    campaigns.flatMap((campaign) => {
      const preferred = standing.affinity(campaign.user);
      return offered(
        campaign,
        openOf(campaign, standing).filter((cluster) => preferred.has(cluster) === isPreferred),
      );
    });
  return [...part(true), ...part(false)];
}

/**
 * Users who have used least come first, and of the campaigns of one user those that have used least. Before that, campaigns without results get their first
 * jobs, so that small ones do not starve.
 */
function fairshare(campaigns: readonly Campaign[], standing: Standing): readonly Offer[] {
  const { hasResults, userUsage, campaignUsage } = standing;
  const rank = (campaign: Campaign): number => (campaign.kind === "test" ? 0 : hasResults(campaign) ? 2 : 1);
  const order = [...campaigns].sort(
    (a, b) => rank(a) - rank(b) || userUsage(a.user) - userUsage(b.user) || campaignUsage(a) - campaignUsage(b),
  );
  return affinity(order, standing);
}
