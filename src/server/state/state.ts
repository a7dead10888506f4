// The server's state: its objects in memory. Every object has a name and a record of attributes under their PBS names, with
// the typed values of src/model; the store has the same record as a row. Values that can be computed from attributes
// (counts, assigned resources, indexes) are called derived: apply.ts updates them, and core/invariants.ts checks them.
//
// I1. The state changes only in apply(). Request handlers read the state and apply events (engine/transaction.ts).
// I2. Derived values always equal the result of a new computation (checkInvariants).
// I3. The value of an attribute is never changed in place but replaced, because many jobs may share a record or list
//     (intern.ts).
// I4. A record of attributes is not changed in place either, because others may still use it, for example a start that is on
//     its way to a mom. A new record is made by a copy, so that V8 keeps it small and fast (job-record.test.ts).

import type { Bucket } from "#model/request/bucket.ts";
import type { ResourceDef } from "#model/resource-table.ts";
import type { Hook } from "#model/tables/hook.ts";
import type { Accrual, Clock, EntityUsage } from "./entity-sums.ts";
import type { JobOwn } from "./job-own.ts";
import type { Subjobs } from "./subjobs.ts";

export type Attrs = { [name: string]: unknown };
export type ResourceRecord = { [resource: string]: string | number | boolean };

/** A job's attributes (docs/reference/attributes.md 6). Here are those that the server itself uses; all have their PBS names. Times are epoch seconds. */
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
 * A job. seq: the number in its id. own: data of the server that are not attributes (job-own.ts). subjobs: for a live array.
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
  /** derived: resources_assigned of the queue, sizes in kb */
  readonly assigned: Map<string, number>;
  /** derived: number of vnodes whose attribute queue is this queue (attribute hasnodes) */
  nodes: number;
};
export type Vnode = {
  readonly name: string;
  readonly order: number;
  /** the attribute state also contains derived words such as job-busy and job-exclusive */
  attrs: Attrs;
  /** names of attributes and resources (`resources_available.mem`) that an administrator has set; reported values do not overwrite them */
  set_by_admin: string[];
  /** derived: resource -> amount assigned (sizes in kb) */
  readonly assigned: Map<string, number>;
  /** derived: for each cpu slot the id of its job, or "" if it is free */
  readonly slots: string[];
  /** derived: job id -> whether the job has the vnode exclusively (false for a suspended job), and whether it is suspended */
  readonly jobs: Map<string, { readonly exclusive: boolean; readonly suspended: boolean }>;
  /** derived: id of each reservation that has this vnode in an occurrence -> exclusive: the reservation has it exclusively now */
  readonly resvs: Map<string, { readonly exclusive: boolean }>;
};
export type Sched = {
  readonly name: string;
  readonly order: number;
  attrs: Attrs;
  /** this server has taken over, could not reach the scheduler at its sched_host, and runs it on its own host; not stored, so that sched_host counts again for the next server */
  here?: true;
};
/** A system that starts runners (docs/runners.md). */
export type Backend = { readonly name: string; readonly order: number; attrs: Attrs };
/**
 * A runner that was requested from a backend. backend: the name of the backend. serial: the number of the request. index: the runner's place among the runners of that
 * request. bucket: the jobs for which it was requested (model/request/bucket.ts). digest: SHA-256 of its token. life_s: how long it lives. remote: its id in the
 * backend. lost_s: the time since which it counts as lost.
 */
export type RunnerAttrs = Attrs & {
  backend: string;
  serial: number;
  index: number;
  bucket: Bucket;
  digest: string;
  asked_s: number;
  life_s: number;
  remote?: string;
  lost_s?: number;
};
/** A runner that was requested from a backend and has not ended. Its name is also the name of its host and of its vnode. */
export type Runner = { readonly name: string; readonly order: number; attrs: RunnerAttrs };

