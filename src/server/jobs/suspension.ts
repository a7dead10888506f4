// Suspended jobs have state S and substate 43. They have substate 45 if the scheduler (or qrun) may resume them: the jobs
// that the scheduler preempted, and those that were marked by qsig -s resume (docs/reference/execution.md 5,
// docs/reference/commands.md 3 qsig, docs/reference/scheduler.md 8).
//
//   R 42 --suspend--> S 43 --resume--> S 45 --scheduler--> R 42          R 42 --admin-suspend--> S 43 --admin-resume--> R 42
//   R 42 --preempted--> S 45
//
// I1. A job counts as suspended when the mom has reported it; until then it keeps its resources. A suspended job stays on
//     its vnodes, but releases its resources there: all of them, or those that restrict_res_to_release_on_suspend names.
// I2. Vnodes of a job suspended by an administrator are in maintenance until all such jobs there have resumed or ended.
// I3. A job that is to resume gets its resources back at once (`resuming`, state R); if the mom refuses, they are released
//     again. The mom's answer, however late, or its next hello says whether the job has resumed. A resource is therefore
//     never given twice.
// I5. `paused` is the total time for which the run was suspended, and `paused_since` is the time at which the present
//     suspension began. The end of the run's walltime moves by the total time.
// I4. A job that its scheduler preempts has `preempting`, the time of that decision, until the mom has reported the outcome.
//     Then that time becomes `ptime`.

import { listOf } from "#model/attribute-reader.ts";
import { execVnodeText, onlyResources, parseExecVnode } from "#model/request/exec-vnode.ts";
import { inOrder } from "#model/values/node-state.ts";
import { SCHED_COMMAND } from "#protocol/sched-link.ts";
import { LOG_EVENT } from "#support/log-event.ts";
import type { Transaction } from "../engine/transaction.ts";
import { type OwnChange, without } from "../state/job-own.ts";
import { isIn, isSuspended, RUN_PHASE } from "../state/job-phase.ts";
import { schedOfQueue } from "../state/partitions.ts";
import type { Attrs, Job, ResourceRecord, Vnode } from "../state/state.ts";
import { usageItems } from "./accounting-record.ts";
import { commentDate, logJob } from "./life.ts";

/** The time at which a scheduler decided to preempt the job, if the preemption is under way. */
export const preemptingSince = (job: Job): number | undefined => job.own.preempting;
/** Whether the mom has been told to resume the job and has not answered yet. */
export const isResuming = (job: Job): boolean => job.own.resuming === true;
export const isSuspendedByAdmin = (job: Job): boolean => job.own.suspended_by_admin === true;

/** Whether the mom has suspended the job because someone uses its host. The job is shown in state U and otherwise counts as running. */
export const isIdled = (job: Pick<Job, "own">): boolean => job.own.idled === true;

/** Called when the mom has suspended the job: releases resources (I1) and writes record z. */
export function jobSuspended(tx: Transaction, job: Job, by_admin: boolean): void {
  if (!isIn(job, "starting", "running")) return;
  if (isResuming(job)) return resumeRefused(tx, job);
  const released = releasedResources(tx, job);
  const since = preemptingSince(job);
  logJob(tx, LOG_EVENT.JOB, job.id, "suspended");
  const told = released === null ? [] : [`resources_released=${released.resources_released}`];
  tx.account({ type: "z", id: job.id, text: [...usageItems(tx.state.resources, job.attrs), ...told].join(" ") });
  tx.apply({
    kind: "job-changed",
    id: job.id,
    unset: [],
    own: { ...without("preempting", "idled"), paused_since: tx.now_s, ...(by_admin ? { suspended_by_admin: true } : {}) },
    set: {
      ...(since === undefined ? RUN_PHASE.suspended : RUN_PHASE.resumable),
      ...released,
      ...(since === undefined ? {} : { ptime: since }),
    },
  });
  if (by_admin) for (const vnode of vnodesOf(tx, job)) setMaintenance(tx, vnode, [...maintenanceJobs(vnode), job.id]);
  wakeSched(tx, job);
}

/** Triggers the job's scheduler, because resources have become free. */
function wakeSched(tx: Transaction, job: Job): void {
  const queue = tx.state.queues.get(job.attrs.queue);
  const sched = queue === undefined ? undefined : schedOfQueue(tx.state, queue);
  if (sched !== undefined) tx.act({ kind: "trigger-sched", sched: sched.name, command: SCHED_COMMAND.TERM });
}

