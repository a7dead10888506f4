// A scheduler for one pool of equal slots. It has the queue in the order of arrival, and a profile of the slots that running
// jobs, reservations and plans leave free (profile.ts), which starts and ends update from pass to pass.
//
// L1. A running job holds its slots until start + estimate. Slots of a job that ends earlier are released at its end.
// L2. All plans are removed at the end of the pass that made them. Only cons keeps its plans, which move only to earlier
//     times.

import { logKey } from "#sched/order/job-measures.ts";
import type { Amount } from "#sched/shapes/request.ts";
import { nth } from "#support/assert.ts";
import { firstPlace } from "#support/search.ts";
import type { Algorithm, Backfilling, JobOrder } from "./algorithm.ts";
import { beginAt, createProfile, earliest, freeAt, give, isFree, type Profile, take } from "./profile.ts";
import type { TraceJob, TraceReservation } from "./trace.ts";

/** A job in the pool. at: its index in the trace. start_s: its planned or real start. */
export type PoolJob = {
  readonly at: number;
  readonly job: TraceJob;
  readonly amounts: readonly Amount[];
  start_s: number;
};

export type Pool = {
  submit(at: number, job: TraceJob): void;
  end(job: PoolJob, now_s: number): void;
  /** Makes one scheduling pass. Returns the jobs that it starts. */
  pass(now_s: number): readonly PoolJob[];
  /** Returns the next start of a kept plan. Infinity: there is none. */
  nextPlan_s(): number;
};

/** Creates a pool with procs slots that begins at from_s. Throws a RangeError if reservations ask for more slots than exist. */
export function createPool(procs: number, algorithm: Algorithm, from_s: number, reservations: readonly TraceReservation[]): Pool {
  const profile = createProfile(from_s, [procs]);
  for (const { start_s, duration_s, procs: wanted } of reservations) {
    const amounts = [{ index: 0, amount: wanted }];
    const begin_s = Math.max(from_s, start_s);
    const end_s = start_s + duration_s;
    if (begin_s < end_s && !isFree(profile, begin_s, end_s, amounts))
      throw new RangeError(`the reservation at ${start_s} asks for more than ${procs} slots`);
    take(profile, begin_s, end_s, amounts);
  }
  return algorithm.kind === "cons" ? keptPlans(profile) : freshPlans(profile, algorithm);
}

const NOTHING: readonly PoolJob[] = [];

function poolJob(at: number, job: TraceJob): PoolJob {
  return { at, job, amounts: [{ index: 0, amount: job.procs }], start_s: Number.POSITIVE_INFINITY };
}

function endEarly(profile: Profile, { job, amounts, start_s }: PoolJob, now_s: number): void {
  give(profile, now_s, start_s + job.est_s, amounts);
}

/** Creates the pool for fcfs, depthN, depthinf, sjbf and log: every pass makes new plans for up to `depth` jobs that cannot start now. */
function freshPlans(profile: Profile, algorithm: Exclude<Algorithm, { kind: "cons" }>): Pool {
  let queue: PoolJob[] = [];
  const depth = algorithm.kind === "fcfs" ? 0 : algorithm.depth;
  const keyOf = algorithm.kind === "depth" ? keysOf(algorithm.order) : null;
  const behind = algorithm.kind === "depth" && algorithm.behind !== "queue" ? KEYS_BEHIND[algorithm.behind] : null;

  function pass(now_s: number): readonly PoolJob[] {
    beginAt(profile, now_s);
    let free = freeAt(profile, now_s);
    // Plans are removed at the end of the pass, so they do not matter if no job can start.
    if (!queue.some(({ job }) => job.procs <= free)) return NOTHING;
    const started: PoolJob[] = [];
    const planned: PoolJob[] = [];
    let order = queue;
    for (let at = 0; at < order.length; at++) {
      const entry = nth(order, at);
      const { job, amounts } = entry;
      // Most waiting jobs need more slots than are free now, so this cheap test comes first.
      if (job.procs <= free && isFree(profile, now_s, now_s + job.est_s, amounts)) {
        entry.start_s = now_s;
        take(profile, now_s, now_s + job.est_s, amounts);
        free -= job.procs;
        started.push(entry);
      } else if (planned.length < depth) {
        entry.start_s = earliest(profile, now_s, job.est_s, amounts) as number;
        take(profile, entry.start_s, entry.start_s + job.est_s, amounts);
        planned.push(entry);
        if (behind !== null && planned.length === depth) [order, at] = [sortedBy(order.slice(at + 1), (job) => behind(job, now_s)), -1];
      } else if (algorithm.kind === "fcfs") break;
      if (planned.length >= depth && free <= 0) break;
    }
    for (const entry of planned) {
      give(profile, entry.start_s, entry.start_s + entry.job.est_s, entry.amounts);
      // A plan of an earlier pass does not count: the job may have lost its turn to a job that comes before it in the order.
      entry.start_s = Number.POSITIVE_INFINITY;
    }
    if (started.length > 0) queue = queue.filter(({ start_s }) => start_s !== now_s);
    return started;
  }

  return {
    submit(at, job) {
      const entry = poolJob(at, job);
      if (keyOf === null) queue.push(entry);
      else {
        const key = keyOf(job);
        queue.splice(
          firstPlace(queue, (other) => keyOf(other.job) > key),
          0,
          entry,
        );
      }
    },
    end: (entry, now_s) => endEarly(profile, entry, now_s),
    pass,
    nextPlan_s: () => Number.POSITIVE_INFINITY,
  };
}

