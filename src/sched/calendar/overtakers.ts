// Decides which running jobs with a soft_walltime are expected to end when the soft_walltime is over. This is expected of a job that comes before every waiting
// job: if it runs longer, it moves plans to a later time, but it has a higher priority than the planned jobs. A running job that may have overtaken a waiting
// job is expected to use its whole walltime and the kill_delay of its queue. Otherwise it would move the plan of the waiting job to a later time when it passes
// its soft_walltime.
//
// O1. A running job is no longer in the order of jobs. If the order depends only on queues and submission, the running job is compared by these.
//     Otherwise it comes before the waiting jobs if it ran before the first of them was submitted.

import type { SchedJob } from "#protocol/sched-link.ts";
import { queuesInOrder } from "../order/job-order.ts";
import type { Running } from "../shapes/booking.ts";
import type { Universe } from "../shapes/universe.ts";
import { renewFor } from "./calendar.ts";

/** The front of the waiting jobs, with which a running job is compared. */
export type Front = {
  /** the position of each queue in the order of queues; null: the order of jobs depends on more than queues and submission */
  readonly turns: ReadonlyMap<string, number> | null;
  /** position of the first waiting job's queue in the order of queues, and rank of that job */
  readonly turn: number;
  readonly rank: number;
  /** the earliest submission among all waiting jobs */
  readonly qtime_s: number;
};

/** Returns the front of the waiting jobs. started: jobs that a cycle has started, so that they no longer wait. */
export function frontOf(universe: Universe, started: ReadonlySet<string> = new Set()): Front {
  let turns = turnsOf(universe);
  let [turn, rank, qtime_s] = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY];
  for (const { job, line } of universe.entries.values()) {
    if (line === null || started.has(job.id)) continue;
    // Jobs that were preempted come first.
    if (job.sched_preempted_s !== undefined) turns = null;
    if (job.qtime_s < qtime_s) qtime_s = job.qtime_s;
    const own = turns?.get(job.queue) ?? 0;
    if (own < turn || (own === turn && job.rank < rank)) [turn, rank] = [own, job.rank];
  }
  return { turns, turn, rank, qtime_s };
}

function turnsOf(universe: Universe): Map<string, number> | null {
  const { policy, ranking, soft_limits, preempt } = universe;
  const queues = queuesInOrder(universe);
  if (policy.job_sort_key.length > 0 || policy.fair_share || ranking.formula !== null || policy.round_robin) return null;
  // Without preemption, jobs have no levels, and soft limits do not change their order.
  const limited = [{ soft_limits }, ...queues].some(({ soft_limits: { run, resources } }) => run.size > 0 || resources.size > 0);
  if (policy.preemptive_sched && limited) return null;
  const isExpress = (priority: number): boolean => policy.preemptive_sched && priority >= preempt.queue_prio;
  return new Map(queues.map(({ name, priority }, at) => [name, policy.by_queue ? at : isExpress(priority) ? -priority : 0]));
}

/** Returns a function that compares waiting jobs by their order, with undefined last. Returns null if the order depends on more than queues and submission. */
export function waitingOrder(universe: Universe): ((a: SchedJob | undefined, b: SchedJob | undefined) => number) | null {
  const turns = turnsOf(universe);
  if (turns === null) return null;
  for (const { job, line } of universe.entries.values()) if (line !== null && job.sched_preempted_s !== undefined) return null;
  const turn = (job: SchedJob | undefined): number =>
    job === undefined ? Number.POSITIVE_INFINITY : (turns.get(job.queue) ?? Number.POSITIVE_INFINITY);
  return (a, b) => turn(a) - turn(b) || (a?.rank ?? 0) - (b?.rank ?? 0);
}

/** Returns whether a running job comes before all waiting jobs (O1). */
export function standsBefore({ rank, queue, stime_s, qtime_s }: SchedJob, { turns, ...front }: Front): boolean {
  if (turns === null) return (stime_s ?? qtime_s) <= front.qtime_s;
  const turn = turns.get(queue);
  return turn !== undefined && (turn < front.turn || (turn === front.turn && rank < front.rank));
}

/** Lets the running jobs that may have overtaken a waiting job be expected to use their whole walltime and kill_delay. Returns a function that takes this back. */
export function countWhole(universe: Universe): () => void {
  const { calendar, jobs } = universe;
  if (calendar.soft.size === 0) return () => undefined;
  const front = frontOf(universe);
  const before = new Map<string, number>();
  const setEnd = (running: Running, to_s: number): void => {
    running.to_s = to_s;
    calendar.in_order = false;
    renewFor(universe, running);
  };
  for (const id of calendar.soft) {
    const running = calendar.running.get(id);
    const job = jobs.get(id);
    if (running === undefined || (job !== undefined && standsBefore(job, front))) continue;
    before.set(id, running.to_s);
    setEnd(running, running.last_s);
  }
  return () => {
    for (const [id, to_s] of before) {
      const running = calendar.running.get(id);
      if (running !== undefined) setEnd(running, to_s);
    }
  };
}
