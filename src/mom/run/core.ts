// The mom's core. It is deterministic: it takes the state, an event and the time, and returns actions. The driver (driver/mom-driver.ts) carries out the
// actions and returns their results as events.
//
// C1. A start whose run_count is not larger than the last one seen for that job is refused (mom-link.ts I1). A start with the run_count of the present run is
//     not refused: the mom reports that run again.
// C2. An obit is sent again at every welcome until it is acknowledged (mom-link.ts I2).
// C3. A job has one run here at a time: a later one waits until nothing of the earlier one is left.
// C4. A discard concerns only files that finished runs have left (output, a checkpoint), and names no run. It never ends a
//     run that is under way or waits: such a run deletes or uses those files itself. In its welcome, the server names the
//     runs that it does not want.
// C5. After the server has sent the start of a run, it may consider the run lost and start the job elsewhere (mom-link.ts I4). So the mom confirms the accepted
//     starts before it does anything for them, and starts nothing while it is not welcomed.
// C6. A server on another host may not receive this confirmation, because a network can fail in one direction only. The
//     server therefore answers it. Before the answer the mom makes files for a run and asks hooks, but starts no process of
//     the job (mom-link.ts I5).
// C7. cut-off.ts says which runs the mom ends when its server does not answer.

import type { MomHello, MomJob, ServerToMom } from "#protocol/mom-link.ts";
import { LOG_EVENT } from "#support/log-event.ts";
import { isBusy, NOT_BUSY } from "../config/node-load.ts";
import type { Owner } from "../job/plan.ts";
import { type RunKey, taskOf } from "../job/starter-link.ts";
import { nextSample, type Seen, usageOf } from "../job/usage.ts";
import { acted } from "./action-answers.ts";
import { measured, tellIdled } from "./busy.ts";
import { dropCheckpoint, savedTooLate } from "./checkpoint.ts";
import { endCutOff } from "./cut-off.ts";
import type { MomEvent } from "./event.ts";
import { answered, NO_HOOKS, periodicHooks, takeHooks, withStep } from "./hook-answers.ts";
import { askHostHooks } from "./hook-steps.ts";
import { dropOutput, isOver, purged } from "./kept-output.ts";
import {
  abandon,
  acknowledged,
  beginRun,
  conclude,
  discard,
  exited,
  finished,
  goOnStarting,
  prepared,
  reportJoined,
  reportStarted,
  scripted,
  sendObit,
  started,
} from "./life.ts";
import { type Context, keyOf, log, modify, SAFE_ID, withRun } from "./record.ts";
import { recovered, starterState } from "./recovery.ts";
import { endUnlessOver, message, OVER, signal, terminate } from "./requests.ts";
import { contacted } from "./server-contact.ts";
import type { MomAction, MomConfig, MomState } from "./state.ts";
import { adopted, deserted, seenOfRun, signalTask, taskAsked, taskExited, taskFailed, taskStarted } from "./tasks.ts";
import { hungUp, told, walltimeOf, watch } from "./watch.ts";

/** Makes the state of a mom that starts. checkpoints: jobs with a checkpoint. kept: jobs whose output waits for their next run. */
export function makeMomState(config: MomConfig, checkpoints: readonly string[] = [], kept: readonly string[] = []): MomState {
  return {
    config,
    runs: new Map(),
    last: new Map(),
    welcomed: false,
    confirms: false,
    contact: null,
    unconfirmed: new Map(),
    strays: new Map(),
    hooks: NO_HOOKS,
    steps: new Map(),
    next_step: 1,
    reports: [],
    checkpoints: new Set(checkpoints),
    kept: new Set(kept),
    site: {},
    busy: NOT_BUSY,
    vnodes: [],
    periodic: new Map(),
    stopping: null,
  };
}

/** Changes the state by one event and returns the actions that follow from it. now_ms: epoch milliseconds. */
export function reduce(state: MomState, event: MomEvent, now_ms: number): MomAction[] {
  const cx: Context = { state, now_ms, actions: [] };
  endCutOff(cx);
  handle(cx, event);
  if (state.stopping === "kill" && isQuiet(state)) cx.actions.push({ kind: "exit" });
  return cx.actions;
}

