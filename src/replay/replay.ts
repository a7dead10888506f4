// Replays a trace on a virtual clock. At each instant with an event, ending jobs release their slots and submitted jobs join
// the queue. Then every affected pool makes one pass, and the jobs that the pass selects start at that instant. Without
// partitions there is one pool; with partitions each has a pool, and all share one clock.
//
// V1. A pool makes a pass only at an instant at which one of its jobs ends or is submitted, one of its reservations ends, or
//     a kept plan is to start.

import { nth } from "#support/assert.ts";
import { heapPop, heapPush } from "#support/heap.ts";
import type { Algorithm } from "./algorithm.ts";
import type { Colouring, JobNames } from "./colouring.ts";
import type { Gantt, GanttBar } from "./gantt.ts";
import { createPool, type Pool, type PoolJob } from "./pool.ts";
import type { TraceJob, TraceReservation } from "./trace.ts";

export type PoolSpec = {
  /** number of the partition (field 16 of the trace) whose jobs belong to the pool; undefined: all jobs */
  readonly partition?: number;
  readonly procs: number;
  readonly reservations?: readonly TraceReservation[];
};
export type ReplayInput = {
  readonly jobs: readonly TraceJob[];
  readonly pools: readonly PoolSpec[];
  readonly algorithm: Algorithm;
  /** creates a pool; default: the fast pool of pool.ts. A result of null means that this kind of pool does not support the algorithm */
  readonly engine?: (procs: number, algorithm: Algorithm) => Pool | null;
};
export type Replayed = {
  /** the start of each job, in the order of `jobs`; NaN: the job never started, for example because it belongs to no pool */
  readonly starts_s: readonly number[];
  /** number of scheduling passes */
  readonly passes: number;
};

type Site = { readonly pool: Pool; due: boolean };
type Event = { readonly at_s: number; readonly site: Site; readonly ended: PoolJob | null };

const sooner = (a: Event, b: Event): boolean => a.at_s < b.at_s;

/** Replays jobs, which must be in the order of submission. */
export function replay({ jobs, pools, algorithm, engine }: ReplayInput): Replayed {
  const starts_s = jobs.map(() => Number.NaN);
  const events: Event[] = [];
  const from_s = Math.min(0, jobs[0]?.submit_s ?? 0);
  const sites = new Map<number | undefined, Site>();
  for (const { partition, procs, reservations = [] } of pools) {
    if (engine !== undefined && reservations.length > 0) throw new RangeError("this engine replays without reservations");
    const pool = engine === undefined ? createPool(procs, algorithm, from_s, reservations) : engine(procs, algorithm);
    if (pool === null) throw new RangeError("this engine has no such algorithm");
    const site: Site = { pool, due: false };
    sites.set(partition, site);
    for (const { start_s, duration_s } of reservations) heapPush(events, { at_s: start_s + duration_s, site, ended: null }, sooner);
  }
  const siteOf = (job: TraceJob): Site | undefined => sites.get(job.partition) ?? sites.get(undefined);
  let passes = 0;
  for (let next = 0; ; ) {
    const now_s = Math.min(jobs[next]?.submit_s ?? Number.POSITIVE_INFINITY, events[0]?.at_s ?? Number.POSITIVE_INFINITY);
    if (now_s === Number.POSITIVE_INFINITY) return { starts_s, passes };
    for (; events[0]?.at_s === now_s; ) {
      const { site, ended } = heapPop(events, sooner) as Event;
      if (ended !== null) site.pool.end(ended, now_s);
      site.due = true;
    }
    for (; jobs[next]?.submit_s === now_s; next++) {
      const job = nth(jobs, next);
      const site = siteOf(job);
      if (site === undefined) continue;
      site.pool.submit(next, job);
      site.due = true;
    }
    for (const site of sites.values()) {
      if (!site.due) continue;
      site.due = false;
      passes++;
      for (const started of site.pool.pass(now_s)) {
        starts_s[started.at] = now_s;
        heapPush(events, { at_s: now_s + started.job.run_s, site, ended: started }, sooner);
      }
      const plan_s = site.pool.nextPlan_s();
      if (plan_s !== Number.POSITIVE_INFINITY) heapPush(events, { at_s: plan_s, site, ended: null }, sooner);
    }
  }
}

type Schedule = {
  readonly title: string;
  readonly jobs: readonly TraceJob[];
  readonly starts_s: readonly number[];
  readonly pools: readonly PoolSpec[];
  readonly colouring?: Colouring;
};

/** Returns the names (of user, queue and partition) that can decide the colour of a job of a trace in a picture. */
export const namesOf = ({ user = -1, queue = -1, partition }: TraceJob): JobNames => ({
  user: user < 0 ? "no user" : `user ${user}`,
  queue: queue < 0 ? "no queue" : `queue ${queue}`,
  partition: partition < 0 ? "no partition" : `partition ${partition}`,
});

/** Converts a replayed schedule to bars, with one row for each pool. */
export function ganttOf({ title, jobs, starts_s, pools, colouring = "job" }: Schedule): Gantt {
  const rowOf = new Map(pools.map(({ partition }, row) => [partition, row]));
  const bars: GanttBar[] = pools.flatMap(({ reservations = [] }, row) =>
    reservations.map(({ start_s, duration_s, procs }, at) => {
      const times = { from_s: start_s, to_s: start_s + duration_s };
      return { id: `R${at + 1}`, kind: "reservation", row, slots: procs, ...times, colour: "" } as const;
    }),
  );
  jobs.forEach((job, at) => {
    const start_s = nth(starts_s, at);
    const row = rowOf.get(job.partition) ?? rowOf.get(undefined);
    if (Number.isNaN(start_s) || row === undefined) return;
    const times = { from_s: start_s, to_s: start_s + job.run_s, submit_s: job.submit_s };
    bars.push({
      id: String(job.id),
      kind: "job",
      row,
      slots: job.procs,
      ...times,
      colour: colouring === "job" ? String(job.id) : namesOf(job)[colouring],
    });
  });
  const rows = pools.map(({ partition, procs }) => ({
    name: partition === undefined ? "" : `part. ${partition}`,
    group: "",
    slots: procs,
  }));
  return { title, rows, bars };
}
