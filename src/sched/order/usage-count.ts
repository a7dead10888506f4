// Adds what jobs use to the usage of their entities (docs/reference/scheduler.md 10). Deltas report what jobs use, and it is counted before each cycle. Only
// jobs with new reports are visited.

import { countRun, entityOf, type Fairshare, forgetRun } from "#model/fairshare.ts";
import type { SchedJob } from "#protocol/sched-link.ts";
import type { Universe } from "../shapes/universe.ts";
import { usageOf } from "./ranking.ts";

/** Counts the usage that was reported since the last call. counts false: shares do not matter, and the reports are dropped. */
export function countUsage(universe: Universe, fairshare: Fairshare, counts: boolean): void {
  const { used, ended } = universe;
  if (counts) {
    if (used.all) forgetMissing(universe, fairshare);
    const ids = used.all ? universe.jobs.keys() : used.ids;
    for (const id of ids) {
      const job = universe.jobs.get(id);
      if (job?.resources_used !== undefined) countJob(universe, fairshare, job, job.resources_used);
    }
    for (const { job, resources_used } of ended) {
      countJob(universe, fairshare, job, resources_used);
      forgetRun(fairshare, job.id);
    }
  }
  used.ids.clear();
  used.all = false;
  ended.length = 0;
}

function countJob(universe: Universe, fairshare: Fairshare, job: SchedJob, resources_used: NonNullable<SchedJob["resources_used"]>): void {
  // A job of another scheduler's queue may run on vnodes of this scheduler. Its own scheduler counts its usage.
  if (!universe.queues.has(job.queue)) return;
  countRun(fairshare, entityOf(job, universe.policy.fairshare_entity), job, usageOf(universe, resources_used));
}

/** Forgets jobs that ended without a report, because their last usage is unknown. */
function forgetMissing(universe: Universe, fairshare: Fairshare): void {
  for (const id of [...fairshare.counted.keys()]) if (!universe.jobs.has(id)) forgetRun(fairshare, id);
}
