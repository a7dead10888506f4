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

import type { LimitTable } from "#model/limits/run-limits.ts";
import type { FairshareTree } from "#model/resource-group.ts";
import type { SchedClock, SchedJob, SchedNode, SchedQueue, Snapshot } from "#protocol/sched-link.ts";
import type { Calendar } from "../calendar/calendar.ts";
import type { Ranking } from "../order/ranking.ts";
import type { Outlook } from "../place/outlook.ts";
import type { SetFront } from "../place/set-front.ts";
import type { PlacedStates } from "../place/states-after.ts";
import type { ResvInfo } from "../resv/resv-info.ts";
import type { Insider, ResvSet } from "../resv/resv-sets.ts";
import type { LimitProfile, UsageTable } from "./limits.ts";
import type { PolicyModule } from "./module.ts";
import type { Policy } from "./policy.ts";
import type { PreemptRules } from "./preempt-rules.ts";
import type { Request } from "./request.ts";
import type { ResourceSpace } from "./resource-space.ts";
import type { Checks } from "./vnode-fit.ts";

/** The properties of a vnode apart from its jobs; equal vnodes share one object. */
export type VnodeSpec = {
  readonly id: number;
  /** by resource index; Infinity: unset and infinite there */
  readonly avail: readonly number[];
  readonly matches: ReadonlyMap<string, string | boolean>;
  readonly levels: ReadonlyMap<string, number>;
  readonly sharing: string;
  readonly no_multinode_jobs: boolean;
  readonly max_running: number | undefined;
  readonly max_user_run: number | undefined;
  readonly max_group_run: number | undefined;
  readonly priority: number;
  /** reservations may use it */
  readonly resv_enable: boolean;
  /** vnodes of its host that are in other sets are in use */
  readonly crowded: boolean;
};

/** The properties of a vnode and the amounts taken of it. */
export type VnodeState = {
  readonly spec: VnodeSpec;
  readonly used: readonly number[];
  /** the state word that keeps jobs away; undefined: the vnode is free */
  readonly closed: string | undefined;
  /** shown for a window: plans that begin by then make it job-busy, so that no job can be started there */
  readonly busy?: boolean;
  /** number of jobs and running reservations there; if no limit counts them, only whether there are any (0 or 1) */
  readonly jobs: number;
};

export type Vnode = {
  readonly name: string;
  readonly order: number;
  readonly set: NodeSet;
  host: Host;
  node: SchedNode;
  state: VnodeState;
};

export type Host = {
  readonly name: string;
  readonly set: NodeSet;
  /** in the order of definition */
  readonly vnodes: readonly Vnode[];
  /** in a placement set: the vnodes that belong to it; null: all */
  readonly members: readonly boolean[] | null;
  /** in a placement set: the host that this entry represents */
  readonly origin: Host | null;
  /** in a node set: its entries in placement sets */
  readonly twins: Host[];
  bucket: HostBucket | null;
  /** later bookings there (calendar/calendar.ts); null: none */
  outlook: Outlook | null;
  /** order of its first vnode: hosts of equal rank are walked in this order */
  readonly order: number;
};

export type HostBucket = {
  readonly key: string;
  /** of its vnodes (place/host-bucket.ts) */
  readonly keys: readonly string[];
  readonly states: readonly VnodeState[];
  /** bookings of its hosts; null: none */
  readonly outlook: Outlook | null;
  /** states for windows with bookings, by the bookings in the window */
  readonly during: Map<string, readonly VnodeState[]>;
  /** Host.members of the hosts here */
  readonly members: readonly boolean[] | null;
  /** indices of the vnodes that belong to the set, in the order of node_sort_key */
  readonly walk: readonly number[];
  /** node_sort_key values, smaller first: of each vnode, and of the first free one */
  readonly ranks: readonly (readonly number[])[];
  readonly rank: readonly number[];
  /** amounts taken of each vnode */
  readonly used: readonly (readonly number[])[];
  /** total amounts of the vnodes of the set, free amounts of the open ones, and the number of these */
  readonly total: readonly number[];
  readonly free: readonly number[];
  readonly free_count: number;
  /** vnodes that every sharing job may use unless bookings close them; null: none, or it depends on the job */
  readonly open: readonly boolean[] | null;
  /** hosts here */
  count: number;
  /** heap of hosts by order; may hold hosts that have left */
  readonly heap: Host[];
  /** the result of the last job placed on one of its hosts (place/states-after.ts); null: none yet */
  left: PlacedStates | null;
};

/** The vnodes that jobs of a queue may use (U1); or a placement set: the vnodes among them that have the same value of a resource. */
export type NodeSet = {
  readonly key: string;
  /** of a placement set; else null */
  readonly group: { readonly name: string; readonly grouping: Grouping } | null;
  /** placement sets of these vnodes, by the key of the resources that form them */
  readonly groupings: Map<string, Grouping>;
  readonly hosts: Map<string, Host>;
  readonly vnodes: Map<string, Vnode>;
  /** by their key; some without hosts */
  readonly buckets: Map<string, HostBucket>;
  /** buckets with hosts */
  filled: number;
  /** buckets with hosts and a free vnode */
  readonly open: Set<HostBucket>;
  /** those of them on whose hosts something is booked */
  readonly booked: Set<HostBucket>;
  readonly total: number[];
  readonly free: number[];
  free_count: number;
  /** specs in use and how many vnodes have them */
  readonly specs: Map<VnodeSpec, number>;
  /** hosts with more than one vnode */
  multi_vnode_hosts: number;
  /** hosts in the order of definition; null: to be sorted again */
  in_order: readonly Host[] | null;
  /** the largest amounts of its open hosts (place/set-front.ts); null: not known */
  front: SetFront | null;
  /** the lowest order of its vnodes; null: to be found again */
  first_order: number | null;
};

/** The placement sets that one list of resources makes of a node set (node_group_key, place=group=). */
export type Grouping = {
  readonly key: string;
  readonly resources: readonly string[];
  /** vnodes without a value also form a set (only_explicit_psets False) */
  readonly rest: boolean;
  /** by name, `rack="A"` */
  readonly sets: Map<string, NodeSet>;
  /** smallest first, as of the last question */
  sorted: NodeSet[];
  /** sets whose amounts or members have changed since */
  readonly changed: Set<NodeSet>;
};

export type JobEntry = {
  job: SchedJob;
  readonly request: Request;
  /** position in its strand, smaller first: job_sort_key values, or the part of the formula's worth that belongs to the job */
  readonly order: readonly number[];
  readonly line: JobLine | null;
  readonly strand: Strand | null;
  /** its formula's worth is not above the threshold */
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
  /** heap: upper bounds of the strands' worth (order/track-cursor.ts); may hold bounds that no longer hold */
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
  /** no job crosses the threshold before */
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
  /** numbers given to specs and requests so far */
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
  /** of eligible time, by id */
  readonly clocks: Map<string, SchedClock>;
  /** runs with new usage, and those that are over, until they are counted (order/usage-count.ts). all: every run */
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
  /** resources_available of the server, and that */
  server_available: ReadonlyMap<string, number | string | boolean>;
};
