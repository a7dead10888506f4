// How the server handles its schedulers: connections, crashes and restarts. Cycles are in cycles.ts, decisions in decisions.ts.
//
// I1. Each scheduler name has at most one connected process: a second process is refused with 15230, an unknown name with 15213.

import { PBSE, pbseText, reject } from "#model/pbse.ts";
import { afterCrash } from "#model/restart-rules.ts";
import { SCHED_COMMAND, type SchedHello, WATCH_SIGNAL } from "#protocol/sched-link.ts";
import type { FrameOf } from "#protocol/schema-link.ts";
import type { Kernel } from "../engine/kernel.ts";
import { noCycle, runtimeOf, runtimeOfLink, type SchedRuntime, type Silence } from "../engine/sched-runtime.ts";
import { forgetPreemptions } from "../jobs/preemption.ts";
import { forgetStarts } from "../jobs/start-wait.ts";
import { askersChanged } from "../resv/timing.ts";
import { dropHandOuts, takeHandOuts } from "../runners/hand-out.ts";
import { shouldRun } from "../state/partitions.ts";
import type { Sched } from "../state/state.ts";
import { sayNoPartition, tellAnswers, tellAttention, tellFault, tellProblem, tellSilent } from "./comment.ts";
import { answerQrun, cycleEnd, logUnreachable, trigger } from "./cycles.ts";
import { decideOn } from "./decisions.ts";
import { armKill, beginSchedHeartbeat, cycleLength_ms, isFarSilent, type SchedSight, schedSilence_ms, silenceOf } from "./heartbeat.ts";
import { askedInVain, schedAnswered } from "./questions.ts";
import { forgetUnreached, whyNotSched } from "./remote.ts";
import { happened, logSched, setServerState } from "./state.ts";
import { silentText } from "./supervisor.ts";

/** Time in which a scheduler may connect again after a loss of its connection; after that, its process counts as dead. */
const RECONNECT_MS = 3000;

export function frame(kernel: Kernel, link: number, { type, data }: FrameOf<"sched-to-server">): void {
  if (type === "sched-hello") return hello(kernel, link, data, null);
  const runtime = runtimeOfLink(kernel, link);
  if (runtime === undefined) return;
  runtime.heard_ms = kernel.now_ms;
  switch (type) {
    case "sched-decisions": {
      const { cycle, decisions, more } = data;
      runtime.more = more === true && runtime.busy;
      runtime.deciding.push({ cycle, decisions, at: 0, verdicts: [], left: decisions.length, preempting: [] });
      decideOn(kernel, runtime);
      break;
    }
    case "sched-cycle-end":
      takeHandOuts(kernel, runtime.name, data.hand_outs ?? []);
      cycleEnd(kernel, runtime);
      break;
    case "sched-fault":
      tellFault(kernel, runtime.name, data.fault);
      break;
    case "sched-leaving":
      // If the scheduler is on another host, an administrator may start it there again at any time, so the server continues to dial it.
      runtime.leaving ||= runtime.host === null;
      break;
    case "sched-problem":
      tellProblem(kernel, runtime.name, data.problem);
      break;
    case "sched-answer": {
      const { token, value } = data;
      schedAnswered(kernel, runtime.name, token, value);
      break;
    }
    case "sched-pong":
      break;
    case "sched-wake":
      trigger(kernel, runtime.name, SCHED_COMMAND.TIME);
      break;
  }
}

// --- connections

