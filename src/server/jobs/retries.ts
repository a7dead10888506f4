// Failed jobs: why a job failed, whether it runs again, after which pause, and jobs that are buried.
//
//   R --fails, tries left--> W 30 --pause over--> Q        R --fails, no try left--> H 20 (buried), or F if it has no retries at all
//   R --runner confirmed dead, Q --no runner can take it--> H 20 (buried) --qrls--> Q, with all retries again
//
// T1. `retries` of the job (qsub -W retries=N) decides. If the job has none, `retries` of the backend of its runner decides. If neither is set, a job that fails ends,
//     and a job whose runner is gone is requeued, both as in PBS.
// T2. Only runs that failed by themselves use up retries. A run that was preempted, rerun by a person or ended with its server does not count.
// T3. A job whose program does not exist or cannot be executed, a job that is not rerunnable and a job that was deleted never run again by themselves.
// T4. A buried job has a system hold and the reason in its comment. Its owner may release it (requests/job/release-job.ts).
// T5. A subjob is never buried because its retries are used up: it ends. If its runner is confirmed dead, its array is held, as PBS does after too many failed starts.
// T6. A job that no backend took is released by itself as soon as a backend takes a runner of its bucket (runners/controller.ts C4).

import { JOB_EXEC } from "#model/exit-status.ts";
import { prng } from "#support/prng.ts";
import type { Transaction } from "../engine/transaction.ts";
import type { Attrs, Job, ServerState } from "../state/state.ts";
import { settleJob } from "./life.ts";

/** The pause before the first retry, unless the backend's retry_wait says otherwise; it doubles with each failed run, up to RETRY_S_MAX. */
const RETRY_S_FIRST = 30;
const RETRY_S_MAX = 1800;
/** Shells and exec report these exit statuses if a program cannot be executed, does not exist, or exit was called with a bad argument. */
const HOPELESS: ReadonlySet<number> = new Set([126, 127, 128]);

/** What follows a failed run. again: the job waits until a time (epoch seconds) and runs again; buried: it is held. failures: failed runs so far, this one included. */
export type AfterFailure =
  | { readonly kind: "again"; readonly until_s: number; readonly failures: number; readonly retries: number }
  | { readonly kind: "buried"; readonly failures: number };

/**
 * Returns the seconds between a failed run and the next one: `first_s`, doubled for each earlier failure, at most RETRY_S_MAX; and up to `first_s` more, so that jobs that
 * failed together do not run again together. The same job and failure always get the same pause. failures: at least 1.
 */
export function pauseAfter(failures: number, first_s: number, job: string): number {
  const backoff_s = Math.min(RETRY_S_MAX, first_s * 2 ** Math.min(failures - 1, 30));
  return backoff_s + Math.floor(prng(`${job} ${failures}`).next() * Math.min(first_s, RETRY_S_MAX));
}

/** How often a job that fails runs again (T1); null: nobody has said. */
function retriesOf(state: ServerState, { attrs }: Job): number | null {
  if (typeof attrs["retries"] === "number") return attrs["retries"];
  const backend = backendOf(state, attrs);
  const retries = backend?.["retries"];
  return typeof retries === "number" && retries > 0 ? retries : null;
}

function backendOf({ backends }: ServerState, attrs: Attrs): Attrs | undefined {
  return typeof attrs["backend"] === "string" ? backends.get(attrs["backend"])?.attrs : undefined;
}

/**
 * Returns what follows a run that failed by itself; null: the job ends (after an exit), or is requeued as in PBS (after the loss of its runner). exit_status: that of
 * the job; null: the runner of the job is gone.
 */
export function afterFailure(state: ServerState, job: Job, exit_status: number | null, now_s: number): AfterFailure | null {
  const retries = retriesOf(state, job);
  const { attrs } = job;
  if (retries === null || !attrs.Rerunable || (exit_status !== null && HOPELESS.has(exit_status))) return null;
  const failures = (job.own.failures ?? 0) + 1;
  if (failures <= retries) {
    const wait = backendOf(state, attrs)?.["retry_wait"];
    const pause_s = pauseAfter(failures, typeof wait === "number" ? wait : RETRY_S_FIRST, job.id);
    return { kind: "again", until_s: now_s + pause_s, failures, retries };
  }
  if (attrs["array_id"] !== undefined || (retries === 0 && exit_status !== null)) return null;
  return { kind: "buried", failures };
}

/** Whether a job has a hold because it failed too often, its runner is dead, or no runner can take it (T4). */
export const isBuried = ({ own, attrs }: Job): boolean => own.buried === true && attrs.Hold_Types.includes("s");

/** Whether a job is held only because no backend took a runner for it (T6). */
export const isRefused = (job: Job): boolean => job.attrs.Hold_Types === "s" && job.attrs["fail_reason"] === IMPOSSIBLE && isBuried(job);

/** fail_reason of a job that no runner can take. */
export const IMPOSSIBLE = "impossible";

/** Releases the holds of a buried job except Hold_Types. The job has all its retries again. */
export function releaseBuried(tx: Transaction, job: Job, Hold_Types: string): void {
  tx.apply({ kind: "job-changed", id: job.id, set: {}, unset: [], own: { buried: null, failures: null } });
  const unset = ["comment", "fail_reason"].filter((name) => job.attrs[name] !== undefined);
  settleJob(tx, job, { Hold_Types }, unset);
}

/** Whether fail_reason is kept of a job: it runs on a runner, or has asked for retries. */
const hasFailReason = (attrs: Attrs): boolean => attrs["runner"] !== undefined || attrs["retries"] !== undefined;

/** Why a job failed, in one word; null: it did not fail, or its reason is not kept. */
export function failReason(attrs: Attrs, exit_status: number): string | null {
  if (exit_status === 0 || !hasFailReason(attrs)) return null;
  if (exit_status > 0)
    return exit_status === 126 ? "not_executable" : exit_status === 127 ? "not_found" : exit_status > 128 ? "signal" : "exit";
  return FAIL_REASONS[exit_status] ?? "not_run";
}
const FAIL_REASONS: { readonly [exit_status: number]: string } = {
  [JOB_EXEC.KILL_MEM]: "mem",
  [JOB_EXEC.KILL_VMEM]: "mem",
  [JOB_EXEC.KILL_WALLTIME]: "time",
  [JOB_EXEC.KILL_CPUT]: "time",
  [JOB_EXEC.KILL_NCPUS_BURST]: "cpu",
  [JOB_EXEC.KILL_NCPUS_SUM]: "cpu",
  [JOB_EXEC.RERUN]: "lost",
  [JOB_EXEC.RERUN_MS_FAIL]: "lost",
  [JOB_EXEC.INITABT]: "lost",
};
