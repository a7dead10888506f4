// A view of a scheduler for `partita top`: its partitions with used and reserved amounts, the jobs that are first in the order, its
// last cycles. Pure.

import { indexCount, parseIndexList } from "#model/array-indices.ts";
import type { Fairshare } from "#model/fairshare.ts";
import { RESV_STATE } from "#model/resv-state.ts";
import type { SchedJob } from "#protocol/sched-link.ts";
import type { Bar, PartitionView, ResvView, SchedView, WaitingJob } from "#protocol/sched-view.ts";
import { jobsInOrder } from "../order/job-order.ts";
import { partitionsOf as servedPartitions } from "../resv/confirm-resv.ts";
import { durationsOf, JOB_INFINITY_S } from "../shapes/durations.ts";
import type { Policy } from "../shapes/policy.ts";
import type { PolicyBook } from "../shapes/policy-book.ts";
import { amountAt } from "../shapes/resource-space.ts";
import type { RankContext, Universe } from "../shapes/universe.ts";
import type { Vnode } from "../shapes/vnode.ts";
import { partitionOf } from "../shapes/vnode-state.ts";
import type { Activity } from "./activity.ts";

export type ViewInput = {
  readonly now_s: number;
  readonly pid: number;
  readonly since_s: number;
  readonly problem: string | null;
  readonly activity: Activity;
  readonly fairshare: Fairshare;
  /** false: single jobs are not shown */
  readonly sees_others: boolean;
};

const WAITING_MAX = 40;
const RESVS_MAX = 20;
/** Resources that are shown for each partition, if its vnodes have them. */
const RESOURCES = ["ncpus", "mem", "ngpus"];

export function schedView(universe: Universe, book: PolicyBook, input: ViewInput): SchedView {
  const { now_s, pid, since_s, problem, activity, fairshare, sees_others } = input;
  const jobs: { [state: string]: number } = {};
  for (const { state } of universe.jobs.values()) jobs[state] = (jobs[state] ?? 0) + 1;
  return {
    sched: universe.sched.name,
    at_s: now_s,
    pid,
    since_s,
    modules: book.modules,
    problem,
    cycles_done: activity.cycles_done,
    jobs_started: activity.jobs_started,
    jobs,
    classes: universe.classes.size,
    partitions: partitionsOf(universe),
    cycles: activity.cycles,
    events: sees_others ? activity.events : activity.events.filter(({ job }) => job === null),
    waiting: sees_others ? waitingOf({ universe, fairshare, now_s, errors: new Map() }, universe.policy) : [],
    resvs: resvsOf(universe),
  };
}

function partitionsOf(universe: Universe): PartitionView[] {
  const byName = new Map<string, Vnode[]>();
  for (const vnode of universe.vnodes.values()) {
    const name = partitionOf(vnode.node.attrs["partition"]);
    const others = byName.get(name);
    if (others === undefined) byName.set(name, [vnode]);
    else others.push(vnode);
  }
  return [...byName].map(([name, vnodes]) => ({
    name: name === "" ? "pbs-default" : name,
    vnodes: vnodes.length,
    free: vnodes.filter(({ state }) => state.closed === undefined).length,
    closed: vnodes.filter(isClosed).length,
    bars: RESOURCES.flatMap((resource) => barOf(universe, vnodes, resource) ?? []),
  }));
}

const OF_JOBS = new Set(["job-busy", "job-exclusive", "resv-exclusive"]);
const isClosed = ({ state: { closed } }: Vnode): boolean => closed !== undefined && !OF_JOBS.has(closed);