/** host: the host that the server has dialled; null: a process of this host has connected. */
export function hello(kernel: Kernel, link: number, { name, pid, pongs, user }: SchedHello, host: string | null): void {
  const sched = kernel.state.scheds.get(name);
  const code =
    sched === undefined
      ? PBSE.UNKSCHED
      : kernel.scheds.by_name.get(name)?.link !== null && kernel.scheds.by_name.has(name)
        ? PBSE.SCHEDCONNECTED
        : null;
  if (code !== null || sched === undefined) {
    const number = code ?? PBSE.UNKSCHED;
    kernel.out.scheds.push({ link, type: "sched-refused", data: { code: number, text: pbseText(number) ?? "" } });
    return;
  }
  const misplaced = whyNotSched(sched, kernel.config, host);
  if (misplaced !== null) {
    kernel.out.scheds.push({ link, type: "sched-refused", data: { code: PBSE.PERM, text: misplaced } });
    return;
  }
  const runtime = runtimeOf(kernel, name);
  Object.assign(runtime, {
    link,
    pid,
    host,
    met: true,
    started: true,
    needs_snapshot: true,
    revision: 0,
    ...noCycle(),
    cycles: 0,
    leaving: false,
    again: false,
    pongs: pongs === true,
    user: user ?? null,
    heard_ms: kernel.now_ms,
  });
  kernel.timers.clear(`sched-start:${name}`);
  answersAgain(kernel, runtime, sched);
  forgetUnreached(kernel, sched);
  logSched(kernel, name, host === null ? "connected" : `connected on host ${host}`);
  checkUser(kernel, sched);
  happened(kernel, name, "connected");
  trigger(kernel, name, SCHED_COMMAND.FIRST);
  beginSchedHeartbeat(kernel, runtime);
}

export function lost(kernel: Kernel, link: number): void {
  const runtime = runtimeOfLink(kernel, link);
  if (runtime === undefined) return;
  runtime.link = null;
  dropHandOuts(kernel, runtime.name);
  // Nothing else reports the end of a scheduler on another host.
  if (runtime.host !== null && runtime.leaving) runtime.started = false;
  runtime.host = null;
  runtime.away_ms = kernel.now_ms;
  runtime.heard_ms = kernel.now_ms;
  const tokens = runtime.qruns.splice(0);
  if (tokens.length > 0) logSched(kernel, runtime.name, "deferred qrun request to scheduler failed");
  for (const job of tokens) {
    logUnreachable(kernel, job);
    answerQrun(kernel, job, reject(PBSE.NOSCHEDULER));
  }
  askedInVain(kernel, runtime.name);
  forgetPreemptions(kernel, runtime.name);
  forgetStarts(kernel, runtime.name);
  runtime.begun.clear();
  Object.assign(runtime, noCycle());
  for (const timer of ["accumulate", "iteration"]) kernel.timers.clear(`${timer}:${runtime.name}`);
  const sched = kernel.state.scheds.get(runtime.name);
  if (sched === undefined) return;
  logSched(kernel, runtime.name, "scheduler disconnected");
  happened(kernel, runtime.name, "lost");
  askersChanged(kernel);
  // The process may still exist and connect again. If it is not a child of this server, nothing else reports its end.
  if (runtime.silent === null && (runtime.again || !runtime.leaving) && shouldRun(sched))
    kernel.timers.set(`sched-start:${runtime.name}`, kernel.now_ms + RECONNECT_MS);
}

/** Called when the shell has examined the process of a scheduler that sends nothing: decides whether it is silent (heartbeat.ts B3), or is killed (B4). */
export function seen(kernel: Kernel, name: string, sight: SchedSight): void {
  const runtime = kernel.scheds.by_name.get(name);
  const sched = kernel.state.scheds.get(name);
  if (runtime === undefined || sched === undefined) return;
  if (runtime.host !== null) return farSeen(kernel, runtime, sight);
  if (runtime.silent !== null) return seenAgain(kernel, runtime, runtime.silent, sight);
  const silent = silenceOf(kernel, runtime, sight);
  if (silent === null) return;
  runtime.silent = silent;
  const text = silentText(silent, kernel.now_ms);
  logSched(kernel, name, `${text}; it is ended in ${schedSilence_ms(kernel) / 1000} s unless it goes on`);
  armKill(kernel, name);
  if (runtime.link !== null) {
    kernel.out.actions.push({ kind: "drop-link", link: runtime.link });
    lost(kernel, runtime.link);
  }
  tellSilent(kernel, sched, text);
}

