// One cycle of the daemon: runs the planner (cycle/) over the clusters that have shown their state since their last cycle, and turns the plan into events. Pure.
//
// P1. A cluster takes part in a cycle only if no order is being submitted there and the jobs of its last orders have had time to start. Otherwise a predictor would believe
//     that jobs that have not had time to start have found no free resources.

import { type GridPolicy, gridCycle } from "../cycle/grid-cycle.ts";
import { firstRatio } from "../plan/prediction.ts";
import type { ClusterView } from "../shapes/universe.ts";
import { type GridEvent, pairOf } from "../state/event.ts";
import { type CampaignRecord, type GridState, jobsOf } from "../state/grid-state.ts";
import { viewOf } from "../state/view.ts";

/** After this time, usage counts half. */
const USAGE_HALF_S = 86_400;
/** The largest number of jobs of one order. It is limited, because the whole order is written each time that one of its jobs ends. */
const ORDER_JOBS_MAX = 1000;

export type PlanTools = {
  readonly apply: (event: GridEvent) => number;
  readonly policy: GridPolicy;
  readonly tag: (cluster: string, serial: number) => string;
  /** the name of a user on a cluster */
  readonly remoteUser: (user: string, cluster: string) => string;
  /** jobs that a cluster takes in one submission */
  readonly jobsMax: (cluster: string) => number;
};

/** Plans for these clusters. */
export function planCycle(state: GridState, clusters: readonly string[], now_s: number, tools: PlanTools): void {
  const views = new Map<string, ClusterView>();
  for (const name of clusters) {
    const sight = state.sights.get(name);
    const record = state.clusters.get(name);
    if (sight === undefined || record === undefined) continue;
    views.set(name, { name, resources: Math.max(1, sight.total), free: sight.free, isOpen: record.is_enabled && sight.fault === null });
  }
  const open = [...state.campaigns.values()].filter((campaign) => campaign.state === "in_treatment");
  prepareRatios(open, views, tools);
  noteUsage(state, open, now_s);
  const campaigns = open.filter(hasWork).map((campaign) => withoutPaused(campaign));
  const plan = gridCycle({ now_s, clusters: views, campaigns }, tools.policy, {
    affinity: (user) => new Set([...state.clusters.values()].filter(({ users }) => users.includes(user)).map(({ name }) => name)),
    priority: () => 0,
    userUsage: (user) => state.used.users.get(user) ?? 0,
    campaignUsage: ({ id }) => state.used.campaigns.get(id) ?? 0,
    hasResults: ({ id }) => (state.campaigns.get(id)?.done ?? 0) > 0,
  });
  for (const { campaign, cluster, ratio, tap, take_back } of plan.pairs) {
    const record = state.campaigns.get(campaign);
    const before = record?.pairs.get(cluster);
    if (record === undefined || before === undefined) continue;
    const is_news =
      before.ratio !== ratio ||
      before.batch === null ||
      before.batch.submitted > 0 ||
      before.tap.rate !== tap.rate ||
      before.tap.closed_s !== tap.closed_s;
    if (is_news) tools.apply({ kind: "pair-planned", id: campaign, cluster, ratio, tap, free: views.get(cluster)?.free ?? 0 });
    const gone = new Set(take_back.map(({ id }) => id));
    if (gone.size === 0) continue;
    for (const job of jobsOf(record)) if (gone.has(job.id)) tools.apply({ kind: "job-ending", job, why: "excess" });
  }
  for (const { campaign, cluster, jobs, copies } of plan.launches) {
    const record = state.campaigns.get(campaign);
    if (record !== undefined) launch(record, cluster, jobs, copies, views.get(cluster)?.free ?? 0, now_s, tools);
  }
}

function launch(
  campaign: CampaignRecord,
  cluster: string,
  jobs: number,
  copies: readonly number[],
  free: number,
  at_s: number,
  tools: PlanTools,
): void {
  const most = Math.min(ORDER_JOBS_MAX, tools.jobsMax(cluster));
  const tasks: number[] = [];
  while (tasks.length < Math.min(jobs, most)) {
    const task = campaign.bag.take(cluster);
    if (task === null) break;
    tasks.push(task);
  }
  const doubles = copies.slice(0, most - tasks.length);
  if (tasks.length + doubles.length === 0) return;
  const remote_user = tools.remoteUser(campaign.user, cluster);
  tools.apply({
    kind: "ordered",
    id: campaign.id,
    cluster,
    remote_user,
    tag: (serial) => tools.tag(cluster, serial),
    tasks,
    copies: doubles,
    free,
    at_s,
  });
}

/** Sets the first ratio of each pair that has submitted nothing yet. This is done before each cycle, because the resources of the cluster may not have been known before. */
function prepareRatios(campaigns: readonly CampaignRecord[], views: ReadonlyMap<string, ClusterView>, { policy }: PlanTools): void {
  for (const campaign of campaigns)
    for (const [name, view] of views) {
      const pair = campaign.pairs.get(name);
      if (pair?.batch === null) pair.ratio = firstRatio(policy.predictor, view.resources, campaign.plan.clusters.get(name)?.resources ?? 1);
    }
}

const hasWork = ({ bag, lives }: CampaignRecord): boolean => bag.size > 0 || lives.size > 0;

/** Returns the view of a campaign, without the clusters where the campaign pauses. */
function withoutPaused(campaign: CampaignRecord): ReturnType<typeof viewOf> {
  const view = viewOf(campaign);
  const paused = [...campaign.pairs].filter(([, { paused: why }]) => why !== null).map(([name]) => name);
  if (paused.length === 0) return view;
  const clusters = new Map([...view.campaign.clusters].filter(([name]) => !paused.includes(name)));
  return { ...view, campaign: { ...view.campaign, clusters } };
}

/** Adds the usage since the last cycle, as if all jobs that run now had run for that time. Reduces the weight of earlier usage. */
function noteUsage({ used }: GridState, campaigns: readonly CampaignRecord[], now_s: number): void {
  const passed_s = used.at_s === 0 ? 0 : Math.max(0, now_s - used.at_s);
  used.at_s = now_s;
  const factor = 0.5 ** (passed_s / USAGE_HALF_S);
  for (const [key, amount] of used.users) used.users.set(key, amount * factor);
  for (const [key, amount] of used.campaigns) used.campaigns.set(key, amount * factor);
  for (const campaign of campaigns) {
    let units = 0;
    for (const { started_s, order } of jobsOf(campaign))
      if (started_s !== null) units += campaign.plan.clusters.get(order.cluster)?.resources ?? 0;
    if (units === 0) continue;
    used.users.set(campaign.user, (used.users.get(campaign.user) ?? 0) + units * passed_s);
    used.campaigns.set(campaign.id, (used.campaigns.get(campaign.id) ?? 0) + units * passed_s);
  }
}

/** Returns whether a cluster may take part in a cycle (P1). settle_s: the time that released jobs have to start. */
export function isSettled(state: GridState, cluster: string, now_s: number, settle_s: number): boolean {
  for (const order of state.orders.values()) {
    if (order.cluster !== cluster) continue;
    if (order.state !== "released") return false;
    const campaign = state.campaigns.get(order.campaign);
    const is_last = campaign !== undefined && pairOf(campaign, cluster).last_order === order.serial;
    if (!is_last || now_s - order.ordered_s >= settle_s) continue;
    for (const { started_s, kill } of order.jobs.values()) if (started_s === null && kill === null) return false;
  }
  return true;
}
