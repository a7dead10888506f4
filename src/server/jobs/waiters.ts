// Clients that wait for a job: qsub -W block=true waits for the end of the job, qrerun for the end of its present run.

import { arrayIdOf, subjobId } from "#model/job-id.ts";
import { PBSE, Reject } from "#model/pbse.ts";
import { LOG_EVENT } from "#support/log-event.ts";
import { type Kernel, refuse } from "../engine/kernel.ts";
import type { Transaction } from "../engine/transaction.ts";
import { isWithMom } from "../state/job-phase.ts";
import type { Job } from "../state/state.ts";
import { statusOfRun } from "./end.ts";
import { requestor } from "./life.ts";

const REQUEUE_TIMEOUT_S_DEFAULT = 45;

/** Lets the request of this token wait until the job has ended; it is answered then. */
export const awaitEnd = (kernel: Kernel, job: string, token: number): void => waitFor(kernel.jobs.waiters, job, token);

/** Lets the request of this token wait until the job's run has ended. If the run does not end within job_requeue_timeout, the request is refused. */
export function awaitRerun(kernel: Kernel, id: string, token: number): void {
  const job = kernel.state.jobs.get(id);
  if (job === undefined || !isWithMom(job)) return void kernel.out.clients.push({ kind: "ok", token });
  waitFor(kernel.jobs.reruns, id, token);
  const wait_s = Number(kernel.state.server["job_requeue_timeout"] ?? REQUEUE_TIMEOUT_S_DEFAULT);
  kernel.timers.set(`rerun:${id}`, kernel.now_ms + wait_s * 1000);
}

/** Adds a token to the list of requests that wait for a job or reservation. */
export function waitFor(lists: Map<string, number[]>, id: string, token: number): void {
  const list = lists.get(id);
  if (list === undefined) lists.set(id, [token]);
  else list.push(token);
}

/** Called by the timer rerun:ID: refuses the requests that have waited too long for the end of the run. */
export function rerunLate(kernel: Kernel, id: string): void {
  for (const token of kernel.jobs.reruns.get(id) ?? [])
    refuse(kernel, token, new Reject(PBSE.TRYAGAIN, "Response timed out. Job rerun request still in progress for"));
  kernel.jobs.reruns.delete(id);
}

/** Called when a job has ended: answers the requests that wait for its end. */
export function jobOfWaiters(kernel: Kernel, tx: Transaction, job: Job): void {
  const exit_status = statusOfRun(job.attrs);
  const host = submitHost(job);
  answer(kernel, { id: job.id, host }, exit_status === undefined ? { message: deletedText(tx) } : { exit_status });
  // An array can end with subjobs that never ran, for example because of a dependency. Clients that wait for such a subjob are answered here.
  for (const id of [...kernel.jobs.waiters.keys()])
    if (arrayIdOf(id) === job.id) answer(kernel, { id, host }, { message: deletedText(tx) });
  runOfWaiters(kernel, tx, job);
}

/** Called when a run of the job has ended: answers the requests that wait for this. */
export function runOfWaiters(kernel: Kernel, _tx: Transaction, { id }: Job): void {
  for (const token of kernel.jobs.reruns.get(id) ?? []) kernel.out.clients.push({ kind: "ok", token });
  kernel.jobs.reruns.delete(id);
  kernel.timers.clear(`rerun:${id}`);
}

/** Called when subjobs were deleted before their start: answers the requests that wait for them. */
export function subjobsOfWaiters(kernel: Kernel, tx: Transaction, array: Job, indices: readonly number[]): void {
  for (const index of indices) answer(kernel, { id: subjobId(array.id, index), host: submitHost(array) }, { message: deletedText(tx) });
}

/** The message that qsub -W block=true gets about a job that never ran. */
const deletedText = (tx: Transaction): string => `Job to be deleted at request of ${requestor(tx)}`;

const submitHost = ({ attrs }: Job): string => String(attrs["Submit_Host"] ?? attrs.Job_Owner.replace(/^.*@/, ""));

function answer(
  kernel: Kernel,
  { id, host }: { readonly id: string; readonly host: string },
  value: { readonly message: string } | { readonly exit_status: number },
): void {
  const tokens = kernel.jobs.waiters.get(id);
  if (tokens === undefined) return;
  for (const token of tokens) kernel.out.clients.push({ kind: "ok", token, value });
  kernel.jobs.waiters.delete(id);
  const text = `check_block_wt: Write successful to client ${host} for job ${id}`;
  kernel.out.logs.push({ event: LOG_EVENT.DEBUG, class: "Job", object: id, text });
}