/** Returns the keys by which jobs are ordered; null: jobs stay in the order of arrival. */
function keysOf({ walltime_s, width_s }: JobOrder): ((job: TraceJob) => number) | null {
  if (walltime_s === 0 && width_s === 0) return null;
  return ({ submit_s, est_s, procs }) => logKey(submit_s, est_s, walltime_s) + width_s * Math.log2(procs);
}

/** The orders of the jobs behind those with plans: smaller keys come first, and jobs with equal keys keep their order. */
const KEYS_BEHIND: Readonly<Record<Exclude<Backfilling["behind"], "queue">, (job: TraceJob, now_s: number) => number>> = {
  shortest: ({ est_s }) => est_s,
  smallest_area: ({ est_s, procs }) => est_s * procs,
  expansion: ({ est_s, submit_s }, now_s) => -(now_s - submit_s) / est_s,
};

function sortedBy(jobs: readonly PoolJob[], keyOf: (job: TraceJob) => number): PoolJob[] {
  const keyed = jobs.map((entry) => ({ entry, key: keyOf(entry.job) }));
  return keyed.sort((a, b) => a.key - b.key).map(({ entry }) => entry);
}

/**
 * Creates the pool for cons: a job gets the earliest possible window when it arrives, and keeps it. When jobs end early, the
 * plans move to earlier times in the order of arrival.
 */
function keptPlans(profile: Profile): Pool {
  let queue: PoolJob[] = [];
  let known = 0;
  let endedEarly = false;

  function plan(entry: PoolJob, now_s: number): void {
    const { job, amounts } = entry;
    entry.start_s = earliest(profile, now_s, job.est_s, amounts) as number;
    take(profile, entry.start_s, entry.start_s + job.est_s, amounts);
  }

  function pass(now_s: number): PoolJob[] {
    beginAt(profile, now_s);
    if (endedEarly) {
      for (const entry of queue.slice(0, known)) {
        const { job, amounts, start_s } = entry;
        give(profile, start_s, start_s + job.est_s, amounts);
        plan(entry, now_s);
      }
    }
    for (const entry of queue.slice(known)) plan(entry, now_s);
    const started = queue.filter(({ start_s }) => start_s <= now_s);
    if (started.length > 0) queue = queue.filter(({ start_s }) => start_s > now_s);
    known = queue.length;
    endedEarly = false;
    return started;
  }

  return {
    submit: (at, job) => void queue.push(poolJob(at, job)),
    end(entry, now_s) {
      if (now_s < entry.start_s + entry.job.est_s) endedEarly = true;
      endEarly(profile, entry, now_s);
    },
    pass,
    nextPlan_s: () => queue.reduce((first, { start_s }) => Math.min(first, start_s), Number.POSITIVE_INFINITY),
  };
}
