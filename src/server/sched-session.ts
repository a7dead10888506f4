// The server's side of its schedulers: who is connected, cycles and what triggers them, decisions and their verdicts, crashes and restarts.
//
// I1. One scheduler a name: a second one is refused with 15230, an unknown name with 15213.
// I2. A cycle is given to an idle scheduler only; triggers meanwhile are folded into one more, jobs to be run by hand keep their order (pbs/sched.md 1).
// I3. A scheduler with scheduling False gets no cycle but for qrun.
// I4. Decisions are looked at in their order and answered frame by frame; behind a preempt decision they wait until it has worked or failed (preemption.ts).

import { PBSE, pbseText, Reject, reject } from "#model/pbse.ts";
import { DEFAULT_SCHED } from "#model/sched-attributes.ts";
import {
  type Decision,
  SCHED_COMMAND,
  type SchedCommand,
  type SchedHello,
  type SchedToServer,
  type Verdict,
  WATCH_SIGNAL,
} from "#protocol/sched-link.ts";
import { unreachable } from "#support/assert.ts";
import { LOG_EVENT } from "#support/log-event.ts";
import { askBeforeRun, mustAsk } from "./hooks/running.ts";
import { schedulerIdentity } from "./identity.ts";
import { checkRun, commentJob, estimateJob, extendJob, type RunOptions, runJob } from "./job-run.ts";
import { type Kernel, ownTransaction, refuse, transaction } from "./kernel.ts";
import { beginPreemption, forgetPreemptions } from "./preemption.ts";
import { confirmResv, denyResv } from "./resv/answers.ts";
import { askersChanged } from "./resv/timing.ts";

import { askedInVain, schedAnswered } from "./sched-questions.ts";
import { type Deciding, partitionOf, runtimeOf, runtimeOfLink, type SchedRuntime, schedOfQueue, shouldRun } from "./sched-runtime.ts";

import { nextSchedState, type SchedHappening, type SchedState, serverState } from "./sched-state.ts";
import { afterCrash, isProblem, isServersComment, NEEDS_ATTENTION, PROBLEM, READY_TO_USE } from "./sched-supervisor.ts";
import { awaitStart, forgetStarts, runWaitOf } from "./start-wait.ts";
import type { Queue, Sched } from "./state.ts";
import type { Transaction } from "./transaction.ts";

/** How long a lost connection may take to come back before the process is taken for dead. */
const RECONNECT_MS = 3000;

export function frame<T extends keyof SchedToServer>(kernel: Kernel, link: number, type: T, data: SchedToServer[T]): void {
  if (type === "sched-hello") return hello(kernel, link, data as SchedHello);
  const runtime = runtimeOfLink(kernel, link);
  if (runtime === undefined) return;
  switch (type) {
    case "sched-decisions": {
      const { cycle, decisions, more } = data as SchedToServer["sched-decisions"];
      runtime.more = more === true && runtime.busy;
      runtime.deciding.push({ cycle, decisions, at: 0, verdicts: [], left: decisions.length, preempting: [] });
      decideOn(kernel, runtime);
      break;
    }
    case "sched-cycle-end":
      cycleEnd(kernel, runtime);
      break;
    case "sched-fault":
      fault(kernel, runtime, (data as SchedToServer["sched-fault"]).fault);
      break;
    case "sched-leaving":
      runtime.leaving = true;
      break;
    case "sched-problem":
      problem(kernel, runtime.name, (data as SchedToServer["sched-problem"]).problem);
      break;
    case "sched-answer": {
      const { token, value } = data as SchedToServer["sched-answer"];
      schedAnswered(kernel, runtime.name, token, value);
      break;
    }
    case "sched-wake":
      trigger(kernel, runtime.name, SCHED_COMMAND.TIME);
      break;
  }
}

// --- connections

function hello(kernel: Kernel, link: number, { name, pid }: SchedHello): void {
  const sched = kernel.state.scheds.get(name);
  const code =
    sched === undefined ? PBSE.UNKSCHED : kernel.scheds.get(name)?.link !== null && kernel.scheds.has(name) ? PBSE.SCHEDCONNECTED : null;
  if (code !== null || sched === undefined) {
    const number = code ?? PBSE.UNKSCHED;
    kernel.out.scheds.push({ link, type: "sched-refused", data: { code: number, text: pbseText(number) ?? "" } });
    return;
  }
  const runtime = runtimeOf(kernel, name);
  Object.assign(runtime, {
    link,
    pid,
    started: true,
    needs_snapshot: true,
    revision: 0,
    busy: false,
    more: false,
    untold: null,
    held: null,
    deciding: [],
    pending: null,
    running: null,
    refusal: null,
    cycles: 0,
    leaving: false,
  });
  kernel.timers.clear(`sched-start:${name}`);
  logSched(kernel, name, "connected");
  happened(kernel, name, "connected");
  trigger(kernel, name, SCHED_COMMAND.FIRST);
}

