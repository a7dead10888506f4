// The consequences of an event inside the server, whatever caused it: timers, cycles of schedulers, answers that clients wait for, values that are kept equal.
// Handlers do not deal with them.
//
// I1. A job that enters Q in an execution queue triggers its scheduler, and so does the end of a job (docs/reference/scheduler.md 1). If the scheduler does
//     not run, the job's comment says so.
// I2. scheduling and scheduler_iteration of the server and of the default scheduler are one value (docs/reference/attributes.md 2, 3).

import { arrayIdOf, subjobId } from "#model/job-id.ts";
import { RUN_LIMIT_ATTRS } from "#model/limits/run-limits.ts";
import { DEFAULT_SCHED } from "#model/tables/sched-attributes.ts";
import { SCHED_COMMAND } from "#protocol/sched-link.ts";
import { LOG_EVENT } from "#support/log-event.ts";
import type { Kernel } from "../engine/kernel.ts";
import { runtimeOf, type SchedRuntime } from "../engine/sched-runtime.ts";
import type { Transaction } from "../engine/transaction.ts";
import { armPeriodic, jobOver, jobPosted, resvHappened, watchVnodes } from "../hooks/afterwards.ts";
import { momHooksChanged } from "../hooks/mom-hooks.ts";
import { endArrayIfOver, subjobEnded } from "../jobs/array-end.ts";
import { dependentsAtChange, dependentsAtEnd } from "../jobs/dependencies.ts";
import { accrueJob } from "../jobs/eligible-time.ts";
import { statusOfRun } from "../jobs/end.ts";
import { isExecution, isRoute, loseTopjob, requestor } from "../jobs/life.ts";
import { preemptionMet } from "../jobs/preemption.ts";
import { wantsPressure } from "../jobs/pressure.ts";
import { forgetHands, startMet } from "../jobs/start-wait.ts";
import { heartbeatChanged } from "../moms/heartbeat.ts";
import { nodeCreated } from "../moms/host-vnodes.ts";
import { resvVnodeGone, sharingChanged, vnodeChanged, vnodeCreated, vnodeResized } from "../resv/health.ts";
import { armResv, askersChanged, resvChanged, resvGone, resvJobsChanged } from "../resv/timing.ts";
import { commentFollows } from "../scheds/comment.ts";
import * as cycles from "../scheds/cycles.ts";
import { schedHeartbeatChanged } from "../scheds/heartbeat.ts";
import { forgetQuestion } from "../scheds/questions.ts";
import { tellWhetherReached } from "../scheds/remote.ts";
import * as scheds from "../scheds/session.ts";
import { setServerState } from "../scheds/state.ts";
import { arrayOf } from "../state/apply.ts";
import type { Event } from "../state/event.ts";
import { isIn, isPlanned, isWaiting, isWithMom, phaseOf } from "../state/job-phase.ts";
import { isRemote, partitionOf, partitionsOf, schedOfPartition, shouldRun } from "../state/partitions.ts";
import { resvOfQueue } from "../state/resv-holding.ts";
import type { Job } from "../state/state.ts";
import { routeSoon } from "../submit/routing.ts";

/** Applies an event and its consequences. */
export function consequences(kernel: Kernel, tx: Transaction, event: Event, apply: () => void): void {
  follow(kernel, tx, event, apply);
  if (makesAccrualStale(event)) kernel.state.accrual.stale = true;
  if (event.kind === "job-created" || event.kind === "job-changed") jobAccrues(kernel, tx, event.id);
}

/** The accrue type of the job may have changed, and that of its array when the last subjob has started. */
function jobAccrues({ state }: Kernel, tx: Transaction, id: string): void {
  if (!state.accrual.enabled) return;
  const job = state.jobs.get(id);
  if (job === undefined) return;
  accrueJob(tx, job);
  const array = arrayOf(state, job);
  if (array !== undefined) accrueJob(tx, array);
}

const SWITCHES: readonly string[] = ["eligible_time_enable", "partition", "queue_type", ...RUN_LIMIT_ATTRS];

function makesAccrualStale(event: Event): boolean {
  switch (event.kind) {
    case "created":
    case "deleted":
      return event.object === "queue" || event.object === "sched";
    case "resource-put":
    case "resource-deleted":
      return true;
    case "server-changed":
      return SWITCHES.some((name) => event.set[name] !== undefined || event.unset.includes(name));
    case "changed":
      return (
        (event.object === "queue" || event.object === "sched") &&
        SWITCHES.some((name) => event.set[name] !== undefined || event.unset.includes(name))
      );
    default:
      return false;
  }
}

