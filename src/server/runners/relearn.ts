// Waiting jobs whose requests follow what is learned (jobs/learning.ts): when an estimate changes, their requests change, so that they get other runners, and surplus runners are
// cancelled.

import { LOG_EVENT } from "#support/log-event.ts";
import { type Kernel, ownTransaction } from "../engine/kernel.ts";
import { learnedRequest, learningKey, overrideOf } from "../jobs/learning.ts";
import { isExecution, logJob } from "../jobs/life.ts";
import { isIn } from "../state/job-phase.ts";
import { backendsFor, partitionOf } from "../state/partitions.ts";

/** The largest number of jobs whose requests change in one pass; the next pass continues. */
const CHANGED_MAX = 500;
/** Called in each pass. Changes the requests of waiting jobs that follow what is learned. Returns whether jobs are left for the next pass. */
export function relearn(kernel: Kernel): boolean {
  const { state, runners } = kernel;
  if (runners.relearn.size === 0) return false;
  let left = CHANGED_MAX;
  for (const queue of state.queues.values()) {
    if (!isExecution(queue) || backendsFor(state, partitionOf(queue)).length === 0) continue;
    for (const id of [...queue.jobs]) {
      const job = state.jobs.get(id);
      // A job that has failed keeps the request that it grew to.
      if (job === undefined || !isIn(job, "queued", "held") || job.own.failures !== undefined) continue;
      if (overrideOf(state, job.attrs, queue) === undefined || !runners.relearn.has(learningKey(job.attrs))) continue;
      const learned = learnedRequest(state, queue, job.attrs, job.own.asked);
      if (learned === null) continue;
      if (left-- === 0) return true;
      const { asked, ...request } = learned;
      const tx = ownTransaction(kernel);
      logJob(
        tx,
        LOG_EVENT.JOB,
        id,
        `Request follows earlier jobs: ${request.schedselect}, walltime ${request.Resource_List["walltime"] ?? "unlimited"}`,
      );
      tx.apply({ kind: "job-changed", id, set: request, unset: [], own: { asked } });
    }
  }
  runners.relearn.clear();
  return false;
}
