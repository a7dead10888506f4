// The mirror: makes the universe (what this scheduler sees of the complex) from a snapshot and keeps it up to date with deltas
// (ARCHITECTURE.md). Pure data; the driver passes on the snapshots and deltas that arrive.
//
// M1. After any deltas, a universe equals one that is made directly from a snapshot of the same objects
//     (mirrorFault of src/sim/checks/mirror.ts compares them).
// M2. Work whose time grows with the number of all jobs or vnodes is done only when the policy, the resources or the kinds of limits change,
//     never in a cycle.

import { limitTable, NO_LIMITS } from "#model/limits/run-limits.ts";
import { type FairshareTree, percentagesOf } from "#model/resource-group.ts";
import type { AttrRecord, Change, Delta, SchedJob, SchedNode, SchedQueue, SchedResv, Snapshot } from "#protocol/sched-link.ts";
import { assert } from "#support/assert.ts";
import { createCalendar, dropRunning, putRunningJob } from "../calendar/calendar.ts";
import { bookRunnerEnd, dropRunnerEnd } from "../calendar/runner-ends.ts";
import { GROUP_ATTRS, SCHED_GROUP_ATTRS } from "../order/group-resources.ts";
import { agreeComment, askGroup, dropEntry, putEntry } from "../order/job-lines.ts";
import { RANKING_ATTRS, rankingOf } from "../order/ranking.ts";
import { count } from "../order/run-count.ts";
import { jobsOf } from "../order/strands.ts";
import { addVnodes, dropVnode, putVnode } from "../place/node-sets.ts";
import { keepGroupings } from "../place/placement-sets.ts";
import { dropInsider, dropResv, indexResvs, putInsider, putResv, refreshInside, rereadResvsOn } from "../resv/resv-sets.ts";
import { killDelayOf } from "../shapes/durations.ts";
import type { Queue } from "../shapes/job-line.ts";
import type { LimitProfile } from "../shapes/limits.ts";
import { isRunning, limitProfile, sameProfile } from "../shapes/limits.ts";
import type { PolicyModule } from "../shapes/module.ts";
import type { Policy } from "../shapes/policy.ts";
import { PREEMPT_ATTRS, PREEMPT_SERVER_ATTRS, preemptRules } from "../shapes/preempt-rules.ts";
import { amountOf, amountsIn, matchedOf, resourceSpace } from "../shapes/resource-space.ts";
import type { Universe } from "../shapes/universe.ts";
import type { Vnode } from "../shapes/vnode.ts";
import { checksOf } from "../shapes/vnode-fit.ts";
import { isTaken, partitionOf, recordOf } from "../shapes/vnode-state.ts";

export type MirrorOptions = {
  readonly policy: Policy;
  /** whether the duration of jobs matters, because of dedicated time, backfill_prime or top jobs */
  readonly times_matter: boolean;
  /** modules whose classKey is part of the key of a class; it is the same array object as long as these modules stay the same */
  readonly distinguishing?: readonly PolicyModule[];
  /** names of the modules in the chain; without `prioritizer` jobs are ordered by rank alone, without `fairshare` not by shares */
  readonly modules?: readonly string[];
  /** the tree of the file resource_group; null: there is none */
  readonly shares?: FairshareTree | null;
};

const NO_MODULES: readonly PolicyModule[] = [];
const ORDERING_MODULES: readonly string[] = ["prioritizer", "fairshare"];