export function lost(kernel: Kernel, link: number): void {
  const runtime = runtimeOfLink(kernel, link);
  if (runtime === undefined) return;
  runtime.link = null;
  const tokens = runtime.qruns.splice(0);
  if (tokens.length > 0) logSched(kernel, runtime.name, "deferred qrun request to scheduler failed");
  for (const job of tokens) answerQrun(kernel, job, reject(PBSE.NOSCHEDULER));
  askedInVain(kernel, runtime.name);
  forgetPreemptions(kernel, runtime.name);
  forgetStarts(kernel, runtime.name);
  runtime.begun.clear();
  Object.assign(runtime, { busy: false, more: false, untold: null, held: null, deciding: [], pending: null, running: null, refusal: null });
  for (const timer of ["accumulate", "iteration"]) kernel.timers.clear(`${timer}:${runtime.name}`);
  const sched = kernel.state.scheds.get(runtime.name);
  if (sched === undefined) return;
  logSched(kernel, runtime.name, "scheduler disconnected");
  happened(kernel, runtime.name, "lost");
  askersChanged(kernel);
  // The process may live on and come back; if it was not started here nobody else tells of its end.
  if (!runtime.leaving && shouldRun(sched)) kernel.timers.set(`sched-start:${runtime.name}`, kernel.now_ms + RECONNECT_MS);
}

// --- processes

/** At the start of the server, and for a scheduler made later: starts what should run. */
export function startAll(kernel: Kernel): void {
  for (const sched of kernel.state.scheds.values()) {
    runtimeOf(kernel, sched.name);
    happened(kernel, sched.name, "lost");
    if (shouldRun(sched)) startProcess(kernel, sched.name);
  }
  setServerState(kernel);
}

/** Starts the process unless it is there. The shell looks whether one that was started before holds its lock. */
export function startProcess(kernel: Kernel, name: string): void {
  const runtime = runtimeOf(kernel, name);
  kernel.timers.clear(`sched-start:${name}`);
  if (runtime.link !== null) return;
  runtime.started = true;
  runtime.leaving = false;
  kernel.out.actions.push({ kind: "start-sched", sched: name });
}

/** Tells the process to end; it is not started again by itself. */
export function stopProcess(kernel: Kernel, name: string): void {
  const runtime = kernel.scheds.get(name);
  if (runtime === undefined) return;
  kernel.timers.clear(`sched-start:${name}`);
  runtime.leaving = true;
  if (runtime.link !== null) kernel.out.scheds.push({ link: runtime.link, type: "sched-quit", data: {} });
  kernel.out.actions.push({ kind: "stop-sched", sched: name, pid: runtime.link === null ? 0 : runtime.pid });
}

/** How a scheduler's process ended. pid: which one it was, where that is known. */
export type SchedEnd = { readonly code: number | null; readonly signal: string | null; readonly stopped: boolean; readonly pid?: number };

export function exited(kernel: Kernel, name: string, how: SchedEnd): void {
  const runtime = kernel.scheds.get(name);
  const sched = kernel.state.scheds.get(name);
  if (runtime === undefined || sched === undefined) return;
  // Another process of that name is connected: the one that ended is not the scheduler, or no longer.
  if (runtime.link !== null && how.pid !== undefined && how.pid !== runtime.pid) return;
  if (runtime.link !== null && how.code !== 0 && how.signal === null) return;
  if (runtime.link !== null) lost(kernel, runtime.link);
  runtime.started = false;
  kernel.timers.clear(`sched-start:${name}`);
  if (how.stopped || runtime.leaving || how.code === 0 || kernel.stopping !== "no") return;
  crashed(kernel, sched, runtime, endText(how, sched));
}

