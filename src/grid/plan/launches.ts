// The campaign schedulers: how many jobs each offer of the metascheduler becomes. A test campaign tries each cluster with one
// job. A default campaign works off its bag of tasks (workqueue); when the bag is empty and resources are free, it starts
// second copies of its last jobs (finalize). Pure.
//
// L1. Launches of one cycle share the free resources of a cluster: what one takes, the next does not see.
// L2. At most COPIES_MAX jobs of one task live at a time. The first that ends well counts; the others are ended.
// L3. Until a campaign has results on a cluster, it runs one job there, and until it has ten, at most ten. A fault of the
//     campaign or of the cluster then costs few jobs.

import { nth } from "#support/assert.ts";
import type { CampaignView, GridUniverse, LiveJob, PairView } from "../shapes/universe.ts";
import type { Offer } from "./offers.ts";
import { jobsFor, type PredictorName } from "./prediction.ts";
import { tapFlow } from "./tap.ts";

const COPIES_MAX = 2;
/** A running job is copied although the bag is not empty if it runs longer than this multiple of the median. */
const LATE_FACTOR = 3;
const CANARY_FIRST = 1;
const CANARY_NEXT = 10;

/** jobs: how many tasks are taken from the bag. copies: tasks of which a second job is started. */
export type Launch = {
  readonly campaign: number;
  readonly cluster: string;
  readonly jobs: number;
  readonly copies: readonly number[];
};

export type LaunchPolicy = { readonly predictor: PredictorName; readonly hasCanary: boolean; readonly hasCopies: boolean };

/** Returns the launches for the offers of a cycle. The offers are served in their order. */
export function launchesOf(offers: readonly Offer[], { clusters, campaigns, now_s }: GridUniverse, policy: LaunchPolicy): Launch[] {
  const free = new Map([...clusters].map(([name, cluster]) => [name, cluster.free]));
  const views = new Map(campaigns.map((view) => [view.campaign.id, view]));
  const left = new Map(campaigns.map((view) => [view.campaign.id, view.tasks_left]));
  const copied = new Map(campaigns.map((view) => [view.campaign.id, new Set<number>()]));
  const launches: Launch[] = [];
  for (const { campaign, clusters: offered } of offers) {
    const view = views.get(campaign.id);
    if (view === undefined) continue;
    for (const cluster of offered) {
      const pair = view.pairs.get(cluster);
      if (pair === undefined) continue;
      const available = free.get(cluster) ?? 0;
      const room = roomOf(view, cluster, pair, available, policy);
      const jobs = Math.min(room, left.get(campaign.id) ?? 0);
      const begun = copied.get(campaign.id) ?? new Set();
      const copies = campaign.kind === "default" ? copiesOf(view, cluster, room - jobs, begun, now_s, policy) : [];
      for (const task of copies) begun.add(task);
      if (jobs + copies.length === 0) continue;
      left.set(campaign.id, (left.get(campaign.id) ?? 0) - jobs);
      // A job takes 1 / ratio resources, as far as the predictor knows.
      free.set(cluster, Math.max(0, available - (jobs + copies.length) / pair.ratio));
      launches.push({ campaign: campaign.id, cluster, jobs, copies });
    }
  }
  return launches;
}

/** Returns how many jobs the campaign may submit to the cluster now, however many tasks it has. */
function roomOf({ campaign }: CampaignView, cluster: string, pair: PairView, free: number, policy: LaunchPolicy): number {
  const active = pair.waiting.length + pair.running.length;
  if (campaign.kind === "test") return active === 0 && pair.results === 0 && free >= 1 ? 1 : 0;
  const flow = policy.predictor === "tap" ? tapFlow(pair.tap) : jobsFor(pair.ratio, free);
  const most = campaign.clusters.get(cluster)?.jobs_max ?? Number.POSITIVE_INFINITY;
  const canary = (campaign.wishes?.canary ?? policy.hasCanary) ? canaryOf(pair.results) : Number.POSITIVE_INFINITY;
  return Math.max(0, Math.min(flow, Math.min(most, canary) - active));
}

const canaryOf = (results: number): number =>
  results === 0 ? CANARY_FIRST : results < CANARY_NEXT ? CANARY_NEXT : Number.POSITIVE_INFINITY;

/** Returns the tasks of which a second job starts on a cluster, those first that have run or waited longest. copied: tasks that were copied in this cycle. */
function copiesOf(
  { campaign, pairs, tasks_left }: CampaignView,
  cluster: string,
  room: number,
  copied: ReadonlySet<number>,
  now_s: number,
  policy: LaunchPolicy,
): number[] {
  const { at_end, late_factor } = campaign.wishes ?? { at_end: policy.hasCopies, late_factor: policy.hasCopies ? LATE_FACTOR : null };
  if (room <= 0 || (!at_end && late_factor === null)) return [];
  const lives = new Map<number, number>();
  const jobs: LiveJob[] = [];
  const here = new Set<number>();
  for (const [name, { waiting, running }] of pairs) {
    for (const job of [...waiting, ...running]) {
      lives.set(job.task, (lives.get(job.task) ?? 0) + 1);
      jobs.push(job);
      if (name === cluster && job.started_s === null) here.add(job.task);
    }
  }
  const median_s = medianRun_s(pairs);
  const isLate = ({ started_s }: LiveJob): boolean =>
    late_factor !== null && started_s !== null && median_s > 0 && now_s - started_s > late_factor * median_s;
  return jobs
    .filter(
      (job) =>
        (lives.get(job.task) ?? 0) < COPIES_MAX &&
        !copied.has(job.task) &&
        !here.has(job.task) &&
        ((at_end && tasks_left === 0) || isLate(job)),
    )
    .sort((a, b) => (a.started_s ?? a.submitted_s) - (b.started_s ?? b.submitted_s) || a.id - b.id)
    .slice(0, room)
    .map(({ task }) => task);
}

/** Returns the weighted median of the mean run times on the clusters; the weight of a cluster is its number of results. 0: there are no results. */
function medianRun_s(pairs: ReadonlyMap<string, PairView>): number {
  const means = [...pairs.values()]
    .filter(({ results }) => results > 0)
    .map((pair) => ({ ...pair, mean_s: pair.results_run_s / pair.results }));
  means.sort((a, b) => a.mean_s - b.mean_s);
  const half = means.reduce((sum, { results }) => sum + results, 0) / 2;
  let seen = 0;
  for (const { results, mean_s } of means) {
    seen += results;
    if (seen >= half) return mean_s;
  }
  return means.length === 0 ? 0 : nth(means, means.length - 1).mean_s;
}
