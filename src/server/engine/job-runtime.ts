// The server's knowledge about jobs beside their attributes: the requests and schedulers that wait for a job. It is lost when the server ends.

import type { PreemptMethod, Verdict } from "#protocol/sched-link.ts";
import type { Deciding } from "./sched-runtime.ts";

/** A job that a scheduler wants to preempt (jobs/preemption.ts). */
export type Preemption = {
  readonly job: string;
  readonly sched: string;
  /** the method that is tried */
  method: PreemptMethod;
  /** the methods to try if it fails */
  rest: string;
  /** null: not settled */
  verdict: Verdict | null;
};

/**
 * A start that a decision of a scheduler waits for, or the client that requested it by hand (jobs/start-wait.ts). until_ms: the latest time; null: none.
 * A decision's verdict is void if its frame has left the scheduler's list meanwhile.
 */
export type StartWait = { readonly until_ms: number | null } & (
  | { readonly kind: "decision"; readonly sched: string; readonly frame: Deciding; readonly at: number }
  | { readonly kind: "request"; readonly token: number }
);

/** Everything that waits for one start: a job that was requested by hand may be started by a cycle that was under way. */
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
