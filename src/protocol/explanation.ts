// Why a job waits, as data: what a scheduler answers when it is asked to explain one (`partita explain`). Sentences stand beside the data they were made from.

import type { Why } from "./sched-link.ts";

/** stage: of the chain's checks, or `placement`, or `scheduler` where it schedules nothing at all. */
export type ExplainedWhy = { readonly stage: string; readonly why: Why; readonly text: string };

/** Something that has what the job would need: until when. id null: a job that the asker may not see. */
export type Obstacle = {
  readonly kind: "job" | "top job" | "reservation";
  readonly id: string | null;
  readonly from_s: number;
  readonly to_s: number;
  /** vnodes it has of those that the job may use */
  readonly vnodes: number;
  /** of a job: as Explanation.learned_s */
  readonly learned_s?: number;
};

/** Hosts that are alike: equal vnodes in equal states, with the same booked on them, or the same answer to this job. */
export type NodeClass = {
  readonly hosts: number;
  /** names of the first of them */
  readonly examples: readonly string[];
  /** what each has, and what of it is free, of the resources that the job asks for: `ncpus=16:mem=64gb` */
  readonly has: string;
  readonly free: string;
  /** the word that keeps jobs away: offline, down, ...; null: none */
  readonly state: string | null;
  /** for each requested chunk, in the order of the request: how many copies fit on one of these hosts now, and if nothing ran there */
  readonly copies_now: readonly number[];
  readonly copies_empty: readonly number[];
  /** why not one chunk fits; null: some do */
  readonly why: ExplainedWhy | null;
};

export type Estimate = { readonly at_s: number; readonly start_s: number | null };

export type Explanation = {
  readonly job: string;
  /** "": its partition has no scheduler */
  readonly sched: string;
  readonly at_s: number;
  readonly state: string;
  readonly queue: string;
  readonly select: string;
  readonly place: string;
  /** seconds it is expected to run; null: nobody said */
  readonly walltime_s: number | null;
  /** how long jobs of its user, project and name took that ended well, said by the server; absent: none did. For information: nothing is reckoned with it */
  readonly learned_s?: number;
  /**
   * starts: nothing stands in its way, a cycle starts it. preempts: a cycle starts it where others make room.
   * waits: it can start later. never: not with what there is. held: it is not offered to the
   * scheduler (hold, waiting for its time, dependency). runs: it has vnodes.
   */
  readonly verdict: "starts" | "preempts" | "waits" | "never" | "held" | "runs";
  /** what a cycle says of it now, and what it was told last */
  readonly why: ExplainedWhy | null;
  readonly comment: string | null;
  /** what an administrator can do, where no scheduler looks at the job; said by the server */
  readonly remedy?: string;
  /** everything that stands in its way now, in the order of checks; the first is `why`, unless other jobs hold it back */
  readonly reasons: readonly ExplainedWhy[];
  /** what has the vnodes and resources it would need now */
  readonly obstacles: readonly Obstacle[];
  /** running jobs that a cycle would preempt for it; null: one that the asker may not see */
  readonly preempts: readonly (string | null)[];
  /** since when it has been preempted; null: it has not */
  readonly preempted_s: number | null;
  /** verdict held: what keeps it from the scheduler, said by the server */
  readonly kept?: Kept;
  /** it is in the queue of this reservation: its present or next time */
  readonly resv?: { readonly id: string; readonly from_s: number; readonly to_s: number };
  /** how many waiting jobs stand before it; null: too many to count, or its queue is not looked at */
  readonly jobs_before: number | null;
  /** of a subjob: how many of its array stand before it */
  readonly subjobs_before?: number;
  readonly top_job: boolean;
  readonly chunks: readonly string[];
  readonly nodes: readonly NodeClass[];
  /** classes that are not listed */
  readonly nodes_left_out: number;
  /** the earliest start as seen now, if jobs end when they are expected to and none that stands before it takes the place; null: not waiting */
  readonly earliest: {
    /** null: none is known */
    readonly start_s: number | null;
    readonly exec_vnode: string | null;
    /** what ends until then where it would run */
    readonly after: readonly Obstacle[];
    /** why there is none */
    readonly why: ExplainedWhy | null;
    /** not all of the future was looked at */
    readonly late: boolean;
  } | null;
  /** how the estimate moved, oldest first */
  readonly estimates: readonly Estimate[];
  /** of a job that runs: since when, until when it is expected to and must, where; null: nobody said */
  readonly running: {
    readonly since_s: number | null;
    readonly end_s: number | null;
    readonly last_s?: number | null;
    readonly exec_vnode: string;
  } | null;
};

/** What keeps a job from the scheduler. */
export type Kept = {
  /** letters of Hold_Types; empty: none is set */
  readonly holds: string;
  /** its Execution_Time, where that lies ahead */
  readonly until_s: number | null;
  /** jobs that must start or end first. state: of a job of the same owner, none: it is not there any more */
  readonly after: readonly { readonly type: string; readonly id: string; readonly state?: string }[];
  /** how many others must name it first (depend=on) */
  readonly on: number;
};
