// Lists by partition the jobs that wait while no scheduler looks at them, with the reason (`partita top`). Everybody may
// ask. While query_other_jobs is False, users see only how many jobs wait in each
// partition. They see no ids.

import type { UnservedView, WaitingJob } from "#protocol/sched-view.ts";
import { seesOthers } from "../../attributes/permission.ts";
import type { Answer, Transaction } from "../../engine/transaction.ts";
import { isExecution } from "../../jobs/life.ts";
import type { Job, Queue } from "../../state/state.ts";

/** The largest number of jobs that are listed for a partition. The list of a scheduler has the same limit. */
const WAITING_MAX = 40;

export function viewUnserved(tx: Transaction): Answer {
  const views = new Map<string, UnservedView>();
  const tells = seesOthers(tx);
  for (const queue of tx.state.queues.values()) {
    const count = (queue.counts.get("Q") ?? 0) + (queue.counts.get("B") ?? 0);
    const unserved = count > 0 && isExecution(queue) ? tx.unserved(queue) : null;
    if (unserved === null) continue;
    const { sched, partition, text, remedy } = unserved;
    const before = views.get(partition);
    const told = before?.waiting ?? [];
    const more = tells ? firstWaiting(tx, queue, WAITING_MAX - told.length) : [];
    views.set(partition, { sched, partition, text, remedy, jobs: (before?.jobs ?? 0) + count, waiting: [...told, ...more] });
  }
  return { value: [...views.values()] };
}

function firstWaiting({ state }: Transaction, queue: Queue, most: number): WaitingJob[] {
  const rows: WaitingJob[] = [];
  for (const id of queue.jobs) {
    if (rows.length >= most) break;
    const job = state.jobs.get(id);
    if (job !== undefined && "QB".includes(job.attrs.job_state) && job.attrs["array_id"] === undefined) rows.push(waitingJob(job));
  }
  return rows;
}

function waitingJob({ id, attrs }: Job): WaitingJob {
  const { walltime } = attrs.Resource_List;
  return {
    id,
    user: attrs.euser,
    queue: attrs.queue,
    select: attrs.schedselect,
    walltime_s: typeof walltime === "number" ? walltime : null,
    queued_s: attrs.etime ?? attrs.qtime,
    comment: attrs.comment ?? null,
    top_job: attrs["topjob"] === true,
    start_s: null,
  };
}
