// The life of one run of a job on this host: from the making of its files to the acknowledgement of its obit. Pure: it changes the given state and returns
// nothing; actions are pushed to the context's actions.
//
// R1. A run leaves the table only when the server has acknowledged its obit or discards it.
// R2. The record of a run is removed before the starter is told to forget the run. If the mom dies in between, its successor tells the starter again. In the
//     other order, the successor would consider the run lost.

import type { SequenceEnd } from "#hooks/run/hook-sequence.ts";
import { JOB_EXEC } from "#model/exit-status.ts";
import { renderDuration } from "#model/values/duration.ts";
import type { MomJob, Usage } from "#protocol/mom-link.ts";
import { LOG_EVENT } from "#support/log-event.ts";
import type { Finished, Prepared } from "../job/agent-link.ts";
import { isInteractive, ticketOf } from "../job/attrs.ts";
import { nodefileText } from "../job/environment.ts";
import { memoryLimit_kb } from "../job/limits.ts";
import { afterPrologue, epilogueArguments, failureText, prologueArguments, type ScriptEnd } from "../job/pelog.ts";
import type { Owner } from "../job/plan.ts";
import { SIG } from "../job/signals.ts";
import { NO_SISTERS } from "../job/sister.ts";
import type { ExitedRun, StartedRun } from "../job/starter-link.ts";
import { noSample, usageOf } from "../job/usage.ts";
import { checkpointAtEnd, dropCheckpoint, isLeaving, isRestart, NO_CHECKPOINT } from "./checkpoint.ts";
import { askHooks, askScript, exitStatusOf, honour, hooksFor, logHooks, logScript } from "./hook-steps.ts";

import { dropOutput, keepOutput, outputFate, outputGone } from "./kept-output.ts";
import { type Context, keyOf, log, remember, SAFE_ID, save } from "./record.ts";
import { isSisters, planOf, specOf } from "./start.ts";
import type { NextRun, Obit, OutputFiles, Run, Step } from "./state.ts";
import { desertTasks, noTasks } from "./tasks.ts";
import { beginEnding, killedForMemory, pursueEnding, walltimeOf } from "./watch.ts";

const SIGNALLED = 256;
const BEFORE_START = "ended before it was started";
/** Exit_status of a run that was ended before it began. If the job is to run again, statusOf replaces it by a status that says so. */
const ENDED_BEFORE = SIGNALLED + SIG.TERM;

// ---- before the run starts ----

/**
 * Begins a run that the server has requested. The caller has checked that no other run of the job is here. doomed: how the server ended the run while it waited
 * for an earlier run of the job to be gone.
 */
export function beginRun(cx: Context, job: MomJob, owner: Owner | null, doomed: NextRun["doomed"] = null): void {
  const { config, runs } = cx.state;
  const whose = owner ?? { user: job.user, home: "/", shell: "", identity: null };
  const run: Run = {
    job,
    owner: whose,
    plan: planOf(job, whose, config),
    phase: { name: "beginning" },
    boot: config.boot,
    sample: noSample(cx.now_ms),
    cpus: null,
    suspended_total_ms: 0,
    ending: null,
    breach: null,
    telling_since_ms: null,
    idled: false,
    checkpointing: NO_CHECKPOINT,
    withheld: null,
    awaits_word: false,
    restart: false,
    launch: null,
    used_by_hooks: {},
    sisters: NO_SISTERS,
    ...noTasks(null),
    next: null,
  };
  if (!SAFE_ID.test(job.id)) {
    log(cx, LOG_EVENT.ERROR, "start", `job id ${JSON.stringify(job.id)} refused`);
    return;
  }
  runs.set(job.id, run);
  run.restart = isRestart(cx, run, job.restart === true);
  if (doomed !== null) giveUp(cx, run, doomed === "rerun" ? JOB_EXEC.RERUN : ENDED_BEFORE, BEFORE_START);
  else if (owner === null) giveUp(cx, run, JOB_EXEC.FAILUID, `No Password Entry for User ${job.user}`);
  else begin(cx, run);
}

