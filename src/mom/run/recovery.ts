// Compares the records of runs with what the starter knows about them, after a restart of mom or starter. Pure, like
// life.ts.
//
// V1. A run may have a record while the starter does not know it. If the record was written since the machine was booted,
//     the starter's journal is complete, so the run was never started. If the record is older, the run is lost.
// V2. A run that only the starter knows cannot be reported, because it has no record. It is killed and forgotten.

import { JOB_EXEC } from "#model/exit-status.ts";
import { LOG_EVENT } from "#support/log-event.ts";
import { SIG } from "../job/signals.ts";
import { NO_SISTERS } from "../job/sister.ts";
import type { StarterRun, StarterToMom } from "../job/starter-link.ts";
import { noSample } from "../job/usage.ts";
import { NO_CHECKPOINT } from "./checkpoint.ts";

import { becomeRunning, begin, conclude, exited, remove, reportStarted, startAgain } from "./life.ts";
import { type Context, filesOf, log, remember } from "./record.ts";

import { inheritContact } from "./server-contact.ts";
import type { Run, SavedRun } from "./state.ts";
import { adopted, missTasks, noTasks, takeTask } from "./tasks.ts";
import { beginEnding, hungUp } from "./watch.ts";

export function recovered(cx: Context, saved: readonly SavedRun[]): void {
  for (const record of saved) {
    const run: Run = {
      job: record.job,
      owner: record.owner,
      plan: record.plan,
      phase: { name: "recovered", suspended_ms: record.suspended_ms },
      boot: record.boot,
      sample: noSample(cx.now_ms),
      cpus: record.cpus,
      suspended_total_ms: record.suspended_total_ms,
      ending: record.ending,
      breach: record.breach,
      telling_since_ms: null,
      idled: record.idled === true,
      checkpointing: record.leaving === true ? { ...NO_CHECKPOINT, asked: "checkpoint_abort", unheard: true } : NO_CHECKPOINT,
      withheld: null,
      awaits_word: false,
      restart: record.restart === true,
      launch: null,
      used_by_hooks: record.used_by_hooks ?? {},
      sisters: NO_SISTERS,
      ...noTasks(record.tasks ?? {}),
      next: null,
    };
    cx.state.runs.set(run.job.id, run);
  }
}

export function starterState(cx: Context, data: StarterToMom["starter-state"]): void {
  const { runs, last, strays } = cx.state;
  inheritContact(cx.state, data.lease);
  for (const key of data.last) remember(last, key.job, key.run_count);
  const known = new Map(data.runs.map((entry) => [entry.job, entry]));
  for (const entry of data.runs) {
    if (takeTask(cx, entry)) continue;
    const run = runs.get(entry.job);
    if (run?.job.run_count !== entry.run_count) stray(cx, entry);
  }
  for (const job of strays.keys()) if (!known.has(job)) strays.delete(job);
  for (const run of [...runs.values()]) {
    const entry = known.get(run.job.id);
    settle(cx, run, entry?.run_count === run.job.run_count ? entry : undefined);
    missTasks(cx, run, known);
  }
}

function stray(cx: Context, entry: StarterRun): void {
  const key = { job: entry.job, run_count: entry.run_count };
  if (entry.state !== "running") {
    cx.actions.push({ kind: "drop", run: key });
    return;
  }
  log(cx, LOG_EVENT.ERROR, entry.job, `a run without a record is killed, pid = ${entry.pid}`);
  cx.state.strays.set(entry.job, entry.run_count);
  cx.actions.push({ kind: "signal", run: key, signal: SIG.KILL });
}

/** The phases of a run in which the starter does nothing for it. */
const AT_HOME: ReadonlySet<Run["phase"]["name"]> = new Set([
  "beginning",
  "preparing",
  "admitting",
  "epilogue",
  "finishing",
  "ended",
  "leaving",
]);

/** Brings a run into agreement with the starter. entry: what the starter knows about the run; undefined: nothing. */
function settle(cx: Context, run: Run, entry: StarterRun | undefined): void {
  const { phase } = run;
  if (AT_HOME.has(phase.name)) return;
  if (entry === undefined) {
    // The server had acknowledged the obit and the starter had forgotten the run. Only the record could not be removed (a full disk). The run must not be
    // started again.
    if (phase.name === "recovered" && (cx.state.last.get(run.job.id) ?? 0) >= run.job.run_count) remove(cx, run);
    else if (phase.name === "starting") startAgain(cx, run, phase.files);
    else if (phase.name === "recovered" && run.boot === cx.state.config.boot && run.ending === null) begin(cx, run);
    else lose(cx, run);
    return;
  }
  if (phase.name !== "running") {
    becomeRunning(
      run,
      phase.name === "starting" ? phase.files : filesOf(run.plan),
      entry,
      phase.name === "recovered" ? phase.suspended_ms : null,
    );
  }
  switch (entry.state) {
    case "running":
      for (const session of entry.adopted ?? []) adopted(cx, { job: entry.job, run_count: entry.run_count, ...session });
      goOn(cx, run, phase.name === "recovered");
      if (entry.hung_up === true) hungUp(cx, run);
      break;
    case "ended":
      exited(cx, run, entry.exit);
      break;
    case "lost":
      lose(cx, run);
      break;
    default: {
      const unreachable: never = entry;
      throw new Error(`starter run ${JSON.stringify(unreachable)}`);
    }
  }
}

function goOn(cx: Context, run: Run, found: boolean): void {
  reportStarted(cx, run);
  if (run.checkpointing.unheard === true) run.checkpointing = NO_CHECKPOINT;
  if (run.ending !== null) beginEnding(cx, run, run.ending.why, 0);
  else if (found && cx.state.config.kill_found) beginEnding(cx, run, "rerun", 0);
}

/** Ends a run whose exit status will never be known (docs/reference/execution.md 6, INITABT: the job is requeued if it is rerunnable). */
function lose(cx: Context, run: Run): void {
  const text = "the starter was lost with the job: its exit status is unknown";
  log(cx, LOG_EVENT.ERROR, run.job.id, text);
  const { actions } = cx.state.config;
  const saved = cx.state.checkpoints.has(run.job.id) && actions.restart !== undefined;
  conclude(cx, run, saved ? JOB_EXEC.INITRST : JOB_EXEC.INITABT, 0, text);
}
