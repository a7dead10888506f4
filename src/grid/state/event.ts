// Events: everything that changes the state of the grid. apply() changes memory at once and notes which rows must be written. Pure.
//
// E1. An event is committed before another process can learn of it: an order before it is submitted, the ids of jobs before the jobs are released, and the end of a job
//     before an answer reports it.
// E2. A job ends once: if a job is not live, its end changes nothing.

import { present } from "#support/assert.ts";
import { type Fate, RUNS_KEPT } from "../events/columbo.ts";
import type { ClusterFacts, Jdl } from "../jdl/jdl.ts";
import type { Parameters } from "../jdl/parameters.ts";
import { firstRatio, type PredictorName } from "../plan/prediction.ts";
import { newTap, tapAfterBatch } from "../plan/tap.ts";
import { TaskBag } from "../plan/task-bag.ts";
import type { Campaign } from "../shapes/campaign.ts";
import type { EventRecord, Subscription } from "../shapes/event-record.ts";
import type { Tap } from "../shapes/universe.ts";
import {
  type CampaignRecord,
  type ClusterRecord,
  type ClusterSight,
  type GridJob,
  type GridOrder,
  type GridState,
  keyOf,
  type PairRecord,
} from "./grid-state.ts";

export type EndedJob = {
  readonly job: GridJob;
  readonly at_s: number;
  readonly exit_code: number | null;
  readonly run_s: number | null;
  readonly mem_kb: number | null;
  /** the cluster's words */
  readonly reason: string;
  readonly fate: Fate;
};

export type NewCampaign = {
  readonly user: string;
  readonly jdl: Jdl;
  readonly jdl_text: string;
  readonly kind_given: CampaignRecord["kind_given"];
  readonly facts: readonly ClusterFacts[];
  readonly parameters: Parameters;
  readonly plan: (id: number) => Campaign;
  readonly at_s: number;
};

export type GridEvent =
  | { readonly kind: "cluster-set"; readonly cluster: ClusterRecord }
  | { readonly kind: "cluster-removed"; readonly name: string }
  | { readonly kind: "cluster-seen"; readonly name: string; readonly sight: ClusterSight }
  | { readonly kind: "campaign-submitted"; readonly campaign: NewCampaign }
  | { readonly kind: "campaign-grown"; readonly id: number; readonly parameters: Parameters }
  | { readonly kind: "campaign-state"; readonly id: number; readonly state: CampaignRecord["state"]; readonly at_s: number }
  | { readonly kind: "campaign-forgotten"; readonly id: number }
  | {
      readonly kind: "pair-planned";
      readonly id: number;
      readonly cluster: string;
      readonly ratio: number;
      readonly tap: Tap;
      readonly free: number;
    }
  | { readonly kind: "pair-paused"; readonly id: number; readonly cluster: string; readonly why: string | null }
  | {
      readonly kind: "ordered";
      readonly id: number;
      readonly cluster: string;
      readonly remote_user: string;
      /** the tag for a serial */
      readonly tag: (serial: number) => string;
      readonly tasks: readonly number[];
      readonly copies: readonly number[];
      readonly free: number;
      readonly at_s: number;
    }
  | { readonly kind: "order-begun"; readonly serial: number }
  /** ids: the jobs that the cluster has created. The other jobs of the order were never created, and their tasks return to the bag */
  | { readonly kind: "acknowledged"; readonly serial: number; readonly ids: ReadonlyMap<number, string> }
  | { readonly kind: "released"; readonly serial: number }
  /** the cluster refused the order for good: no job of the order exists there */
  | { readonly kind: "order-refused"; readonly serial: number }
  | { readonly kind: "job-started"; readonly job: GridJob; readonly at_s: number }
  | { readonly kind: "job-ending"; readonly job: GridJob; readonly why: NonNullable<GridJob["kill"]> }
  | { readonly kind: "job-ended"; readonly end: EndedJob }
  | { readonly kind: "event-opened"; readonly event: Omit<EventRecord, "id" | "state">; readonly isOpen: boolean }
  | { readonly kind: "event-closed"; readonly id: number; readonly resubmit: boolean }
  | { readonly kind: "subscribed"; readonly subscription: Subscription }
  | { readonly kind: "unsubscribed"; readonly key: string }
  /** everything before the event `upto` has been told, or is not to be told */
  | { readonly kind: "notified"; readonly key: string; readonly upto: number };

