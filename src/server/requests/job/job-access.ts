// Finds the job or subjobs that a request is about, and checks whether the caller may act on them.

import { type JobId, jobIdText, parseJobId, subjobId } from "#model/job-id.ts";
import { PBSE, Reject, reject } from "#model/pbse.ts";
import { nth } from "#support/assert.ts";
import { checkOperator, isOwner } from "../../attributes/permission.ts";
import type { Answer, Transaction } from "../../engine/transaction.ts";
import type { Job } from "../../state/state.ts";
import { indicesIn, namedIndices, SUBJOB, type Subjobs, subjobState } from "../../state/subjobs.ts";
import { finishedJob, fullJobId, mayQuery } from "../../status/job.ts";

export type ArrayJob = Job & { readonly subjobs: Subjobs };

/** What an id names. For a waiting subjob or a range, array is the job array; a subjob that has become a job of its own is of kind job. */
export type Target =
  | { readonly kind: "job"; readonly job: Job }
  | { readonly kind: "array"; readonly job: ArrayJob }
  /** a subjob that has never started */
  | { readonly kind: "waiting"; readonly id: string; readonly index: number; readonly array: ArrayJob }
  | { readonly kind: "over"; readonly id: string; readonly array: ArrayJob }
  /** indices: the indices in the range that the array has, in order; at least one */
  | { readonly kind: "range"; readonly indices: readonly number[]; readonly array: ArrayJob };

/**
 * Finds what an id names. Refuses a finished job with 15139, an unknown job with 15001, an index that the array does not
 * have with 15004. A job that the caller may not see (query_other_jobs) counts as unknown.
 */
export function targetOf(tx: Transaction, text: string): Target {
  const id = fullJobId(tx.state, text);
  const parsed = id === null ? null : parseJobId(id);
  if (id === null || parsed === null) throw reject(PBSE.UNKJOBID);
  const job = tx.state.jobs.get(id);
  if (job !== undefined) checkVisible(tx, job);
  if (job !== undefined) return isArray(job) ? { kind: "array", job } : { kind: "job", job };
  const array = parsed.kind === "subjob" || parsed.kind === "range" ? liveArray(tx, parsed) : undefined;
  if (array !== undefined) checkVisible(tx, array);
  if (array === undefined) throw reject(isFinished(tx, parsed) ? PBSE.HISTJOBID : PBSE.UNKJOBID);
  return subjobsOf(array, parsed, id);
}

function checkVisible(tx: Transaction, job: Job): void {
  if (!mayQuery(tx, job)) throw reject(PBSE.UNKJOBID);
}

const isArray = (job: Job): job is ArrayJob => job.subjobs !== undefined;

function liveArray(tx: Transaction, id: JobId): ArrayJob | undefined {
  const job = tx.state.jobs.get(jobIdText({ ...id, kind: "array" }));
  return job !== undefined && isArray(job) ? job : undefined;
}

/** Whether an id names a finished job. A subjob or range is finished when its array is finished. */
function isFinished(tx: Transaction, id: JobId): boolean {
  const whole = id.kind === "job" ? id : ({ ...id, kind: "array" } as const);
  const job = finishedJob(tx, jobIdText(whole));
  return job !== undefined && mayQuery(tx, job);
}

function subjobsOf(array: ArrayJob, parsed: JobId, id: string): Target {
  if (parsed.kind === "subjob") {
    const state = subjobState(array.subjobs, parsed.index);
    if (state === undefined) throw reject(PBSE.IVALREQ);
    return state === SUBJOB.QUEUED ? { kind: "waiting", id, index: parsed.index, array } : { kind: "over", id, array };
  }
  const indices = parsed.kind === "range" ? namedIndices(array.subjobs, parsed.ranges) : [];
  if (indices.length === 0) throw reject(PBSE.IVALREQ);
  return { kind: "range", indices, array };
}

/** The job whose owner may act on the target. */
export const ownedJob = (target: Target): Job => (target.kind === "job" || target.kind === "array" ? target.job : target.array);

/** The subjobs of the target that have started and so are jobs of their own, in order of index; for a target that is a job, that job. */
export function startedJobs(tx: Transaction, target: Target): Job[] {
  const of = (array: ArrayJob, indices: Iterable<number>): Job[] =>
    [...indices].flatMap((index) => tx.state.jobs.get(subjobId(array.id, index)) ?? []);
  switch (target.kind) {
    case "job":
      return [target.job];
    case "array":
      return of(target.job, indicesIn(target.job.subjobs, SUBJOB.LIVE));
    case "range":
      return of(target.array, target.indices);
    default:
      return [];
  }
}

/** The live job that an id names. Used by requests that are only for whole jobs and arrays: a subjob is refused with 15004. */
export function wholeJob(tx: Transaction, text: string): Job {
  const target = targetOf(tx, text);
  const job = target.kind === "job" || target.kind === "array" ? target.job : undefined;
  if (job === undefined || job.attrs["array_id"] !== undefined) throw reject(PBSE.IVALREQ);
  return job;
}

/** Refuses with 15007 a caller who neither owns the job nor is an operator or manager. */
export function checkOwner(tx: Transaction, job: Job): void {
  if (!isOwner(tx, job.attrs.Job_Owner)) checkOperator(tx.who);
}

/** Refuses with 15016 a job that is in none of these states. */
export function checkState(job: Job, states: string): void {
  if (!states.includes(job.attrs.job_state)) throw reject(PBSE.BADSTATE);
}

/**
 * Applies a request to each of several jobs, and accepts or refuses it for each of them. The client gets the last refusal.
 * If there is no job, refuses with 15016.
 */
export function forEach<T>(tx: Transaction, objects: readonly T[], act: (tx: Transaction, object: T) => Answer): Answer {
  const [only] = objects;
  if (only === undefined) throw reject(PBSE.BADSTATE);
  if (objects.length === 1) return act(tx, only);
  const tokens = tx.split(objects.length);
  objects.forEach((object, at) => {
    const token = nth(tokens, at);
    try {
      if (act({ ...tx, token }, object) !== "deferred") tx.act({ kind: "reply", token, ok: true });
    } catch (error) {
      if (!(error instanceof Reject)) throw error;
      tx.act({ kind: "reply", token, ok: false, code: error.code, text: error.text });
    }
  });
  return "deferred";
}