/** Makes a universe from a snapshot, for a policy. */
export function createUniverse(snapshot: Snapshot, options: MirrorOptions): Universe {
  const universe: Universe = {
    revision: snapshot.revision,
    server: snapshot.server,
    sched: snapshot.sched,
    resources: new Map(snapshot.resources.map((def) => [def.name, def])),
    space: resourceSpace(snapshot.resources),
    policy: options.policy,
    checks: checksOf(resourceSpace([]), options.policy),
    times_matter: options.times_matter,
    distinguishing: options.distinguishing ?? NO_MODULES,
    nodes: new Map(snapshot.nodes.map((node) => [node.name, node])),
    jobs: new Map(snapshot.jobs.map((job) => [job.id, job])),
    queues: new Map(),
    resvs: new Map(),
    resv_queues: new Map(),
    resvs_on: new Map(),
    resv_sets: new Map(),
    resv_sets_on: new Map(),
    insiders: new Map(),
    sorted_queues: null,
    regroup: false,
    sets: new Map(),
    shared_hosts: new Map(),
    vnodes: new Map(),
    asked_groups: new Set(),
    groups_stale: true,
    ungrouped: new Set(),
    next_id: 0,
    specs: new Map(),
    requests: new Map(),
    entries: new Map(),
    classes: new Map(),
    lines: new Map(),
    ranking: rankingOf({ server: {}, sched: {} }, options.policy, resourceSpace([]), { prioritizer: false, fairshare: false }),
    ranking_version: 0,
    ranking_modules: options.modules ?? ORDERING_MODULES,
    clocks: new Map((snapshot.clocks ?? []).map((clock) => [clock.id, clock])),
    shares: options.shares ?? null,
    used: { ids: new Set(), all: true },
    ended: [],
    percentages: new Map(),
    limits: NO_LIMITS,
    soft_limits: NO_LIMITS,
    preempt: preemptRules({}, {}),
    profile: { user: false, group: false, project: false, resources: [] },
    usage: new Map(),
    estimated: new Set(),
    calendar: createCalendar(),
    server_available: new Map(),
    dynamic: new Map(),
  };
  snapshot.queues.forEach((queue, order) => universe.queues.set(queue.name, makeQueue(universe, queue, queue.order ?? order)));
  indexAll(universe, snapshot.resvs);
  keepGroupings(universe);
  return universe;
}

/** Changes the policy. Computes the indexes of jobs and vnodes again if they depend on the change. */
export function setPolicy(universe: Universe, options: MirrorOptions): void {
  const modules = options.distinguishing ?? NO_MODULES;
  const { policy, times_matter, modules: names = ORDERING_MODULES, shares = null } = options;
  const same =
    universe.policy === policy &&
    universe.times_matter === times_matter &&
    universe.distinguishing === modules &&
    universe.ranking_modules === names &&
    universe.shares === shares;
  if (same) return;
  Object.assign(universe, { ranking_modules: names, shares });
  universe.policy = options.policy;
  universe.times_matter = options.times_matter;
  universe.distinguishing = modules;
  indexAll(universe);
}

/** Applies a delta. Throws if it is not the next one: the link is then broken, and a new snapshot is needed. */
export function applyDelta(universe: Universe, delta: Delta): void {
  assert(delta.revision === universe.revision + 1, `delta ${delta.revision} after revision ${universe.revision}`);
  universe.revision = delta.revision;
  const pending = { profile: false, everything: false, ranking: false };
  for (const change of delta.changes) applyChange(universe, change, pending);
  if (pending.profile) universe.calendar.loosened = true;
  if (pending.everything) {
    indexAll(universe);
    return;
  }
  if (pending.ranking) readRanking(universe);
  if (!(pending.profile && updateProfile(universe, pending.ranking)) && (universe.regroup || pending.ranking)) indexJobs(universe);
  keepGroupings(universe);
}

type Pending = {
  /** limits may now depend on other properties of jobs */
  profile: boolean;
  /** resources have changed, so all indexes must be computed again */
  everything: boolean;
  /** the order of jobs now depends on other properties */
  ranking: boolean;
};

