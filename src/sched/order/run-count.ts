// Counts running jobs for the run limits of the server and of their queues (shapes/limits.ts I1).

import type { SchedJob } from "#protocol/sched-link.ts";
import { countJob, type UsageTable } from "../shapes/limits.ts";
import type { Universe } from "../shapes/universe.ts";

/** Counts a job for the server (key "") and for its queue. sign -1: no longer counts it. */
export function count(universe: Universe, job: SchedJob, sign: 1 | -1): void {
  countJob(universe.space, universe.profile, usageOf(universe, ""), job, sign);
  countJob(universe.space, universe.profile, usageOf(universe, job.queue), job, sign);
}

function usageOf(universe: Universe, scope: string): UsageTable {
  let table = universe.usage.get(scope);
  if (table === undefined) universe.usage.set(scope, (table = new Map()));
  return table;
}