/** The scheduler's own log and comment name the module when it is back. */
function endText({ code, signal }: SchedEnd, sched: Sched): string {
  if (signal === null) return `exit status ${code}`;
  if (signal !== WATCH_SIGNAL) return `signal ${signal}`;
  return `signal ${signal} of its own watch: a module's call took longer than module_alarm (${sched.attrs["sched_priv"]}/modules_stuck)`;
}

function crashed(kernel: Kernel, sched: Sched, runtime: SchedRuntime, why: string): void {
  const { crashes, attention, delay_ms } = afterCrash(runtime.crashes, kernel.now_ms);
  runtime.crashes = crashes;
  logSched(kernel, sched.name, `ended with ${why}`);
  if (attention && isServersComment(sched.attrs["comment"])) {
    ownTransaction(kernel).apply({ kind: "changed", object: "sched", name: sched.name, set: { comment: NEEDS_ATTENTION }, unset: [] });
  }
  if (!shouldRun(sched)) return;
  if (delay_ms === 0) startProcess(kernel, sched.name);
  else kernel.timers.set(`sched-start:${sched.name}`, kernel.now_ms + delay_ms);
}

/** The timer sched-start: the delay is over, or a lost scheduler did not come back. */
export function startDue(kernel: Kernel, name: string): void {
  const sched = kernel.state.scheds.get(name);
  if (sched !== undefined && shouldRun(sched) && kernel.stopping === "no") startProcess(kernel, name);
}

// --- cycles

/** A reason for a cycle of a scheduler. Nothing happens while it is not connected or its scheduling is False. */
export function trigger(kernel: Kernel, name: string, command: SchedCommand): void {
  const sched = kernel.state.scheds.get(name);
  const runtime = kernel.scheds.get(name);
  if (sched === undefined || runtime === undefined || runtime.link === null || sched.attrs["scheduling"] !== true) return;
  if (kernel.stopping !== "no") return;
  kernel.timers.clear(`accumulate:${name}`);
  if (isOccupied(runtime)) runtime.pending = command;
  else startCycle(kernel, sched, runtime, command);
}

/** A job has come into an execution queue in state Q: its scheduler works, at once or after job_accumulation_time. */
export function jobQueued(kernel: Kernel, queue: Queue): void {
  const sched = schedOfQueue(kernel.state, queue);
  if (sched === undefined) {
    kernel.out.logs.push({
      event: LOG_EVENT.ERROR,
      class: "Svr",
      object: logName(kernel),
      text: `No scheduler associated with the partition ${partitionOf(queue)}`,
    });
    return;
  }
  if (sched.attrs["scheduling"] !== true) return;
  const runtime = kernel.scheds.get(sched.name);
  if (runtime?.link === null) {
    if (runtime.started) return; // on its way up: its first cycle takes the job
    kernel.out.logs.push({
      event: LOG_EVENT.ERROR,
      class: "Svr",
      object: logName(kernel),
      text: `Unable to reach scheduler associated with partition ${partitionOf(queue)}`,
    });
    return;
  }
  const wait_s = Number(kernel.state.server["job_accumulation_time"] ?? 0);
  const timer = `accumulate:${sched.name}`;
  if (wait_s <= 0) trigger(kernel, sched.name, SCHED_COMMAND.NEW);
  else if (kernel.timers.at(timer) === undefined) kernel.timers.set(timer, kernel.now_ms + wait_s * 1000);
}

/** A job of this queue has ended, or its resources have become free otherwise. */
export function jobGone(kernel: Kernel, queue: Queue | undefined): void {
  const sched = queue === undefined ? undefined : schedOfQueue(kernel.state, queue);
  if (sched !== undefined) trigger(kernel, sched.name, SCHED_COMMAND.TERM);
}

/** qrun without -H: the job's scheduler runs a cycle for that job alone. Refuses with 15099 when it cannot be reached. */
export function requestRun(kernel: Kernel, name: string, job: string, token: number | null): void {
  const sched = kernel.state.scheds.get(name);
  const runtime = kernel.scheds.get(name);
  if (sched === undefined || runtime === undefined || runtime.link === null) throw reject(PBSE.NOSCHEDULER);
  if (token !== null) kernel.qruns.set(job, token);
  runtime.qruns.push(job);
  if (!isOccupied(runtime)) nextCycle(kernel, sched, runtime);
}

/** No cycle can begin: one runs, or hooks are under way that it should see the answers of (start-wait.ts W1). */
const isOccupied = (runtime: SchedRuntime): boolean => runtime.busy || runtime.asking.size > 0;