/** Called when the shell has tried to reach the host of a scheduler that sends nothing: closes a broken connection and dials again (heartbeat.ts B7). */
function farSeen(kernel: Kernel, runtime: SchedRuntime, sight: SchedSight): void {
  const { name, link, host } = runtime;
  if (link === null || !isFarSilent(kernel, runtime, sight)) return;
  const seconds = Math.round((kernel.now_ms - runtime.heard_ms) / 1000);
  logSched(kernel, name, `has not answered for ${seconds} seconds on host ${host}; it is dialled again`);
  kernel.out.actions.push({ kind: "drop-link", link });
  lost(kernel, link);
  startDue(kernel, name);
}

/** Called by the timer sched-silent: lets the shell examine the silent process again (heartbeat.ts B4). */
export function schedStillSilent(kernel: Kernel, name: string): void {
  const silent = kernel.scheds.by_name.get(name)?.silent ?? null;
  if (silent === null) return;
  kernel.out.actions.push({ kind: "look-at-sched", sched: name, pid: silent.pid });
  // The timer is set again, because a kill may have no effect at once (process state D).
  armKill(kernel, name);
}

function seenAgain(kernel: Kernel, runtime: SchedRuntime, silent: Silence, { pid, process }: SchedSight): void {
  // The process was suspended (SIGSTOP) when it was examined first, and runs now. It may still be in its cycle; only after the
  // cycle it notices that its connection is lost.
  if (silent.stopped && process === "runs" && pid === silent.pid) {
    runtime.silent = { ...silent, stopped: false };
    armKill(kernel, runtime.name, cycleLength_ms(kernel, runtime.name));
    return logSched(
      kernel,
      runtime.name,
      `process ${pid} goes on; it is ended in ${cycleLength_ms(kernel, runtime.name) / 1000} s unless it answers`,
    );
  }
  logSched(kernel, runtime.name, `${silentText(silent, kernel.now_ms)}: it is ended by SIGKILL`);
  kernel.out.actions.push({ kind: "kill-sched", sched: runtime.name, pid: silent.pid });
}

/** Called when a silent scheduler answers again, or another process has taken its place: the comment no longer says that it is silent. */
function answersAgain(kernel: Kernel, runtime: SchedRuntime, sched: Sched): void {
  kernel.timers.clear(`sched-silent:${runtime.name}`);
  if (runtime.silent === null) return;
  runtime.silent = null;
  tellAnswers(kernel, sched);
}

// --- processes

/** Starts the schedulers that should run: at the start of the server, and when a scheduler is created later. */
export function startAll(kernel: Kernel): void {
  for (const sched of kernel.state.scheds.values()) {
    runtimeOf(kernel, sched.name);
    happened(kernel, sched.name, "lost");
    // A comment that the former server process wrote about an unreachable scheduler may no longer be true.
    forgetUnreached(kernel, sched);
    if (shouldRun(sched)) startProcess(kernel, sched.name);
  }
  setServerState(kernel);
}

/**
 * Starts the process of a scheduler unless there is one, or dials the scheduler on another host. If the process is just ending, a new one is started after its end.
 * The shell checks whether an earlier process has the lock.
 */
export function startProcess(kernel: Kernel, name: string): void {
  const runtime = runtimeOf(kernel, name);
  kernel.timers.clear(`sched-start:${name}`);
  runtime.again = runtime.leaving && runtime.started;
  if (runtime.link !== null) return;
  if (!runtime.started) Object.assign(runtime, { away_ms: kernel.now_ms, heard_ms: kernel.now_ms });
  runtime.started = true;
  runtime.leaving = false;
  beginSchedHeartbeat(kernel, runtime);
  kernel.out.actions.push({ kind: "start-sched", sched: name });
}

/** Writes into the log if a scheduler on another host runs as another user than sched_user. The server cannot change that. */
export function checkUser(kernel: Kernel, sched: Sched): void {
  const { host, user } = runtimeOf(kernel, sched.name);
  const { sched_user } = sched.attrs;
  if (host === null || kernel.config.own_user !== null || sched_user === undefined || sched_user === user) return;
  const present = user === null ? "as the user who started it" : `as ${user}`;
  logSched(kernel, sched.name, `sched_user is ${sched_user}, but the scheduler runs ${present} on host ${host}: restart it there`);
}