/** Begins a run with its execjob_begin hooks, or, without such hooks, with its files. Also used for a run that an earlier mom had accepted but not started. */
export function begin(cx: Context, run: Run): void {
  run.phase = { name: "beginning" };
  if (!askHooks(cx, "execjob_begin", run, { kind: "begin", run: keyOf(run) })) return prepare(cx, run);
  save(cx, run);
}

function begun(cx: Context, run: Run, end: SequenceEnd): void {
  if (run.phase.name !== "beginning") return;
  honour(cx, "execjob_begin", end, run);
  const exit_status = exitStatusOf(end, run.job.id);
  if (run.ending?.why === "discard") remove(cx, run);
  else if (run.ending !== null) giveUp(cx, run, statusOf(run, ENDED_BEFORE), BEFORE_START);
  else if (exit_status !== null) giveUp(cx, run, exit_status, hookWords("execjob_begin", end));
  else prepare(cx, run);
}

/** Returns the log message about the hook that ended the job. */
const hookWords = (event: string, end: SequenceEnd): string => end.message ?? `${event} hook '${end.hook}': ${end.kind}`;

function prepare(cx: Context, run: Run): void {
  run.phase = { name: "preparing" };
  save(cx, run);
  const script_text = run.plan.script === null ? null : run.job.script;
  const kept = cx.state.kept.has(run.job.id) ? { kept: true as const } : {};
  cx.actions.push({ kind: "prepare", request: { plan: run.plan, script_text, nodefile_text: nodefileText(run.job), ...kept } });
}

/** Ends a run that has not started and has no files. Only its obit remains to be sent. */
function giveUp(cx: Context, run: Run, exit_status: number, message: string, stagein?: true): void {
  log(cx, LOG_EVENT.ERROR, run.job.id, message);
  const failed = stagein === undefined ? {} : { stagein_failed: stagein };
  endWithObit(cx, run, { ...keyOf(run), exit_status, used: usageOf(run.job.attrs, run.sample, 0), message, ...failed });
}

export function prepared(cx: Context, run: Run, outcome: Prepared): void {
  if (run.phase.name !== "preparing") return;
  if (!outcome.ok) {
    if (run.ending?.why === "discard") remove(cx, run);
    else giveUp(cx, run, outcome.exit_status, outcome.text, outcome.stagein);
    return;
  }
  const files = { stdout: outcome.stdout, stderr: outcome.stderr };
  if (outcome.places !== undefined) {
    run.plan = { ...run.plan, ...outcome.places };
    save(cx, run);
  }
  if (run.ending !== null) {
    finish(cx, run, ENDED_BEFORE, 0);
    return;
  }
  admit(cx, run, files);
}

/** Continues a run whose files have been made. The prologue and hooks may still refuse the run. */
function admit(cx: Context, run: Run, files: OutputFiles): void {
  run.phase = { name: "admitting", files };
  reportJoined(cx, run);
  const step = { kind: "prologue", run: keyOf(run) } as const;
  if (askHooks(cx, "execjob_prologue", run, step)) return;
  // The scripts run only on the mother superior.
  if (isSisters(cx, run)) return admitted(cx, run, files, null, "");
  askScript(cx, "prologue", run, step, prologueArguments(run.job), files);
}

/**
 * Continues a run after its prologue or execjob_prologue hooks. exit_status: set if they refuse the run; null: they accept it. why: the reason, for the obit.
 */
function admitted(cx: Context, run: Run, files: OutputFiles, exit_status: number | null, why: string): void {
  if (run.ending !== null) return abandon(cx, run, ENDED_BEFORE);
  if (exit_status !== null) return abandon(cx, run, exit_status, why);
  // Hooks of execjob_launch do not run for a restart script.
  if (isSisters(cx, run) || run.restart || hooksFor(cx.state, "execjob_launch").length === 0) return launch(cx, run, files);
  const spec = specOf(cx, run, files);
  const launched = { progname: spec.path, argv: spec.argv, env: environmentRecord(spec.env) };
  askHooks(cx, "execjob_launch", run, { kind: "launch", run: keyOf(run) }, {}, launched);
}

