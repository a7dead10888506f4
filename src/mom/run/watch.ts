// Watches a run while its job is running: suspends and resumes it, enforces its limits, ends it. Pure.

import { JOB_EXEC } from "#model/exit-status.ts";
import { LOG_EVENT } from "#support/log-event.ts";
import { actionLimit_s } from "../config/action-script.ts";
import { isInteractive } from "../job/attrs.ts";
import { type Breach, breachOf, memoryLimit_kb } from "../job/limits.ts";
import type { ScriptEnd } from "../job/pelog.ts";
import { SIG } from "../job/signals.ts";
import { isSister } from "../job/sister.ts";
import { askAction, checkpointInTime, isLeaving } from "./checkpoint.ts";
import { askHooks } from "./hook-steps.ts";

import { type Context, keyOf, log, save } from "./record.ts";

import type { OutputFiles, Run } from "./state.ts";

/** The longest time for which a job that exceeded a limit may live on because its terminal accepts no text. */
const TELLING_MS_MAX = 10_000;

/** Returns the wall-clock seconds of a run without the time in which it was suspended. */
export function walltimeOf(run: Run, until_ms: number): number {
  if (run.phase.name !== "running") return 0;
  const { started_ms, suspended_ms } = run.phase;
  const standing_ms = suspended_ms === null ? 0 : until_ms - suspended_ms;
  return Math.max(0, until_ms - started_ms - run.suspended_total_ms - standing_ms) / 1000;
}

export function suspend(cx: Context, run: Run): void {
  if (run.phase.name !== "running") return;
  // A run that the mom had suspended because of its host's load stays suspended, now by the server's order.
  run.phase = { ...run.phase, suspended_ms: run.phase.suspended_ms ?? cx.now_ms };
  run.idled = false;
  cx.actions.push({ kind: "signal", run: keyOf(run), signal: cx.state.config.suspend_signal });
  log(cx, LOG_EVENT.JOB, run.job.id, "suspended");
  save(cx, run);
  askHooks(cx, "execjob_postsuspend", run, { kind: "after", run: keyOf(run) }, { session_id: run.phase.pid });
}

export function resume(cx: Context, run: Run): void {
  if (run.phase.name !== "running" || run.phase.suspended_ms === null) return;
  run.suspended_total_ms += cx.now_ms - run.phase.suspended_ms;
  run.idled = false;
  run.phase = { ...run.phase, suspended_ms: null };
  cx.actions.push({ kind: "signal", run: keyOf(run), signal: cx.state.config.resume_signal });
  log(cx, LOG_EVENT.JOB, run.job.id, "resumed");
  save(cx, run);
}

/** Compares the usage of a run with its limits. If the run is already being ended, sends SIGKILL when the time after SIGTERM is over. */
export function watch(cx: Context, run: Run): void {
  if (run.phase.name !== "running") return;
  if (run.ending !== null) {
    if (run.ending.kill_at_ms !== null && cx.now_ms >= run.ending.kill_at_ms) kill(cx, run);
    return;
  }
  if (run.telling_since_ms !== null) {
    if (cx.now_ms - run.telling_since_ms >= TELLING_MS_MAX) told(cx, run);
    return;
  }
  // The limits of a job apply to all its hosts together. Its mother superior enforces them.
  if (isSister(run.job, cx.state.config.host)) return;
  // A script is saving the run and will end it. Limits are not checked meanwhile.
  if (isLeaving(run)) return;
  if (run.phase.suspended_ms === null) checkpointInTime(cx, run, walltimeOf(run, cx.now_ms));
  const used = {
    walltime_s: walltimeOf(run, cx.now_ms),
    cpupercent: run.sample.cpupercent,
    cput_s: run.sample.cput_s + run.sisters.cput_s,
    mem_kb: run.sample.mem_now_kb + run.sisters.mem_kb,
    vmem_kb: run.sample.vmem_now_kb + run.sisters.vmem_kb,
  };
  const breach = breachOf(run.job.attrs, used, cx.state.config.enforce);
  if (breach !== null) punish(cx, run, breach, run.phase.files);
}

function punish(cx: Context, run: Run, breach: Breach, files: OutputFiles): void {
  run.breach = breach;
  log(cx, LOG_EVENT.JOB, run.job.id, breach.text);
  const text = `=>> PBS: job killed: ${breach.text}\n`;
  // The text must be written before the run is ended: the terminal disappears with its shell, perhaps before the file agent has opened it.
  const tells = isInteractive(run.job.attrs);
  cx.actions.push({ kind: "append", owner: run.plan.owner, path: files.stderr, text, ...(tells ? { for: keyOf(run) } : {}) });
  if (tells) run.telling_since_ms = cx.now_ms;
  else beginEnding(cx, run, "limit", run.job.kill_delay_s);
}

