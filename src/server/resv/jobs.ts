// Jobs of reservations: the jobs in a reservation's queue, and the jobs that reservations are made from (pbs_rsub --job,
// pbs_rsub -W qmove, qsub -W create_resv_from_job).

import { PBSE, Reject, reject } from "#model/pbse.ts";
import { LOG_EVENT } from "#support/log-event.ts";
import { isOwner } from "../attributes/permission.ts";
import type { Transaction } from "../engine/transaction.ts";
import { accountDeleted, accountQueued } from "../jobs/accounting-record.ts";
import { deleteWaitingSubjobs } from "../jobs/array-end.ts";
import { endWaiting } from "../jobs/end.ts";
import { logJob, moveJob, requestor } from "../jobs/life.ts";
import { isRunning, isWaiting } from "../state/job-phase.ts";
import { resvOfQueue } from "../state/resv-holding.ts";
import type { Job, Resv } from "../state/state.ts";
import { admitJob } from "../submit/admission.ts";

/** Deletes the jobs in the reservation's queue. A running job is deleted when its mom reports that it has ended. */
export function deleteJobs(tx: Transaction, resv: Resv, which: "all" | "running"): void {
  for (const id of [...(tx.state.queues.get(resv.attrs.queue)?.jobs ?? [])]) {
    const job = tx.state.jobs.get(id);
    if (job === undefined) continue;
    if (job.subjobs !== undefined) deleteArray(tx, job, which);
    else if (!isWaiting(job)) deleteRunning(tx, job);
    else if (which === "all") deleteWaiting(tx, job);
  }
}

/** If all jobs are to be deleted, deletes the waiting subjobs of an array. Running subjobs are jobs of their own in the queue; the array ends with the last of them. */
function deleteArray(tx: Transaction, array: Job, which: "all" | "running"): void {
  if (which === "running") return;
  if (array.own.termination === undefined) {
    logJob(tx, LOG_EVENT.JOB, array.id, `Job to be deleted at request of ${requestor(tx)}`);
    accountDeleted(tx, array.id);
    tx.apply({ kind: "job-changed", id: array.id, set: {}, unset: [], own: { termination: { by: requestor(tx), history: true } } });
  }
  deleteWaitingSubjobs(tx, array);
}

function deleteWaiting(tx: Transaction, job: Job): void {
  logJob(tx, LOG_EVENT.JOB, job.id, `Job to be deleted at request of ${requestor(tx)}`);
  accountDeleted(tx, job.id);
  const { comment } = job.attrs;
  if (comment !== undefined) tx.apply({ kind: "job-changed", id: job.id, set: { comment: `${comment} and terminated` }, unset: [] });
  endWaiting(tx, job, true);
}

function deleteRunning(tx: Transaction, job: Job): void {
  if (job.own.termination === undefined) {
    logJob(tx, LOG_EVENT.JOB, job.id, "Job sent signal TermJob on delete");
    logJob(tx, LOG_EVENT.JOB, job.id, `Job to be deleted at request of ${requestor(tx)}`);
    accountDeleted(tx, job.id);
    tx.apply({ kind: "job-changed", id: job.id, set: {}, unset: [], own: { termination: { by: requestor(tx), history: true } } });
  }
  tx.act({ kind: "terminate-job", job: job.id, why: "delete" });
}

/**
 * Returns the job that a reservation is made from. running: the job must run (--job); otherwise it must wait (qmove).
 * Refuses with 15001 an unknown job, with 15007 another user's job (unless the caller is an operator or manager), with 15182 an
 * array, with 15181 a job in a reservation, with 15016 a job in another state.
 */
export function sourceJob(tx: Transaction, id: string, running: boolean): Job {
  const job = tx.state.jobs.get(id);
  if (job === undefined) throw reject(PBSE.UNKJOBID);
  if (!isOwner(tx, job.attrs.Job_Owner) && tx.who.level === "user") throw reject(PBSE.PERM);
  if (job.attrs["array"] === true || id.includes("[")) throw reject(PBSE.RESV_FROM_ARRJOB);
  if (resvOfQueue(tx.state, job.attrs.queue) !== undefined) throw reject(PBSE.RESV_FROM_RESVJOB);
  if (running ? !isRunning(job) : !isWaiting(job)) throw reject(PBSE.BADSTATE);
  return job;
}

/** Moves the job of an as-soon-as-possible reservation (qmove) into its queue. Returns false if that is not possible. */
export function moveSourceJob(tx: Transaction, resv: Resv): boolean {
  const { qmove, queue: name } = resv.attrs;
  if (typeof qmove !== "string") return true;
  const job = tx.state.jobs.get(qmove);
  const queue = tx.state.queues.get(name);
  if (job === undefined || queue === undefined || !isWaiting(job)) return false;
  try {
    moveJob(tx, job, queue, admitJob(tx, job, queue, { from_route: false }));
  } catch (error) {
    if (error instanceof Reject) return false;
    throw error;
  }
  logJob(tx, LOG_EVENT.JOB, job.id, `Job moved to ${queue.name} at request of ${requestor(tx)}`);
  accountQueued(tx, job);
  return true;
}