function afterLaunchHooks(cx: Context, run: Run, end: SequenceEnd): void {
  if (run.phase.name !== "admitting") return;
  const { files } = run.phase;
  honour(cx, "execjob_launch", end, run);
  const exit_status = exitStatusOf(end, run.job.id);
  if (run.ending !== null) return abandon(cx, run, ENDED_BEFORE);
  if (exit_status !== null) return abandon(cx, run, exit_status, hookWords("execjob_launch", end));
  const { progname, argv, env } = end.changes;
  run.launch = {
    ...(progname === undefined ? {} : { progname }),
    ...(argv === undefined ? {} : { argv }),
    ...(env === undefined ? {} : { env }),
  };
  launch(cx, run, files);
}

function launch(cx: Context, run: Run, files: OutputFiles): void {
  if (isInteractive(run.job.attrs) && ticketOf(run.job.attrs) === null)
    return abandon(cx, run, JOB_EXEC.FAIL1, "an interactive job that no qsub waits for");
  // The mom starts nothing before the server has welcomed it and confirmed the run (core.ts C5, C6).
  if (!cx.state.welcomed || cx.state.unconfirmed.get(run.job.id) === run.job.run_count) {
    run.awaits_word = true;
    return;
  }
  run.phase = { name: "starting", files };
  startAgain(cx, run, files);
}

/** Continues a run that waited until the server had confirmed that it still wants the run. */
export function goOnStarting(cx: Context, run: Run): void {
  if (!run.awaits_word) return;
  run.awaits_word = false;
  if (run.phase.name === "admitting") launch(cx, run, run.phase.files);
}

/** Ends a run that had begun but could not be started. */
export function abandon(cx: Context, run: Run, exit_status: number, message?: string): void {
  askHooks(cx, "execjob_abort", run, { kind: "after", run: keyOf(run) });
  finish(cx, run, exit_status, 0, message);
}

const environmentRecord = (env: readonly string[]): { [name: string]: string } =>
  Object.fromEntries(env.map((entry) => [entry.slice(0, entry.indexOf("=")), entry.slice(entry.indexOf("=") + 1)]));

export function startAgain(cx: Context, run: Run, files: OutputFiles): void {
  const spec = specOf(cx, run, files);
  const { progname, argv, env } = run.launch ?? {};
  cx.actions.push({
    kind: "start",
    spec: {
      ...spec,
      ...(progname === undefined ? {} : { path: progname, login: spec.login && progname === spec.path }),
      ...(argv === undefined ? {} : { argv }),
      ...(env === undefined ? {} : { env: Object.entries(env).map(([name, value]) => `${name}=${value}`) }),
    },
  });
}

// ---- while the job is running ----

export function started(cx: Context, run: Run, at: StartedRun): void {
  if (run.phase.name !== "starting") return;
  becomeRunning(run, run.phase.files, at);
  log(cx, LOG_EVENT.JOB, run.job.id, run.restart ? "Restarting" : `Started, pid = ${at.pid}`);
  reportStarted(cx, run);
  pursueEnding(cx, run);
}

export function becomeRunning(run: Run, files: OutputFiles, at: StartedRun, suspended_ms: number | null = null): void {
  const shown = at.terminal === undefined ? files : { stdout: at.terminal, stderr: at.terminal };
  run.phase = { name: "running", files: shown, pid: at.pid, started_ms: at.at_ms, suspended_ms };
  run.sample = { ...run.sample, at_ms: at.at_ms };
}

/** Tells the server that this sister has done everything that must be done before the job starts on its first host. */
export function reportJoined(cx: Context, run: Run): void {
  if (!isSisters(cx, run) || !cx.state.welcomed || (run.phase.name !== "admitting" && run.phase.name !== "starting")) return;
  cx.actions.push({ kind: "send", type: "mom-joined", data: keyOf(run) });
}

export function reportStarted(cx: Context, run: Run): void {
  if (run.phase.name !== "running" || !cx.state.welcomed) return;
  cx.actions.push({
    kind: "send",
    type: "mom-started",
    data: {
      ...keyOf(run),
      session_id: run.phase.pid,
      jobdir: run.plan.sandbox ?? run.owner.home,
      ...(run.restart ? { restarted: true as const } : {}),
    },
  });
}

// ---- after the run ----

