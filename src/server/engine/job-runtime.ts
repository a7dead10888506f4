// What the server knows about jobs beside their attributes: the requests and schedulers that wait for a job. It is lost when the server ends.

import type { PreemptMethod, Verdict } from "#protocol/sched-link.ts";

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

/** A start that a scheduler waits for, or (token) the client that requested it by hand. until_ms: the latest time; null: none. */
export type StartWait = {
  readonly sched: string | null;
  readonly token?: number;
  readonly until_ms: number | null;
  readonly then: (verdict: Verdict) => void;
};

/** Everything that waits for one start: a job that was requested by hand may be started by a cycle that was under way. */
export type StartWaits = { waits: readonly StartWait[]; exit_status: number | null };

export type JobRuntime = {
  /** job id -> tokens of wait-job requests */
  readonly waiters: Map<string, number[]>;
  /** job id -> tokens of rerun-job requests not yet answered */
  readonly reruns: Map<string, number[]>;
  /** preemptions under way, by job */
  readonly preemptions: Map<string, Preemption>;
  /** starts that something waits for, by job */
  readonly starting: Map<string, StartWaits>;
};

export const noJobs = (): JobRuntime => ({ waiters: new Map(), reruns: new Map(), preemptions: new Map(), starting: new Map() });
