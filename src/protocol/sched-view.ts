// What a scheduler is doing, as data: what it answers when it is asked for a view of itself (`partita top`).

export type CycleLine = {
  readonly at_s: number;
  /** why it was begun: a number of SCHED_COMMAND */
  readonly command: number;
  readonly cycle_ms: number;
  readonly jobs_considered: number;
  readonly jobs_started: number;
};

/** job null: one that the asker may not see. */
export type EventLine = { readonly at_s: number; readonly job: string | null; readonly text: string };

/** Amounts over the vnodes of a partition: sizes in kb. used: by jobs outside of reservations; reserved: held by running reservations, inside: used of that. */
export type Bar = {
  readonly resource: string;
  readonly size: boolean;
  readonly total: number;
  readonly used: number;
  readonly reserved: number;
  readonly inside: number;
  /** of vnodes that take no jobs: down, offline, ... */
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
  /** what it was told last; of an array that has begun: how its subjobs stand */
  readonly comment: string | null;
  readonly top_job: boolean;
  readonly start_s: number | null;
};

export type ResvView = {
  readonly id: string;
  readonly start_s: number;
  readonly end_s: number;
  readonly running: boolean;
  /** number of a RESV_STATE (src/model/resv-state.ts); DEGRADED also while it runs so. Absent: not told */
  readonly state?: number;
  /** 0: it has no place yet */
  readonly vnodes: number;
};

export type SchedView = {
  readonly sched: string;
  readonly at_s: number;
  readonly pid: number;
  /** since when this process runs */
  readonly since_s: number;
  readonly modules: readonly string[];
  readonly problem: string | null;
  readonly cycles_done: number;
  readonly jobs_started: number;
  /** jobs by state letter */
  readonly jobs: { readonly [state: string]: number };
  readonly classes: number;
  readonly partitions: readonly PartitionView[];
  /** oldest first */
  readonly cycles: readonly CycleLine[];
  readonly events: readonly EventLine[];
  /** those at the head of the order, with planned starts where they have one */
  readonly waiting: readonly WaitingJob[];
  readonly resvs: readonly ResvView[];
};

/** Jobs that wait in a partition while no scheduler looks at them, said by the server. */
export type UnservedView = {
  /** "": the partition has no scheduler */
  readonly sched: string;
  readonly partition: string;
  readonly text: string;
  readonly remedy: string;
  /** how many wait */
  readonly jobs: number;
  /** the first of them; none for whoever may not see others' jobs */
  readonly waiting: readonly WaitingJob[];
};
