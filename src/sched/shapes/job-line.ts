// Queued jobs in classes, lines, tracks and strands (universe.ts U3, U4), and their queues. Types only: order/job-lines.ts and order/strands.ts keep them.

import type { LimitTable } from "#model/limits/run-limits.ts";
import type { SchedJob, SchedQueue } from "#protocol/sched-link.ts";
import type { Request } from "./request.ts";

export type JobEntry = {
  job: SchedJob;
  readonly request: Request;
  /** position in its strand, smaller first: job_sort_key values, or the part of the formula's worth that belongs to the job */
  readonly order: readonly number[];
  readonly line: JobLine | null;
  readonly strand: Strand | null;
  /** the value of its formula is not above the threshold */
  under: boolean;
  /** no longer in its line */
  gone: boolean;
};

/** Jobs of one class in one queue. */
export type JobLine = {
  readonly queue: string;
  readonly class: JobClass;
  /** by the entity whose shares count; "" where shares make no difference */
  readonly tracks: Map<string, Track>;
  /** jobs in it */
  size: number;
  /** when its jobs were preempted, if they were: all at the same time */
  readonly preempted_s: number | undefined;
  /** the comment that the jobs of this line last got (those above the threshold) */
  said: string | undefined;
  /** the kind of that reason, without amounts, and when the comment was decided */
  said_kind: string;
  said_s: number;
  /** jobs with another comment */
  readonly differ: Set<JobEntry>;
  /** jobs under the threshold without the comment about it */
  readonly differ_under: Set<JobEntry>;
};

/** The jobs of one entity in a line. */
export type Track = {
  readonly line: JobLine;
  readonly entity: string;
  readonly strands: Map<string, Strand>;
  /** heap: upper bounds of the values of strands (order/track-cursor.ts); some bounds may be out of date */
  bounds: StrandBound[];
  /** strands whose bound is to be computed */
  readonly fresh: Set<Strand>;
  bounds_until_s: number;
  /** versions of shares and priorities for which bounds and sides of the threshold were computed */
  version: number;
};

export type StrandBound = { readonly strand: Strand; readonly high: number };

/** Jobs of a track whose order never changes by itself (order/ranking.ts). */
export type Strand = {
  readonly track: Track;
  readonly key: string;
  /** sorted; holds entries that are gone until it is compacted */
  members: JobEntry[];
  gone_count: number;
  /** its bound, if it holds; null: none */
  bound: StrandBound | null;
  /** until this time no job of the strand crosses the threshold */
  settled_until_s: number;
};

/** An equivalence class of queued jobs. */
export type JobClass = {
  readonly key: string;
  readonly lines: Map<string, JobLine>;
};

export type Queue = {
  readonly name: string;
  readonly attrs: SchedQueue["attrs"];
  /** order of creation */
  readonly order: number;
  readonly priority: number;
  readonly started: boolean;
  readonly execution: boolean;
  readonly partition: string;
  readonly limits: LimitTable;
  readonly soft_limits: LimitTable;
  /** resources_available as amounts or matched values */
  readonly available: ReadonlyMap<string, number | string | boolean>;
};
