// One cycle of the grid, a pure function of what the clusters show and of the policy. The caller carries the plan out: it takes
// jobs back first, and then launches.
//
// The modules work in this order: predictor (what each pair of campaign and cluster can take), nikita (jobs to take back),
// metascheduler (which campaign may use which cluster), campaign schedulers (how many jobs of which tasks).

import { takenBack } from "../plan/excess.ts";
import { type Launch, launchesOf } from "../plan/launches.ts";
import { offersOf, type Standing, type StrategyName } from "../plan/offers.ts";
import { allowedWaiting, nextRatio, type PredictorName } from "../plan/prediction.ts";
import { tapAfterLook } from "../plan/tap.ts";
import type { CampaignView, GridUniverse, LiveJob, PairView, Tap } from "../shapes/universe.ts";

export type GridPolicy = {
  readonly predictor: PredictorName;
  readonly strategy: StrategyName;
  /** share of a cluster's resources that may be asked for by waiting jobs of one campaign */
  readonly flood_rate: number;
  readonly hasCanary: boolean;
  readonly hasCopies: boolean;
};

export const POLICY_DEFAULT: GridPolicy = {
  predictor: "two-way",
  strategy: "fairshare",
  flood_rate: 0.1,
  hasCanary: false,
  hasCopies: true,
};

/** The new state of a campaign on a cluster, and the jobs that it takes back there. */
export type PairPlan = {
  readonly campaign: number;
  readonly cluster: string;
  readonly ratio: number;
  readonly tap: Tap;
  readonly take_back: readonly LiveJob[];
};
export type GridPlan = { readonly pairs: readonly PairPlan[]; readonly launches: readonly Launch[] };

/** Plans a cycle. standing: what strategies look at; whether a cluster is open follows from the universe. */
export function gridCycle(universe: GridUniverse, policy: GridPolicy, standing: Omit<Standing, "open">): GridPlan {
  const pairs = universe.campaigns.flatMap((view) => pairPlans(view, universe, policy));
  const planned: GridUniverse = { ...universe, campaigns: withPlans(universe.campaigns, pairs) };
  const open = new Set([...universe.clusters.values()].filter(({ isOpen }) => isOpen).map(({ name }) => name));
  const offers = offersOf(
    policy.strategy,
    planned.campaigns.map(({ campaign }) => campaign),
    { ...standing, open },
  );
  return { pairs, launches: launchesOf(offers, planned, policy) };
}

function pairPlans({ campaign, pairs }: CampaignView, { clusters, now_s }: GridUniverse, policy: GridPolicy): PairPlan[] {
  return [...pairs].flatMap(([name, pair]) => {
    const cluster = clusters.get(name);
    if (cluster === undefined) return [];
    const requested = campaign.clusters.get(name)?.resources ?? 1;
    const allowed = allowedWaiting(cluster.resources, policy.flood_rate);
    const ratio = nextRatio(policy.predictor, pair.ratio, pair.batch, {
      resources: cluster.resources,
      free: cluster.free,
      waiting: pair.waiting.length,
      allowed,
      running: pair.batch_running,
      used: pair.batch_started * requested,
      resources_per_job: pair.results > 0 ? requested : null,
    });
    const tap = tapAfterLook(pair.tap, pair.waiting.length > 0 || !cluster.isOpen, now_s);
    return [{ campaign: campaign.id, cluster: name, ratio, tap, take_back: takenBack(pair.waiting, allowed, now_s).map(({ job }) => job) }];
  });
}

/** Returns the campaigns as they are after the plans of their pairs: with the new ratios, and without the jobs that were taken back. */
function withPlans(campaigns: readonly CampaignView[], plans: readonly PairPlan[]): CampaignView[] {
  const planOf = new Map(plans.map((plan) => [`${plan.campaign} ${plan.cluster}`, plan]));
  return campaigns.map((view) => {
    let returned = 0;
    const pairs = new Map<string, PairView>();
    for (const [cluster, pair] of view.pairs) {
      const plan = planOf.get(`${view.campaign.id} ${cluster}`);
      if (plan === undefined) {
        pairs.set(cluster, pair);
        continue;
      }
      const gone = new Set(plan.take_back);
      returned += gone.size;
      pairs.set(cluster, { ...pair, ratio: plan.ratio, tap: plan.tap, waiting: pair.waiting.filter((job) => !gone.has(job)) });
    }
    return { ...view, pairs, tasks_left: view.tasks_left + returned };
  });
}
