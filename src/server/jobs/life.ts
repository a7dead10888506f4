// Puts a job into its queue and moves it between the waiting states; writes the log lines, accounting records and comments.
//
//   Q 10 queued    H 20 held (22: for a dependency)    W 30 waits for Execution_Time    T 0 in transit
//   running and ending: run.ts, end.ts; routing: submit/routing.ts; arrays: subjob-start.ts, array-end.ts
//
// I1. A waiting job is in the first state that applies: H while a hold is set, W while Execution_Time lies in the future,
//     else Q. An array that has begun is B or H.
// I2. A job that does not run has etime if and only if it is eligible (Q or B in an execution queue).
// I3. topjob marks a job whose start a scheduler may plan. A job that is held, starts, resumes or changes its queue loses the mark.

import { isDependent } from "#model/depend.ts";
import { restingState } from "#model/job-state.ts";
import { isHeld } from "#model/values/hold.ts";
import { mustGet } from "#support/assert.ts";
import { LOG_EVENT } from "#support/log-event.ts";
import type { Kernel } from "../engine/kernel.ts";
import type { Transaction } from "../engine/transaction.ts";
import { type JobOwn, NOTHING_OWN } from "../state/job-own.ts";
import { isIn, isWaiting, isWithMom, phaseOf } from "../state/job-phase.ts";
import type { Attrs, Job, JobAttrs, Queue } from "../state/state.ts";
import { accountQueued } from "./accounting-record.ts";

/** State and substate of a job that does not run, from its holds and Execution_Time. */
export function waitingState(
  attrs: Pick<JobAttrs, "Hold_Types" | "Execution_Time" | "stime"> & { readonly array?: unknown },
  now_s: number,
): { readonly job_state: string; readonly substate: number } {
  const { state, substate } = restingState({
    held: isHeld(attrs.Hold_Types),
    dependent: attrs.Hold_Types.includes("s") && isDependent((attrs as Attrs)["depend"]),
    waits: attrs.Execution_Time !== undefined && attrs.Execution_Time > now_s,
    begun: attrs.array === true && attrs.stime !== undefined,
  });
  return { job_state: state, substate };
}

/**
 * Creates a new job in its queue, with the log lines "enqueuing ..." and "Job Queued ..." and record Q. attrs: all
 * attributes except state, times, rank and queue_type. The caller has made the checks of the queue. A routing queue sends
 * the job on at once (core/hearing.ts).
 */
export function enqueueJob(
  tx: Transaction,
  id: string,
  seq: number,
  attrs: JobAttrs,
  script: string | null,
  own: JobOwn = NOTHING_OWN,
): void {
  const { state, now_s } = tx;
  const queue = mustGet(state.queues, attrs.queue);
  const waiting = waitingState(attrs, now_s);
  const eligible = waiting.job_state === "Q" && isExecution(queue);
  const full: JobAttrs = {
    ...attrs,
    ...waiting,
    ctime: now_s,
    mtime: now_s,
    qtime: now_s,
    queue_rank: state.next_rank + 1,
    queue_type: isExecution(queue) ? "E" : "R",
    server: state.name,
    hop_count: 1,
  };
  if (eligible) full.etime = now_s;
  logJob(tx, LOG_EVENT.DEBUG2, id, `enqueuing into ${attrs.queue}, state ${waiting.job_state} hop 1`);
  logJob(
    tx,
    LOG_EVENT.JOB,
    id,
    `Job Queued at request of ${requestor(tx)}, owner = ${attrs.Job_Owner}, job name = ${attrs.Job_Name}, queue = ${attrs.queue}`,
  );
  accountQueued(tx, { id, seq, attrs: full, own });
  // A routing queue sends the job on at once, or aborts it, so the job may no longer exist afterwards.
  tx.apply({ kind: "job-created", id, seq, attrs: full, own, script });
}

/** Sets the timer of a job that waits for its Execution_Time; clears it for any other job. */
export function armJob({ timers }: Pick<Kernel, "timers">, _tx: Transaction | null, job: Job): void {
  const phase = phaseOf(job);
  const timer = `wait:${job.id}`;
  if (phase.name === "waiting") timers.set(timer, phase.until_s * 1000);
  else if (timers.at(timer) !== undefined) timers.clear(timer);
}

