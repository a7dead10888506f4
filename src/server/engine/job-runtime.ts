// What the server knows about jobs beside their attributes: which requests and schedulers wait for a job. It is lost when
// the server ends.

import type { PreemptMethod, Verdict } from "#protocol/sched-link.ts";
import type { Deciding } from "./sched-runtime.ts";

/** A job that a scheduler wants to preempt (jobs/preemption.ts). */
export type Preemption = {
  readonly job: string;
  readonly sched: string;
  /** the method that is tried */
  method: PreemptMethod;
  /** the methods to try if this one fails */
  rest: string;
  /** the result of the preemption; null: it is still under way */
  verdict: Verdict | null;
};

/**
 * A decision of a scheduler, or a request of a client (qrun), that waits for the start of a job (jobs/start-wait.ts).
 * until_ms: the latest time at which the wait ends; null: there is none. If the link of the scheduler breaks during the
 * wait, the verdict has no effect.
 */
export type StartWait = { readonly until_ms: number | null } & (
  | { readonly kind: "decision"; readonly sched: string; readonly frame: Deciding; readonly at: number }
  | { readonly kind: "request"; readonly token: number }
);

/**
 * Everything that waits for the start of one job. Several can wait: while a client waits for its qrun, a cycle that was
 * already under way may start the same job. exit_status: the exit status of the run, if the run has ended.
 */
export type StartWaits = { waits: readonly StartWait[]; exit_status: number | null };

export type JobRuntime = {
  /** job id -> tokens of wait-job requests */
  readonly waiters: Map<string, number[]>;
  /** job id -> tokens of rerun-job requests not yet answered */
  readonly reruns: Map<string, number[]>;
  /** preemptions under way, by job */
  readonly preemptions: Map<string, Preemption>;
  /** starts that requests or decisions wait for, by job */
  readonly starting: Map<string, StartWaits>;
};

export const noJobs = (): JobRuntime => ({ waiters: new Map(), reruns: new Map(), preemptions: new Map(), starting: new Map() });
