// Checkpoints of jobs by the site's scripts (`$action checkpoint`, `checkpoint_abort`, `restart`; qsub -c; docs/reference/execution.md 5). Pure.
//
//   checkpoint        at the intervals of -c; the job continues
//   checkpoint_abort  for qhold and preemption; then the job ends with CHKP, and the checkpoint stays on this host
//   restart           at the next start of the job; the script is then the job's top process
//
// I1. A checkpoint counts once its script has ended with 0; until then the previous one counts (../shell/action-run.ts F1).
// I2. If a job ends while a script saves it, the mom reports the end only after the script: its exit status says whether the job was saved.
// I3. A checkpoint is removed when its job ends. Only after the exit statuses CHKP and INITRST does it stay, for the job's next run.
// I4. Interactive jobs and jobs on several hosts are not saved.

import { JOB_EXEC } from "#model/exit-status.ts";
import { PBSE } from "#model/pbse.ts";
import { hostsOf } from "#model/request/host-entry.ts";
import { LOG_EVENT } from "#support/log-event.ts";

import { type ActionName, actionCommand, actionLimit_s } from "../config/action-script.ts";
import { type Attrs, isInteractive, textOf } from "../job/attrs.ts";
import { type ScriptEnd, scriptEnvironment } from "../job/pelog.ts";
import { type Context, keyOf, log, save } from "./record.ts";

import type { Checkpointing, MomConfig, Run, Step } from "./state.ts";

export const NO_CHECKPOINT: Checkpointing = { asked: "no", cput_s: 0, walltime_s: 0 };

/** Directory of a job's checkpoint. */
const checkpointPath = (config: MomConfig, job: string): string => `${config.checkpoint_path}/${job}.CK`;

/** Whether a script is saving the run in order to end it. */
export const isLeaving = (run: Run): boolean => run.checkpointing.asked === "checkpoint_abort";

/** Starts a script of the site; the event `acted` brings its answer. Returns false if the site has no such script. */
export function askAction(cx: Context, run: Run, action: Exclude<ActionName, "restart">, step: Step): boolean {
  const { config } = cx.state;
  const script = config.actions[action];
  if (script === undefined) return false;
  const number = cx.state.next_step++;
  cx.state.steps.set(number, { event: action, step });
  const path = checkpointPath(config, run.job.id);
  cx.actions.push({
    kind: "run-action",
    step: number,
    job: run.job.id,
    argv: restOf(cx, run, action, action === "terminate" ? path : `${path}.new`),
    env: siteEnvironmentOf(cx, run),
    alarm_s: actionLimit_s(script),
    checkpoint: action === "terminate" ? null : path,
  });
  log(cx, LOG_EVENT.JOB, run.job.id, `running ${action} script`);
  return true;
}

/** Returns the environment of a site's script. */
export const siteEnvironmentOf = (cx: Context, run: Run): { [name: string]: string } =>
  scriptEnvironment(run.job, run.plan.sandbox ?? run.owner.home, run.plan.tmpdir, cx.state.config.facts.site);

function restOf(cx: Context, run: Run, action: ActionName, path: string): readonly string[] {
  const { config } = cx.state;
  const { identity, user } = run.owner;
  const script = config.actions[action];
  if (script === undefined) return [];
  return actionCommand(script, {
    jobid: run.job.id,
    sid: run.phase.name === "running" ? run.phase.pid : 0,
    uid: identity?.uid ?? config.own.uid,
    gid: identity?.gid ?? config.own.gid,
    login: user,
    owner: textOf(run.job.attrs, "Job_Owner") ?? user,
    auxid: textOf(run.job.attrs, "alt_id") ?? "",
    path,
  });
}

/** Whether the job can be saved (I4). Of a job with a terminal, or with processes on other hosts, a script on this host could save only a part. */
function isSavable({ job }: Run): boolean {
  return textOf(job.attrs, "Checkpoint") !== "n" && !isInteractive(job.attrs) && hostsOf(job.exec_host).length <= 1;
}

// ---- checkpoints that end the run

/** Starts the script that saves the job and ends it. Returns null if that succeeds, otherwise the PBSE code of the reason why the job cannot be saved. */
export function leaveByCheckpoint(cx: Context, run: Run): number | null {
  if (run.phase.name !== "running" || run.ending !== null || run.phase.suspended_ms !== null) return PBSE.BADSTATE;
  if (!isSavable(run)) return PBSE.NOSUP;
  // This is a repeated request: the server did not get the answer to the first one.
  if (isLeaving(run)) return null;
  if (run.checkpointing.asked !== "no") return PBSE.CKPBSY;
  if (!askAction(cx, run, "checkpoint_abort", { kind: "checkpoint", run: keyOf(run) })) return PBSE.NOSUP;
  run.checkpointing = { ...run.checkpointing, asked: "checkpoint_abort" };
  save(cx, run);
  return null;
}

