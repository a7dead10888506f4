// Answers of moms to requests of the server: signals, messages, suspension, checkpoint. Handles success, refusal, and
// missing answers. orders.ts sends the requests.

import { PBSE, Reject, reject } from "#model/pbse.ts";
import type { MomToServer } from "#protocol/mom-link.ts";
import { LOG_EVENT } from "#support/log-event.ts";
import { type Kernel, refuse } from "../engine/kernel.ts";
import type { MomQuestion } from "../engine/mom-runtime.ts";
import type { Transaction } from "../engine/transaction.ts";
import { endUnsaved } from "../jobs/last-runs.ts";
import { logJob } from "../jobs/life.ts";
import { preemptionRefused } from "../jobs/preemption.ts";
import { jobResumed, jobSuspended, preemptingSince, resumeRefused } from "../jobs/suspension.ts";
import { hostOfJob } from "../state/job-hosts.ts";
import type { Job } from "../state/state.ts";
import { alignSisters } from "./sisters.ts";

/** Called when the mom of that host has answered a request: updates the job and answers the client. A mom can answer only requests about its own jobs. */
export function answered(kernel: Kernel, tx: Transaction, host: string, data: MomToServer["mom-result"]): void {
  const question = kernel.moms.questions.get(data.token);
  if (question === undefined || question.host.toLowerCase() !== host.toLowerCase()) return;
  kernel.moms.questions.delete(data.token);
  kernel.timers.clear(`question:${data.token}`);
  if (!data.ok) {
    if (question.token !== 0)
      refuse(kernel, question.token, data.code === undefined ? reject(PBSE.MOMREJECT) : new Reject(data.code, data.text ?? null));
    momRefused(kernel, tx, question);
    return;
  }
  const job = kernel.state.jobs.get(question.job);
  if (job !== undefined && question.signal?.endsWith("suspend")) jobSuspended(tx, job, question.signal === "admin-suspend");
  if (job !== undefined && question.signal?.endsWith("resume")) jobResumed(tx, job);
  if (job !== undefined) alignSisters(kernel, job);
  if (question.token !== 0) kernel.out.clients.push({ kind: "ok", token: question.token });
}

/** Called when the mom has not carried out a request: a job that should resume stays suspended, a preemption tries its next method. */
function momRefused(kernel: Kernel, tx: Transaction, { job: id, signal }: MomQuestion): void {
  const job = kernel.state.jobs.get(id);
  if (job === undefined || signal === null) return;
  if (signal === "resume") resumeRefused(tx, job);
  alignSisters(kernel, job);
  if (signal === "suspend" && preemptingSince(job) !== undefined)
    tx.apply({ kind: "job-changed", id, set: {}, unset: [], own: { preempting: null } });
  preemptionRefused(kernel, id, signal);
  if (signal === "checkpoint") endUnsaved(kernel, job);
}

/** Called when the mom could not checkpoint the job. The job continues; a preemption tries its next method, and a server that ends calls endUnsaved. */
export function notCheckpointed(kernel: Kernel, tx: Transaction, job: Job, text: string): void {
  logJob(tx, LOG_EVENT.JOB, job.id, `the job goes on: ${text}`);
  preemptionRefused(kernel, job.id, "checkpoint");
  endUnsaved(kernel, job);
}

/**
 * Called when a request gets no answer: the mom is gone, and its next hello reports what it has done; or the mom has not
 * answered in time, and a later answer still counts.
 */
export function questionUnanswered(kernel: Kernel, number: number, gone = false): void {
  const question = kernel.moms.questions.get(number);
  if (question === undefined) return;
  kernel.timers.clear(`question:${number}`);
  if (gone || question.signal === null) kernel.moms.questions.delete(number);
  else kernel.moms.questions.set(number, { ...question, token: 0 });
  if (question.token !== 0) refuse(kernel, question.token, reject(PBSE.NORELYMOM, hostOfJob(kernel.state.jobs.get(question.job))));
  if (question.signal !== null) preemptionRefused(kernel, question.job, question.signal);
  const job = kernel.state.jobs.get(question.job);
  if (question.signal === "checkpoint" && job !== undefined) endUnsaved(kernel, job);
}
