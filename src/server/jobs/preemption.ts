// Preemption (docs/reference/scheduler.md 8): a scheduler preempts a running job so that another can use its resources.
// Methods are tried in the scheduler's order until one works; the verdict names that method.
//
//   S suspend      the mom is asked to suspend the job; complete when the job is in state S, substate 45
//   C checkpoint   the mom is asked to save the job (a mom without a checkpoint script refuses); complete when the job is queued again
//   R requeue      a rerunnable job is killed; complete when the job is queued again
//   D delete       the job is killed; complete when the job has ended
//
// P1. While a preemption is under way, no later decision of its scheduler is examined (scheds/decisions.ts), because later
//     decisions may need the resources that the preemption frees.
// P2. If the mom is not connected, the preemption fails at once and no other method is tried, because the failure says nothing about the job.
// P3. The job records that the mom was asked (suspension.ts I4). After a crash of the server, the mom's report says what has
//     become of the job.
// P4. A preemption ends when the mom answers, when the mom is lost, or after a time limit (job_requeue_timeout for the methods C, R
//     and D). An answer that comes later still has its effect.

import { PBSE, Reject, reject } from "#model/pbse.ts";
import type { Decision, PreemptMethod, Verdict } from "#protocol/sched-link.ts";
import { isKeyOf } from "#support/guards.ts";
import { LOG_EVENT } from "#support/log-event.ts";
import { schedulerIdentity } from "../engine/identity.ts";
import type { Preemption } from "../engine/job-runtime.ts";
import { type Kernel, ownTransaction, transaction } from "../engine/kernel.ts";
import { momOfJob } from "../engine/mom-runtime.ts";
import type { Transaction } from "../engine/transaction.ts";
import { isIn, isSuspended, isWaiting } from "../state/job-phase.ts";
import { schedOfQueue } from "../state/partitions.ts";
import type { Job } from "../state/state.ts";
import { preemptByDeletion } from "./deletion.ts";
import { beginRerun } from "./end.ts";
import { logJob, requestor } from "./life.ts";
import { isResuming, preemptingSince } from "./suspension.ts";

const REQUEUE_TIMEOUT_S_DEFAULT = 45;

/** Begins the preemption that a scheduler has decided. Returns the preemption; its verdict is already set if it could not begin or is already over. */
export function beginPreemption(kernel: Kernel, sched: string, decision: Extract<Decision, { kind: "preempt" }>): Preemption {
  const preemption: Preemption = { job: decision.job, sched, method: "S", rest: decision.methods, verdict: null };
  const refusal = check(kernel, sched, decision.job);
  if (refusal === null) tryNext(kernel, preemption);
  else preemption.verdict = refused(refusal);
  if (preemption.verdict === null) kernel.jobs.preemptions.set(preemption.job, preemption);
  return preemption;
}

function check(kernel: Kernel, sched: string, id: string): Reject | null {
  const job = kernel.state.jobs.get(id);
  if (job === undefined || isIn(job, "exiting")) return reject(PBSE.UNKJOBID);
  const queue = kernel.state.queues.get(job.attrs.queue);
  if (queue === undefined || schedOfQueue(kernel.state, queue)?.name !== sched) return reject(PBSE.PERM);
  if (kernel.ending.stopping !== "no") return reject(PBSE.SVRDOWN);
  const runs = isIn(job, "starting", "running");
  if (!runs || job.own.termination !== undefined || isResuming(job) || kernel.jobs.preemptions.has(id)) return reject(PBSE.BADSTATE);
  return null;
}

/** Begins the next method that the job allows; if there is none, the preemption has failed. */
function tryNext(kernel: Kernel, preemption: Preemption): void {
  const job = kernel.state.jobs.get(preemption.job);
  if (job === undefined || momOfJob(kernel, job.id) === undefined) {
    settle(kernel, preemption, refused(reject(PBSE.NORELYMOM)));
    return;
  }
  const tx = transaction(kernel, schedulerIdentity(kernel.config.host), 0);
  while (preemption.rest !== "") {
    const method = preemption.rest.charAt(0);
    preemption.rest = preemption.rest.slice(1);
    if (!isKeyOf(ASKED, method)) continue;
    preemption.method = method;
    if (begins(tx, job, method)) {
      if (method !== "S") arm(kernel, job.id);
      return;
    }
  }
  settle(kernel, preemption, refused(new Reject(PBSE.BADSTATE, "Job failed to be preempted")));
}

