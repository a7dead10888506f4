// Measures of a waiting job by which policies order jobs: its time, its size, its expansion factor, and the key of the policy `log`.

import type { SchedJob } from "#protocol/sched-link.ts";
import { durationsOf } from "../shapes/durations.ts";
import { amountOf } from "../shapes/resource-space.ts";
import type { Universe } from "../shapes/universe.ts";

/** Returns the walltime that a job requests, in seconds; for a job without walltime, five years (shapes/durations.ts). */
export const timeOf = (universe: Universe, job: SchedJob): number => durationsOf(universe, job).most_s;

/** Returns the number of cpus that a job requests, at least 1. */
export const cpusOf = ({ space }: Universe, { resources }: SchedJob): number =>
  Math.max(1, amountOf(space.all.get("ncpus"), resources["ncpus"]) ?? 1);

/** Returns the expansion factor: (wait + walltime) / walltime. A walltime below one second counts as one second. */
export const expansionOf = (universe: Universe, job: SchedJob, now_s: number): number =>
  1 + Math.max(0, now_s - job.ctime_s) / Math.max(1, timeOf(universe, job));

/**
 * Returns the key of the policy `log`: submission + 3600 log2(walltime / 60), in seconds; smaller keys come first. A job can therefore only be overtaken in this
 * order by a job that is at most log2(ratio of their walltimes) hours younger, and the order of two jobs never changes.
 */
export const logKey = (submit_s: number, walltime_s: number, doubling_s = 3600): number =>
  submit_s + doubling_s * Math.log2(Math.max(1, walltime_s) / 60);