export function exited(cx: Context, run: Run, exit: ExitedRun): void {
  if (run.phase.name !== "running") return;
  // The end is reported when the script has answered (checkpoint.ts I2).
  if (isLeaving(run) && run.checkpointing.unheard !== true && run.ending === null) {
    run.withheld = exit;
    return;
  }
  // The starter has ended the run, because this mom was stopped or there was none (cut-off.ts Z2).
  if (exit.cut_off === true) run.ending ??= { why: "cut-off", kill_at_ms: null };
  // An earlier mom started the script and its answer was lost. It is unknown whether the script saved the job, so the job runs again.
  if (run.checkpointing.unheard === true) run.ending ??= { why: "rerun", kill_at_ms: null };
  const { id } = run.job;
  desertTasks(cx, run);
  const cput_s = Math.max(run.sample.cput_s, exit.cput_s + run.tasks_cput_s, exit.group?.cput_s ?? 0);
  run.sample = { ...run.sample, cput_s, mem_kb: Math.max(run.sample.mem_kb, exit.peak_kb ?? 0, peakOf(cx, run, exit)) };
  if (exit.group?.oom === true && run.breach === null) killedForMemory(cx, run, exit.group.mem_peak_kb, run.phase.files);
  const walltime_s = walltimeOf(run, exit.at_ms);
  const cput = renderDuration(Math.floor(run.sample.cput_s));
  log(cx, LOG_EVENT.DEBUG, id, "task 00000001 terminated");
  log(cx, LOG_EVENT.JOB, id, "Terminated");
  log(cx, LOG_EVENT.DEBUG2, id, `task 00000001 cput=${cput}`);
  log(cx, LOG_EVENT.JOB, id, "kill_job");
  log(cx, LOG_EVENT.DEBUG2, id, `${cx.state.config.host} cput=${cput} mem=${run.sample.mem_kb}kb`);
  if (isFailedRestart(cx, run, exit)) {
    const text = `restart failed: exit=${"code" in exit.status ? exit.status.code : ""}; the job is run from its beginning`;
    log(cx, LOG_EVENT.ERROR, id, text);
    return conclude(cx, run, JOB_EXEC.BADRESRT, walltime_s, text);
  }
  conclude(cx, run, "code" in exit.status ? exit.status.code : SIGNALLED + exit.status.signal, walltime_s, wordsOfEnding(run));
}

/** Returns what the server is told about a run that the mom or its starter ended by itself. */
const wordsOfEnding = ({ ending }: Run): string | undefined =>
  ending?.why === "cut-off" ? "ended by its host, which was cut off from the server for too long" : undefined;

/**
 * Whether a restart script has failed. With $restart_transmogrify its status is always the job's own. If the mom was ending the run, or the run exceeded a
 * limit, that explains the status: the restart has not failed.
 */
const isFailedRestart = (cx: Context, run: Run, exit: ExitedRun): boolean =>
  exit.restart_failed === true && !cx.state.config.restart_transmogrify && run.ending === null && run.breach === null;

/**
 * Returns the peak memory of a job whose mem the kernel enforces, at most that limit; 0: not known. The kernel's peak includes files that it cached for the
 * job, so it is not used for jobs that requested no mem.
 */
function peakOf(cx: Context, run: Run, { group }: ExitedRun): number {
  const limit_kb = memoryLimit_kb(run.job.attrs);
  if (limit_kb === null || !cx.state.config.cgroups.enforce.has("memory")) return 0;
  return Math.min(group?.mem_peak_kb ?? 0, limit_kb);
}

/**
 * Returns the exit status to report. If the mom ended the run (limit, rerun, checkpoint), the reason decides; otherwise it
 * is the status of the top process.
 */
const statusOf = (run: Run, status: number): number => run.breach?.exit_status ?? statusOfEnding(run) ?? status;
function statusOfEnding({ ending }: Run): number | null {
  switch (ending?.why) {
    case "rerun":
      return JOB_EXEC.RERUN;
    case "cut-off":
      return JOB_EXEC.RERUN_MS_FAIL;
    case "checkpoint":
      return JOB_EXEC.CHKP;
    default:
      return null;
  }
}

