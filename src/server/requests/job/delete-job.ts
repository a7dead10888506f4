// qdel (docs/reference/commands.md 3). A waiting job ends at once; a running job ends when its mom reports it, or with force
// at once, whatever the mom does. With -x the job does not enter the history, and the record of a finished job is deleted.
// If an id names an array, all its subjobs are deleted; if it names a subjob or a range, only these. The array ends with its
// last subjob.
//
// I1. If the mom is not connected, the caller gets 15070 and the job continues. The mom is told to end the job when it connects.
// I2. Single finished subjobs cannot be deleted from the history (15159).

import { jobIdText, parseJobId, subjobId } from "#model/job-id.ts";
import { PBSE, pbseText, reject } from "#model/pbse.ts";
import type { DeleteJobRequest } from "#protocol/messages.ts";
import { LOG_EVENT } from "#support/log-event.ts";
import { answerError } from "../../attributes/answers.ts";
import { checkOperator, isOwner } from "../../attributes/permission.ts";
import type { Answer, Transaction } from "../../engine/transaction.ts";
import { deleteWaitingSubjobs } from "../../jobs/array-end.ts";
import { deleteOne, logDeletion } from "../../jobs/deletion.ts";
import { logJob, requestor } from "../../jobs/life.ts";
import { hostOfJob } from "../../state/job-hosts.ts";
import type { Termination } from "../../state/job-own.ts";
import { isWaiting } from "../../state/job-phase.ts";
import { SUBJOB, subjobState } from "../../state/subjobs.ts";
import { finishedJob, fullJobId, mayQuery } from "../../status/job.ts";
import { type ArrayJob, checkOwner, ownedJob, startedJobs, type Target, targetOf } from "./job-access.ts";

export function deleteJob(tx: Transaction, request: DeleteJobRequest): Answer {
  const id = fullJobId(tx.state, request.job);
  if (request.history === true && id !== null && !tx.state.jobs.has(id) && deleteHistory(tx, id)) return {};
  const target = targetOf(tx, request.job);
  checkOwner(tx, ownedJob(target));
  const runs_on = startedJobs(tx, target).filter((job) => request.force !== true && !isWaiting(job) && !tx.hasMom(hostOfJob(job)));
  deleteTarget(tx, target, request);
  return runs_on.length === 0 ? {} : answerError(tx, PBSE.NORELYMOM, pbseText(PBSE.NORELYMOM));
}

function deleteTarget(tx: Transaction, target: Target, request: DeleteJobRequest): void {
  switch (target.kind) {
    case "job":
      return deleteOne(tx, target.job, request);
    case "array":
      return deleteArray(tx, target, request);
    case "waiting":
      return deleteWaiting(tx, target.array, [target.index], request);
    case "over":
      throw reject(PBSE.NOHISTARRAYSUBJOB);
    case "range":
      return deleteRange(tx, target, request);
    default: {
      const unreachable: never = target;
      return unreachable;
    }
  }
}

/** Deletes a job from the history; for an array, also the records of its subjobs. Returns whether there was a record. */
function deleteHistory(tx: Transaction, id: string): boolean {
  const parsed = parseJobId(id);
  const is_part = parsed?.kind === "subjob" || parsed?.kind === "range";
  const job = finishedJob(tx, is_part ? jobIdText({ ...parsed, kind: "array" }) : id);
  if (job === undefined || !mayQuery(tx, job)) return false;
  if (!isOwner(tx, job.attrs.Job_Owner)) checkOperator(tx.who);
  if (is_part) throw reject(PBSE.NOHISTARRAYSUBJOB);
  tx.apply({ kind: "history-purged", ids: [id], ...(job.attrs["array"] === true ? { arrays: [job.seq] } : {}) });
  logJob(tx, LOG_EVENT.JOB, id, `Job history deleted at request of ${requestor(tx)}`);
  return true;
}

/** Deletes an array: waiting subjobs at once, running ones as jobs. The array ends with its last running subjob. */
function deleteArray(tx: Transaction, target: Extract<Target, { kind: "array" }>, request: DeleteJobRequest): void {
  const array = target.job;
  const running = startedJobs(tx, target);
  const before = array.own.termination;
  logJob(tx, LOG_EVENT.DEBUG, array.id, "delete job request received");
  if (before === undefined) logDeletion(tx, array, request);
  const history = request.history !== true;
  if (before?.history !== history) {
    const termination: Termination = { by: before?.by ?? requestor(tx), history };
    tx.apply({ kind: "job-changed", id: array.id, set: {}, unset: [], own: { termination } });
  }
  deleteWaitingSubjobs(tx, array);
  for (const job of running) deleteOne(tx, job, request);
}

function deleteWaiting(tx: Transaction, array: ArrayJob, indices: readonly number[], request: DeleteJobRequest): void {
  for (const index of indices) {
    const id = subjobId(array.id, index);
    logJob(tx, LOG_EVENT.DEBUG, id, "delete job request received");
    logDeletion(tx, { id, attrs: array.attrs }, request);
  }
  deleteWaitingSubjobs(tx, array, indices);
}

function deleteRange(tx: Transaction, target: Extract<Target, { kind: "range" }>, request: DeleteJobRequest): void {
  const { array, indices } = target;
  const waiting = indices.filter((index) => subjobState(array.subjobs, index) === SUBJOB.QUEUED);
  const started = startedJobs(tx, target);
  if (waiting.length + started.length === 0) throw reject(PBSE.NOHISTARRAYSUBJOB);
  // Waiting subjobs are deleted first, while the array certainly exists: the end of its last running subjob may end the array.
  if (waiting.length > 0) deleteWaiting(tx, array, waiting, request);
  for (const job of started) deleteOne(tx, job, request);
}
