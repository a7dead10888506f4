// The server's state: objects in memory. Every object is a name and its attributes by PBS name, with the typed values of src/model; the store keeps the
// same record as a row. What can be computed from them (counts, assigned resources, indexes) is derived, kept up to date by apply.ts and checked by core/invariants.ts.
//
// I1. State changes only in apply(): a request handler reads state and applies events (engine/transaction.ts).
// I2. Derived values equal what a fresh computation gives (checkInvariants).
// I3. An attribute's value is never changed in place but replaced: records and lists may be shared by many jobs (intern.ts).
// I4. Nor is a record of attributes: whoever holds one, as a start on its way to its mom does, keeps what it said. Records are made by copying, so that V8
//     keeps them small and quick (job-record.test.ts).

import type { Hook } from "#model/hook.ts";
import type { ResourceDef } from "#model/resource-table.ts";
import type { Accrual, Clock } from "./clocks.ts";
import type { EntityUsage } from "./entity-usage.ts";
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

/** seq: number in the id, order of creation. subjobs: of an array that lives. A subjob that has started is a job, too, with array_id and array_index. */
export type Job = { readonly id: string; readonly seq: number; attrs: JobAttrs; readonly subjobs?: Subjobs };
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
  /** derived: vnodes with queue = this one (attribute hasnodes) */
  nodes: number;
};
export type Vnode = {
  readonly name: string;
  readonly order: number;
  /** state holds the derived words job-busy and job-exclusive too */
  attrs: Attrs;
  /** names of attributes and resources (`resources_available.mem`) an administrator set: reported values do not overwrite them */
  set_by_admin: string[];
  /** derived: resource -> amount assigned (sizes in kb) */
  readonly assigned: Map<string, number>;
  /** derived: one entry per cpu slot: job id, "" free */
  readonly slots: string[];
  /** derived: job id -> exclusive use (not of a suspended job), suspended there */
  readonly jobs: Map<string, { readonly exclusive: boolean; readonly suspended: boolean }>;
  /** derived: reservations with this vnode in any of their occurrences; exclusive: one has it alone, now */
  readonly resvs: Map<string, { readonly exclusive: boolean }>;
};
export type Sched = { readonly name: string; readonly order: number; attrs: Attrs };

/** A reservation's attributes (docs/reference/attributes.md 7). Those of our own are kept with it and never shown. Times are epoch seconds. */
export type ResvAttrs = Attrs & {
  Reserve_Name: string;
  Reserve_Owner: string;
  reserve_state: number;
  reserve_substate: number;
  /** of the present or next occurrence; absent: as soon as possible, while it is not known */
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
  /** ours: what is set aside for it, see Promised */
  promised?: Promised;
  /** ours: when the present occurrence began; absent: it has not */
  begun?: number;
  /** ours: vnodes that have less now than it was promised of them */
  short?: readonly string[];
  /** ours: the last seconds of every occurrence, for cleaning up (resv_post_processing_time when it was made); cleaning: they have come */
  post_processing?: number;
  cleaning?: true;
  /** ours: what an alteration that is asked for goes back to when it is denied */
  alteration?: { readonly asked_s: number; readonly before: Attrs };
  /** ours: of a standing one, when its occurrences start, and what each is like, whatever is altered on one of them. Kept, not worked out again: what was
   * promised stays when tz data change */
  standing?: { readonly starts: readonly number[]; readonly duration: number; readonly list: ResourceRecord; readonly schedselect: string };
};
/** Occurrences that are not over, the present or next one first, each with its place; places: exec_vnode texts. */
export type Promised = {
  readonly occurrences: readonly { readonly start_s: number; readonly end_s: number; readonly place: number }[];
  readonly places: readonly string[];
};
/** What a reservation holds of a vnode, or its jobs use there. */
export type ResvSpot = { readonly amounts: ReadonlyMap<string, number>; readonly exclusive: boolean };

export type Resv = {
  readonly id: string;
  attrs: ResvAttrs;
  /** derived: starts of all its occurrences, the first one first; one entry unless it is a standing one */
  starts: readonly number[];
  /** derived: what its present or next occurrence holds, by vnode, and at the server */
  held: ReadonlyMap<string, ResvSpot>;
  held_wide: ReadonlyMap<string, number>;
  /** derived: what it holds counts as assigned: the occurrence has begun */
  counted: boolean;
  /** derived: vnodes of the present and any occurrence to come */
  vnodes: ReadonlySet<string>;
  /** derived: what its running jobs use, by vnode, and at queue and server */
  readonly used: Map<string, Map<string, number>>;
  readonly used_wide: Map<string, number>;
};

/** Where a job with resources is: what each vnode gives it. Derived from exec_vnode (placement.ts). */
export type Placement = {
  readonly vnodes: ReadonlyMap<
    string,
    { readonly amounts: ReadonlyMap<string, number>; readonly ncpus: number; readonly exclusive: boolean }
  >;
  /** indexes of chunks on hosts, as exec_host names them: `n1/0*2` is n1, 0 */
  readonly chunk_slots: readonly { readonly host: string; readonly slot: number }[];
  /** what queue and server count as assigned: resources with flag q, sizes in kb */
  readonly job_wide: ReadonlyMap<string, number>;
  /** not suspended: a suspended job is on its vnodes with what it did not release (restrict_res_to_release_on_suspend), and keeps nobody else away */
  readonly counted: boolean;
};

export type ServerState = {
  /** the server's name: last part of job ids */
  readonly name: string;
  server: Attrs;
  /** the number given last: after max_job_sequence_id they begin again */
  next_seq: number;
  next_order: number;
  next_rank: number;
  /** finished jobs in the store's history */
  history_count: number;
  /** all resources, the built-in ones too */
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
  /** what jobs of a user, project and name take, those learned last at the end (jobs/pressure.ts) */
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
  /** clocks of eligible time, by id; and what is derived for them */
  readonly clocks: Map<string, Clock>;
  readonly accrual: Accrual;
  /** derived, once a limit asks for it: what users, groups and projects have queued */
  readonly usage: EntityUsage;
};
