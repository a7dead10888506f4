// The server's state: objects in memory. Every object is a name and its attributes by PBS name, with the typed values of src/model; the store keeps the
// same record as a row. Values that can be computed from them (counts, assigned resources, indexes) are derived: apply.ts updates them, and
// core/invariants.ts checks them.
//
// I1. State changes only in apply(): a request handler reads state and applies events (engine/transaction.ts).
// I2. Derived values equal what a fresh computation gives (checkInvariants).
// I3. An attribute's value is never changed in place but replaced: records and lists may be shared by many jobs (intern.ts).
// I4. Neither is a record of attributes changed in place: a start on its way to a mom, for example, holds a record, and it must not change. New records are made by
//     copying, so that V8 keeps them small and fast (job-record.test.ts).

import type { ResourceDef } from "#model/resource-table.ts";
import type { Hook } from "#model/tables/hook.ts";
import type { Accrual, Clock, EntityUsage } from "./entity-sums.ts";
import type { JobOwn } from "./job-own.ts";
import type { Subjobs } from "./subjobs.ts";

export type Attrs = { [name: string]: unknown };
export type ResourceRecord = { [resource: string]: string | number | boolean };

/** A job's attributes (docs/reference/attributes.md 6) as the server uses them; further attributes are kept under their PBS names. Times are epoch seconds. */
export type JobAttrs = Attrs & {
  Job_Name: string;
  Job_Owner: string;
  job_state: string;
  substate: number;
  queue: string;
  server: string;
  ctime: number;
  mtime: number;
  qtime: number;
  Hold_Types: string;
  Resource_List: ResourceRecord;
  schedselect: string;
  Rerunable: boolean;
  Priority: number;
  project: string;
  euser: string;
  egroup: string;
  queue_rank: number;
  run_count?: number;
  etime?: number;
  stime?: number;
  obittime?: number;
  exec_vnode?: string;
  exec_host?: string;
  session_id?: number;
  jobdir?: string;
  comment?: string;
  Execution_Time?: number;
  Exit_status?: number;
  resources_used?: ResourceRecord;
  history_timestamp?: number;
};

/**
 * seq: the number in the id, and the order of creation. own: the server's flags, which are no attributes (job-own.ts). subjobs: of an array that is not over.
 * A subjob that has started is also a job, with array_id and array_index.
 */
export type Job = { readonly id: string; readonly seq: number; attrs: JobAttrs; own: JobOwn; readonly subjobs?: Subjobs };
export type Queue = {
  readonly name: string;
  readonly order: number;
  attrs: Attrs;
  /** derived: live jobs by state letter */
  readonly counts: Map<string, number>;
  /** derived: ids of live jobs */
  readonly jobs: Set<string>;
  /** derived: queue-level assigned, sizes in kb */
  readonly assigned: Map<string, number>;
  /** derived: number of vnodes with this queue (attribute hasnodes) */
  nodes: number;
};
export type Vnode = {
  readonly name: string;
  readonly order: number;
  /** state also holds the derived words job-busy and job-exclusive */
  attrs: Attrs;
  /** names of attributes and resources (`resources_available.mem`) that an administrator has set; reported values do not overwrite them */
  set_by_admin: string[];
  /** derived: resource -> amount assigned (sizes in kb) */
  readonly assigned: Map<string, number>;
  /** derived: one entry per cpu slot: job id, "" free */
  readonly slots: string[];
  /** derived: job id -> exclusive use (false for a suspended job), suspended there */
  readonly jobs: Map<string, { readonly exclusive: boolean; readonly suspended: boolean }>;
  /** derived: reservations that have this vnode in any of their occurrences; exclusive: one has it exclusively now */
  readonly resvs: Map<string, { readonly exclusive: boolean }>;
};
export type Sched = { readonly name: string; readonly order: number; attrs: Attrs };