function applyChange(universe: Universe, change: Change, pending: Pending): void {
  if ("drop" in change) {
    if (change.drop === "job") {
      noteEnd(universe, change.id, change.resources_used, change.untold);
      if (change.untold !== undefined) return;
    }
    applyDrop(universe, change.drop, change.id, pending);
    return;
  }
  switch (change.put) {
    case "server":
      pending.profile ||= differ(LIMIT_ATTRS, universe.server.attrs, change.value.attrs);
      universe.regroup ||= differ([...GROUP_ATTRS, ...PREEMPT_SERVER_ATTRS], universe.server.attrs, change.value.attrs);
      pending.ranking ||= differ(RANKING_ATTRS, universe.server.attrs, change.value.attrs);
      universe.server = change.value;
      return;
    case "sched":
      universe.groups_stale ||= differ(SCHED_GROUP_ATTRS, universe.sched.attrs, change.value.attrs);
      universe.regroup ||= differ(PREEMPT_ATTRS, universe.sched.attrs, change.value.attrs);
      pending.ranking ||= differ(RANKING_ATTRS, universe.sched.attrs, change.value.attrs);
      universe.sched = change.value;
      return;
    case "clock":
      universe.clocks.set(change.value.id, change.value);
      return;
    case "resource":
      universe.resources.set(change.value.name, change.value);
      pending.everything = true;
      return;
    case "queue":
      putQueue(universe, change.value, pending);
      return;
    case "node":
      putNode(universe, change.value, pending);
      return;
    case "job":
      putJob(universe, change.value);
      return;
    case "resv":
      putResv(universe, change.value);
      return;
    default: {
      const unreachable: never = change;
      return unreachable;
    }
  }
}

function applyDrop(universe: Universe, kind: "resource" | "queue" | "node" | "job" | "resv" | "clock", id: string, pending: Pending): void {
  switch (kind) {
    case "resource":
      universe.resources.delete(id);
      pending.everything = true;
      return;
    case "queue":
      universe.queues.delete(id);
      universe.sorted_queues = null;
      pending.profile = true;
      universe.regroup = true;
      return;
    case "node":
      dropNode(universe, id);
      pending.profile = true;
      return;
    case "job":
      dropJob(universe, id);
      return;
    case "resv":
      dropResv(universe, id);
      return;
    case "clock":
      universe.clocks.delete(id);
      return;
    default: {
      const unreachable: never = kind;
      return unreachable;
    }
  }
}

/** The attributes of a server or queue that matter for limits. Other attributes, such as counts and comments, change often. */
const LIMIT_ATTRS = [
  "max_run",
  "max_run_res",
  "max_running",
  "max_user_run",
  "max_group_run",
  "max_user_res",
  "max_group_res",
  "max_run_soft",
  "max_run_res_soft",
  "max_user_run_soft",
  "max_group_run_soft",
  "max_user_res_soft",
  "max_group_res_soft",
  "resources_available",
];
const QUEUE_ATTRS = [...LIMIT_ATTRS, ...GROUP_ATTRS, "queue_type", "started", "Priority", "partition", "kill_delay", "elastic"];

function differ(names: readonly string[], a: AttrRecord, b: AttrRecord): boolean {
  return names.some((name) => a[name] !== b[name] && JSON.stringify(a[name]) !== JSON.stringify(b[name]));
}

function putQueue(universe: Universe, queue: SchedQueue, pending: Pending): void {
  const old = universe.queues.get(queue.name);
  if (old !== undefined && !differ(QUEUE_ATTRS, old.attrs, queue.attrs)) {
    universe.queues.set(queue.name, { ...old, attrs: queue.attrs });
    universe.sorted_queues = null;
    return;
  }
  const order = old?.order ?? queue.order ?? 1 + Math.max(-1, ...[...universe.queues.values()].map((other) => other.order));
  const made = makeQueue(universe, queue, order);
  if (old?.priority !== made.priority) universe.ranking_version++;
  universe.queues.set(queue.name, made);
  // Running jobs may now keep their vnodes for a longer or shorter time.
  if (killDelayOf(old) !== killDelayOf(made))
    for (const job of universe.jobs.values()) if (job.queue === queue.name && job.resv === undefined) putRunningJob(universe, job);
  universe.sorted_queues = null;
  pending.profile = true;
  universe.regroup = true;
}

function makeQueue(universe: Universe, { name, attrs }: SchedQueue, order: number): Queue {
  return {
    name,
    attrs,
    order,
    priority: typeof attrs["Priority"] === "number" ? attrs["Priority"] : 0,
    started: attrs["started"] === true,
    execution: String(attrs["queue_type"] ?? "Execution")
      .toLowerCase()
      .startsWith("e"),
    partition: partitionOf(attrs["partition"]),
    limits: limitTable(attrs, amountsIn(universe.space)),
    soft_limits: limitTable(attrs, amountsIn(universe.space), true),
    available: available(universe, attrs["resources_available"]),
  };
}

