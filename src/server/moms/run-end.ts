// The end of a run, when it has ended on all its hosts: what the server does then, and the sum of the resources that the run
// has used.
//
// As long as the run has not ended on all sisters, what the server must do afterwards is kept as data in the run's crew
// (engine/mom-runtime.ts AfterRun).

import { JOB_EXEC } from "#model/exit-status.ts";
import { sizeKb } from "#model/values/size.ts";
import type { Usage } from "#protocol/mom-link.ts";
import { unreachable } from "#support/assert.ts";
import { LOG_EVENT } from "#support/log-event.ts";
import { type Kernel, ownTransaction } from "../engine/kernel.ts";
import type { AfterRun, Crew } from "../engine/mom-runtime.ts";
import { abort, bury, finish, jobObit, requeue, requeueOrAbort, retry } from "../jobs/end.ts";
import { logJob } from "../jobs/life.ts";
import { failReason } from "../jobs/retries.ts";
import { hostOfJob } from "../state/job-hosts.ts";
import type { Job } from "../state/state.ts";

/** Does what must follow the end of a run, according to `over`. crew: null for a job on one host. */
export function afterRun(kernel: Kernel, job: Job, crew: Crew | null, over: AfterRun): void {
  switch (over.kind) {
    case "start-taken-back":
      return requeue(ownTransaction(kernel), job);
    case "mother-silent":
      return motherSilent(kernel, job, over.runner);
    case "lost": {
      const { kind: _kind, ...obit } = over;
      return jobObit(ownTransaction(kernel), job, obit);
    }
    case "obit": {
      const { obit } = over;
      const used = crew === null ? obit.used : sumOf(crew, obit.used);
      return jobObit(ownTransaction(kernel), job, { ...obit, used, exit_status: statusOfRun(crew, obit.exit_status) });
    }
    default:
      unreachable(over);
  }
}

function motherSilent(kernel: Kernel, job: Job, runner?: "gone" | "preempted" | "dead"): void {
  const tx = ownTransaction(kernel);
  const fail_reason = failReason(job.attrs, JOB_EXEC.RERUN_MS_FAIL);
  const set = { Exit_status: JOB_EXEC.RERUN_MS_FAIL, ...(fail_reason === null ? {} : { fail_reason }) };
  tx.apply({ kind: "job-changed", id: job.id, set, unset: [] });
  const termination = job.own.termination;
  const deleted = `Job deleted, execution node ${hostOfJob(job)} down`;
  if (termination !== undefined) {
    logJob(tx, LOG_EVENT.JOB, job.id, deleted);
    finish(tx, job, "deleted", ` and terminated by ${termination.by}`, termination.history);
  } else if (!job.attrs.Rerunable) {
    abort(tx, job, deleted);
  } else if (runner === "dead") {
    bury(tx, job, `runner ${hostOfJob(job)} is confirmed dead`);
  } else if (runner !== "gone" || !retry(tx, job, null)) {
    logJob(tx, LOG_EVENT.JOB, job.id, `Job requeued, execution node ${hostOfJob(job)} down`);
    requeueOrAbort(tx, job);
  }
}

/** The exit status of a run. If the run was ended because a sister failed, its exit status says so. */
export const statusOfRun = (crew: Crew | null, exit_status: number): number =>
  crew?.failed === true && exit_status === JOB_EXEC.RERUN ? JOB_EXEC.RERUN_SIS_FAIL : exit_status;

const ADDED = ["cput", "cpupercent"] as const;
const ADDED_SIZES = ["mem", "vmem"] as const;

/** The usage of a whole run. own: what it has used on the host of the mother superior. */
export function sumOf(crew: Crew, own: Usage): Usage {
  const sum: { [resource: string]: string | number } = { ...own };
  for (const { used } of crew.sisters.values()) {
    for (const name of ADDED) if (used[name] !== undefined) sum[name] = Number(sum[name] ?? 0) + Number(used[name]);
    for (const name of ADDED_SIZES) if (used[name] !== undefined) sum[name] = `${kbOf(sum[name]) + kbOf(used[name])}kb`;
  }
  return sum;
}

export const kbOf = (size: string | number | undefined): number => (typeof size === "string" ? (sizeKb(size) ?? 0) : 0);