/** A job has changed, and with a subjob its array. The scheduler whose comment the job had is told, too, and so it is when another client overwrites its comment. */
function isNews({ scheds }: Kernel, id: string): void {
  const array = id.includes("[") ? arrayIdOf(id) : null;
  for (const { own_comments } of scheds.by_name.values()) {
    own_comments.delete(id);
    if (array !== null) own_comments.delete(array);
  }
}

function follow(kernel: Kernel, tx: Transaction, event: Event, apply: () => void): void {
  const { state } = kernel;
  switch (event.kind) {
    case "job-created":
      apply();
      isNews(kernel, event.id);
      jobPosted(kernel, tx, state.jobs.get(event.id) as Job);
      jobArrived(kernel, tx, state.jobs.get(event.id) as Job);
      break;
    case "job-changed": {
      const job = state.jobs.get(event.id) as Job;
      const before = job.attrs;
      const { job_state, queue, Execution_Time } = before;
      const run = state.hooks.size > 0 && event.set["job_state"] !== undefined && isWithMom(job) ? before : null;
      apply();
      if (run !== null && isWaiting(job)) jobOver(kernel, job.id, run);
      if (job.attrs.queue !== queue) {
        jobPosted(kernel, tx, job);
        for (const name of [queue, job.attrs.queue]) {
          const resv = state.resv_queues.get(name);
          if (resv !== undefined) resvJobsChanged(kernel, resv);
        }
      }
      if (job.attrs["topjob"] === true && (!isPlanned(job) || job.attrs.queue !== queue)) loseTopjob(tx, job);
      if (job.attrs["depend"] !== undefined) dependentsAtChange(tx, job, before);
      isNews(kernel, event.id);
      if (job.attrs.job_state !== job_state) preemptionMet(kernel, job.id);
      startMet(kernel, job.id);
      if (job.attrs.queue !== queue || job.attrs.job_state !== job_state) jobArrived(kernel, tx, job);
      else if (job.attrs.Execution_Time !== Execution_Time) armJob(kernel, job);
      break;
    }
    case "job-ended":
      isNews(kernel, event.id);
      jobEnded(kernel, tx, event.id, apply);
      break;
    case "subjobs-deleted": {
      const array = state.jobs.get(event.id) as Job;
      apply();
      isNews(kernel, event.id);
      if (kernel.jobs.waiters.size > 0)
        for (const index of event.indices)
          answerWaiters(kernel, { id: subjobId(array.id, index), host: submitHost(array) }, { message: deletedText(tx) });
      endArrayIfOver(tx, array);
      break;
    }
    case "server-changed":
      apply();
      serverChanged(kernel, tx, event);
      break;
    case "created":
      apply();
      if (event.object === "node") nodeCreated(kernel, tx, event.name);
      if (event.object === "sched") schedCreated(kernel, event.name);
      if (event.object === "resv") resvChanged(kernel, event.name, null);
      if (event.object === "node") vnodeCreated(kernel, tx, event.name);
      break;
    case "changed": {
      const before = event.object === "sched" ? state.scheds.get(event.name)?.attrs : undefined;
      const resv = event.object === "resv" ? state.resvs.get(event.name)?.attrs : undefined;
      apply();
      if (resv !== undefined) {
        resvChanged(kernel, event.name, resv);
        resvHappened(kernel, resv.reserve_state, state.resvs.get(event.name), { id: event.name, attrs: resv });
      }
      if (event.object === "sched") schedChanged(kernel, tx, event, before ?? {});
      if (event.object === "queue") queueChanged(kernel, tx, event);
      if (event.object === "node" && (event.set["resources_available"] !== undefined || event.unset.includes("resources_available")))
        vnodeResized(kernel, tx, event.name);
      else if (event.object === "node" && event.set["state"] !== undefined) vnodeChanged(kernel, tx, event.name);
      if (event.object === "node" && (event.set["sharing"] !== undefined || event.unset.includes("sharing")))
        sharingChanged(kernel, tx, event.name);
      if (event.object === "node" && (event.set["partition"] !== undefined || event.unset.includes("partition")))
        vnodeMoved(kernel, event.name);
      break;
    }
    case "deleted": {
      if (event.object === "sched") scheds.stopProcess(kernel, event.name);
      const noted = event.object === "node" ? [...(state.vnodes.get(event.name)?.resvs.keys() ?? [])] : [];
      const resv = event.object === "resv" ? state.resvs.get(event.name) : undefined;
      apply();
      if (resv !== undefined) resvHappened(kernel, resv.attrs.reserve_state, undefined, resv);
      for (const id of noted) resvVnodeGone(kernel, tx, id);
      if (event.object === "resv") resvGone(kernel, event.name);
      if (event.object === "sched") {
        schedDeleted(kernel, event.name);
        askersChanged(kernel);
      }
      break;
    }
    case "resource-put":
    case "resource-deleted":
      apply();
      for (const name of kernel.scheds.by_name.keys()) cycles.configure(kernel, name);
      momHooksChanged(kernel);
      break;
    case "hook-put":
    case "hook-deleted":
      apply();
      armPeriodic(kernel, event.name);
      watchVnodes(kernel);
      momHooksChanged(kernel);
      break;
    case "clock-put":
    case "clock-deleted":
    case "runtime":
    case "vnode-admin-set":
    case "history-purged":
    case "run-time-learned":
      apply();
      break;
    default: {
      const unreachable: never = event;
      return unreachable;
    }
  }
}

