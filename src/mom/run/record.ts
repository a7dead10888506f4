// Helpers for the phases of a run: its record on the disk, its key, its files, and the attributes that qalter changes while it is here. Pure.

import type { MomJob } from "#protocol/mom-link.ts";
import type { FilePlan, OutputPlan } from "../job/agent-link.ts";
import { filePlan } from "../job/plan.ts";
import { isSister } from "../job/sister.ts";
import type { RunKey } from "../job/starter-link.ts";
import type { MomAction, MomState, OutputFiles, Run, SavedRun, SavedTasks } from "./state.ts";

export type Context = { readonly state: MomState; readonly now_ms: number; readonly actions: MomAction[] };

/** Job ids that may be used in a file name. */
export const SAFE_ID = /^[\w.[\]-]+$/;

export const keyOf = (run: Run): RunKey => ({ job: run.job.id, run_count: run.job.run_count });

export const log = (cx: Context, event: number, run: string, text: string): void =>
  void cx.actions.push({ kind: "log", event, object: run, text });

/** Calls `work` with a run of the job, if it is here. run_count null: whichever run is here. */
export function withRun(cx: Context, job: string, run_count: number | null, work: (run: Run) => void): void {
  const run = cx.state.runs.get(job);
  if (run !== undefined && (run_count === null || run.job.run_count === run_count)) work(run);
}

function recordOf(run: Run): SavedRun {
  return {
    version: 1,
    boot: run.boot,
    job: run.job,
    owner: run.owner,
    plan: run.plan,
    cpus: run.cpus,
    suspended_ms: run.phase.name === "running" ? run.phase.suspended_ms : null,
    suspended_total_ms: run.suspended_total_ms,
    ending: run.ending,
    used_by_hooks: run.used_by_hooks,
    breach: run.breach,
    ...(run.idled ? { idled: true as const } : {}),
    ...(run.checkpointing.asked === "checkpoint_abort" ? { leaving: true as const } : {}),
    ...(run.restart ? { restart: true as const } : {}),
    ...(run.next_task === FIRST_TASK && run.tasks_cput_s === 0 ? {} : { tasks: tasksSoFar(run) }),
  };
}

/** Number of the first further task: the top process is task 1. */
export const FIRST_TASK = 2;

export const tasksSoFar = ({ next_task, tasks_cput_s }: Run): SavedTasks => ({ next_task, cput_s: tasks_cput_s });

export function save(cx: Context, run: Run): void {
  cx.actions.push({ kind: "save", record: recordOf(run) });
}

/** Applies attributes that qalter changed. Output goes to its new destination at the end; the file into which the job writes now does not change. */
export function modify(cx: Context, run: Run, attrs: MomJob["attrs"]): void {
  const { exec_host = run.job.exec_host, exec_vnode = run.job.exec_vnode } = attrs as { exec_host?: string; exec_vnode?: string };
  run.job = { ...run.job, exec_host, exec_vnode, attrs: { ...run.job.attrs, ...attrs } };
  if (isSister(run.job, cx.state.config.host)) return save(cx, run);
  const fresh = filePlan(run.job, run.owner, cx.state.config.facts);
  const stdout = retarget(run.plan.stdout, fresh.stdout);
  const stderr = retarget(run.plan.stderr, fresh.stderr);
  run.plan = { ...run.plan, stdout, stderr };
  save(cx, run);
}

function retarget(now: OutputPlan, wanted: OutputPlan): OutputPlan {
  if (now.how !== "spool") return { ...now, remove: wanted.remove };
  if (wanted.how === "joined") return now;
  return { ...now, remove: wanted.remove, target: wanted.how === "spool" ? wanted.target : { host: null, path: wanted.path } };
}

/**
 * Returns the paths of the files that a run writes, as far as the plan knows them. (Whether the final path of a -k output is a directory is known only to the
 * file agent.)
 */
export function filesOf(plan: FilePlan): OutputFiles {
  const either = plan.stdout.how === "joined" ? plan.stderr.path : plan.stdout.path;
  return {
    stdout: plan.stdout.how === "joined" ? either : plan.stdout.path,
    stderr: plan.stderr.how === "joined" ? either : plan.stderr.path,
  };
}

const LAST_MAX = 10_000;

export function remember(last: Map<string, number>, job: string, run_count: number): void {
  const known = Math.max(last.get(job) ?? 0, run_count);
  last.delete(job);
  last.set(job, known);
  if (last.size <= LAST_MAX) return;
  for (const oldest of last.keys()) {
    last.delete(oldest);
    return;
  }
}