/** Begins a method if the job allows it. Returns whether the method has begun. */
function begins(tx: Transaction, job: Job, method: PreemptMethod): boolean {
  const confirmed = isIn(job, "running");
  switch (method) {
    case "S":
      if (confirmed) ask(tx, job, "suspend");
      return confirmed;
    case "C":
      if (!confirmed || job.attrs["Checkpoint"] === "n") return false;
      ask(tx, job, "checkpoint");
      return true;
    case "R":
      if (!job.attrs.Rerunable) return false;
      mark(tx, job);
      logJob(tx, LOG_EVENT.JOB, job.id, `Job Rerun at request of ${requestor(tx)}`);
      beginRerun(tx, job);
      tx.act({ kind: "terminate-job", job: job.id, why: "rerun" });
      return true;
    case "D":
      preemptByDeletion(tx, job);
      return true;
    default: {
      const unreachable: never = method;
      return unreachable;
    }
  }
}

function ask(tx: Transaction, job: Job, signal: string): void {
  mark(tx, job);
  tx.act({ kind: "signal-job", job: job.id, signal, token: 0 });
}

function mark(tx: Transaction, job: Job): void {
  if (preemptingSince(job) === undefined) tx.apply({ kind: "job-changed", id: job.id, set: {}, unset: [], own: { preempting: tx.now_s } });
}

function arm(kernel: Kernel, id: string): void {
  const timeout_s = Number(kernel.state.server["job_requeue_timeout"] ?? REQUEUE_TIMEOUT_S_DEFAULT);
  kernel.timers.set(`preempt:${id}`, kernel.now_ms + timeout_s * 1000);
}

const refused = (why: Reject): Verdict => ({ ok: false, code: why.code, text: why.text ?? "" });

function settle(kernel: Kernel, preemption: Preemption, verdict: Verdict): void {
  preemption.verdict = verdict;
  if (!verdict.ok) logJob(ownTransaction(kernel), LOG_EVENT.DEBUG, preemption.job, "Job failed to be preempted");
  if (kernel.jobs.preemptions.get(preemption.job) !== preemption) return;
  kernel.jobs.preemptions.delete(preemption.job);
  kernel.timers.clear(`preempt:${preemption.job}`);
  kernel.scheds.settled.add(preemption.sched);
}

// --- events of a preemption

/** Called when a job has changed its state or is gone: its preemption may be complete. */
export function preemptionMet(kernel: Kernel, id: string): void {
  const preemption = kernel.jobs.preemptions.get(id);
  if (preemption === undefined) return;
  const job = kernel.state.jobs.get(id);
  const { method } = preemption;
  if (job === undefined) settle(kernel, preemption, method === "D" ? { ok: true, method } : { ok: true });
  else if (isSuspended(job)) settle(kernel, preemption, { ok: true, method: "S" });
  else if (isWaiting(job)) settle(kernel, preemption, method === "C" || method === "R" ? { ok: true, method } : { ok: true });
}

/** Called when the mom has refused to suspend or checkpoint the job, or has not answered: tries the next method. */
export function preemptionRefused(kernel: Kernel, id: string, signal: string): void {
  const preemption = kernel.jobs.preemptions.get(id);
  if (preemption !== undefined && ASKED[preemption.method] === signal) tryNext(kernel, preemption);
}
const ASKED: { readonly [method in PreemptMethod]: string } = { S: "suspend", C: "checkpoint", R: "", D: "" };

/** Called by the timer of a preemption that has not been completed in time: the preemption has failed. */
export function preemptionLate(kernel: Kernel, id: string): void {
  const preemption = kernel.jobs.preemptions.get(id);
  if (preemption !== undefined)
    settle(kernel, preemption, refused(new Reject(PBSE.TRYAGAIN, "Job failed to be preempted: it has not ended in time")));
}

/** Called when a scheduler is gone: its preemptions are forgotten. What the moms were asked to do still happens. */
export function forgetPreemptions(kernel: Kernel, sched: string): void {
  for (const [id, preemption] of kernel.jobs.preemptions) {
    if (preemption.sched !== sched) continue;
    kernel.jobs.preemptions.delete(id);
    kernel.timers.clear(`preempt:${id}`);
  }
}
