// The activity of a scheduler as data: its answer to `partita top`.

export type CycleLine = {
  readonly at_s: number;
  /** the cause of the cycle: a number of SCHED_COMMAND */
  readonly command: number;
  readonly cycle_ms: number;
  readonly jobs_considered: number;
  readonly jobs_started: number;
};

/** Something that happened to a job. job null: a job that the caller may not see. */
export type EventLine = { readonly at_s: number; readonly job: string | null; readonly text: string };

/**
 * Amounts over the vnodes of a partition; sizes in kb. used: held by jobs outside reservations; reserved: held by running
 * reservations; inside: the part of `reserved` that jobs use.
 */
export type Bar = {
  readonly resource: string;
  readonly size: boolean;
  readonly total: number;
  readonly used: number;
  readonly reserved: number;
  readonly inside: number;
  /** amount on vnodes that take no jobs, because they are down, offline, ... */
  readonly closed: number;
};

export type PartitionView = {
  readonly name: string;
  readonly vnodes: number;
  readonly free: number;
  readonly closed: number;
  readonly bars: readonly Bar[];
};

export type WaitingJob = {
  readonly id: string;
  readonly user: string;
  readonly queue: string;
  readonly select: string;
  readonly walltime_s: number | null;
  readonly queued_s: number;
  /** the latest comment of the job; for an array that has begun, the counts of its subjobs */
  readonly comment: string | null;
  readonly top_job: boolean;
  readonly start_s: number | null;
};

export type ResvView = {
  readonly id: string;
  readonly start_s: number;
  readonly end_s: number;
  readonly running: boolean;
  /** a RESV_STATE number (src/model/resv-state.ts); DEGRADED also for a running reservation with that substate. Absent: unknown */
  readonly state?: number;
  /** 0: the reservation has no vnodes yet */
  readonly vnodes: number;
};

export type SchedView = {
  readonly sched: string;
  readonly at_s: number;
  readonly pid: number;
  /** start time of the scheduler process */
  readonly since_s: number;
  readonly modules: readonly string[];
  readonly problem: string | null;
  readonly cycles_done: number;
  readonly jobs_started: number;
  /** number of jobs by state letter */
  readonly jobs: { readonly [state: string]: number };
  readonly classes: number;
  readonly partitions: readonly PartitionView[];
  /** the latest cycles and events, oldest first */
  readonly cycles: readonly CycleLine[];
  readonly events: readonly EventLine[];
  /** the jobs that are first in the order, with their planned starts if known */
  readonly waiting: readonly WaitingJob[];
  readonly resvs: readonly ResvView[];
};

/** Waiting jobs of a partition that no scheduler serves; reported by the server. */
export type UnservedView = {
  /** "": the partition has no scheduler */
  readonly sched: string;
  readonly partition: string;
  readonly text: string;
  readonly remedy: string;
  /** number of waiting jobs */
  readonly jobs: number;
  /** the first waiting jobs; empty if the caller may not see other users' jobs */
  readonly waiting: readonly WaitingJob[];
};