/** A vnode is in another partition: jobs that found no vnode there have waited for it. */
function vnodeMoved(kernel: Kernel, name: string): void {
  const vnode = kernel.state.vnodes.get(name);
  const sched = vnode === undefined ? undefined : schedOfPartition(kernel.state, partitionOf(vnode));
  if (sched !== undefined) cycles.trigger(kernel, sched.name, SCHED_COMMAND.NEW);
}

// --- jobs

function jobArrived(kernel: Kernel, tx: Transaction, job: Job): void {
  armJob(kernel, job);
  const resv = kernel.state.resv_queues.get(job.attrs.queue);
  if (resv !== undefined) resvJobsChanged(kernel, resv);
  const queue = kernel.state.queues.get(job.attrs.queue);
  if (queue === undefined) return;
  if (isRoute(queue)) routeSoon(kernel, tx, job, queue);
  else if (isIn(job, "queued", "begun") && isExecution(queue)) cycles.jobQueued(kernel, queue, job.id);
}

/** The timer of a job that waits for Execution_Time. */
function armJob(kernel: Kernel, job: Job): void {
  const phase = phaseOf(job);
  const timer = `wait:${job.id}`;
  if (phase.name === "waiting") kernel.timers.set(timer, phase.until_s * 1000);
  else if (kernel.timers.at(timer) !== undefined) kernel.timers.clear(timer);
}

function jobEnded(kernel: Kernel, tx: Transaction, id: string, apply: () => void): void {
  const job = kernel.state.jobs.get(id) as Job;
  const resv = resvOfQueue(kernel.state, job.attrs.queue);
  const array = arrayOf(kernel.state, job);
  apply();
  if (job.attrs.stime !== undefined) jobOver(kernel, id, job.attrs);
  preemptionMet(kernel, id);
  startMet(kernel, id);
  for (const timer of ["wait", "route", "rerun"]) kernel.timers.clear(`${timer}:${id}`);
  for (const runtime of kernel.scheds.by_name.values()) {
    const at = runtime.qruns.indexOf(id);
    if (at >= 0 && runtime.running !== id) runtime.qruns.splice(at, 1);
  }
  cycles.jobGone(kernel, kernel.state.queues.get(job.attrs.queue));
  const exit_status = statusOfRun(job.attrs);
  answerWaiters(kernel, { id, host: submitHost(job) }, exit_status === undefined ? { message: deletedText(tx) } : { exit_status });
  for (const token of kernel.jobs.reruns.get(id) ?? []) kernel.out.clients.push({ kind: "ok", token });
  kernel.jobs.reruns.delete(id);
  if (array !== undefined) subjobEnded(tx, array, job);
  if (job.attrs["depend"] !== undefined) dependentsAtEnd(tx, job);
  if (resv !== undefined) resvJobsChanged(kernel, resv.id);
}

/** The message of qsub -W block=true for a job that never ran. */
const deletedText = (tx: Transaction): string => `Job to be deleted at request of ${requestor(tx)}`;

const submitHost = ({ attrs }: Job): string => String(attrs["Submit_Host"] ?? attrs.Job_Owner.replace(/^.*@/, ""));

