// Cycles of the schedulers, their triggers, and qrun.
//
// I2. Only an idle scheduler gets a cycle. Triggers that come during a cycle are combined into one further cycle. Requests
//     of qrun each get a cycle, in their order (docs/reference/scheduler.md 1).
// I3. A scheduler with scheduling False gets cycles only for qrun.

import { PBSE, type Reject, reject } from "#model/pbse.ts";
import { SCHED_COMMAND, type SchedCommand } from "#protocol/sched-link.ts";
import { LOG_EVENT } from "#support/log-event.ts";
import { type Kernel, refuse } from "../engine/kernel.ts";
import { type SchedRuntime, unreachableText } from "../engine/sched-runtime.ts";
import { answerAtStart } from "../jobs/start-wait.ts";
import { waitFor } from "../jobs/waiters.ts";
import { leavesRunner } from "../runners/hand-out.ts";
import { partitionOf, schedOfQueue } from "../state/partitions.ts";
import type { Job, Queue, Sched } from "../state/state.ts";
import { tellReady } from "./comment.ts";
import { happened, logName } from "./state.ts";

/** Triggers a cycle of a scheduler. Has no effect while the scheduler is not connected or its scheduling is False. */
export function trigger(kernel: Kernel, name: string, command: SchedCommand): void {
  const sched = kernel.state.scheds.get(name);
  const runtime = kernel.scheds.by_name.get(name);
  if (sched === undefined || runtime === undefined || runtime.link === null || sched.attrs["scheduling"] !== true) return;
  if (kernel.ending.stopping !== "no") return;
  kernel.timers.clear(`accumulate:${name}`);
  if (runtime.unsent === command) return;
  if (isOccupied(runtime)) runtime.pending = command;
  else startCycle(kernel, sched, runtime, command);
}

/** Called when the frames of a batch are sent. From now on, a trigger needs a further cycle: the cycles that these frames begin do not see later changes. */
export function cyclesLeave(kernel: Kernel): void {
  for (const runtime of kernel.scheds.by_name.values()) runtime.unsent = null;
}

const logError = (kernel: Kernel, text: string): void =>
  void kernel.out.logs.push({ event: LOG_EVENT.ERROR, class: "Svr", object: logName(kernel), text });

/** Logs that a job's scheduler is not connected. */
export const logUnreachable = (kernel: Kernel, job: string): void => logError(kernel, unreachableText(job));

/** Called when a job has entered an execution queue in state Q: triggers its scheduler, at once or after job_accumulation_time. */
export function jobQueued(kernel: Kernel, queue: Queue, job: string): void {
  const sched = schedOfQueue(kernel.state, queue);
  if (sched === undefined) {
    logError(kernel, `No scheduler associated with the partition ${partitionOf(queue)}`);
    logUnreachable(kernel, job);
    return;
  }
  if (sched.attrs["scheduling"] !== true) return;
  const runtime = kernel.scheds.by_name.get(sched.name);
  if (runtime?.link === null) {
    if (runtime.started && runtime.silent === null && runtime.unreached === null) return; // the scheduler is starting, and its first cycle will include the job
    logError(kernel, `Unable to reach scheduler associated with partition ${partitionOf(queue)}`);
    logUnreachable(kernel, job);
    return;
  }
  const wait_s = Number(kernel.state.server["job_accumulation_time"] ?? 0);
  const timer = `accumulate:${sched.name}`;
  if (wait_s <= 0) trigger(kernel, sched.name, SCHED_COMMAND.NEW);
  else if (kernel.timers.at(timer) === undefined) kernel.timers.set(timer, kernel.now_ms + wait_s * 1000);
}

/**
 * Called when a job has ended: triggers its scheduler, unless the job leaves a runner for which the server may have another job (freed.ts). A qrun of the
 * ended job that still waits for the scheduler is withdrawn and refused.
 */
export function jobGone(kernel: Kernel, { id, attrs }: Job): void {
  for (const runtime of kernel.scheds.by_name.values()) {
    const at = runtime.qruns.indexOf(id);
    if (at >= 0 && runtime.running !== id) runtime.qruns.splice(at, 1);
  }
  answerQrun(kernel, id, reject(PBSE.UNKJOBID));
  const queue = kernel.state.queues.get(attrs.queue);
  const sched = queue === undefined ? undefined : schedOfQueue(kernel.state, queue);
  if (sched === undefined) return;
  if (leavesRunner(kernel, attrs)) kernel.runners.freed.push({ sched: sched.name, ended: attrs });
  else trigger(kernel, sched.name, SCHED_COMMAND.TERM);
}