/** A reservation's attributes (docs/reference/attributes.md 7). Attributes of our own are kept with them and never shown. Times are epoch seconds. */
export type ResvAttrs = Attrs & {
  Reserve_Name: string;
  Reserve_Owner: string;
  reserve_state: number;
  reserve_substate: number;
  /** start of the present or next occurrence; absent: not known yet (as soon as possible) */
  reserve_start?: number;
  reserve_end?: number;
  reserve_duration: number;
  queue: string;
  Resource_List: ResourceRecord;
  schedselect: string;
  resv_nodes?: string;
  Authorized_Users: readonly string[];
  ctime: number;
  interactive: number;
  reserve_count: number;
  reserve_index?: number;
  reserve_retry?: number;
  partition?: string;
  /** ours: resources that are set aside for it, see Promised */
  promised?: Promised;
  /** ours: start of the present occurrence; absent: it has not begun */
  begun?: number;
  /** private: vnodes that now have less than they promised to the reservation */
  short?: readonly string[];
  /** ours: the last seconds of every occurrence, for cleaning up (resv_post_processing_time at its creation); cleaning: they have begun */
  post_processing?: number;
  cleaning?: true;
  /** ours: the values to restore if the requested alteration is denied */
  alteration?: { readonly asked_s: number; readonly before: Attrs };
  /**
   * private: for a standing reservation, the starts of its occurrences and the original form of each, independent of later
   * alterations. They are stored and not computed again, so that new time zone data cannot change a promise
   */
  standing?: { readonly starts: readonly number[]; readonly duration: number; readonly list: ResourceRecord; readonly schedselect: string };
};
/** Occurrences that are not over, the present or next one first, each with its place. places: exec_vnode texts. */
export type Promised = {
  readonly occurrences: readonly { readonly start_s: number; readonly end_s: number; readonly place: number }[];
  readonly places: readonly string[];
};
/** Amounts of a vnode that a reservation holds or that its jobs use. */
export type ResvSpot = { readonly amounts: ReadonlyMap<string, number>; readonly exclusive: boolean };

export type Resv = {
  readonly id: string;
  attrs: ResvAttrs;
  /** derived: starts of all its occurrences in order; one entry unless it is a standing reservation */
  starts: readonly number[];
  /** derived: the amounts that its present or next occurrence holds, by vnode and at the server */
  held: ReadonlyMap<string, ResvSpot>;
  held_wide: ReadonlyMap<string, number>;
  /** derived: the amounts it holds count as assigned, because the occurrence has begun */
  counted: boolean;
  /** derived: vnodes of the present and any occurrence to come */
  vnodes: ReadonlySet<string>;
  /** derived: the amounts that its running jobs use, by vnode and at queue and server */
  readonly used: Map<string, Map<string, number>>;
  readonly used_wide: Map<string, number>;
};

/** The placement of a job with resources: the amounts that each vnode gives it. Derived from exec_vnode (placement.ts). */
export type Placement = {
  readonly vnodes: ReadonlyMap<
    string,
    { readonly amounts: ReadonlyMap<string, number>; readonly ncpus: number; readonly exclusive: boolean }
  >;
  /** indexes of chunks on hosts, as exec_host names them: `n1/0*2` is n1, 0 */
  readonly chunk_slots: readonly { readonly host: string; readonly slot: number }[];
  /** amounts that queue and server count as assigned: resources with flag q, sizes in kb */
  readonly job_wide: ReadonlyMap<string, number>;
  /**
   * false: the job is suspended. It is still on its vnodes, with the resources that it did not release
   * (restrict_res_to_release_on_suspend), and does not exclude other jobs
   */
  readonly counted: boolean;
};

export type ServerState = {
  /** the server's name: the last part of job ids */
  readonly name: string;
  server: Attrs;
  /** the last number that was given; after max_job_sequence_id numbers begin again */
  next_seq: number;
  next_order: number;
  next_rank: number;
  /** finished jobs in the store's history */
  history_count: number;
  /** all resources, including the built-in ones */
  readonly resources: Map<string, ResourceDef>;
  readonly queues: Map<string, Queue>;
  readonly vnodes: Map<string, Vnode>;
  readonly scheds: Map<string, Sched>;
  /** live jobs; finished ones are in the store's history */
  readonly jobs: Map<string, Job>;
  readonly resvs: Map<string, Resv>;
  /** derived: queue of a reservation -> its id */
  readonly resv_queues: Map<string, string>;
  readonly hooks: Map<string, Hook>;
  /** learned run times by user, project and name, the most recent ones at the end (jobs/pressure.ts) */
  readonly run_times: Map<string, number>;
  /** derived: live jobs by state letter */
  readonly counts: Map<string, number>;
  /** derived: assigned over all running jobs, sizes in kb */
  readonly assigned: Map<string, number>;
  /** derived: jobs with vnodes */
  readonly placements: Map<string, Placement>;
  /** derived: host (first name in Mom) -> names of its vnodes */
  readonly hosts: Map<string, Set<string>>;
  /** derived: host -> job id by index of chunk, "" free */
  readonly chunk_slots: Map<string, string[]>;
  /** clocks of eligible time by id, and the values derived for them */
  readonly clocks: Map<string, Clock>;
  readonly accrual: Accrual;
  /** derived, once a limit needs it: queued jobs of users, groups and projects */
  readonly usage: EntityUsage;
};