// ---- checkpoints at intervals

/** Saves a running job if the interval of its -c is over. walltime_s: the walltime of the run until now. */
export function checkpointInTime(cx: Context, run: Run, walltime_s: number): void {
  const interval = intervalOf(run.job.attrs);
  if (interval === null || !isSavable(run) || run.checkpointing.asked !== "no" || cx.state.config.actions.checkpoint === undefined) return;
  const { checkpointing } = run;
  const used_s = interval.clock === "c" ? run.sample.cput_s - checkpointing.cput_s : walltime_s - checkpointing.walltime_s;
  if (used_s < interval.every_s) return;
  askAction(cx, run, "checkpoint", { kind: "checkpoint", run: keyOf(run) });
  run.checkpointing = { asked: "checkpoint", cput_s: run.sample.cput_s, walltime_s };
}

/** Reads the attribute Checkpoint: `c=5` means every 5 minutes of cpu time, `w=5` every 5 minutes of wall clock time. */
function intervalOf(attrs: Attrs): { readonly clock: "c" | "w"; readonly every_s: number } | null {
  const match = /^([cw])=(\d+)$/.exec(textOf(attrs, "Checkpoint") ?? "");
  const minutes = Number(match?.[2] ?? 0);
  return match === null || minutes === 0 ? null : { clock: match[1] as "c" | "w", every_s: minutes * 60 };
}

export const hasInterval = (attrs: Attrs): boolean => intervalOf(attrs) !== null;

// ---- answers of scripts

/**
 * The result of a script that saved a run. saved: a checkpoint was made. leaving: the run was to end after the checkpoint.
 * text: the message about the script.
 */
export type Taken = { readonly saved: boolean; readonly leaving: boolean; readonly text: string };

export function taken(cx: Context, run: Run, end: ScriptEnd): Taken {
  const leaving = isLeaving(run);
  const action = run.checkpointing.asked;
  run.checkpointing = { ...run.checkpointing, asked: "no" };
  const saved = end.kind === "ended" && end.code === 0;
  const why = end.kind === "none" ? "there is no such script" : `exit=${end.code}, ${end.text}`;
  const text = saved ? `checkpointed (${action})` : `${action} failed: ${why}`;
  log(cx, saved ? LOG_EVENT.JOB : LOG_EVENT.ERROR, run.job.id, text);
  if (saved) cx.state.checkpoints.add(run.job.id);
  // The end of the run has been reported already.
  if (saved && run.phase.name === "ended") checkpointAtEnd(cx, run.job.id, run.phase.obit.exit_status);
  else if (saved && run.phase.name === "leaving") dropCheckpoint(cx, run.job.id);
  return { saved, leaving, text };
}

// ---- at a start, at the end

/** Whether this start continues from a checkpoint. A checkpoint that cannot be used is removed. */
export function isRestart(cx: Context, run: Run, wanted: boolean): boolean {
  const { checkpoints, config } = cx.state;
  const there = checkpoints.has(run.job.id);
  if (wanted && there && config.actions.restart !== undefined) return true;
  if (wanted)
    log(cx, LOG_EVENT.ERROR, run.job.id, `no restart: ${there ? "there is no $action restart" : "no checkpoint here"}; begun anew`);
  dropCheckpoint(cx, run.job.id);
  return false;
}

/** Returns the restart script and its arguments. */
export const restartCommand = (cx: Context, run: Run): readonly string[] =>
  restOf(cx, run, "restart", checkpointPath(cx.state.config, run.job.id));

const KEEPS: ReadonlySet<number> = new Set([JOB_EXEC.CHKP, JOB_EXEC.INITRST]);

export function checkpointAtEnd(cx: Context, job: string, exit_status: number): void {
  if (!KEEPS.has(exit_status)) dropCheckpoint(cx, job);
}

/** Drops the checkpoint of a script that ended only after its run was over. No run needs those files. */
export function savedTooLate(cx: Context, job: string): void {
  if (!cx.state.checkpoints.has(job)) cx.actions.push({ kind: "drop-checkpoint", path: checkpointPath(cx.state.config, job) });
}

export function dropCheckpoint(cx: Context, job: string): void {
  if (cx.state.checkpoints.delete(job)) cx.actions.push({ kind: "drop-checkpoint", path: checkpointPath(cx.state.config, job) });
}
