// How long a job runs, as far as a scheduler can know: walltime, soft_walltime, and the shortest and longest a shrink-to-fit job takes (pbs/sched.md 5, 7).

import type { SchedJob } from "#protocol/sched-link.ts";
import type { ResourceSpace } from "./resource-space.ts";
import { amountOf } from "./resource-space.ts";

/** A job without walltime is taken to run this long: 5 years. */
export const JOB_INFINITY_S = 5 * 365 * 24 * 3600;

export type Durations = {
  /** how long it is expected to run */
  readonly expected_s: number;
  /** how long it may run */
  readonly most_s: number;
};

/** A shrink-to-fit job that waits asks for its longest time; one that runs has the time it was given. */
export function durationsOf(space: ResourceSpace, job: SchedJob): Durations {
  const time = (name: string): number | null => amountOf(space.all.get(name), job.resources[name]);
  const shrinks = job.state === "Q" && job.resources["min_walltime"] !== undefined;
  const most_s = (shrinks ? time("max_walltime") : null) ?? time("walltime") ?? JOB_INFINITY_S;
  const soft_s = time("soft_walltime");
  return { expected_s: soft_s === null || soft_s <= 0 ? most_s : Math.min(soft_s, most_s), most_s };
}

/** The shortest time a shrink-to-fit job takes; null: it is none. */
export function shortestOf(space: ResourceSpace, job: SchedJob): number | null {
  return amountOf(space.all.get("min_walltime"), job.resources["min_walltime"]);
}