/** What apply() has changed since the last commit, as names of rows (rows.ts). */
export type Dirty = {
  readonly clusters: Set<string>;
  readonly campaigns: Set<number>;
  /** campaigns whose texts must be written */
  readonly texts: Set<number>;
  readonly orders: Set<number>;
  readonly events: Set<number>;
  readonly subscriptions: Set<string>;
  readonly ended: (EndedJob & { readonly state: "terminated" | "event" | "again" })[];
  /** campaigns of which everything is removed */
  readonly forgotten: Set<number>;
};

export const nothingDirty = (): Dirty => ({
  clusters: new Set(),
  campaigns: new Set(),
  texts: new Set(),
  orders: new Set(),
  events: new Set(),
  subscriptions: new Set(),
  ended: [],
  forgotten: new Set(),
});

export type Changing = { readonly state: GridState; readonly dirty: Dirty; readonly predictor: PredictorName };

/** Applies an event. Returns the number of the campaign, order or event of the user that it has created; 0 if it has created none. */
export function apply(to: Changing, event: GridEvent): number {
  const { state, dirty } = to;
  switch (event.kind) {
    case "cluster-set":
      state.clusters.set(event.cluster.name, event.cluster);
      dirty.clusters.add(event.cluster.name);
      return 0;
    case "cluster-removed":
      state.clusters.delete(event.name);
      state.sights.delete(event.name);
      dirty.clusters.add(event.name);
      return 0;
    case "cluster-seen":
      state.sights.set(event.name, event.sight);
      return 0;
    case "campaign-submitted":
      return submit(to, event.campaign);
    case "campaign-grown": {
      const campaign = campaignOf(state, event.id);
      campaign.bag.grow(event.parameters.count - campaign.parameters.count);
      campaign.tasks += event.parameters.count - campaign.parameters.count;
      campaign.parameters = event.parameters;
      dirty.campaigns.add(event.id);
      dirty.texts.add(event.id);
      return 0;
    }
    case "campaign-state": {
      const campaign = campaignOf(state, event.id);
      campaign.state = event.state;
      if (event.state === "terminated" || event.state === "cancelled") campaign.ended_s = event.at_s;
      dirty.campaigns.add(event.id);
      return 0;
    }
    case "campaign-forgotten":
      state.campaigns.delete(event.id);
      dirty.forgotten.add(event.id);
      for (const [id, { campaign }] of state.events)
        if (campaign === event.id) {
          state.events.delete(id);
          dirty.events.add(id);
        }
      return 0;
    case "pair-planned": {
      const pair = pairOf(campaignOf(state, event.id), event.cluster);
      Object.assign(pair, {
        ratio: event.ratio,
        tap: event.tap,
        batch: { submitted: 0, free: event.free },
        last_order: 0,
        started: new Set(),
      });
      dirty.campaigns.add(event.id);
      return 0;
    }
    case "pair-paused":
      pairOf(campaignOf(state, event.id), event.cluster).paused = event.why;
      // If the campaign pauses on a cluster, its tasks with checkpoints on that cluster may run elsewhere. They lose the checkpoints.
      if (event.why !== null) campaignOf(state, event.id).bag.giveUp(event.cluster);
      dirty.campaigns.add(event.id);
      return 0;
    case "ordered":
      return order(to, event);
    case "order-begun":
      present(state.orders.get(event.serial), "order").is_begun = true;
      return 0;
    case "acknowledged":
      return acknowledge(to, present(state.orders.get(event.serial), "order"), event.ids);
    case "released":
      present(state.orders.get(event.serial), "order").state = "released";
      dirty.orders.add(event.serial);
      return 0;
    case "order-refused":
      for (const job of [...present(state.orders.get(event.serial), "order").jobs.values()]) giveUp(to, job);
      return 0;
    case "job-started":
      event.job.started_s = event.at_s;
      // The job has started, and only jobs that wait are taken back.
      if (event.job.kill === "excess") event.job.kill = null;
      noteStart(state, event.job);
      return 0;
    case "job-ending":
      event.job.kill = event.why;
      dirty.orders.add(event.job.order.serial);
      return 0;
    case "job-ended":
      return end(to, event.end);
    case "event-opened": {
      const id = state.counters.event++;
      state.events.set(id, { ...event.event, id, state: event.isOpen ? "open" : "closed" });
      dirty.events.add(id);
      return id;
    }
    case "event-closed":
      return closeEvent(to, present(state.events.get(event.id), "event"), event.resubmit);
    case "subscribed": {
      const key = keyOf(event.subscription);
      state.subscriptions.set(key, event.subscription);
      dirty.subscriptions.add(key);
      return 0;
    }
    case "unsubscribed":
      state.subscriptions.delete(event.key);
      dirty.subscriptions.add(event.key);
      return 0;
    case "notified": {
      const subscription = state.subscriptions.get(event.key);
      if (subscription === undefined) return 0;
      // The user may have ended this subscription and made it anew while a letter was on its way.
      state.subscriptions.set(event.key, { ...subscription, next_event: Math.max(subscription.next_event, event.upto) });
      dirty.subscriptions.add(event.key);
      return 0;
    }
    default: {
      const unreachable: never = event;
      return unreachable;
    }
  }
}