function startCycle(kernel: Kernel, sched: Sched, runtime: SchedRuntime, command: SchedCommand, job?: string): void {
  if (runtime.link === null) return;
  runtime.busy = true;
  runtime.cycle++;
  runtime.running = job ?? null;
  runtime.refusal = null;
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

function cycleEnd(kernel: Kernel, runtime: SchedRuntime): void {
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
  if (sched.attrs["comment"] === NEEDS_ATTENTION) {
    ownTransaction(kernel).apply({ kind: "changed", object: "sched", name: sched.name, set: { comment: READY_TO_USE }, unset: [] });
  }
  if (!isOccupied(runtime)) nextCycle(kernel, sched, runtime);
}

/** Jobs to be run by hand come first, then the trigger that came meanwhile. */
function nextCycle(kernel: Kernel, sched: Sched, runtime: SchedRuntime): void {
  const job = runtime.qruns[0];
  if (job !== undefined) return startCycle(kernel, sched, runtime, SCHED_COMMAND.AJOB, job);
  const { pending } = runtime;
  runtime.pending = null;
  if (pending !== null && sched.attrs["scheduling"] === true) startCycle(kernel, sched, runtime, pending);
}

/** The scheduler reads its attributes and files again. */
export function configure(kernel: Kernel, name: string): void {
  const link = kernel.scheds.get(name)?.link ?? null;
  if (link === null) return;
  kernel.out.logs.push({
    event: LOG_EVENT.SCHED,
    class: "Svr",
    object: logName(kernel),
    text: `Scheduler sent command ${SCHED_COMMAND.CONFIGURE}`,
  });
  kernel.out.scheds.push({ link, type: "sched-configure", data: {} });
}

// --- decisions

/** Goes on with the schedulers whose preemptions have settled. */
export function decideOnSettled(kernel: Kernel): void {
  for (const name of kernel.settled) {
    kernel.settled.delete(name);
    const runtime = kernel.scheds.get(name);
    if (runtime !== undefined) decideOn(kernel, runtime);
  }
}

/** Looks at what has come, up to a preemption under way; the verdicts of a frame leave together, frame after frame. */
function decideOn(kernel: Kernel, runtime: SchedRuntime): void {
  const tx = schedTransaction(kernel);
  for (const frame of runtime.deciding) if (!decideFrame(kernel, tx, runtime, frame)) break;
  for (let first = runtime.deciding[0]; first?.left === 0; first = runtime.deciding[0]) {
    const { cycle, verdicts } = first;
    if (runtime.link !== null) kernel.out.scheds.push({ link: runtime.link, type: "sched-verdicts", data: { cycle, verdicts } });
    runtime.deciding.shift();
  }
}

/** false: it waits for preemptions. */
function decideFrame(kernel: Kernel, tx: Transaction, runtime: SchedRuntime, frame: Deciding): boolean {
  for (; ; frame.at++) {
    const decision = frame.decisions[frame.at];
    if (decision?.kind === "preempt") {
      frame.preempting.push([frame.at, beginPreemption(kernel, runtime.name, decision)]);
      continue;
    }
    for (let first = frame.preempting[0]; first !== undefined; first = frame.preempting[0]) {
      const [at, { verdict }] = first;
      if (verdict === null) return false;
      give(frame, at, verdict);
      frame.preempting.shift();
    }
    if (decision === undefined) return true;
    decideOne(kernel, tx, runtime, frame, decision);
  }
}

function give(frame: Deciding, at: number, verdict: Verdict): void {
  frame.verdicts[at] = verdict;
  frame.left--;
}

/** A start waits for its hooks, or its mom; others need not wait for it. Should the link break meanwhile, what was to be decided is void. */
function decideOne(
  kernel: Kernel,
  tx: Transaction,
  runtime: SchedRuntime,
  frame: Deciding,
  decision: Exclude<Decision, { kind: "preempt" }>,
): void {
  const { at } = frame;
  if (decision.kind !== "run") return give(frame, at, decide(kernel, tx, runtime, decision));
  const wait = runtime.running === decision.job ? "runjob_hook" : runWaitOf(kernel.state.scheds.get(runtime.name));
  const begin = (now: Transaction): void => {
    const verdict = decide(kernel, now, runtime, decision);
    const later = (met: Verdict): void => {
      if (!runtime.deciding.includes(frame)) return;
      give(frame, at, met);
      kernel.settled.add(runtime.name);
    };
    if (wait !== "execjob_hook" || !verdict.ok || !awaitStart(kernel, runtime.name, decision.job, later)) give(frame, at, verdict);
  };
  if (!mustAsk(kernel, decision.job)) return begin(tx);
  const { job, exec_vnode } = decision;
  const refusal = refusalOf(() => checkRun(tx, job, exec_vnode, runOptions(runtime, decision)));
  if (refusal !== null) {
    give(frame, at, refusedRun(runtime, job, refusal));
    return;
  }
  if (wait === "none") {
    give(frame, at, { ok: true });
    askLater(kernel, runtime, decision);
    return;
  }
  askBeforeRun(kernel, tx, job, exec_vnode, (refused) => {
    if (!runtime.deciding.includes(frame)) return;
    if (refused === null) begin(schedTransaction(kernel));
    else give(frame, at, refusedRun(runtime, job, refused));
    kernel.settled.add(runtime.name);
  });
}

/** The scheduler goes on as if the job ran; if it must not, the job is told, and the next cycle sees it waiting (start-wait.ts W1). */
function askLater(kernel: Kernel, runtime: SchedRuntime, decision: Extract<Decision, { kind: "run" }>): void {
  const { job, exec_vnode } = decision;
  runtime.asking.add(job);
  askBeforeRun(kernel, schedTransaction(kernel), job, exec_vnode, (refused) => {
    runtime.asking.delete(job);
    const verdict = refused === null ? decide(kernel, schedTransaction(kernel), runtime, decision) : refusedRun(runtime, job, refused);
    if (!verdict.ok) {
      const comment = `Not Running: PBS Error: ${verdict.text}`;
      refusalOf(() => commentJob(schedTransaction(kernel), job, comment));
    }
    const sched = kernel.state.scheds.get(runtime.name);
    if (sched !== undefined && !isOccupied(runtime)) nextCycle(kernel, sched, runtime);
  });
}

function refusalOf(work: () => void): Reject | null {
  try {
    work();
    return null;
  } catch (error) {
    if (error instanceof Reject) return error;
    throw error;
  }
}

/** A job that cannot be started by hand is told to who asked, when the scheduler tries no more. */
function refusedRun(runtime: SchedRuntime, job: string, error: Reject): Verdict {
  if (runtime.running === job) runtime.refusal = error;
  return { ok: false, code: error.code, text: error.text ?? "" };
}

const runOptions = (runtime: SchedRuntime, decision: Extract<Decision, { kind: "run" }>): RunOptions => ({
  sched: runtime.name,
  by_hand: runtime.running === decision.job,
  ...(decision.walltime_s === undefined ? {} : { walltime_s: decision.walltime_s }),
});

/** What a scheduler decides is done in its name. */
const schedTransaction = (kernel: Kernel): Transaction => transaction(kernel, schedulerIdentity(kernel.config.host), 0);

function decide(kernel: Kernel, tx: Transaction, runtime: SchedRuntime, decision: Exclude<Decision, { kind: "preempt" }>): Verdict {
  try {
    switch (decision.kind) {
      case "run":
        runJob(tx, decision.job, decision.exec_vnode, runOptions(runtime, decision));
        answerQrun(kernel, decision.job, null);
        break;
      case "comment": {
        const quiet = !kernel.changes.jobs.has(decision.job) && runtime.untold?.jobs.has(decision.job) !== true;
        commentJob(tx, decision.job, decision.comment);
        if (quiet) runtime.own_comments.add(decision.job);
        break;
      }
      case "qrun-refused":
        answerQrun(kernel, decision.job, new Reject(PBSE.RESCUNAV, decision.text));
        break;
      case "estimate":
        estimateJob(tx, decision.job, decision);
        break;
      case "extend":
        extendJob(tx, decision.job, decision.soft_walltime_s);
        break;
      case "confirm-resv":
        confirmResv(kernel, tx, runtime.name, decision);
        // The cycle that confirmed looked at no job (pbs/sched.md 3).
        kernel.vain_confirms.delete(decision.resv);
        trigger(kernel, runtime.name, SCHED_COMMAND.NEW);
        break;
      case "deny-resv":
        denyResv(kernel, tx, runtime.name, decision);
        break;
      default:
        unreachable(decision);
    }
    return { ok: true };
  } catch (error) {
    if (!(error instanceof Reject)) throw error;
    if (decision.kind === "run") return refusedRun(runtime, decision.job, error);
    if (decision.kind === "confirm-resv") tryAgain(kernel, runtime.name, decision.resv);
    return { ok: false, code: error.code, text: error.text ?? "" };
  }
}

/** Cycles that follow one another because what one confirmed could not be promised any more (pbs/sched.md 3). */
const VAIN_CONFIRMS_MAX = 5;

/** What stood in the way will be in the scheduler's mirror: it looks again, but not for ever. */
function tryAgain(kernel: Kernel, sched: string, resv: string): void {
  const times = (kernel.vain_confirms.get(resv) ?? 0) + 1;
  kernel.vain_confirms.set(resv, times);
  if (times <= VAIN_CONFIRMS_MAX && kernel.state.resvs.has(resv)) trigger(kernel, sched, SCHED_COMMAND.NEW);
}

/** The answer to qrun, if somebody waits for one. error null: the job was sent for execution. */
function answerQrun(kernel: Kernel, job: string, error: Reject | null): void {
  const token = kernel.qruns.get(job);
  if (token === undefined) return;
  kernel.qruns.delete(job);
  if (error === null) kernel.out.clients.push({ kind: "ok", token });
  else refuse(kernel, token, error);
}

/** A directory or configuration is unusable: comment and scheduling False; once it is right again the comment goes (pbs/sched.md 2). */
function fault(kernel: Kernel, runtime: SchedRuntime, text: string | null): void {
  const sched = kernel.state.scheds.get(runtime.name);
  if (sched === undefined) return;
  const own = isServersComment(sched.attrs["comment"], runtime.fault);
  if (text === null) {
    runtime.fault = null;
    if (
      own &&
      sched.attrs["comment"] !== undefined &&
      sched.attrs["comment"] !== NEEDS_ATTENTION &&
      sched.attrs["comment"] !== READY_TO_USE
    ) {
      ownTransaction(kernel).apply({ kind: "changed", object: "sched", name: sched.name, set: {}, unset: ["comment"] });
    }
    return;
  }
  runtime.fault = text;
  const set = own ? { comment: text, scheduling: false } : { scheduling: false };
  ownTransaction(kernel).apply({ kind: "changed", object: "sched", name: sched.name, set, unset: [] });
}

/** What the administrator should see: never in place of his own comment, nor of a fault's. */
function problem(kernel: Kernel, name: string, text: string | null): void {
  const comment = kernel.state.scheds.get(name)?.attrs["comment"];
  const isOwn = isProblem(comment) || (text !== null && (comment === undefined || comment === NEEDS_ATTENTION || comment === READY_TO_USE));
  if (!isOwn || comment === (text === null ? undefined : `${PROBLEM}${text}`)) return;
  const change = text === null ? { set: {}, unset: ["comment"] } : { set: { comment: `${PROBLEM}${text}` }, unset: [] };
  ownTransaction(kernel).apply({ kind: "changed", object: "sched", name, ...change });
}

// --- states

/** States of schedulers are not stored: down after a restart until the hello. */
function happened(kernel: Kernel, name: string, happening: SchedHappening): void {
  const sched = kernel.state.scheds.get(name);
  if (sched === undefined) return;
  const state = nextSchedState(sched.attrs["state"] as SchedState, happening);
  if (sched.attrs["state"] === state) return;
  ownTransaction(kernel).apply({ kind: "runtime", object: "sched", name, set: { state } });
  if (name === DEFAULT_SCHED) setServerState(kernel);
}

/** server_state follows the default scheduler and the manner of shutting down (pbs/objects.md 2). */
export function setServerState(kernel: Kernel): void {
  const defaultSched = (kernel.state.scheds.get(DEFAULT_SCHED)?.attrs["state"] ?? "down") as SchedState;
  const { stopping } = kernel;
  const server_state = serverState({ defaultSched, ...(stopping === "no" ? {} : { ending: stopping }) });
  if (kernel.state.server["server_state"] === server_state) return;
  ownTransaction(kernel).apply({ kind: "runtime", object: "server", name: "", set: { server_state } });
}

const logName = (kernel: Kernel): string => `Server@${kernel.config.host}`;

function logSched(kernel: Kernel, name: string, text: string): void {
  kernel.out.logs.push({ event: LOG_EVENT.SYSTEM, class: "Sched", object: name, text });
}