/** Makes the process of a scheduler end, on whatever host. It is not started and not dialled again. */
export function stopProcess(kernel: Kernel, name: string): void {
  const runtime = kernel.scheds.by_name.get(name);
  if (runtime === undefined) return;
  kernel.timers.clear(`sched-start:${name}`);
  runtime.leaving = true;
  runtime.again = false;
  if (runtime.link !== null) kernel.out.scheds.push({ link: runtime.link, type: "sched-quit", data: {} });
  kernel.out.actions.push({ kind: "stop-sched", sched: name, pid: endablePid(runtime) });
}

/** The pid of the process that the shell must end; 0: unknown, so that only a child of the server can be ended. */
export const endablePid = ({ silent, link, pid }: SchedRuntime): number => silent?.pid ?? (link === null ? 0 : pid);

/** Ends the process of a scheduler and starts a new one, because sched_user has changed. */
export function restartProcess(kernel: Kernel, name: string): void {
  const runtime = kernel.scheds.by_name.get(name);
  if (runtime?.started !== true) return;
  stopProcess(kernel, name);
  runtime.again = true;
}

/** How the process of a scheduler has ended. stopped: the server made it end. pid: of that process, if known. */
export type SchedEnd = { readonly code: number | null; readonly signal: string | null; readonly stopped: boolean; readonly pid?: number };

export function exited(kernel: Kernel, name: string, how: SchedEnd): void {
  const runtime = kernel.scheds.by_name.get(name);
  const sched = kernel.state.scheds.get(name);
  if (runtime === undefined || sched === undefined) return;
  // Another process with that name is connected, so the process that ended is not the scheduler.
  if (runtime.link !== null && how.pid !== undefined && how.pid !== runtime.pid) return;
  if (runtime.link !== null && how.code !== 0 && how.signal === null) return;
  if (runtime.link !== null) lost(kernel, runtime.link);
  runtime.started = false;
  kernel.timers.clear(`sched-start:${name}`);
  answersAgain(kernel, runtime, sched);
  sayNoPartition(kernel, sched);
  if (runtime.again && shouldRun(sched) && kernel.ending.stopping === "no") return startProcess(kernel, name);
  if (how.stopped || runtime.leaving || how.code === 0 || kernel.ending.stopping !== "no") return;
  crashed(kernel, sched, runtime, endText(how, sched));
}

/** Called when the process was not started because of a fault that the administrator must mend first: writes the fault into the comment. */
export function unfit(kernel: Kernel, name: string, text: string): void {
  const runtime = kernel.scheds.by_name.get(name);
  if (runtime === undefined) return;
  runtime.started = false;
  runtime.again = false;
  kernel.timers.clear(`sched-start:${name}`);
  tellFault(kernel, name, text);
}

/** How the process ended, for the log. After an alarm of a module, the log and comment of the restarted scheduler name that module. */
function endText({ code, signal }: SchedEnd, sched: Sched): string {
  if (signal === null) return `exit status ${code}`;
  if (signal !== WATCH_SIGNAL) return `signal ${signal}`;
  return `signal ${signal} from its own watch thread: a module's call took longer than module_alarm (${sched.attrs["sched_priv"]}/modules_stuck)`;
}

function crashed(kernel: Kernel, sched: Sched, runtime: SchedRuntime, why: string): void {
  const { crashes, attention, delay_ms } = afterCrash(runtime.crashes, kernel.now_ms);
  Object.assign(runtime, { crashes, attention });
  const again = !shouldRun(sched) ? "" : delay_ms === 0 ? "; it is started again at once" : `; it is started again in ${delay_ms / 1000} s`;
  logSched(kernel, sched.name, `ended with ${why}${again}`);
  if (attention) tellAttention(kernel, sched);
  if (!shouldRun(sched)) return;
  if (delay_ms === 0) startProcess(kernel, sched.name);
  else kernel.timers.set(`sched-start:${sched.name}`, kernel.now_ms + delay_ms);
}

/** Called by the timer `sched-start`: the delay after a crash is over, or a scheduler whose connection was lost has not come back. */
export function startDue(kernel: Kernel, name: string): void {
  const sched = kernel.state.scheds.get(name);
  if (sched !== undefined && shouldRun(sched) && kernel.ending.stopping === "no") startProcess(kernel, name);
}