export const campaignOf = (state: GridState, id: number): CampaignRecord => present(state.campaigns.get(id), "campaign");
export const pairOf = ({ pairs }: CampaignRecord, cluster: string): PairRecord => present(pairs.get(cluster), "pair");

export const newPair = (ratio: number): PairRecord => ({
  ratio,
  tap: newTap(),
  batch: null,
  last_order: 0,
  started: new Set(),
  results: 0,
  results_run_s: 0,
  errors: 0,
  paused: null,
  runs: [],
  ends: [],
});

function submit({ state, dirty, predictor }: Changing, { plan, at_s, ...given }: NewCampaign): number {
  const id = state.counters.campaign++;
  const campaign = plan(id);
  const tasks = campaign.kind === "test" ? Math.min(given.parameters.count, campaign.clusters.size) : given.parameters.count;
  const pairs = new Map<string, PairRecord>();
  for (const [name, { resources }] of campaign.clusters)
    pairs.set(name, newPair(firstRatio(predictor, Math.max(1, state.sights.get(name)?.total ?? 1), resources)));
  state.campaigns.set(id, {
    ...given,
    id,
    plan: campaign,
    submitted_s: at_s,
    ended_s: null,
    state: "in_treatment",
    tasks,
    bag: new TaskBag(tasks),
    done: 0,
    failed: 0,
    pairs,
    resubmissions: new Map(),
    lives: new Map(),
  });
  dirty.campaigns.add(id);
  dirty.texts.add(id);
  return id;
}

function order({ state, dirty }: Changing, event: Extract<GridEvent, { readonly kind: "ordered" }>): number {
  const { id, cluster, remote_user, tasks, copies, at_s } = event;
  const campaign = campaignOf(state, id);
  const serial = state.counters.order++;
  const size = tasks.length + copies.length;
  const common = { campaign: id, cluster, remote_user, ordered_s: at_s, size, state: "recorded", is_begun: false } as const;
  const made: GridOrder = { serial, tag: event.tag(serial), ...common, jobs: new Map() };
  for (const [index, task] of [...tasks, ...copies].entries())
    addJob(campaign, made, { id: state.counters.job++, task, index, is_copy: index >= tasks.length });
  state.orders.set(serial, made);
  const pair = pairOf(campaign, cluster);
  pair.batch = { submitted: size, free: event.free };
  pair.tap = tapAfterBatch(pair.tap, size);
  pair.last_order = serial;
  dirty.orders.add(serial);
  dirty.campaigns.add(id);
  return serial;
}

/** Adds a live job to its order and its campaign. */
export function addJob({ lives }: CampaignRecord, to: GridOrder, job: Pick<GridJob, "id" | "task" | "index" | "is_copy">): GridJob {
  const made: GridJob = { ...job, order: to, remote_id: null, started_s: null, kill: null };
  to.jobs.set(job.index, made);
  const others = lives.get(job.task);
  if (others === undefined) lives.set(job.task, new Set([made]));
  else others.add(made);
  return made;
}

