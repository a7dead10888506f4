// How long a job runs, as far as a scheduler can know: walltime, soft_walltime, and the shortest and longest time of a shrink-to-fit job
// (docs/reference/scheduler.md 5, 7).

import type { SchedJob } from "#protocol/sched-link.ts";
import type { Queue } from "./job-line.ts";
import type { ResourceSpace } from "./resource-space.ts";
import { amountOf } from "./resource-space.ts";
import type { Universe } from "./universe.ts";

/** The assumed run time of a job without walltime: 5 years. */
export const JOB_INFINITY_S = 5 * 365 * 24 * 3600;

export type Durations = {
  /** how long the job is expected to run */
  readonly expected_s: number;
  /** how long the job may run */
  readonly most_s: number;
  /** how long after most_s the job may still have its vnodes: a job that ignores SIGTERM is killed after the kill_delay of its queue */
  readonly grace_s: number;
};

/**
 * Returns the kill_delay of a queue in seconds. The server sends it for every queue that the scheduler sees, also if it is unset. For jobs of other queues, it
 * sends the value with each job (kill_delay_s).
 */
export function killDelayOf(queue: Pick<Queue, "attrs"> | undefined): number {
  const delay_s = queue?.attrs["kill_delay"];
  return typeof delay_s === "number" ? delay_s : 0;
}

/** Returns the durations of a job. A waiting shrink-to-fit job requests its longest time; a running one has the time that it was given. */
export function durationsOf({ space, queues }: Pick<Universe, "space" | "queues">, job: SchedJob): Durations {
  const time = (name: string): number | null => amountOf(space.all.get(name), job.resources[name]);
  // An array that has begun still waits with its remaining subjobs.
  const shrinks = (job.state === "Q" || job.state === "B") && job.resources["min_walltime"] !== undefined;
  const limit_s = (shrinks ? time("max_walltime") : null) ?? time("walltime");
  const most_s = limit_s ?? JOB_INFINITY_S;
  const soft_s = time("soft_walltime");
  const expected_s = soft_s === null || soft_s <= 0 ? most_s : Math.min(soft_s, most_s);
  // A shrink-to-fit job gets a walltime when it starts, so it always has the kill_delay.
  return { expected_s, most_s, grace_s: limit_s === null && !shrinks ? 0 : (job.kill_delay_s ?? killDelayOf(queues.get(job.queue))) };
}

/** Returns the shortest time of a shrink-to-fit job; null: the job is not a shrink-to-fit job. */
export function shortestOf(space: ResourceSpace, job: SchedJob): number | null {
  return amountOf(space.all.get("min_walltime"), job.resources["min_walltime"]);
}