/** Returns the amounts of one resource; null: no vnode has any. */
function barOf(universe: Universe, vnodes: readonly Vnode[], resource: string): Bar | null {
  const def = universe.space.all.get(resource);
  if (def === undefined || def.index < 0) return null;
  const { index } = def;
  const names = new Set(vnodes.map(({ name }) => name));
  let [total, taken, closed] = [0, 0, 0];
  for (const vnode of vnodes) {
    const { spec, used } = vnode.state;
    const avail = amountAt(spec.avail, index);
    if (!Number.isFinite(avail)) continue;
    total += avail;
    taken += amountAt(used, index);
    if (isClosed(vnode)) closed += Math.max(0, avail - amountAt(used, index));
  }
  if (total === 0) return null;
  const reserved = heldBy(
    names,
    index,
    [...universe.resvs.values()].flatMap(({ present }) => (present === null ? [] : [present.holding])),
  );
  const inside = heldBy(
    names,
    index,
    [...universe.insiders.values()].map(({ holding }) => holding),
  );
  return {
    resource,
    size: def.type === "size",
    total,
    used: Math.max(0, taken - reserved),
    reserved,
    inside: Math.min(inside, reserved),
    closed,
  };
}

type Holdings = readonly ReadonlyMap<string, { readonly amounts: readonly { readonly index: number; readonly amount: number }[] }>[];

function heldBy(names: ReadonlySet<string>, index: number, holdings: Holdings): number {
  let sum = 0;
  for (const holding of holdings) {
    for (const [name, { amounts }] of holding) {
      if (!names.has(name)) continue;
      for (const held of amounts) if (held.index === index) sum += held.amount;
    }
  }
  return sum;
}

/** Returns the jobs that are first in the order. */
function waitingOf(ranks: RankContext, policy: Policy): WaitingJob[] {
  const { universe } = ranks;
  const rows: WaitingJob[] = [];
  const jobs = jobsInOrder(ranks, policy);
  for (let next = jobs.next(); next !== null && rows.length < WAITING_MAX; next = jobs.next()) {
    const { job } = next.entry;
    const { most_s } = durationsOf(universe, job);
    rows.push({
      id: job.id,
      user: job.user,
      queue: job.queue,
      select: job.schedselect,
      walltime_s: most_s === JOB_INFINITY_S ? null : most_s,
      queued_s: job.etime_s ?? job.qtime_s,
      comment: job.state === "B" ? subjobsText(job) : (job.comment ?? null),
      top_job: job.topjob === true,
      start_s: job.estimated?.start_time ?? null,
    });
    jobs.advance();
  }
  return rows;
}

/**
 * Returns the numbers of waiting and running subjobs of an array as a text. It replaces the comment of an array that has
 * begun, which does not change and says nothing about the waiting subjobs.
 */
function subjobsText({ array }: SchedJob): string | null {
  if (array === undefined) return null;
  const waiting = (parseIndexList(array.indices_remaining) ?? []).reduce((sum, range) => sum + indexCount(range), 0);
  return `${waiting} of its subjobs wait${waiting === 1 ? "s" : ""}, ${array.running} run${array.running === 1 ? "s" : ""}`;
}

/** Returns the reservations of the scheduler's partitions, and those without a partition yet. */
function resvsOf(universe: Universe): ResvView[] {
  const own = new Set(servedPartitions(universe));
  const rows = [...universe.resvs.values()].flatMap(({ id, held, present, partition, source: { attrs } }): ResvView[] => {
    if (partition !== undefined && !own.has(partition)) return [];
    const number = (name: string): number | undefined => (typeof attrs[name] === "number" ? attrs[name] : undefined);
    const [next] = held;
    const start_s = next?.start_s ?? number("reserve_start");
    const end_s = next?.end_s ?? number("reserve_end");
    if (start_s === undefined || end_s === undefined) return [];
    const substate = number("reserve_substate");
    const lost = present !== null && (substate === RESV_STATE.DEGRADED || substate === RESV_STATE.IN_CONFLICT);
    const state = lost ? RESV_STATE.DEGRADED : number("reserve_state");
    const vnodes = next?.holding.size ?? 0;
    return [{ id, start_s, end_s, running: present !== null, vnodes, ...(state === undefined ? {} : { state }) }];
  });
  return rows.sort((a, b) => a.start_s - b.start_s).slice(0, RESVS_MAX);
}