/** Begins the epilogue of a run whose top process has ended. message: a text that the server gets with the obit. */
export function conclude(cx: Context, run: Run, status: number, walltime_s: number, message?: string): void {
  const { phase } = run;
  if (phase.name !== "running" && phase.name !== "starting") return finish(cx, run, status, walltime_s, message);
  const { files } = phase;
  const session = phase.name === "running" ? phase.pid : 0;
  const exit_status = statusOf(run, status);
  const used = usedOf(run, walltime_s);
  run.phase = { name: "epilogue", exit_status, walltime_s, session, ...(message === undefined ? {} : { message }) };
  const step = { kind: "epilogue", run: keyOf(run) } as const;
  if (askHooks(cx, "execjob_epilogue", run, step, { resources_used: used, session_id: session, Exit_status: exit_status })) return;
  if (isSisters(cx, run)) return concluded(cx, run, null);
  askScript(cx, "epilogue", run, step, epilogueArguments(run.job, session, used, exit_status), files);
}

const usedOf = (run: Run, walltime_s: number): Usage => ({ ...usageOf(run.job.attrs, run.sample, walltime_s), ...run.used_by_hooks });

/**
 * Finishes a run after its epilogue. forced: the exit status for hooks that asked to rerun or delete the job. Otherwise the run's own exit status counts,
 * whatever the hooks or the script reported.
 */
function concluded(cx: Context, run: Run, forced: number | null): void {
  if (run.phase.name !== "epilogue") return;
  const { exit_status, walltime_s, message } = run.phase;
  if (forced !== null) run.breach = { exit_status: forced, text: "" };
  finish(cx, run, exit_status, walltime_s, message, true);
}

/** Asks the file agent to finish the files of a run that has no process left. ran: whether the run had started. */
function finish(cx: Context, run: Run, status: number, walltime_s: number, message?: string, ran = false): void {
  const exit_status = statusOf(run, status);
  const used = usedOf(run, walltime_s);
  const output = outputFate(cx, run, exit_status, ran);
  run.phase = { name: "finishing", exit_status, used, output, ...(message === undefined ? {} : { message }) };
  const staging = run.plan.stageout.length > 0 && output === "deliver";
  if (staging && run.job.attrs["release_nodes_on_stageout"] === true && cx.state.welcomed)
    cx.actions.push({ kind: "send", type: "mom-staging-out", data: keyOf(run) });
  if (output === "keep") keepOutput(cx, run.job.id);
  cx.actions.push({ kind: "finish", request: { plan: run.plan, success: exit_status === 0, output } });
}

export function finished(cx: Context, run: Run, outcome: Finished): void {
  if (run.phase.name !== "finishing") return;
  const { exit_status, used, output } = run.phase;
  // Whether the output is kept was decided when the file agent was asked (kept-output.ts O2).
  if (output !== "keep") outputGone(cx, run.job.id);
  if (run.ending?.why === "discard") {
    remove(cx, run);
    return;
  }
  const messages = [...(run.phase.message === undefined ? [] : [run.phase.message]), ...outcome.failures];
  for (const failure of outcome.failures) log(cx, LOG_EVENT.ERROR, run.job.id, failure);
  endWithObit(cx, run, {
    ...keyOf(run),
    exit_status,
    used,
    ...(outcome.total > 0 ? { stageout_status: outcome.failures.length > 0 ? (0 as const) : (1 as const) } : {}),
    ...(messages.length > 0 ? { message: messages.join("\n") } : {}),
  });
  if (outcome.total === 0) return;
  log(cx, LOG_EVENT.DEBUG, run.job.id, "copy file request received");
  log(cx, LOG_EVENT.DEBUG2, run.job.id, `Staged ${outcome.delivered}/${outcome.total} items out over 0:00:00`);
}

function endWithObit(cx: Context, run: Run, obit: Obit): void {
  checkpointAtEnd(cx, run.job.id, obit.exit_status);
  run.phase = { name: "ended", obit: cx.state.kept.has(run.job.id) ? { ...obit, kept: true } : obit };
  sendObit(cx, run);
  if (run.next !== null) leave(cx, run);
}

export function sendObit(cx: Context, run: Run): void {
  if (run.phase.name !== "ended" || !cx.state.welcomed) return;
  cx.actions.push({ kind: "send", type: "mom-obit", data: run.phase.obit });
  log(cx, LOG_EVENT.DEBUG2, run.job.id, "Obit sent");
}

