// Vnodes in sets, hosts in buckets of equal hosts (universe.ts U1, U2, U6). Types only: place/node-sets.ts and place/host-bucket.ts make them and keep
// them up to date.

import type { SchedNode } from "#protocol/sched-link.ts";
import type { Outlook } from "./booking.ts";
import type { Request } from "./request.ts";
import type { ResourceSpace } from "./resource-space.ts";

/** The properties of a vnode that do not depend on its jobs. Vnodes with equal properties share one object. */
export type VnodeSpec = {
  readonly id: number;
  /** amounts that the vnode has in total, by resource index; Infinity: the resource is unset and counts as infinite */
  readonly avail: readonly number[];
  readonly matches: ReadonlyMap<string, string | boolean>;
  readonly levels: ReadonlyMap<string, number>;
  readonly sharing: string;
  readonly no_multinode_jobs: boolean;
  readonly max_running: number | undefined;
  readonly max_user_run: number | undefined;
  readonly max_group_run: number | undefined;
  readonly priority: number;
  /** whether reservations may use the vnode */
  readonly resv_enable: boolean;
  /** for a runner: the key of the bucket whose jobs it takes */
  readonly bucket: string | undefined;
  /** whether vnodes of its host that are in other sets are in use */
  readonly crowded: boolean;
};

/** A vnode's spec, and what jobs and reservations take of the vnode. */
export type VnodeState = {
  readonly spec: VnodeSpec;
  readonly used: readonly number[];
  /** the state word that keeps jobs off the vnode; undefined: the vnode is free */
  readonly closed: string | undefined;
  /** in the state for a window: plans that have begun by then make the vnode job-busy, so that no job can be started there */
  readonly busy?: boolean;
  /** number of jobs and running reservations on the vnode; if no limit counts them, 1 if there are any, otherwise 0 */
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
  /** its vnodes in the order of definition */
  readonly vnodes: readonly Vnode[];
  /** in a placement set: whether each vnode belongs to the set; null: all do */
  readonly members: readonly boolean[] | null;
  /** in a placement set: the host in the node set for which this entry stands; null: this is that host */
  readonly origin: Host | null;
  /** for a host in a node set: its entries in placement sets */
  readonly twins: Host[];
  bucket: HostBucket | null;
  /** the bookings on the host (calendar/calendar.ts); null: none */
  outlook: Outlook | null;
  /** position of its first vnode in the order of definition; hosts with equal values of node_sort_key are tried in this order */
  readonly order: number;
};

export type HostBucket = {
  readonly key: string;
  /** the keys of its vnodes (place/host-bucket.ts) */
  readonly keys: readonly string[];
  readonly states: readonly VnodeState[];
  /** the bookings on its hosts; null: none */
  readonly outlook: Outlook | null;
  /** the states of the vnodes for windows with bookings, by the key of the bookings in the window */
  readonly during: Map<string, readonly VnodeState[]>;
  /** Host.members of the hosts in this bucket */
  readonly members: readonly boolean[] | null;
  /** indices of the vnodes that belong to the set, in the order of node_sort_key */
  readonly walk: readonly number[];
  /** values of node_sort_key, smaller first: the values of each vnode, and the values of the first free vnode */
  readonly ranks: readonly (readonly number[])[];
  readonly rank: readonly number[];
  /** the amounts that are taken of each vnode */
  readonly used: readonly (readonly number[])[];
  /** total amounts of those vnodes that belong to the set; free amounts of the open ones among them; number of open ones */
  readonly total: readonly number[];
  readonly free: readonly number[];
  readonly free_count: number;
  /** whether each vnode may be used by any job that does not request exclusive use, unless bookings close it; null: none may, or it depends on the job */
  readonly open: readonly boolean[] | null;
  /** number of hosts in this bucket */
  count: number;
  /** the hosts as a heap in the order of definition; may contain hosts that have left the bucket */
  readonly heap: Host[];
  /** the result of the last placement of a job on one of its hosts (place/states-after.ts); null: none yet */
  left: PlacedStates | null;
};

/** The vnodes that jobs of a queue may use (U1). A placement set consists of the vnodes among them that have the same value of a resource. */
export type NodeSet = {
  readonly key: string;
  /** for a placement set, its name and its grouping; null: this is a node set */
  readonly group: { readonly name: string; readonly grouping: Grouping } | null;
  /** for a node set: its groupings into placement sets, by the key of the resources that form them */
  readonly groupings: Map<string, Grouping>;
  readonly hosts: Map<string, Host>;
  readonly vnodes: Map<string, Vnode>;
  /** the buckets by their keys; some have no hosts */
  readonly buckets: Map<string, HostBucket>;
  /** number of buckets with hosts */
  filled: number;
  /** the buckets that have hosts and a free vnode */
  readonly open: Set<HostBucket>;
  /** the buckets of `open` on whose hosts something is booked */
  readonly booked: Set<HostBucket>;
  readonly total: number[];
  readonly free: number[];
  free_count: number;
  /** the specs of its vnodes, each with the number of vnodes that have it */
  readonly specs: Map<VnodeSpec, number>;
  /** number of hosts with more than one vnode */
  multi_vnode_hosts: number;
  /** hosts in the order of definition; null: they must be sorted again */
  in_order: readonly Host[] | null;
  /** the largest amounts that its open hosts have left (place/set-front.ts); null: not known */
  front: SetFront | null;
  /** the lowest position of its vnodes in the order of definition; null: it must be found again */
  first_order: number | null;
};

/** The placement sets into which one list of resources (node_group_key, place=group=) divides a node set. */
export type Grouping = {
  readonly key: string;
  readonly resources: readonly string[];
  /** whether vnodes without a value also form a set (only_explicit_psets is False) */
  readonly rest: boolean;
  /** the placement sets by name, such as `rack="A"` */
  readonly sets: Map<string, NodeSet>;
  /** the placement sets, smallest first, as they were when setsInOrder was last called */
  sorted: NodeSet[];
  /** sets whose amounts or members have changed since then */
  readonly changed: Set<NodeSet>;
};

export type SetFront = {
  /**
   * The amounts by resource that the free vnodes of a host have left together, for each host that no other host exceeds in
   * every resource.
   */
  readonly corners: readonly (readonly number[])[];
  readonly first: { readonly host: Host; readonly bucket: HostBucket } | null;
};

export type PlacedHost = {
  readonly states: readonly VnodeState[];
  /** the states that the search used: the present ones, or those with the amounts at the worst moment of its window */
  readonly shown: readonly VnodeState[];
  /** the amounts that are taken of each vnode in these states, including those of the job */
  readonly used: readonly (readonly number[])[];
  /** whether each vnode has a chunk of the job */
  readonly taken: readonly boolean[];
};

/** The states of a host after a job was placed on it (`of`: the host before). */
export type PlacedStates = {
  readonly space: ResourceSpace;
  readonly request: Request;
  readonly of: PlacedHost;
  readonly states: readonly VnodeState[];
};

/** A host that was moved, and the bucket in which it was before. */
export type Move = readonly [Host, HostBucket];
