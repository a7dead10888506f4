// Queued jobs in classes, lines, tracks and strands (universe.ts U3, U4), and their queues. Types only: order/job-lines.ts and order/strands.ts keep them
// up to date.

import type { LimitTable } from "#model/limits/run-limits.ts";
import type { SchedJob, SchedQueue } from "#protocol/sched-link.ts";
import type { Request } from "./request.ts";

export type JobEntry = {
  job: SchedJob;
  readonly request: Request;
  /**
   * values that order the job in its strand, smaller first: the job_sort_key values, or the value of those terms of the
   * formula that depend on the job alone
   */
  readonly order: readonly number[];
  readonly line: JobLine | null;
  readonly strand: Strand | null;
  /** true: the value of the formula for this job is not above the threshold */
  under: boolean;
  /** true: the job is no longer in its line */
  gone: boolean;
};

/** Jobs of one class in one queue. */
export type JobLine = {
  readonly queue: string;
  readonly class: JobClass;
  /** the tracks, by the entity whose shares count; "" if shares make no difference */
  readonly tracks: Map<string, Track>;
  /** number of jobs in the line */
  size: number;
  /** when the jobs of the line were preempted (all at the same time); undefined: they were not */
  readonly preempted_s: number | undefined;
  /** the agreed comment: the comment that jobs of this line (those above the threshold) got last */
  said: string | undefined;
  /** the kind of the reason that the agreed comment gives (kindOf in reasons.ts), and when the comment was agreed */
  said_kind: string;
  said_s: number;
  /** jobs whose comment differs from the agreed one */
  readonly differ: Set<JobEntry>;
  /** jobs under the threshold that do not have the comment about it */
  readonly differ_under: Set<JobEntry>;
};

/** The jobs of one entity in a line. */
export type Track = {
  readonly line: JobLine;
  readonly entity: string;
  readonly strands: Map<string, Strand>;
  /** a heap of upper bounds for the values of strands (order/track-cursor.ts); some may be out of date */
  bounds: StrandBound[];
  /** strands whose bound must be computed */
  readonly fresh: Set<Strand>;
  bounds_until_s: number;
  /** the version of shares and priorities for which bounds were computed and jobs were compared with the threshold */
  version: number;
};

export type StrandBound = { readonly strand: Strand; readonly high: number };

/** Jobs of a track whose order never changes by itself (order/ranking.ts). */
export type Strand = {
  readonly track: Track;
  readonly key: string;
  /** the jobs in order; includes entries that are gone until they are removed together */
  members: JobEntry[];
  gone_count: number;
  /** the strand's entry in the heap of bounds, if it is valid; null: none */
  bound: StrandBound | null;
  /** the time until which no job of the strand crosses the threshold */
  settled_until_s: number;
};

/** A class of queued jobs that are equal for scheduling. */
export type JobClass = {
  readonly key: string;
  readonly lines: Map<string, JobLine>;
};

export type Queue = {
  readonly name: string;
  readonly attrs: SchedQueue["attrs"];
  /** number in the order of creation */
  readonly order: number;
  readonly priority: number;
  readonly started: boolean;
  readonly execution: boolean;
  readonly partition: string;
  readonly limits: LimitTable;
  readonly soft_limits: LimitTable;
  /** resources_available as amounts, or as values that are compared */
  readonly available: ReadonlyMap<string, number | string | boolean>;
};
