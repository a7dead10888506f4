// The reason why a job waits, as data: the answer of a scheduler that is asked to explain a job (`partita explain`). Each
// sentence is given together with the data from which it was made.

import type { Why } from "./sched-link.ts";

/** A reason. stage: a check of the chain, or `placement`, or `scheduler` if the scheduler schedules nothing at all. */
export type ExplainedWhy = { readonly stage: string; readonly why: Why; readonly text: string };

/**
 * A job or reservation that holds what the job would need, and the time until which it holds it. id null: a job that the caller
 * may not see.
 */
export type Obstacle = {
  readonly kind: "job" | "top job" | "reservation";
  readonly id: string | null;
  readonly from_s: number;
  readonly to_s: number;
  /** the number of vnodes that this obstacle holds and that the job could use */
  readonly vnodes: number;
  /** for a job: see Explanation.learned_s */
  readonly learned_s?: number;
};

/** A group of hosts for which the answer to this job is the same, for example hosts whose vnodes have equal states and equal amounts. */
export type NodeClass = {
  readonly hosts: number;
  /** names of the first hosts */
  readonly examples: readonly string[];
  /** amounts of the resources that the job asks for, such as `ncpus=16:mem=64gb`: what each host has, and what is free */
  readonly has: string;
  readonly free: string;
  /** the vnode state that excludes jobs: offline, down, ...; null: none */
  readonly state: string | null;
  /**
   * for each requested chunk, in the order of the request: the number of copies that fit on one of these hosts now, and the
   * number if nothing ran there
   */
  readonly copies_now: readonly number[];
  readonly copies_empty: readonly number[];
  /** the reason why no chunk fits; null: some chunk fits */
  readonly why: ExplainedWhy | null;
};

export type Estimate = { readonly at_s: number; readonly start_s: number | null };

export type Explanation = {
  readonly job: string;
  /** "": the partition of the job has no scheduler */
  readonly sched: string;
  readonly at_s: number;
  readonly state: string;
  readonly queue: string;
  readonly select: string;
  readonly place: string;
  /** expected run time in seconds; null: unknown */
  readonly walltime_s: number | null;
  /**
   * run time, reported by the server, of successful jobs with the same user, project and name; absent: there were none. For
   * information only: no calculation uses it
   */
  readonly learned_s?: number;
  /**
   * starts: nothing prevents the start, and a cycle starts the job. preempts: a cycle starts it after other jobs are preempted.
   * waits: it can start later. never: it cannot start with the resources that exist now. held: the server does not offer it to
   * the scheduler (hold, start time, dependency). runs: it has vnodes.
   */
  readonly verdict: "starts" | "preempts" | "waits" | "never" | "held" | "runs";
  /** the reason that a cycle would find now, and the latest comment of the job */
  readonly why: ExplainedWhy | null;
  readonly comment: string | null;
  /** advice for the administrator if no scheduler serves the job; set by the server */
  readonly remedy?: string;
  /** all reasons that hold now, in the order of the checks; the first equals `why`, unless other jobs hold the job back */
  readonly reasons: readonly ExplainedWhy[];
  /** jobs and reservations that hold the vnodes and resources that the job would need now */
  readonly obstacles: readonly Obstacle[];
  /** running jobs that a cycle would preempt for the job; null: a job that the caller may not see */
  readonly preempts: readonly (string | null)[];
  /** time at which the job was preempted; null: it is not preempted */
  readonly preempted_s: number | null;
  /** verdict held: the reasons why the server does not offer the job to the scheduler; set by the server */
  readonly kept?: Kept;
  /** the reservation whose queue holds the job, with its present or next occurrence */
  readonly resv?: { readonly id: string; readonly from_s: number; readonly to_s: number };
  /** number of waiting jobs that precede the job; null: too many to count, or no scheduler serves its queue */
  readonly jobs_before: number | null;
  /** for a subjob: number of subjobs of its array that precede it */
  readonly subjobs_before?: number;
  readonly top_job: boolean;
  readonly chunks: readonly string[];
  readonly nodes: readonly NodeClass[];
  /** number of node classes that are not in the list */
  readonly nodes_left_out: number;
  /** the earliest start as expected now, if jobs end at their expected time and no preceding job takes the vnodes; null: the job does not wait */
  readonly earliest: {
    /** null: no start is known */
    readonly start_s: number | null;
    readonly exec_vnode: string | null;
    /** the jobs and reservations at the planned vnodes that must end first */
    readonly after: readonly Obstacle[];
    /** the reason why no start is known */
    readonly why: ExplainedWhy | null;
    /** true: the search ended before it had covered all planned events */
    readonly late: boolean;
  } | null;
  /** former estimates, oldest first */
  readonly estimates: readonly Estimate[];
  /** for a running job: its start, its expected and latest end, and its vnodes; null: unknown */
  readonly running: {
    readonly since_s: number | null;
    readonly end_s: number | null;
    readonly last_s?: number | null;
    readonly exec_vnode: string;
  } | null;
};

/** The reasons why the server does not offer a job to the scheduler. */
export type Kept = {
  /** letters of Hold_Types; empty: no hold */
  readonly holds: string;
  /** the job's Execution_Time if it lies in the future */
  readonly until_s: number | null;
  /** jobs that must start or end first. state: only for a job of the same owner; absent also if that job no longer exists */
  readonly after: readonly { readonly type: string; readonly id: string; readonly state?: string }[];
  /** depend=on: how many further jobs must still name this job in a dependency before... */
  readonly on: number;
};
