// Handles running jobs when the server ends (core/shutdown.ts). If the site has a checkpoint script, the mom saves each job
// with it. Otherwise a job is requeued if it is rerunnable, or else killed or waited for.

import { type Kernel, ownTransaction } from "../engine/kernel.ts";
import { momOfJob } from "../engine/mom-runtime.ts";
import { isIn, isRunning, isSuspended, isWithMom } from "../state/job-phase.ts";
import type { Job } from "../state/state.ts";
import { beginRerun } from "./end.ts";

/** Begins to end a run: asks the mom to save the job by a checkpoint. If the mom cannot be asked, endUnsaved follows at once. */
export function endRun(kernel: Kernel, job: Job): void {
  if (isEnding(job)) return;
  const { Checkpoint } = job.attrs;
  if (isIn(job, "running") && Checkpoint !== "n" && momOfJob(kernel, job.id) !== undefined)
    ownTransaction(kernel).act({ kind: "signal-job", job: job.id, signal: "checkpoint", token: 0 });
  else endUnsaved(kernel, job);
}

const isEnding = (job: Job): boolean => job.own.termination !== undefined || isIn(job, "rerunning");

/** Called when a mom has not saved a job while the server ends: the job is requeued, killed or waited for. */
export function endUnsaved(kernel: Kernel, job: Job): void {
  if (kernel.ending.how === null || kernel.ending.how.manner === "quick" || !isWithMom(job) || isEnding(job)) return;
  const tx = ownTransaction(kernel);
  const { id } = job;
  if (job.attrs.Rerunable && (isRunning(job) || isSuspended(job))) {
    beginRerun(tx, job);
    tx.act({ kind: "terminate-job", job: id, why: "rerun" });
  } else if (kernel.ending.how.manner === "immediate") {
    tx.apply({ kind: "job-changed", id, set: {}, unset: [], own: { termination: { by: `${tx.who.user}@${tx.who.host}`, history: true } } });
    tx.act({ kind: "terminate-job", job: id, why: "delete" });
  }
}