/** Answers the clients whose qsub waits for the end of the job. */
function answerWaiters(
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

/** Clients that are gone no longer wait. */
export function forgetEntities(kernel: Kernel, tokens: readonly number[]): void {
  if (tokens.length === 0) return;
  const gone = new Set(tokens);
  for (const token of tokens) kernel.requests.waiting.delete(token);
  for (const lists of [kernel.jobs.waiters, kernel.jobs.reruns, kernel.resvs.waiters]) {
    for (const [id, list] of lists) {
      const left = list.filter((token) => !gone.has(token));
      if (left.length === 0) lists.delete(id);
      else if (left.length < list.length) lists.set(id, left);
    }
  }
  for (const token of tokens) forgetQuestion(kernel, token);
  for (const [id, token] of kernel.scheds.qruns) if (gone.has(token)) kernel.scheds.qruns.delete(id);
  forgetHands(kernel, gone);
  // Questions to moms stay open, because a mom's action on a job counts whether or not its client still waits.
}

/** At the start of the server: timers of all jobs. */
export function rearmAll(kernel: Kernel): void {
  for (const job of kernel.state.jobs.values()) {
    armJob(kernel, job);
    const queue = kernel.state.queues.get(job.attrs.queue);
    if (queue !== undefined && isRoute(queue)) kernel.timers.set(`route:${job.id}`, kernel.now_ms);
  }
  for (const resv of kernel.state.resvs.values()) armResv(kernel, resv);
  for (const name of kernel.state.hooks.keys()) armPeriodic(kernel, name);
  watchVnodes(kernel);
  kernel.timers.set("purge-history", kernel.now_ms);
}

// --- server and queues

function serverChanged(kernel: Kernel, tx: Transaction, event: Extract<Event, { kind: "server-changed" }>): void {
  const { state } = kernel;
  const mirrored: { [name: string]: unknown } = {};
  for (const name of MIRRORED) if (event.set[name] !== undefined) mirrored[name] = event.set[name];
  if (Object.keys(mirrored).length > 0 && !kernel.scheds.mirroring && state.scheds.has(DEFAULT_SCHED)) {
    kernel.scheds.mirroring = true;
    tx.apply({ kind: "changed", object: "sched", name: DEFAULT_SCHED, set: mirrored, unset: [] });
    kernel.scheds.mirroring = false;
  }
  const mask = state.server["log_events"];
  if (event.set["log_events"] !== undefined && typeof mask === "number") kernel.out.actions.push({ kind: "log-events", mask });
  if (event.set["eligible_time_enable"] === true)
    for (const name of kernel.scheds.by_name.keys()) cycles.trigger(kernel, name, SCHED_COMMAND.ETE_ON);
  if (event.set["job_sort_formula"] !== undefined || event.unset.includes("job_sort_formula")) {
    const formula = state.server["job_sort_formula"];
    kernel.out.actions.push({ kind: "formula", text: typeof formula === "string" ? formula : null });
    for (const runtime of kernel.scheds.by_name.values()) formulaChanged(kernel, runtime);
  }
  if (event.set["node_silence_timeout"] !== undefined || event.unset.includes("node_silence_timeout")) heartbeatChanged(kernel);
  if (event.set["sched_silence_timeout"] !== undefined || event.unset.includes("sched_silence_timeout")) schedHeartbeatChanged(kernel);
  if (HISTORY.some((name) => event.set[name] !== undefined || event.unset.includes(name)))
    kernel.timers.set("purge-history", kernel.now_ms);
}

/** Attributes that decide how long finished jobs are kept. */
const HISTORY = ["job_history_enable", "job_history_duration"] as const;

/** A formula that names `pressure` needs the pressure of all jobs. */
function formulaChanged({ state }: Kernel, runtime: SchedRuntime): void {
  const sched = state.scheds.get(runtime.name);
  if (sched !== undefined && wantsPressure(state, sched)) runtime.needs_snapshot ||= runtime.link !== null;
}

const MIRRORED = ["scheduling", "scheduler_iteration"] as const;

function queueChanged(kernel: Kernel, tx: Transaction, event: Extract<Event, { kind: "changed" }>): void {
  const queue = kernel.state.queues.get(event.name);
  if (queue === undefined || event.set["started"] !== true) return;
  if (isRoute(queue)) {
    for (const id of [...queue.jobs]) routeSoon(kernel, tx, kernel.state.jobs.get(id) as Job, queue);
  } else if (kernel.state.server["eligible_time_enable"] === true) {
    for (const name of kernel.scheds.by_name.keys()) cycles.trigger(kernel, name, SCHED_COMMAND.STARTQ);
  }
}

// --- schedulers

function schedCreated(kernel: Kernel, name: string): void {
  runtimeOf(kernel, name);
  const sched = kernel.state.scheds.get(name);
  if (sched === undefined) return;
  tellWhetherReached(kernel, sched);
  kernel.out.actions.push({ kind: "prepare-sched", sched: name });
  if (shouldRun(sched, kernel.config)) scheds.startProcess(kernel, name);
  commentFollows(kernel, sched, Object.keys(sched.attrs), []);
}

function schedDeleted(kernel: Kernel, name: string): void {
  const link = kernel.scheds.by_name.get(name)?.link ?? null;
  if (link !== null) kernel.out.actions.push({ kind: "drop-link", link });
  kernel.scheds.by_name.delete(name);
  for (const timer of ["accumulate", "iteration", "sched-start", "sched-silent"]) kernel.timers.clear(`${timer}:${name}`);
}

function schedChanged(
  kernel: Kernel,
  tx: Transaction,
  event: Extract<Event, { kind: "changed" }>,
  before: { readonly [name: string]: unknown },
): void {
  const { name } = event;
  const sched = kernel.state.scheds.get(name);
  if (sched === undefined) return;
  const runtime = runtimeOf(kernel, name);
  const names = [...Object.keys(event.set), ...event.unset];
  if (names.includes("partition")) {
    runtime.needs_snapshot = runtime.link !== null;
    if (partitionsOf(sched).length === 0 && (before["partition"] as readonly string[] | undefined)?.length)
      scheds.stopProcess(kernel, name);
  }
  if (names.includes("sched_user") && kernel.config.own_user === null) scheds.restartProcess(kernel, name);
  if (names.includes("job_sort_formula")) formulaChanged(kernel, runtime);
  if (names.some((attribute) => !SILENT.has(attribute))) cycles.configure(kernel, name);
  if (names.includes("scheduler_iteration")) rearmIteration(kernel, name, Number(sched.attrs["scheduler_iteration"] ?? 600));
  if (names.includes("sched_host") || names.includes("sched_port")) {
    if (isRemote(sched, kernel.config)) scheds.stopProcess(kernel, name);
    tellWhetherReached(kernel, sched);
  }
  if (shouldRun(sched, kernel.config) && names.some((each) => DECIDE_START.has(each)) && kernel.ending.stopping === "no")
    scheds.startProcess(kernel, name);
  if (names.includes("scheduling") || names.includes("partition")) askersChanged(kernel);
  if (event.set["scheduling"] === true) cycles.trigger(kernel, name, SCHED_COMMAND.CMD);
  commentFollows(kernel, sched, names, event.unset);
  if (name !== DEFAULT_SCHED) return;
  mirrorToServer(kernel, tx, sched.attrs);
  setServerState(kernel);
}

/** Attributes that decide whether the server keeps a process for a scheduler. */
const DECIDE_START: ReadonlySet<string> = new Set(["scheduling", "partition", "sched_host", "sched_port"]);

/** Attributes that the server sets itself or that only trigger a cycle: the scheduler need not read its files again. */
const SILENT: ReadonlySet<string> = new Set(["scheduling", "comment", "state"]);

function rearmIteration(kernel: Kernel, name: string, iteration_s: number): void {
  if (kernel.timers.at(`iteration:${name}`) === undefined && kernel.scheds.by_name.get(name)?.link === null) return;
  if (iteration_s > 0) kernel.timers.set(`iteration:${name}`, kernel.now_ms + iteration_s * 1000);
  else kernel.timers.clear(`iteration:${name}`);
}

function mirrorToServer(kernel: Kernel, tx: Transaction, attrs: { readonly [name: string]: unknown }): void {
  if (kernel.scheds.mirroring) return;
  const set: { [name: string]: unknown } = {};
  for (const name of MIRRORED) if (kernel.state.server[name] !== attrs[name]) set[name] = attrs[name];
  if (Object.keys(set).length === 0) return;
  kernel.scheds.mirroring = true;
  tx.apply({ kind: "server-changed", set, unset: [] });
  kernel.scheds.mirroring = false;
}
