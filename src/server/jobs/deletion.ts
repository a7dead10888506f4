// Deletion of jobs. A waiting job ends at once, a running job when its mom reports the end; by force a job ends at once, whatever the mom does. Which jobs
// are deleted, and who may do it, is in requests/job/delete-job.ts.

import type { DeleteJobRequest } from "#protocol/messages.ts";
import { LOG_EVENT } from "#support/log-event.ts";
import { isOwner } from "../attributes/permission.ts";
import type { Transaction } from "../engine/transaction.ts";
import type { Termination } from "../state/job-own.ts";
import { isWaiting } from "../state/job-phase.ts";
import type { Job } from "../state/state.ts";
import { accountDeleted } from "./accounting-record.ts";
import { endWaiting, finish } from "./end.ts";
import { logJob, requestor } from "./life.ts";

/** How a job is deleted. force: at once, whatever its mom does. history: the job also disappears from the history. */
export type DeletionManner = Pick<DeleteJobRequest, "force" | "history" | "suppressMail">;

/** Exit_status of a job deleted by force: 256 + SIGKILL. */
const KILLED = 265;

/** Deletes a job, or a subjob that has started. */
export function deleteOne(tx: Transaction, job: Job, how: DeletionManner): void {
  const keep = how.history !== true;
  logJob(tx, LOG_EVENT.DEBUG, job.id, "delete job request received");
  if (isWaiting(job)) {
    logDeletion(tx, job, how);
    endWaiting(tx, job, keep);
  } else if (how.force === true) {
    logDeletion(tx, job, how);
    deleteByForce(tx, job, keep);
  } else {
    deleteRunning(tx, job, how, keep);
  }
}

/** Writes the log line and record D of a deletion, and sends mail to the owner if another user deletes the job. */
export function logDeletion(tx: Transaction, job: Pick<Job, "id" | "attrs">, how: Pick<DeletionManner, "suppressMail">): void {
  logJob(tx, LOG_EVENT.JOB, job.id, `Job to be deleted at request of ${requestor(tx)}`);
  accountDeleted(tx, job.id);
  if (how.suppressMail === true || isOwner(tx, job.attrs.Job_Owner)) return;
  tx.act({ kind: "mail", job: job.id, point: "a", text: `Job deleted at request of ${requestor(tx)}` });
}

/**
 * Tells the mom to end the job; the mom's obit then completes the deletion. If the deletion is requested again, only the
 * request to the mom is repeated.
 */
function deleteRunning(tx: Transaction, job: Job, how: DeletionManner, keep: boolean): void {
  const before = job.own.termination;
  if (before === undefined) {
    logJob(tx, LOG_EVENT.JOB, job.id, "Job sent signal TermJob on delete");
    logDeletion(tx, job, how);
  }
  if (before === undefined || before.history !== keep) {
    const termination: Termination = { by: before?.by ?? requestor(tx), history: keep };
    tx.apply({ kind: "job-changed", id: job.id, set: {}, unset: [], own: { termination } });
  }
  tx.act({ kind: "terminate-job", job: job.id, why: "delete" });
}

/** Preempts the job by deletion: the job is killed at once, and its end is reported like that of any job. */
export function preemptByDeletion(tx: Transaction, job: Job): void {
  logJob(tx, LOG_EVENT.DEBUG, job.id, "delete job request received");
  logJob(tx, LOG_EVENT.JOB, job.id, "Job sent signal TermJob on delete");
  logDeletion(tx, job, {});
  const termination: Termination = { by: requestor(tx), history: true, preempted: true };
  tx.apply({ kind: "job-changed", id: job.id, set: {}, unset: [], own: { termination } });
  tx.act({ kind: "terminate-job", job: job.id, why: "delete", force: true });
}

function deleteByForce(tx: Transaction, job: Job, keep: boolean): void {
  tx.act({ kind: "terminate-job", job: job.id, why: "delete", force: true, over: true });
  tx.apply({ kind: "job-changed", id: job.id, set: { Exit_status: KILLED }, unset: [] });
  finish(tx, job, "deleted", ` and terminated by ${requestor(tx)}`, keep);
}
