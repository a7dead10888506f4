// Vnodes in sets, hosts in buckets of equal hosts (universe.ts U1, U2, U6). Types only: place/node-sets.ts and place/host-bucket.ts make and keep them.

import type { SchedNode } from "#protocol/sched-link.ts";
import type { Outlook } from "./booking.ts";
import type { Request } from "./request.ts";
import type { ResourceSpace } from "./resource-space.ts";

/** The properties of a vnode apart from its jobs; equal vnodes share one object. */
export type VnodeSpec = {
  readonly id: number;
  /** by resource index; Infinity: the resource is unset and counts as infinite */
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
  /** total amounts of the vnodes of the set; free amounts of its open vnodes; number of its open vnodes */
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
  /** the buckets of `open` on whose hosts something is booked */
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

export type SetFront = {
  /** The amounts that the free vnodes of one host have left together, by resource, for hosts that no other host exceeds in every resource. */
  readonly corners: readonly (readonly number[])[];
  readonly first: { readonly host: Host; readonly bucket: HostBucket } | null;
};

export type PlacedHost = {
  readonly states: readonly VnodeState[];
  /** the states that the search used: the present ones, or the amounts at the worst moment of its window */
  readonly shown: readonly VnodeState[];
  /** the amounts of each vnode that are taken then, with the job */
  readonly used: readonly (readonly number[])[];
  /** vnodes that have a chunk of the job */
  readonly taken: readonly boolean[];
};

/** The result of a job on a host, and the states it came from. */
export type PlacedStates = {
  readonly space: ResourceSpace;
  readonly request: Request;
  readonly of: PlacedHost;
  readonly states: readonly VnodeState[];
};

/** A host and the bucket it was in. */
export type Move = readonly [Host, HostBucket];
