// Checkpoints of jobs by the site's scripts (`$action checkpoint`, `checkpoint_abort`, `restart`; qsub -c; docs/reference/execution.md 5). Pure.
//
//   checkpoint        at the intervals of -c; the job continues
//   checkpoint_abort  for qhold and preemption; then the job ends with CHKP and its files wait here
//   restart           at its next start: the script is the job's top process
//
// I1. A checkpoint counts once its script has ended with 0; until then the previous one counts (the shell makes a new directory and replaces the old one with it).
// I2. If a job ends while its script saves it, the end is reported when the script has said whether the job was saved.
// I3. A checkpoint is removed with the end of its job. It stays only after CHKP and INITRST, for the next run.
// I4. Interactive jobs and jobs over several hosts are not saved.

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

/** Whether a script saves the run so that the run can end. */
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

/** The environment of a site's script. */
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

/** I4: of a job with a terminal, or with processes on other hosts, a script here could save only a part. */
function isSavable({ job }: Run): boolean {
  return textOf(job.attrs, "Checkpoint") !== "n" && !isInteractive(job.attrs) && hostsOf(job.exec_host).length <= 1;
}

// ---- checkpoints that end the run

/** The result of a request to save the job and end it; a number: why it was not possible. */
export function leaveByCheckpoint(cx: Context, run: Run): number | null {
  if (run.phase.name !== "running" || run.ending !== null || run.phase.suspended_ms !== null) return PBSE.BADSTATE;
  if (!isSavable(run)) return PBSE.NOSUP;
  // The server repeats its request if the answer was lost.
  if (isLeaving(run)) return null;
  if (run.checkpointing.asked !== "no") return PBSE.CKPBSY;
  if (!askAction(cx, run, "checkpoint_abort", { kind: "checkpoint", run: keyOf(run) })) return PBSE.NOSUP;
  run.checkpointing = { ...run.checkpointing, asked: "checkpoint_abort" };
  save(cx, run);
  return null;
}

// ---- checkpoints at intervals

/** Saves a running job whose interval is over. walltime_s: the present walltime. */
export function checkpointInTime(cx: Context, run: Run, walltime_s: number): void {
  const interval = intervalOf(run.job.attrs);
  if (interval === null || !isSavable(run) || run.checkpointing.asked !== "no" || cx.state.config.actions.checkpoint === undefined) return;
  const { checkpointing } = run;
  const used_s = interval.clock === "c" ? run.sample.cput_s - checkpointing.cput_s : walltime_s - checkpointing.walltime_s;
  if (used_s < interval.every_s) return;
  askAction(cx, run, "checkpoint", { kind: "checkpoint", run: keyOf(run) });
  run.checkpointing = { asked: "checkpoint", cput_s: run.sample.cput_s, walltime_s };
}

/** `c=5`: each 5 minutes of cpu time; `w=5`: of wall clock time. */
function intervalOf(attrs: Attrs): { readonly clock: "c" | "w"; readonly every_s: number } | null {
  const match = /^([cw])=(\d+)$/.exec(textOf(attrs, "Checkpoint") ?? "");
  const minutes = Number(match?.[2] ?? 0);
  return match === null || minutes === 0 ? null : { clock: match[1] as "c" | "w", every_s: minutes * 60 };
}

export const hasInterval = (attrs: Attrs): boolean => intervalOf(attrs) !== null;

// ---- answers of scripts

/** saved: there is a checkpoint. leaving: the run was to end with it. */
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

/** Whether this start is one from a checkpoint; an unusable checkpoint is removed. */
export function isRestart(cx: Context, run: Run, wanted: boolean): boolean {
  const { checkpoints, config } = cx.state;
  const there = checkpoints.has(run.job.id);
  if (wanted && there && config.actions.restart !== undefined) return true;
  if (wanted)
    log(cx, LOG_EVENT.ERROR, run.job.id, `no restart: ${there ? "there is no $action restart" : "no checkpoint here"}; begun anew`);
  dropCheckpoint(cx, run.job.id);
  return false;
}

/** Program and arguments of the restart. */
export const restartCommand = (cx: Context, run: Run): readonly string[] =>
  restOf(cx, run, "restart", checkpointPath(cx.state.config, run.job.id));

const KEEPS: ReadonlySet<number> = new Set([JOB_EXEC.CHKP, JOB_EXEC.INITRST]);

export function checkpointAtEnd(cx: Context, job: string, exit_status: number): void {
  if (!KEEPS.has(exit_status)) dropCheckpoint(cx, job);
}

/** Drops a checkpoint whose script was still running when its run was over: such files belong to no run. */
export function savedTooLate(cx: Context, job: string): void {
  if (!cx.state.checkpoints.has(job)) cx.actions.push({ kind: "drop-checkpoint", path: checkpointPath(cx.state.config, job) });
}

export function dropCheckpoint(cx: Context, job: string): void {
  if (cx.state.checkpoints.delete(job)) cx.actions.push({ kind: "drop-checkpoint", path: checkpointPath(cx.state.config, job) });
}