export function acknowledged(cx: Context, run: Run): void {
  if (run.phase.name !== "ended") return;
  log(cx, LOG_EVENT.DEBUG, run.job.id, "delete job request received");
  log(cx, LOG_EVENT.JOB, run.job.id, "kill_job");
  leave(cx, run);
}

/** Runs the execjob_end hooks, after which the run is removed. The server has acknowledged the obit, or does not need one. */
function leave(cx: Context, run: Run): void {
  if (run.phase.name !== "ended") return;
  const { exit_status, used } = run.phase.obit;
  run.phase = { name: "leaving" };
  if (!askHooks(cx, "execjob_end", run, { kind: "end", run: keyOf(run) }, { resources_used: used, Exit_status: exit_status }))
    remove(cx, run);
}

// ---- answers of hooks and scripts ----

/** Continues a run after an answer of hooks. run: the run that the hooks were asked about. */
export function hooked(cx: Context, run: Run, kind: Step["kind"], event: string, end: SequenceEnd): void {
  logHooks(cx, event, end, run.job.id);
  switch (kind) {
    case "begin":
      return begun(cx, run, end);
    case "prologue":
      if (run.phase.name !== "admitting") return;
      honour(cx, event, end, run);
      return admitted(cx, run, run.phase.files, exitStatusOf(end, run.job.id), hookWords(event, end));
    case "launch":
      return afterLaunchHooks(cx, run, end);
    case "epilogue":
      honour(cx, event, end, run);
      // A failed epilogue hook does not change the result of the job. Only a request of the hook to rerun or delete the job counts.
      return concluded(cx, run, end.requests.jobs[run.job.id] === undefined ? null : exitStatusOf(end, run.job.id));
    case "end":
      if (run.phase.name === "leaving") remove(cx, run);
      return;
    case "after":
    case "checkpoint":
    case "terminate":
    case "preterm":
    case "preresume":
    case "host":
      return;
    default: {
      const unreachable: never = kind;
      return unreachable;
    }
  }
}

export function scripted(cx: Context, run: Run, kind: Step["kind"], end: ScriptEnd): void {
  if (kind === "epilogue") {
    logScript(cx, "epilogue", run.job.id, end);
    return concluded(cx, run, null);
  }
  logScript(cx, "prologue", run.job.id, end);
  if (run.phase.name !== "admitting") return;
  const { files } = run.phase;
  const exit_status = end.kind === "none" ? null : afterPrologue(run.job.attrs, end.code);
  const why = end.kind === "none" ? "" : failureText(`${cx.state.config.facts.home}/mom_priv/prologue`, end);
  if (exit_status === JOB_EXEC.FAIL2)
    cx.actions.push({ kind: "append", owner: run.plan.owner, path: files.stderr, text: `Could not run prolog: ${why}\n` });
  admitted(cx, run, files, exit_status, why);
}

/** Ends a run that the server does not want. */
export function discard(cx: Context, run: Run): void {
  if (run.phase.name === "ended") leave(cx, run);
  else if (run.phase.name !== "leaving") {
    beginEnding(cx, run, "discard", 0);
    exitWithheld(cx, run);
  }
}

/**
 * Ends a run that waits. Either its top process ended while a script saved it (checkpoint.ts I2), or it has not started because the server's confirmation is
 * missing (core.ts C5).
 */
export function exitWithheld(cx: Context, run: Run): void {
  if (run.awaits_word) {
    run.awaits_word = false;
    return abandon(cx, run, ENDED_BEFORE);
  }
  const { withheld } = run;
  run.withheld = null;
  if (withheld !== null) exited(cx, run, withheld);
}

export function remove(cx: Context, run: Run): void {
  const { runs, last } = cx.state;
  if (run.ending?.why === "discard") dropCheckpoint(cx, run.job.id);
  if (run.ending?.why === "discard" && run.next === null) dropOutput(cx, run.job.id);
  cx.actions.push({ kind: "drop", run: keyOf(run) });
  runs.delete(run.job.id);
  if (cx.state.unconfirmed.get(run.job.id) === run.job.run_count) cx.state.unconfirmed.delete(run.job.id);
  remember(last, run.job.id, run.job.run_count);
  if (run.next === null) return;
  const { job, owner, doomed } = run.next;
  beginRun(cx, job, owner, doomed);
}