/** A reservation's attributes (docs/reference/attributes.md 7). Attributes marked `ours` or `private` are not attributes of PBS and are never shown. Times are epoch seconds. */
export type ResvAttrs = Attrs & {
  Reserve_Name: string;
  Reserve_Owner: string;
  reserve_state: number;
  reserve_substate: number;
  /** start of the present or next occurrence; absent: not known yet, for a reservation that begins as soon as possible */
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
  /** ours: the resources that are set aside for the reservation, see Promised */
  promised?: Promised;
  /** ours: start of the present occurrence; absent: it has not begun */
  begun?: number;
  /** private: names of vnodes that no longer have the amounts that were promised to the reservation */
  short?: readonly string[];
  /**
   * ours: the seconds for cleaning up at the end of every occurrence (resv_post_processing_time at its creation). cleaning:
   * the time for cleaning up has begun
   */
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
/** What is promised to a reservation: the occurrences that have not ended, in order, each with its place. place: an index of places, which are exec_vnodes. */
export type Promised = {
  readonly occurrences: readonly { readonly start_s: number; readonly end_s: number; readonly place: number }[];
  readonly places: readonly string[];
};
/** What a reservation, or one of its occurrences, has of a vnode. */
export type ResvSpot = { readonly amounts: ReadonlyMap<string, number>; readonly exclusive: boolean };

export type Resv = {
  readonly id: string;
  attrs: ResvAttrs;
  /** derived: the starts of all occurrences of the reservation, in order; one entry unless it is a standing reservation */
  starts: readonly number[];
  /** derived: the amounts that are set aside for the present or next occurrence: by vnode, and for the server */
  held: ReadonlyMap<string, ResvSpot>;
  held_wide: ReadonlyMap<string, number>;
  /** derived: whether these amounts count as assigned, because the occurrence has begun */
  counted: boolean;
  /** derived: the vnodes of the present and all later occurrences */
  vnodes: ReadonlySet<string>;
  /** derived: the amounts that running jobs of the reservation use: by vnode, and for queue and server */
  readonly used: Map<string, Map<string, number>>;
  readonly used_wide: Map<string, number>;
};

/** The placement of a job: the amounts that it uses of each vnode. Derived from exec_vnode (placement.ts). */
export type Placement = {
  readonly vnodes: ReadonlyMap<
    string,
    { readonly amounts: ReadonlyMap<string, number>; readonly ncpus: number; readonly exclusive: boolean }
  >;
  /** the indexes of chunks on hosts, as in exec_host: `n1/0*2` is host n1, slot 0 */
  readonly chunk_slots: readonly { readonly host: string; readonly slot: number }[];
  /** amounts that queue and server count as assigned: resources with flag q, sizes in kb */
  readonly job_wide: ReadonlyMap<string, number>;
  /**
   * false: the job is suspended. It is still on its vnodes, with the resources that it has not released
   * (restrict_res_to_release_on_suspend), but does not have a vnode exclusively
   */
  readonly counted: boolean;
};

/**
 * What was learned of jobs with one key. seconds: their average duration, of `weight` jobs. commands: the last durations of single commands, by their hash. mem_kb, time_s: the uses
 * of the last jobs, for requests that follow them (jobs/learning.ts).
 */
export type RunTime = {
  readonly seconds: number;
  readonly weight?: number;
  readonly commands?: { readonly [hash: string]: number };
  readonly mem_kb?: readonly number[];
  readonly time_s?: readonly number[];
};

export type ServerState = {
  /** the server's name: the last part of job ids */
  readonly name: string;
  server: Attrs;
  /** the last number that was given to a job or reservation; after max_job_sequence_id the numbers begin again */
  next_seq: number;
  next_order: number;
  next_rank: number;
  /** number of finished jobs in the store's history */
  history_count: number;
  /** all resources, including the built-in ones */
  readonly resources: Map<string, ResourceDef>;
  readonly queues: Map<string, Queue>;
  readonly vnodes: Map<string, Vnode>;
  readonly scheds: Map<string, Sched>;
  readonly backends: Map<string, Backend>;
  readonly runners: Map<string, Runner>;
  /** live jobs; finished ones are in the store's history */
  readonly jobs: Map<string, Job>;
  readonly resvs: Map<string, Resv>;
  /** derived: queue of a reservation -> its id */
  readonly resv_queues: Map<string, string>;
  readonly hooks: Map<string, Hook>;
  /** learned run times by user, project and name; those that were learned last are at the end (jobs/pressure.ts) */
  readonly run_times: Map<string, RunTime>;
  /** derived: live jobs by state letter */
  readonly counts: Map<string, number>;
  /** derived: resources_assigned of the server, sizes in kb */
  readonly assigned: Map<string, number>;
  /** derived: placements of the jobs that are on vnodes, by job id */
  readonly placements: Map<string, Placement>;
  /** derived: host (first name in Mom) -> names of its vnodes */
  readonly hosts: Map<string, Set<string>>;
  /** derived: host -> for each chunk index the id of its job, or "" if it is free */
  readonly chunk_slots: Map<string, string[]>;
  /** clocks of eligible time by id, and the values derived for them */
  readonly clocks: Map<string, Clock>;
  readonly accrual: Accrual;
  /** derived, but only when a limit needs it: sums over the queued jobs of users, groups and projects */
  readonly usage: EntityUsage;
};
