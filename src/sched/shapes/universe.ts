// The universe: what one scheduler sees of the complex. It is indexed so that the time of a cycle depends on the number of different kinds of jobs and hosts,
// not on how many there are of each. Types only: mirror/mirror.ts keeps it up to date from snapshot and deltas; a cycle reads it and leaves it as it was.
//
// U1. A vnode belongs to one node set. A node set has the vnodes that the jobs of a queue may use: those of its partition with that `queue`, or those without a
//     `queue`.
// U2. A host of a node set is in exactly one bucket. Hosts in one bucket have equal vnodes in equal states and equal bookings, so that the answer for one host
//     is the answer for all.
// U3. A queued job is in exactly one line (the jobs of one class in one queue), and in one strand of that line. A strand is sorted in the order in which a
//     cycle tries its jobs (order/ranking.ts K1).
// U4. Jobs of one class get equal answers in a cycle: everything about a job that a module's check may use is in the key of its class.
// U5. Every sum (totals, free amounts, running jobs and their resources) equals what a fresh computation gives (mirrorFault of src/sim/checks/mirror.ts
//     compares them).
// U6. A vnode is in the placement sets for its values of the grouping resources, and in no others. In each of them its host has an entry (a twin) with the same
//     states.

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
  /** the resources that are checked under the present policy */
  checks: Checks;
  /** true: the duration of jobs matters, because of dedicated time, backfill_prime or top jobs */
  times_matter: boolean;
  /** the modules that distinguish jobs by more than their requests (classKey) */
  distinguishing: readonly PolicyModule[];
  readonly nodes: Map<string, SchedNode>;
  readonly jobs: Map<string, SchedJob>;
  readonly queues: Map<string, Queue>;
  readonly resvs: Map<string, ResvInfo>;
  /** the reservations by the names of their queues, and by the vnodes that they hold */
  readonly resv_queues: Map<string, ResvInfo>;
  readonly resvs_on: Map<string, Set<ResvInfo>>;
  /** the node sets of running reservations by id, and by vnode (resv/resv-sets.ts) */
  readonly resv_sets: Map<string, ResvSet>;
  readonly resv_sets_on: Map<string, Set<ResvSet>>;
  /** the jobs that run in reservations, by id */
  readonly insiders: Map<string, Insider>;
  /** queues by Priority, then by creation; null: they must be sorted again */
  sorted_queues: readonly Queue[] | null;

  /** true: a node set was added or removed, so jobs may have to change their class */
  regroup: boolean;
  readonly sets: Map<string, NodeSet>;
  /** the hosts with vnodes in several sets, by name */
  readonly shared_hosts: Map<string, Set<NodeSet>>;
  readonly vnodes: Map<string, Vnode>;
  /** the resources that jobs name with place=group= */
  readonly asked_groups: Set<string>;
  /** true: the attributes that form placement sets may have changed */
  groups_stale: boolean;
  /** the hosts that are not yet entered in placement sets */
  readonly ungrouped: Set<Host>;
  /** the next number for a spec or a request */
  next_id: number;
  /** one object for each distinct spec and request, by its key */
  readonly specs: Map<string, VnodeSpec>;
  readonly requests: Map<string, Request>;

  readonly entries: Map<string, JobEntry>;
  readonly classes: Map<string, JobClass>;
  /** the lines of each queue */
  readonly lines: Map<string, Set<JobLine>>;
  /** the ranking, which orders jobs; and a version, which changes with all other values on which bounds depend */
  ranking: Ranking;
  ranking_version: number;
  /** names of the modules in the chain, and the tree of resource_group: what a ranking depends on besides attributes */
  readonly ranking_modules: readonly string[];
  readonly shares: FairshareTree | null;
  /** the clocks of eligible time, by id */
  readonly clocks: Map<string, SchedClock>;
  /** used: ids of the jobs with new usage; ended: the jobs that have ended; both until usage is counted (order/usage-count.ts). all: every job is counted */
  readonly used: { readonly ids: Set<string>; all: boolean };
  readonly ended: { readonly job: SchedJob; readonly resources_used: NonNullable<SchedJob["resources_used"]> }[];
  /** the share of the whole tree of each entity that resource_group names */
  percentages: ReadonlyMap<string, number>;

  limits: LimitTable;
  soft_limits: LimitTable;
  /** which jobs may preempt which */
  preempt: PreemptRules;
  profile: LimitProfile;
  /** what the running jobs of the server (key "") and of each queue use */
  readonly usage: Map<string, UsageTable>;
  /** ids of the jobs with a published start (estimated, topjob) */
  readonly estimated: Set<string>;
  /** running entries and bookings, by time */
  calendar: Calendar;
  /** the amounts that programs reported for the server in this cycle */
  dynamic: ReadonlyMap<string, number | string | boolean>;
  /** resources_available of the server; reported amounts replace the amounts in its attributes */
  server_available: ReadonlyMap<string, number | string | boolean>;
};

/** What the order of jobs (formula, keys, shares) depends on besides the jobs themselves. */
export type RankContext = {
  readonly universe: Universe;
  readonly fairshare: Fairshare;
  readonly now_s: number;
  /** errors of the formula so far, each with the first job for which it occurred */
  readonly errors: Map<string, string>;
};