/** Ends the run after the text about its limit was written to the job's terminal, or could not be written. */
export function told(cx: Context, run: Run): void {
  if (run.telling_since_ms === null) return;
  run.telling_since_ms = null;
  if (run.ending === null) beginEnding(cx, run, "limit", run.job.kill_delay_s);
}

/** Begins to end the run: SIGTERM, and SIGKILL after the delay. For a rerun, a checkpoint or a discarded run, SIGKILL follows at once. */
export function beginEnding(cx: Context, run: Run, why: NonNullable<Run["ending"]>["why"], delay_s: number): void {
  const at_once = why === "rerun" || why === "discard" || why === "checkpoint" || why === "cut-off" || delay_s <= 0;
  if (run.ending !== null && !at_once) return;
  const known = run.ending?.why === "discard" ? "discard" : why;
  run.ending = { why: known, kill_at_ms: at_once ? cx.now_ms : cx.now_ms + delay_s * 1000 };
  save(cx, run);
  pursueEnding(cx, run);
}

export function pursueEnding(cx: Context, run: Run): void {
  if (run.ending === null || run.phase.name !== "running") return;
  const { kill_at_ms } = run.ending;
  if (kill_at_ms === null || cx.now_ms >= kill_at_ms) {
    kill(cx, run);
    return;
  }
  const { host, actions } = cx.state.config;
  // The site's terminate script does not run on sisters, which end with their mother superior, and not for a run whose terminal is gone.
  const scripted = run.ending.why !== "hang-up" && !isSister(run.job, host);
  const limit_s = !scripted || actions.terminate === undefined ? 0 : actionLimit_s(actions.terminate);
  if (limit_s > 0 && askAction(cx, run, "terminate", { kind: "terminate", run: keyOf(run) })) {
    // The script gets its time first. The kill_delay of the job begins after it.
    run.ending.kill_at_ms = Math.max(kill_at_ms, cx.now_ms + limit_s * 1000);
    return;
  }
  askToEnd(cx, run);
}

/** Handles the end of the site's script that ends jobs. Processes that remain get the queue's kill_delay. If the script failed, they also get SIGTERM. */
export function terminateScripted(cx: Context, run: Run, end: ScriptEnd): void {
  const failed = end.kind === "none" || end.code !== 0;
  if (end.kind === "ended" && failed) log(cx, LOG_EVENT.ERROR, run.job.id, `terminate script failed, exit=${end.code}, ${end.text}`);
  if (run.phase.name !== "running" || run.ending === null || run.ending.kill_at_ms === null) return;
  run.ending.kill_at_ms = cx.now_ms + run.job.kill_delay_s * 1000;
  if (failed) askToEnd(cx, run);
}

function askToEnd(cx: Context, run: Run): void {
  if (run.phase.name !== "running" || run.ending === null) return;
  if (run.ending.why !== "hang-up") cx.actions.push({ kind: "signal", run: keyOf(run), signal: SIG.TERM });
  // Shells at a terminal ignore SIGTERM.
  if (isInteractive(run.job.attrs)) cx.actions.push({ kind: "signal", run: keyOf(run), signal: SIG.HUP });
  // A suspended process receives SIGTERM only after SIGCONT.
  if (run.phase.suspended_ms !== null) cx.actions.push({ kind: "signal", run: keyOf(run), signal: SIG.CONT });
}

/** Ends a run whose terminal is gone, because the user left or the connection broke. An interactive job ends with its terminal. */
export function hungUp(cx: Context, run: Run): void {
  if (run.phase.name !== "running" || run.ending !== null) return;
  log(cx, LOG_EVENT.JOB, run.job.id, "the terminal of the interactive job has gone");
  beginEnding(cx, run, "hang-up", run.job.kill_delay_s);
}

function kill(cx: Context, run: Run): void {
  if (run.ending !== null) run.ending.kill_at_ms = null;
  log(cx, LOG_EVENT.JOB, run.job.id, "kill_job");
  cx.actions.push({ kind: "signal", run: keyOf(run), signal: SIG.KILL });
}

/** Reports a job that the kernel killed at its memory limit, in the same way as one that the mom killed. */
export function killedForMemory(cx: Context, run: Run, peak_kb: number | null, files: OutputFiles): void {
  const limit_kb = memoryLimit_kb(run.job.attrs);
  if (limit_kb === null) return;
  const mem_kb = Math.max(run.sample.mem_kb, peak_kb ?? 0, limit_kb);
  run.sample = { ...run.sample, mem_kb };
  run.breach = { exit_status: JOB_EXEC.KILL_MEM, text: `mem ${mem_kb}kb exceeded limit ${limit_kb}kb` };
  log(cx, LOG_EVENT.JOB, run.job.id, run.breach.text);
  cx.actions.push({ kind: "append", owner: run.plan.owner, path: files.stderr, text: `=>> PBS: job killed: ${run.breach.text}\n` });
}
