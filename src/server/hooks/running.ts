// runjob: a job that is about to be sent for execution. Its hooks may keep it from running, and then also hold it or let it wait (pbs/commands.md 1.2).

import type { AttrChanges, HookChanges } from "#hooks/hook-input.ts";
import type { Reject } from "#model/pbse.ts";
import { LOG_EVENT } from "#support/log-event.ts";
import { commentDate, logJob } from "../job-life.ts";
import type { Kernel } from "../kernel.ts";
import { ownTransaction } from "../kernel.ts";
import { alterByHook } from "../requests/modify-job.ts";
import type { Job } from "../state.ts";
import { queuedSubjob } from "../subjob-start.ts";
import type { Transaction } from "../transaction.ts";
import { runjobInput } from "./alteration.ts";
import { type HookVerdict, hasHooks, runHooks } from "./chain.ts";
import { ON_REJECTION } from "./objects.ts";

/** Whether somebody must be asked before the job is started. */
export const mustAsk = (kernel: Kernel, job: string): boolean =>
  kernel.state.jobs.get(job)?.attrs.job_state !== "S" && (kernel.posting.has(job) || hasHooks(kernel, "runjob"));

/** Waits for the job's postqueuejob hooks, then asks the runjob hooks; then: null, it may run. The job may be gone by then. */
export function askBeforeRun(
  kernel: Kernel,
  tx: Transaction,
  id: string,
  exec_vnode: string,
  then: (refusal: Reject | null) => void,
): void {
  const ask = (): void => {
    const job = jobOf(kernel, id);
    if (job === undefined || !hasHooks(kernel, "runjob")) return then(null);
    runHooks(kernel, "runjob", runjobInput(tx, job, exec_vnode), (verdict) => {
      const live = jobOf(kernel, id);
      then(live === undefined ? null : settleRun(ownTransaction(kernel), live, verdict));
    });
  };
  const posted = kernel.posting.get(id);
  if (posted === undefined) ask();
  else posted.waiting.push(ask);
}

/** The questions of a qrun -H about all its jobs, before the first of them runs. */
export function askRunjobHooks(tx: Transaction, jobs: readonly Job[], vnodesFor: (job: Job) => string): (HookVerdict | null)[] {
  return tx.hooks(
    jobs.flatMap((job) =>
      job.attrs.job_state === "S"
        ? []
        : [{ key: `runjob ${job.id}`, event: "runjob" as const, input: () => runjobInput(tx, job, vnodesFor(job)) }],
    ),
  );
}

/** What they say of one of them. null: the job may run. */
export function afterRunjobHooks(tx: Transaction, job: Job, exec_vnode: string): Reject | null {
  const [verdict] = askRunjobHooks(tx, [job], () => exec_vnode);
  return verdict === null || verdict === undefined ? null : settleRun(tx, job, verdict);
}

/** What the hooks say becomes true of the job. null: it may run. */
export function settleRun(tx: Transaction, job: Job, verdict: HookVerdict): Reject | null {
  // A subjob that has not started is no job yet: what concerns all of them is the array's.
  const wanted = tx.state.jobs.has(job.id) ? (verdict.changes.job ?? {}) : {};
  if (verdict.kind === "accept") {
    alterByHook(
      tx,
      job,
      only(wanted, (name) => !ON_REJECTION.has(name)),
      verdict.by,
    );
    return null;
  }
  const hold = wanted["Hold_Types"];
  alterByHook(
    tx,
    job,
    only(wanted, (name) => ON_REJECTION.has(name)),
    verdict.by,
  );
  if (typeof hold === "string" && hold !== "n" && job.attrs.job_state === "H") {
    const comment = `Job held by '${verdict.by}' hook on ${commentDate(tx)}`;
    tx.apply({ kind: "job-changed", id: job.id, set: { comment }, unset: [] });
    logJob(tx, LOG_EVENT.JOB, job.id, comment);
  }
  return verdict.reject;
}

const jobOf = (kernel: Kernel, id: string): Job | undefined => kernel.state.jobs.get(id) ?? queuedSubjob(kernel.state, id);

function only(changes: NonNullable<HookChanges["job"]>, wanted: (name: string) => boolean): AttrChanges {
  return Object.fromEntries(Object.entries(changes).filter(([name]) => wanted(name)));
}