function available(universe: Universe, value: unknown): Map<string, number | string | boolean> {
  const result = new Map<string, number | string | boolean>();
  for (const [name, given] of Object.entries(recordOf(value))) {
    const resource = universe.space.all.get(name);
    result.set(name, amountOf(resource, given) ?? matchedOf(resource, given));
  }
  return result;
}

function putNode(universe: Universe, node: SchedNode, pending: Pending): void {
  const old = universe.nodes.get(node.name);
  universe.nodes.set(node.name, node);
  pending.profile ||= ["max_user_run", "max_group_run"].some((name) => old?.attrs[name] !== node.attrs[name]);
  const before = universe.vnodes.get(node.name);
  const { spec, closed } = before?.state ?? {};
  const neighbours = namesOnHost(before);
  putVnode(universe, node);
  bookRunnerEnd(universe, node, old);
  const vnode = universe.vnodes.get(node.name);
  // A state word that only says that jobs or reservations have the vnode does not matter here. It disappears when they end, and their end is noticed elsewhere.
  if (vnode?.state.spec !== spec || (closed !== undefined && !isTaken(closed) && vnode?.state.closed !== closed))
    universe.calendar.loosened = true;
  if (vnode === before && vnode?.state.spec === spec) refreshInside(universe, node.name);
  else rereadResvsOn(universe, [...neighbours, ...namesOnHost(vnode)]);
}

function dropNode(universe: Universe, name: string): void {
  const neighbours = namesOnHost(universe.vnodes.get(name));
  universe.calendar.loosened = true;
  universe.nodes.delete(name);
  dropRunnerEnd(universe, name);
  dropVnode(universe, name);
  rereadResvsOn(universe, neighbours);
}

/** Returns the names of all vnodes on the host of a vnode. A reservation on one of them may close all of them. */
function namesOnHost(vnode: Vnode | undefined): string[] {
  return vnode?.host.vnodes.map((other) => other.name) ?? [];
}

function putJob(universe: Universe, job: SchedJob): void {
  const old = universe.jobs.get(job.id);
  if (old?.topjob === true && job.topjob !== true && !isRunning(job)) universe.calendar.loosened = true;
  if (old !== undefined && isRunning(old)) count(universe, old, -1);
  universe.jobs.set(job.id, job);
  if (job.resources_used !== undefined && job.resources_used !== old?.resources_used) universe.used.ids.add(job.id);
  if (isRunning(job)) count(universe, job, 1);
  if (job.resv === undefined) putRunningJob(universe, job);
  if (job.resv !== undefined || old?.resv !== undefined) putInsider(universe, job);
  noteEstimate(universe, job);
  putEntry(universe, job);
}

function noteEstimate({ estimated }: Universe, job: SchedJob): void {
  if (job.estimated !== undefined || job.topjob === true) estimated.add(job.id);
  else estimated.delete(job.id);
}

/** Takes note of the final usage of a job. */
function noteEnd(universe: Universe, id: string, resources_used: SchedJob["resources_used"], untold: SchedJob | undefined): void {
  const job = universe.jobs.get(id) ?? untold;
  universe.used.ids.delete(id);
  if (job !== undefined && resources_used !== undefined) universe.ended.push({ job, resources_used });
}

/** Enters a comment that this scheduler set, because the server does not send it back. */
export function takeComment(universe: Universe, id: string, comment: string): void {
  const job = universe.jobs.get(id);
  if (job !== undefined) putJob(universe, { ...job, comment });
}

function dropJob(universe: Universe, id: string): void {
  const job = universe.jobs.get(id);
  if (job !== undefined && isRunning(job)) count(universe, job, -1);
  if (job?.topjob === true) universe.calendar.loosened = true;
  universe.jobs.delete(id);
  dropRunning(universe, id);
  dropInsider(universe, id);
  universe.estimated.delete(id);
  dropEntry(universe, id);
}