function handle(cx: Context, event: MomEvent): void {
  const { state } = cx;
  switch (event.kind) {
    case "connected":
      state.welcomed = false;
      cx.actions.push({ kind: "hello" });
      return;
    case "disconnected":
      state.welcomed = false;
      return;
    case "contact":
      return contacted(state, event.at_ms, event.grace);
    case "welcome":
      return welcome(cx, event.data);
    case "start":
      return start(cx, event.job, event.owner);
    case "starts-read":
      return accept(cx, event.runs);
    case "confirmed":
      return confirmed(cx, event.runs);
    case "signal":
      return signal(cx, event.data);
    case "terminate":
      return terminate(cx, event.data);
    case "modify":
      return withRun(cx, event.data.job, null, (run) => modify(cx, run, event.data.attrs));
    case "message":
      return message(cx, event.data);
    case "sisters":
      return withRun(cx, event.data.job, event.data.run_count, (run) => {
        run.sisters = event.data;
        watch(cx, run);
      });
    case "acknowledged":
      for (const key of event.data.jobs) withRun(cx, key.job, key.run_count, (run) => acknowledged(cx, run));
      return;
    case "discard":
      return discardJob(cx, event.job);
    case "prepared":
      return withRun(cx, event.outcome.job, event.outcome.run_count, (run) => prepared(cx, run, event.outcome));
    case "finished":
      return withRun(cx, event.outcome.job, event.outcome.run_count, (run) => finished(cx, run, event.outcome));
    case "told":
      return withRun(cx, event.run.job, event.run.run_count, (run) => told(cx, run));
    case "purged":
      return purged(cx, event.job);
    case "task-asked":
      return taskAsked(cx, event.asked, event.by, event.wanted);
    case "task-signal":
      return signalTask(cx, event.asked, event.signal);
    case "task-deserted":
      return deserted(cx, event.asked);
    case "started":
      if (taskOf(event.run.job) !== null) return taskStarted(cx, event.run);
      return withRun(cx, event.run.job, event.run.run_count, (run) => started(cx, run, event.run));
    case "start-failed":
      if (taskOf(event.run.job) !== null) return taskFailed(cx, event.run);
      return withRun(cx, event.run.job, event.run.run_count, (run) => {
        log(cx, LOG_EVENT.JOB, run.job.id, event.run.text);
        if (event.run.exit_status < 0) abandon(cx, run, event.run.exit_status, event.run.text);
        else conclude(cx, run, event.run.exit_status, 0);
      });
    case "hooks":
      return takeHooks(cx, event.hooks, event.from);
    case "hooked":
      return answered(cx, event.step, event.end);
    case "scripted":
      return withStep(cx, event.step, (_, step, run) => {
        if (run !== undefined) scripted(cx, run, step.kind, event.end);
      });
    case "acted":
      return withStep(cx, event.step, (_, step, run) => {
        if (run !== undefined) acted(cx, run, step.kind, event.end);
        else if (step.kind === "checkpoint") savedTooLate(cx, step.run.job);
      });
    case "startup":
      askHostHooks(cx, "exechost_startup");
      return;
    case "vnodes":
      state.vnodes = event.vnodes;
      return;
    case "exited":
      if (state.strays.get(event.run.job) === event.run.run_count) {
        state.strays.delete(event.run.job);
        cx.actions.push({ kind: "drop", run: { job: event.run.job, run_count: event.run.run_count } });
        return;
      }
      if (taskOf(event.run.job) !== null) return taskExited(cx, event.run);
      return withRun(cx, event.run.job, event.run.run_count, (run) => exited(cx, run, event.run));
    case "adopted":
      return adopted(cx, event.run);
    case "hung-up":
      return withRun(cx, event.run.job, event.run.run_count, (run) => hungUp(cx, run));
    case "recovered":
      return recovered(cx, event.saved);
    case "starter-state":
      return starterState(cx, event.data);
    case "sampled":
      return sampled(cx, event.seen);
    case "measured":
      return measured(cx, event.measure);
    case "site":
      if (JSON.stringify(state.site) === JSON.stringify(event.resources)) return;
      state.site = event.resources;
      return tellSite(cx);
    case "configured":
      state.config = event.config;
      return;
    case "tick":
      for (const run of [...state.runs.values()]) watch(cx, run);
      return periodicHooks(cx);
    case "stop":
      return stop(cx, event.manner);
    default: {
      const unreachable: never = event;
      throw new Error(`event ${JSON.stringify(unreachable)}`);
    }
  }
}

function tellSite({ state, actions }: Context): void {
  if (state.welcomed) actions.push({ kind: "send", type: "mom-site", data: { resources: state.site } });
}

function welcome(cx: Context, data: ServerToMom["mom-welcome"]): void {
  const { state } = cx;
  state.welcomed = true;
  state.confirms = data.confirms === true;
  // Before the server welcomed the mom, it compared the mom's runs with its own, so no run needs a confirmation any more.
  state.unconfirmed.clear();
  for (const job of data.kill) withRun(cx, job, null, (run) => discard(cx, run));
  for (const key of data.acknowledged) withRun(cx, key.job, key.run_count, (run) => acknowledged(cx, run));
  for (const run of [...state.runs.values()]) {
    reportJoined(cx, run);
    reportStarted(cx, run);
    if (run.idled) tellIdled(cx, run);
    sendObit(cx, run);
    goOnStarting(cx, run);
  }
  if (Object.keys(state.site).length > 0) tellSite(cx);
  if (isBusy(state.busy)) cx.actions.push({ kind: "send", type: "mom-busy", data: { busy: true } });
  for (const report of state.reports.splice(0)) cx.actions.push({ kind: "send", type: "mom-hook", data: report });
}

/** Confirms the accepted starts to the server (C5). */
function accept({ state, actions }: Context, asked: readonly RunKey[]): void {
  const runs = asked.filter(({ job, run_count }) => {
    const run = state.runs.get(job);
    return run?.job.run_count === run_count || run?.next?.job.run_count === run_count;
  });
  if (runs.length > 0 && state.welcomed) actions.push({ kind: "send", type: "mom-accepted", data: { runs } });
}

