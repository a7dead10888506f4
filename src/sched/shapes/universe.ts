// The part of the universe that one scheduler sees, indexed so that the cost of a cycle follows distinct shapes, not jobs and nodes. Types only:
// mirror/mirror.ts keeps it up to date from snapshot and deltas; a cycle reads it and leaves it as it was.
//
// U1. A vnode belongs to one node set: the vnodes that the jobs of a queue may use (its partition's vnodes with that `queue`, or those without).
// U2. A host of a node set is in exactly one bucket: hosts in one bucket have equal vnodes in equal states and equal bookings, so that what holds
//     for one holds for all.
// U3. A queued job is in exactly one line (the jobs of one class in one queue) and there in one strand, sorted as a cycle looks at them (order/ranking.ts K1).
// U4. Jobs of one class get equal answers in a cycle: everything that a module's check may look at is part of the class' key.
// U5. Every sum (totals, free amounts, running jobs and their resources) equals what a fresh computation gives (checkMirror in tests).
// U6. A vnode is in the placement sets that its values of their resources name, and in no others; an entry of its host represents it there, in the same states.

import type { Fairshare } from "#model/fairshare.ts";
import type { LimitTable } from "#model/limits/run-limits.ts";
import type { FairshareTree } from "#model/resource-group.ts";
import type { SchedClock, SchedJob, SchedNode, Snapshot } from "#protocol/sched-link.ts";
import type { Calendar } from "./booking.ts";
import type { JobClass, JobEntry, JobLine, Queue } from "./job-line.ts";
import type { LimitProfile, UsageTable } from "./limits.ts";
import type { PolicyModule } from "./module.ts";
import type { Policy } from "./policy.ts";
import type { PreemptRules } from "./preempt-rules.ts";
import type { Ranking } from "./ranking.ts";
import type { Request } from "./request.ts";
import type { Insider, ResvInfo, ResvSet } from "./reservation.ts";
import type { ResourceSpace } from "./resource-space.ts";
import type { Host, NodeSet, Vnode, VnodeSpec } from "./vnode.ts";
import type { Checks } from "./vnode-fit.ts";

export type Universe = {
  revision: number;
  server: Snapshot["server"];
  sched: Snapshot["sched"];
  readonly resources: Map<string, Snapshot["resources"][number]>;
  space: ResourceSpace;
  policy: Policy;
  /** the resources that are checked under this policy */
  checks: Checks;
  /** dedicated time, top jobs or bookings exist: the duration of a job matters */
  times_matter: boolean;
  /** modules that distinguish jobs by more than their requests (classKey) */
  distinguishing: readonly PolicyModule[];
  readonly nodes: Map<string, SchedNode>;
  readonly jobs: Map<string, SchedJob>;
  readonly queues: Map<string, Queue>;
  readonly resvs: Map<string, ResvInfo>;
  /** reservations by the names of their queues, and by the vnodes they hold */
  readonly resv_queues: Map<string, ResvInfo>;
  readonly resvs_on: Map<string, Set<ResvInfo>>;
  /** running reservations by id, and by vnode (resv/resv-sets.ts) */
  readonly resv_sets: Map<string, ResvSet>;
  readonly resv_sets_on: Map<string, Set<ResvSet>>;
  /** jobs that run in reservations */
  readonly insiders: Map<string, Insider>;
  /** queues by Priority, then creation; null: to be sorted again */
  sorted_queues: readonly Queue[] | null;

  /** a node set was added or removed: jobs may have to change class */
  regroup: boolean;
  readonly sets: Map<string, NodeSet>;
  /** hosts with vnodes in several sets, by name */
  readonly shared_hosts: Map<string, Set<NodeSet>>;
  readonly vnodes: Map<string, Vnode>;
  /** resources that jobs name with place=group= */
  readonly asked_groups: Set<string>;
  /** the attributes that form placement sets may have changed */
  groups_stale: boolean;
  /** hosts without entries in placement sets yet */
  readonly ungrouped: Set<Host>;
  /** the numbers that were given to specs and requests so far */
  next_id: number;
  /** interned by their keys */
  readonly specs: Map<string, VnodeSpec>;
  readonly requests: Map<string, Request>;

  readonly entries: Map<string, JobEntry>;
  readonly classes: Map<string, JobClass>;
  /** lines by queue */
  readonly lines: Map<string, Set<JobLine>>;
  /** the order of jobs; other values that bounds were computed for have a version */
  ranking: Ranking;
  ranking_version: number;
  /** names of the chain, and resource_group: the inputs of a ranking besides attributes */
  readonly ranking_modules: readonly string[];
  readonly shares: FairshareTree | null;
  /** clocks of eligible time, by id */
  readonly clocks: Map<string, SchedClock>;
  /** runs with new usage, and runs that are over, until they are counted (order/usage-count.ts). all: every run is to be counted */
  readonly used: { readonly ids: Set<string>; all: boolean };
  readonly ended: { readonly job: SchedJob; readonly resources_used: NonNullable<SchedJob["resources_used"]> }[];
  /** share of the tree by entity that resource_group names */
  percentages: ReadonlyMap<string, number>;

  limits: LimitTable;
  soft_limits: LimitTable;
  /** which jobs may preempt which */
  preempt: PreemptRules;
  profile: LimitProfile;
  /** running jobs of server ("") and of each queue */
  readonly usage: Map<string, UsageTable>;
  /** jobs with a published start (estimated, topjob) */
  readonly estimated: Set<string>;
  /** running entries and bookings, by time */
  calendar: Calendar;
  /** amounts that programs reported for the server in this cycle */
  dynamic: ReadonlyMap<string, number | string | boolean>;
  /** resources_available of the server, with those amounts */
  server_available: ReadonlyMap<string, number | string | boolean>;
};

/** The values that the worth of jobs depends on, besides the job. */
export type RankContext = {
  readonly universe: Universe;
  readonly fairshare: Fairshare;
  readonly now_s: number;
  /** errors of the formula so far, with the first job of each */
  readonly errors: Map<string, string>;
};