function acknowledge(to: Changing, made: GridOrder, ids: ReadonlyMap<number, string>): number {
  made.state = "acknowledged";
  to.dirty.orders.add(made.serial);
  for (const job of [...made.jobs.values()]) {
    const id = ids.get(job.index);
    if (id !== undefined) job.remote_id = id;
    else giveUp(to, job);
  }
  const pair = to.state.campaigns.get(made.campaign)?.pairs.get(made.cluster);
  if (pair !== undefined && pair.last_order === made.serial && pair.batch !== null) pair.batch = { ...pair.batch, submitted: ids.size };
  return 0;
}

/** Removes a job that was never created on its cluster. */
function giveUp(to: Changing, job: GridJob): void {
  const campaign = campaignOf(to.state, job.order.campaign);
  remove(to, campaign, job);
  if (!campaign.lives.has(job.task) && job.kill !== "copy") campaign.bag.giveBack(job.task);
}

function remove({ state, dirty }: Changing, campaign: CampaignRecord, job: GridJob): void {
  job.order.jobs.delete(job.index);
  const others = campaign.lives.get(job.task);
  others?.delete(job);
  if (others?.size === 0) campaign.lives.delete(job.task);
  dirty.orders.add(job.order.serial);
  dirty.campaigns.add(campaign.id);
  if (job.order.jobs.size === 0) state.orders.delete(job.order.serial);
}

function noteStart(state: GridState, { order: of, id }: GridJob): void {
  const pair = state.campaigns.get(of.campaign)?.pairs.get(of.cluster);
  if (pair?.last_order === of.serial) pair.started.add(id);
}

function end(to: Changing, ended: EndedJob): number {
  const { job, fate, at_s, run_s } = ended;
  if (job.order.jobs.get(job.index) !== job) return 0;
  const campaign = campaignOf(to.state, job.order.campaign);
  const pair = pairOf(campaign, job.order.cluster);
  noteStart(to.state, job);
  remove(to, campaign, job);
  const others = campaign.lives.get(job.task);
  to.dirty.ended.push({ ...ended, state: fate.kind === "result" ? "terminated" : fate.kind === "event" ? "event" : "again" });
  switch (fate.kind) {
    case "result":
      campaign.done++;
      campaign.resubmissions.delete(job.task);
      pair.results++;
      pair.results_run_s += run_s ?? 0;
      pair.ends.push(at_s);
      if (run_s !== null) pair.runs = [...pair.runs, Math.round(run_s * 10) / 10].slice(-RUNS_KEPT);
      for (const other of others ?? []) {
        other.kill = "copy";
        to.dirty.orders.add(other.order.serial);
      }
      return 0;
    case "again":
      if (fate.is_error) pair.errors++;
      if (job.kill !== "excess") campaign.resubmissions.set(job.task, (campaign.resubmissions.get(job.task) ?? 0) + 1);
      if (others === undefined) campaign.bag.giveBack(job.task, fate.priority, fate.place ?? undefined);
      return 0;
    case "event": {
      pair.errors++;
      // As long as another job of the task is live, the task may still be successful.
      if (others !== undefined) return 0;
      campaign.failed++;
      const { code, message } = fate;
      const { cluster } = job.order;
      return apply(to, {
        kind: "event-opened",
        event: { class: "job", code, campaign: campaign.id, cluster, job: job.id, task: job.task, at_s, message },
        isOpen: true,
      });
    }
    case "moot":
      return 0;
    default: {
      const unreachable: never = fate;
      return unreachable;
    }
  }
}

function closeEvent({ state, dirty }: Changing, event: EventRecord, resubmit: boolean): number {
  if (event.state === "closed") return 0;
  event.state = "closed";
  dirty.events.add(event.id);
  const campaign = event.campaign === null ? undefined : state.campaigns.get(event.campaign);
  if (campaign === undefined) return 0;
  if (event.task !== null) {
    campaign.failed--;
    campaign.resubmissions.delete(event.task);
    if (resubmit) campaign.bag.giveBack(event.task);
    // A task that will not run again counts as done, so that the campaign can end.
    else campaign.done++;
  }
  if (event.cluster !== null) {
    const pair = campaign.pairs.get(event.cluster);
    if (pair !== undefined) Object.assign(pair, { paused: null, errors: 0, runs: [] });
  }
  dirty.campaigns.add(campaign.id);
  return 0;
}