function confirmed(cx: Context, runs: readonly RunKey[]): void {
  const { unconfirmed } = cx.state;
  for (const { job, run_count } of runs) {
    if (unconfirmed.get(job) !== run_count) continue;
    unconfirmed.delete(job);
    withRun(cx, job, run_count, (run) => goOnStarting(cx, run));
  }
}

function start(cx: Context, job: MomJob, owner: Owner | null): void {
  const { runs, last, stopping, unconfirmed, confirms } = cx.state;
  // A start that comes while the mom stops gets no answer: the server requests it again after the next hello.
  if (stopping !== null) return;
  const run = runs.get(job.id);
  const newest = Math.max(last.get(job.id) ?? 0, run?.job.run_count ?? 0);
  if (confirms && job.run_count > newest) unconfirmed.set(job.id, job.run_count);
  if (run === undefined) {
    if (job.run_count > newest) beginRun(cx, job, owner);
    else log(cx, LOG_EVENT.ERROR, job.id, `stale start refused: run_count ${job.run_count}, last seen ${last.get(job.id)}`);
    return;
  }
  if (job.run_count === run.job.run_count) {
    reportJoined(cx, run);
    reportStarted(cx, run);
    sendObit(cx, run);
  } else if (job.run_count < run.job.run_count) {
    log(cx, LOG_EVENT.ERROR, job.id, `stale start refused: run_count ${job.run_count}, last seen ${run.job.run_count}`);
  } else {
    run.next = { job, owner, doomed: run.next?.job.run_count === job.run_count ? run.next.doomed : null };
    discard(cx, run);
  }
}

/** Removes the files that finished runs of a job have left (C4). */
function discardJob(cx: Context, job: string): void {
  const run = cx.state.runs.get(job);
  if (run !== undefined) {
    if (!isOver(run) || run.next !== null) return;
    discard(cx, run);
  }
  if (!SAFE_ID.test(job)) return;
  dropCheckpoint(cx, job);
  dropOutput(cx, job);
}

function sampled(cx: Context, seen: ReadonlyMap<number, Seen>): void {
  const jobs: { job: string; run_count: number; used: ReturnType<typeof usageOf> }[] = [];
  for (const run of [...cx.state.runs.values()]) {
    if (run.phase.name !== "running") continue;
    const sums = seenOfRun(cx, run, run.phase.pid, seen);
    if (sums === undefined) continue;
    run.sample = nextSample(run.sample, sums, cx.now_ms, cx.state.config.weights);
    const used = { ...usageOf(run.job.attrs, run.sample, walltimeOf(run, cx.now_ms)), ...run.used_by_hooks };
    jobs.push({ ...keyOf(run), used });
    watch(cx, run);
  }
  if (jobs.length > 0 && cx.state.welcomed) cx.actions.push({ kind: "send", type: "mom-usage", data: { jobs } });
}

function stop(cx: Context, manner: "kill" | "leave"): void {
  cx.state.stopping = manner;
  if (manner === "leave") {
    cx.actions.push({ kind: "exit" });
    return;
  }
  for (const run of [...cx.state.runs.values()]) {
    if (!OVER.has(run.phase.name) && run.ending?.why !== "discard") endUnlessOver(cx, run, "rerun", 0);
  }
}

/** Whether all runs have ended. */
const isQuiet = (state: MomState): boolean => [...state.runs.values()].every((run) => run.phase.name === "ended");

/** Returns the jobs to name in the hello (mom-link.ts I3). */
export function helloJobs(state: MomState): MomHello["jobs"] {
  return [...state.runs.values()].map((run) => {
    const key = keyOf(run);
    switch (run.phase.name) {
      case "beginning":
      case "preparing":
      case "admitting":
      case "starting":
      case "recovered":
        return { ...key, state: "starting" as const };
      case "running":
        return {
          ...key,
          // For the server, a job that the mom stopped because of its host's load is still running.
          state: run.phase.suspended_ms === null || run.idled ? ("running" as const) : ("suspended" as const),
          session_id: run.phase.pid,
        };
      case "epilogue":
      case "finishing":
      case "ended":
      case "leaving":
        return { ...key, state: "ended" as const };
      default: {
        const unreachable: never = run.phase;
        throw new Error(`phase ${JSON.stringify(unreachable)}`);
      }
    }
  });
}

/** Checks the mom's invariants. Throws if one is violated. Used by tests and the simulator. */
export function checkMomInvariants(state: MomState): void {
  for (const [id, run] of state.runs) {
    if (run.job.id !== id) throw new Error(`run ${run.job.id} stands under ${id}`);
    if (run.next !== null && run.next.job.run_count <= run.job.run_count) throw new Error(`${id}: a run that is not later waits`);
    if (run.phase.name === "running" && !(run.phase.pid > 0)) throw new Error(`${id}: runs without a process`);
    if ((state.last.get(id) ?? 0) >= run.job.run_count)
      throw new Error(`${id}: run ${run.job.run_count} was gone before (${state.last.get(id)})`);
  }
}