/**
 * Requests a cycle for one job only, for a qrun without -H. If several clients request it for the same job, they share the
 * cycle. Refuses with 15099 if the scheduler cannot be reached.
 */
export function requestRun(kernel: Kernel, name: string, job: string, token: number | null): void {
  const sched = kernel.state.scheds.get(name);
  const runtime = kernel.scheds.by_name.get(name);
  if (sched === undefined || runtime === undefined || runtime.link === null) {
    logUnreachable(kernel, job);
    throw reject(PBSE.NOSCHEDULER);
  }
  if (token !== null) waitFor(kernel.scheds.qruns, job, token);
  if (!runtime.qruns.includes(job)) runtime.qruns.push(job);
  if (!isOccupied(runtime)) nextCycle(kernel, sched, runtime);
}

/** Whether no cycle can begin: a cycle runs, or hooks run whose answers the next cycle must know (jobs/start-wait.ts W1). */
export const isOccupied = (runtime: SchedRuntime): boolean => runtime.busy || runtime.asking.size > 0;

function startCycle(kernel: Kernel, sched: Sched, runtime: SchedRuntime, command: SchedCommand, job?: string): void {
  if (runtime.link === null) return;
  kernel.timers.clear(`refill:${sched.name}`);
  runtime.busy = true;
  runtime.unsent = command;
  runtime.cycle++;
  runtime.running = job ?? null;
  runtime.refusal = null;
  kernel.out.logs.push({ event: LOG_EVENT.DEBUG3, class: "Svr", object: logName(kernel), text: "processing priority socket" });
  kernel.out.logs.push({ event: LOG_EVENT.SCHED, class: "Svr", object: logName(kernel), text: `Scheduler sent command ${command}` });
  kernel.out.scheds.push({
    link: runtime.link,
    type: "sched-cycle",
    data: { cycle: runtime.cycle, command, ...(job === undefined ? {} : { job }) },
  });
  happened(kernel, sched.name, "cycle-begun");
  const iteration_s = Number(sched.attrs["scheduler_iteration"] ?? 600);
  if (iteration_s > 0) kernel.timers.set(`iteration:${sched.name}`, kernel.now_ms + iteration_s * 1000);
}

export function cycleEnd(kernel: Kernel, runtime: SchedRuntime): void {
  const sched = kernel.state.scheds.get(runtime.name);
  if (!runtime.busy || sched === undefined) return;
  if (runtime.running !== null) {
    if (runtime.qruns[0] === runtime.running) runtime.qruns.shift();
    answerQrun(kernel, runtime.running, runtime.refusal ?? reject(PBSE.RESCUNAV));
    runtime.running = null;
  }
  runtime.busy = false;
  runtime.more = false;
  runtime.cycles++;
  happened(kernel, sched.name, "cycle-ended");
  runtime.attention = false;
  tellReady(kernel, sched);
  if (!isOccupied(runtime)) nextCycle(kernel, sched, runtime);
}

/** Begins the next cycle, if one is due: first for a job of a qrun, else for a trigger that came during the last cycle. */
export function nextCycle(kernel: Kernel, sched: Sched, runtime: SchedRuntime): void {
  const job = runtime.qruns[0];
  if (job !== undefined) return startCycle(kernel, sched, runtime, SCHED_COMMAND.AJOB, job);
  const { pending } = runtime;
  runtime.pending = null;
  if (pending !== null && sched.attrs["scheduling"] === true) startCycle(kernel, sched, runtime, pending);
}

/** Makes the scheduler read its attributes and files again. */
export function configure(kernel: Kernel, name: string): void {
  const link = kernel.scheds.by_name.get(name)?.link ?? null;
  if (link === null) return;
  kernel.out.logs.push({
    event: LOG_EVENT.SCHED,
    class: "Svr",
    object: logName(kernel),
    text: `Scheduler sent command ${SCHED_COMMAND.CONFIGURE}`,
  });
  kernel.out.scheds.push({ link, type: "sched-configure", data: {} });
}

/** Answers the clients that wait for a qrun of the job. error null: the job was sent to its mom. */
export function answerQrun(kernel: Kernel, job: string, error: Reject | null): void {
  const tokens = kernel.scheds.qruns.get(job) ?? [];
  kernel.scheds.qruns.delete(job);
  for (const token of tokens) {
    if (error === null) answerAtStart(kernel, job, token);
    else refuse(kernel, token, error);
  }
}