/** Reads again by which properties jobs are ordered. The caller must then index the jobs again. */
function readRanking(universe: Universe): void {
  const { server, sched, policy, space, ranking_modules } = universe;
  universe.percentages = universe.shares === null ? new Map() : percentagesOf(universe.shares);
  universe.ranking = rankingOf({ server: server.attrs, sched: sched.attrs }, policy, space, {
    prioritizer: ranking_modules.includes("prioritizer"),
    fairshare: ranking_modules.includes("fairshare"),
  });
}

/** Reads server limits again. Returns true if jobs had to be indexed and counted again. */
function updateProfile(universe: Universe, anyway: boolean): boolean {
  const before = universe.profile;
  readServer(universe);
  if (!anyway && sameProfile(before, universe.profile)) return false;
  indexJobs(universe);
  return true;
}

function readServer(universe: Universe): void {
  universe.limits = limitTable(universe.server.attrs, amountsIn(universe.space));
  universe.server_available = new Map([...available(universe, universe.server.attrs["resources_available"]), ...universe.dynamic]);
  universe.soft_limits = limitTable(universe.server.attrs, amountsIn(universe.space), true);
  universe.profile = profileOf(universe);
}

/** Sets the amounts that programs have reported for the server (server_dyn_res). They replace the amounts in its attributes. */
export function setDynamic(universe: Universe, values: ReadonlyMap<string, number | string | boolean>): void {
  if (values.size === 0 && universe.dynamic.size === 0) return;
  universe.dynamic = values;
  readServer(universe);
}

function profileOf(universe: Universe): LimitProfile {
  const tables = [universe.limits, universe.soft_limits];
  for (const queue of universe.queues.values()) tables.push(queue.limits, queue.soft_limits);
  const resources = [...universe.queues.values()].flatMap((queue) => [...queue.available.keys()]);
  const nodes = [...universe.specs.values()];
  return limitProfile(tables, {
    resources,
    user: nodes.some((spec) => spec.max_user_run !== undefined),
    group: nodes.some((spec) => spec.max_group_run !== undefined),
  });
}

function indexAll(universe: Universe, resvs: readonly SchedResv[] = [...universe.resvs.values()].map(({ source }) => source)): void {
  universe.space = resourceSpace([...universe.resources.values()]);
  universe.checks = checksOf(universe.space, universe.policy);
  readRanking(universe);
  for (const index of [universe.sets, universe.shared_hosts, universe.vnodes, universe.specs, universe.requests, universe.ungrouped])
    index.clear();
  for (const queue of [...universe.queues.values()]) universe.queues.set(queue.name, makeQueue(universe, queue, queue.order));
  universe.sorted_queues = null;
  // Bookings name resources by number, so they must be made again.
  universe.calendar = createCalendar();
  for (const job of universe.jobs.values()) {
    if (job.resv === undefined) putRunningJob(universe, job);
    noteEstimate(universe, job);
  }
  addVnodes(universe, universe.nodes.values());
  for (const node of universe.nodes.values()) bookRunnerEnd(universe, node, undefined);
  indexResvs(universe, resvs);
  readServer(universe);
  indexJobs(universe);
  keepGroupings(universe);
}

/** Puts all jobs into lines and counts the running ones. The agreed comments of lines are kept, so that they are not sent again. */
function indexJobs(universe: Universe): void {
  universe.regroup = false;
  universe.groups_stale = true;
  universe.preempt = preemptRules(universe.sched.attrs, universe.server.attrs);
  universe.asked_groups.clear();
  for (const { request } of universe.resvs.values()) askGroup(universe, request);
  for (const index of [universe.entries, universe.classes, universe.lines, universe.usage]) index.clear();
  const jobs = [...universe.jobs.values()];
  // In the order of rank each insertion is at the end.
  jobs.sort((a, b) => a.rank - b.rank);
  for (const job of jobs) {
    if (isRunning(job)) count(universe, job, 1);
    putEntry(universe, job);
  }
  for (const lines of universe.lines.values()) {
    for (const line of lines) {
      for (const { job } of jobsOf(line)) {
        if (job.comment !== undefined) agreeComment(line, job.comment);
        break;
      }
    }
  }
}