/** The resources that a suspended job releases, if restrict_res_to_release_on_suspend names some; null: the job releases all. */
function releasedResources(
  tx: Transaction,
  job: Job,
): { readonly resources_released: string; readonly resource_released_list: ResourceRecord } | null {
  const names = tx.state.server["restrict_res_to_release_on_suspend"];
  if (!Array.isArray(names) || names.length === 0) return null;
  const kept = onlyResources(parseExecVnode(job.attrs.exec_vnode ?? ""), (name) => names.includes(name));
  const list = Object.entries(job.attrs.Resource_List).filter(([name]) => names.includes(name));
  return { resources_released: execVnodeText(kept), resource_released_list: Object.fromEntries(list) };
}

/** qsig -s resume: allows the scheduler to resume the job. */
export function markForResume(tx: Transaction, job: Job): void {
  tx.apply({ kind: "job-changed", id: job.id, set: { ...RUN_PHASE.resumable }, unset: [] });
  const queue = tx.state.queues.get(job.attrs.queue);
  const sched = queue === undefined ? undefined : schedOfQueue(tx.state, queue);
  if (sched !== undefined) tx.act({ kind: "trigger-sched", sched: sched.name, command: SCHED_COMMAND.NEW });
}

/** Gives a suspended job its resources back and tells the mom to resume it (I3). */
export function beginResume(tx: Transaction, job: Job): void {
  const unset = ["estimated", "topjob"].filter((name) => job.attrs[name] !== undefined);
  const own: OwnChange = { resuming: true, paused_since: null, ...pausedUntil(tx, job) };
  tx.apply({ kind: "job-changed", id: job.id, set: { ...RUN_PHASE.running }, unset, own });
  tx.act({ kind: "signal-job", job: job.id, signal: "resume", token: 0 });
}

/** Called when the mom has resumed the job: writes record r. */
export function jobResumed(tx: Transaction, job: Job): void {
  if (!isSuspended(job) && !isResuming(job)) return;
  logJob(tx, LOG_EVENT.JOB, job.id, "resumed");
  tx.account({ type: "r", id: job.id, text: "" });
  leaveMaintenance(tx, job);
  tx.apply({
    kind: "job-changed",
    id: job.id,
    set: {
      ...RUN_PHASE.running,
      comment: `Job run at ${commentDate(tx)} on ${job.attrs.exec_vnode}`,
    },
    unset: OF_SUSPENSION.filter((name) => job.attrs[name] !== undefined),
    own: { ...without("paused_since", "suspended_by_admin", "resuming"), ...pausedUntil(tx, job) },
  });
}

/** Called when the mom has not resumed the job: the job is suspended again and waits for the scheduler. */
export function resumeRefused(tx: Transaction, job: Job): void {
  if (!isResuming(job)) return;
  tx.apply({
    kind: "job-changed",
    id: job.id,
    set: { ...RUN_PHASE.resumable },
    unset: [],
    own: { resuming: null, paused_since: tx.now_s },
  });
}

/** Adds the time of the suspension that ends now to the total (I5). */
function pausedUntil(tx: Transaction, { own: { paused = 0, paused_since } }: Job): OwnChange {
  return paused_since === undefined ? {} : { paused: paused + Math.max(0, tx.now_s - paused_since) };
}

/** Attributes of a suspended job that a running job does not have. */
const OF_SUSPENSION = ["ptime", "resources_released", "resource_released_list"] as const;

/** Called when a job suspended by an administrator resumes or ends: the job no longer keeps its vnodes in maintenance. */
export function leaveMaintenance(tx: Transaction, job: Job): void {
  if (!isSuspendedByAdmin(job)) return;
  for (const vnode of vnodesOf(tx, job))
    setMaintenance(
      tx,
      vnode,
      maintenanceJobs(vnode).filter((id) => id !== job.id),
    );
}

function vnodesOf(tx: Transaction, job: Job): Vnode[] {
  return [...(tx.state.placements.get(job.id)?.vnodes.keys() ?? [])].flatMap((name) => tx.state.vnodes.get(name) ?? []);
}

const maintenanceJobs = (vnode: Vnode): readonly string[] => listOf(vnode.attrs, "maintenance_jobs");

function setMaintenance(tx: Transaction, vnode: Vnode, jobs: readonly string[]): void {
  const states = listOf(vnode.attrs, "state").filter((word) => word !== "maintenance");
  const set: Attrs = {
    state: jobs.length === 0 ? states : inOrder([...states, "maintenance"]),
    ...(jobs.length === 0 ? {} : { maintenance_jobs: jobs }),
  };
  tx.apply({ kind: "changed", object: "node", name: vnode.name, set, unset: jobs.length === 0 ? ["maintenance_jobs"] : [] });
}