/** Removes the mark of a top job (I3). Also removes the estimate if clear_topjob_estimates_enable is true or the job no longer waits. */
export function loseTopjob(tx: Transaction, job: Job): void {
  const clears = tx.state.server["clear_topjob_estimates_enable"] === true || isWithMom(job);
  const unset = clears && job.attrs["estimated"] !== undefined ? ["topjob", "estimated"] : ["topjob"];
  tx.apply({ kind: "job-changed", id: job.id, set: {}, unset });
}

/** Sets the state of a waiting job again after a change of holds or Execution_Time, or because Execution_Time has come. Running jobs keep their state. */
export function settleJob(tx: Transaction, job: Job, set: Attrs = {}, unset: readonly string[] = []): void {
  const { attrs } = job;
  if (!isWaiting(job) && !isIn(job, "begun")) {
    if (Object.keys(set).length + unset.length > 0) tx.apply({ kind: "job-changed", id: job.id, set, unset });
    return;
  }
  const next = { ...attrs, ...set };
  for (const name of unset) delete next[name];
  const waiting = waitingState(next, tx.now_s);
  const queue = tx.state.queues.get(attrs.queue);
  const eligible = (waiting.job_state === "Q" || waiting.job_state === "B") && queue !== undefined && isExecution(queue);
  const changes: Attrs = { ...set };
  if (waiting.job_state !== attrs.job_state) changes["job_state"] = waiting.job_state;
  if (waiting.substate !== attrs.substate) changes["substate"] = waiting.substate;
  if (eligible && attrs.etime === undefined) changes["etime"] = tx.now_s;
  const gone = eligible || attrs.etime === undefined ? unset : [...unset, "etime"];
  if (Object.keys(changes).length + gone.length > 0) tx.apply({ kind: "job-changed", id: job.id, set: changes, unset: gone });
}

/** Moves the job into another queue (qmove, routing). The caller has made the checks of that queue; set contains its default resources. */
export function moveJob(tx: Transaction, job: Job, queue: Queue, set: Attrs = {}): void {
  const { attrs } = job;
  logJob(tx, LOG_EVENT.DEBUG2, job.id, `dequeuing from ${attrs.queue}, state ${attrs.job_state}`);
  const hops = Number(set["hop_count"] ?? attrs["hop_count"] ?? 1);
  const next = { ...attrs, ...set };
  const waiting = waitingState(next, tx.now_s);
  const eligible = waiting.job_state === "Q" && isExecution(queue);
  logJob(tx, LOG_EVENT.DEBUG2, job.id, `enqueuing into ${queue.name}, state ${waiting.job_state} hop ${hops}`);
  const resv = tx.state.resv_queues.get(queue.name);
  const unset = [...(eligible ? [] : ["etime"]), ...(resv === undefined ? ["reserve_ID"] : [])].filter((name) => attrs[name] !== undefined);
  tx.apply({
    kind: "job-changed",
    id: job.id,
    unset,
    set: {
      ...set,
      ...waiting,
      queue: queue.name,
      qtime: tx.now_s,
      queue_rank: tx.state.next_rank + 1,
      queue_type: isExecution(queue) ? "E" : "R",
      ...(eligible ? { etime: tx.now_s } : {}),
      ...(resv === undefined ? {} : { reserve_ID: resv }),
    },
  });
}

export const isExecution = (queue: Queue): boolean => queue.attrs["queue_type"] === "Execution";
export const isRoute = (queue: Queue): boolean => queue.attrs["queue_type"] === "Route";

/** The user who made the request, as `alice@host`. */
export const requestor = (tx: Transaction): string => `${tx.who.user}@${tx.who.host}`;

export function logJob(tx: Transaction, event: number, id: string, text: string): void {
  tx.log({ event, class: "Job", object: id, text });
}

/** The present time in the form of job comments: `Fri Nov 20 at 09:26`. */
export function commentDate(tx: Transaction): string {
  const text = tx.config.ctime(tx.now_s);
  return `${text.slice(0, 10)} at ${text.slice(11, 16)}`;
}
