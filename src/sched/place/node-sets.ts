// Vnodes in sets, hosts in buckets (shapes/universe.ts U1, U2): keeps the spec and the state of each vnode, and moves hosts between buckets when these change.
// The mirror moves hosts permanently; a cycle moves them for its placements and back. A host also has entries in placement sets (twins), which
// placement-sets.ts makes. They move with the host (U6).

import type { SchedNode } from "#protocol/sched-link.ts";
import { heapPop, heapPush } from "#support/heap.ts";
import type { Outlook } from "../shapes/booking.ts";
import type { Policy } from "../shapes/policy.ts";
import { amountAt } from "../shapes/resource-space.ts";
import type { Universe } from "../shapes/universe.ts";
import type { Host, HostBucket, Move, NodeSet, Vnode, VnodeSpec, VnodeState } from "../shapes/vnode.ts";
import { hostOf, misjudged, recordOf, setKeyOfNode, shareHost, specOf, unshareHost, vnodeState } from "../shapes/vnode-state.ts";
import { type BucketParts, bucketKey, makeBucket, vnodeKeys } from "./host-bucket.ts";
import { outlookOf } from "./outlook.ts";

const byOrder = (a: Host, b: Host): boolean => a.order < b.order;

/** Adds vnodes to a universe that has none. Each host is made once, not again for each of its vnodes. */
export function addVnodes(universe: Universe, nodes: Iterable<SchedNode>): void {
  const found = new Map<Host, Vnode[]>();
  for (const node of nodes) {
    const vnode = enterVnode(universe, node, vnodeState(universe, node, specOf(universe, node)));
    const there = found.get(vnode.host);
    if (there === undefined) found.set(vnode.host, [vnode]);
    else there.push(vnode);
  }
  for (const [host, vnodes] of found)
    remakeHost(
      universe,
      host.set,
      host,
      vnodes.sort((a, b) => a.order - b.order),
    );
  for (const name of new Set([...found.keys()].map((host) => host.name))) judgeAgain(universe, name);
}

/** Adds a vnode, or replaces it by its new state. */
export function putVnode(universe: Universe, node: SchedNode): void {
  const old = universe.vnodes.get(node.name);
  const key = setKeyOfNode(node);
  const host = hostOf(node);
  if (old !== undefined && (old.set.key !== key || old.host.name !== host || old.order !== node.order)) dropVnode(universe, node.name);
  const spec = specOf(universe, node);
  const state = vnodeState(universe, node, spec);
  const vnode = universe.vnodes.get(node.name);
  if (vnode === undefined) addVnode(universe, node, state);
  else {
    const { set, host: of } = vnode;
    if (regroups(set, vnode.node, node)) {
      dropTwins(of);
      universe.ungrouped.add(of);
    }
    vnode.node = node;
    if (vnode.state.spec !== spec) {
      for (const each of setsOf(vnode)) {
        countSpec(each, vnode.state.spec, -1);
        countSpec(each, spec, 1);
      }
    }
    vnode.state = state;
    settle(universe, of);
  }
  judgeAgain(universe, host);
}

const NO_SETS: readonly NodeSet[] = [];

/** Computes the states of a host's vnodes in several sets again, because each depends on whether the host is in use in the others (shapes/vnode-state.ts). */
function judgeAgain(universe: Universe, host: string, sets: Iterable<NodeSet> = universe.shared_hosts.get(host) ?? NO_SETS): void {
  for (const { node } of misjudged(universe, host, sets)) putVnode(universe, node);
}

export function dropVnode(universe: Universe, name: string): void {
  const vnode = universe.vnodes.get(name);
  if (vnode === undefined) return;
  const { set, host } = vnode;
  dropTwins(host);
  detach(set, host);
  universe.vnodes.delete(name);
  set.vnodes.delete(name);
  countSpec(set, vnode.state.spec, -1);
  remakeHost(
    universe,
    set,
    host,
    host.vnodes.filter((other) => other !== vnode),
  );
  const sharing = [...(universe.shared_hosts.get(host.name) ?? [])];
  if (!set.hosts.has(host.name)) unshareHost(universe, set, host.name);
  if (set.vnodes.size === 0) {
    universe.sets.delete(set.key);
    universe.regroup = true;
  }
  judgeAgain(universe, host.name, sharing);
}

function addVnode(universe: Universe, node: SchedNode, state: VnodeState): void {
  const vnode = enterVnode(universe, node, state);
  const { set, host: old } = vnode;
  dropTwins(old);
  detach(set, old);
  remakeHost(
    universe,
    set,
    old,
    [...old.vnodes, vnode].sort((a, b) => a.order - b.order),
  );
}

/** Enters a vnode in its set, on a host that does not have it yet. */
function enterVnode(universe: Universe, node: SchedNode, state: VnodeState): Vnode {
  const set = setOf(universe, setKeyOfNode(node));
  const name = hostOf(node);
  let host = set.hosts.get(name);
  if (host === undefined) {
    shareHost(universe, set, name);
    set.hosts.set(name, (host = newHost(set, name, [], null)));
  }
  const vnode: Vnode = { name: node.name, order: node.order, set, host, node, state };
  universe.vnodes.set(node.name, vnode);
  set.vnodes.set(node.name, vnode);
  countSpec(set, state.spec, 1);
  return vnode;
}

/**
 * Replaces a host by a new object with other vnodes. The object itself must not change, because heaps may still contain it and order hosts by their first
 * vnode.
 */
function remakeHost(universe: Universe, set: NodeSet, old: Host, vnodes: Vnode[]): void {
  if (old.vnodes.length > 1) set.multi_vnode_hosts--;
  if (vnodes.length > 1) set.multi_vnode_hosts++;
  set.in_order = null;
  universe.ungrouped.delete(old);
  if (vnodes.length === 0) {
    set.hosts.delete(old.name);
    return;
  }
  const host = newHost(set, old.name, vnodes, outlookOf(universe, vnodes));
  for (const vnode of vnodes) vnode.host = host;
  set.hosts.set(host.name, host);
  universe.ungrouped.add(host);
  settle(universe, host);
}

/** Returns a host of a node set that is in no bucket yet. */
export function newHost(set: NodeSet, name: string, vnodes: readonly Vnode[], outlook: Outlook | null): Host {
  return { name, set, vnodes, members: null, origin: null, twins: [], bucket: null, outlook, order: vnodes[0]?.order ?? 0 };
}

/** Returns the node set and the placement sets that contain a vnode. */
function setsOf({ set, host, name }: Vnode): NodeSet[] {
  return [set, ...host.twins.map((twin) => twin.set).filter((each) => each.vnodes.has(name))];
}

/** Returns whether the new values of a vnode change its placement sets. */
function regroups(set: NodeSet, old: SchedNode, node: SchedNode): boolean {
  if (set.groupings.size === 0) return false;
  const [before, after] = [recordOf(old.attrs["resources_available"]), recordOf(node.attrs["resources_available"])];
  for (const { resources } of set.groupings.values())
    if (resources.some((name) => String(before[name] ?? "") !== String(after[name] ?? ""))) return true;
  return false;
}

/** Removes the entries for the host in placement sets. */
export function dropTwins(host: Host): void {
  for (const twin of host.twins.splice(0)) {
    const { set } = twin;
    detach(set, twin);
    set.hosts.delete(twin.name);
    set.in_order = set.first_order = null;
    if (twin.vnodes.length > 1) set.multi_vnode_hosts--;
    twin.vnodes.forEach((vnode, at) => {
      if (twin.members?.[at] === false) return;
      set.vnodes.delete(vnode.name);
      countSpec(set, vnode.state.spec, -1);
    });
    if (set.vnodes.size === 0 && set.group !== null) dropPlacementSet(set, set.group);
  }
}

function dropPlacementSet(set: NodeSet, { name, grouping }: NonNullable<NodeSet["group"]>): void {
  grouping.sets.delete(name);
  grouping.changed.delete(set);
  grouping.sorted = grouping.sorted.filter((other) => other !== set);
}

/** Enters the host in a placement set with some of its vnodes. */
export function addTwin(universe: Universe, set: NodeSet, origin: Host, members: readonly boolean[]): void {
  const { name, vnodes, outlook } = origin;
  const order = vnodes[members.indexOf(true)]?.order ?? origin.order;
  const twin: Host = { ...newHost(set, name, vnodes, outlook), members: members.includes(false) ? members : null, origin, order };
  origin.twins.push(twin);
  set.hosts.set(name, twin);
  set.in_order = set.first_order = null;
  if (vnodes.length > 1) set.multi_vnode_hosts++;
  vnodes.forEach((vnode, at) => {
    if (members[at] !== true) return;
    set.vnodes.set(vnode.name, vnode);
    countSpec(set, vnode.state.spec, 1);
  });
  const states = origin.bucket?.states ?? vnodes.map((vnode) => vnode.state);
  attach(set, twin, bucketOf(set, universe.policy, universe, { states, outlook, members: twin.members }, null));
}

function setOf(universe: Universe, key: string): NodeSet {
  let set = universe.sets.get(key);
  if (set === undefined) {
    universe.sets.set(key, (set = makeNodeSet(universe, key)));
    universe.regroup = true;
  }
  return set;
}

/** Makes a set without vnodes. group: the name and the grouping of a placement set; null: the set is a node set. */
export function makeNodeSet(universe: Universe, key: string, group: NodeSet["group"] = null): NodeSet {
  const zeros = (): number[] => universe.space.consumed.map(() => 0);
  return {
    key,
    group,
    groupings: new Map(),
    hosts: new Map(),
    vnodes: new Map(),
    buckets: new Map(),
    open: new Set(),
    booked: new Set(),
    total: zeros(),
    free: zeros(),
    free_count: 0,
    filled: 0,
    specs: new Map(),
    multi_vnode_hosts: 0,
    in_order: null,
    front: null,
    first_order: null,
  };
}

function countSpec(set: NodeSet, spec: VnodeSpec, sign: 1 | -1): void {
  const count = (set.specs.get(spec) ?? 0) + sign;
  if (count === 0) set.specs.delete(spec);
  else set.specs.set(spec, count);
}

/** Puts a host, and its entries in placement sets, into the buckets for the present states of its vnodes. */
export function settle(universe: Universe, host: Host): void {
  // A running reservation gives its jobs vnodes of their own, on which nothing is booked.
  if (universe.vnodes.get(host.vnodes[0]?.name ?? "")?.host === host) host.outlook = outlookOf(universe, host.vnodes);
  const states = host.vnodes.map((vnode) => vnode.state);
  for (const each of [host, ...host.twins]) {
    const was = detach(each.set, each);
    attach(each.set, each, bucketOf(each.set, universe.policy, universe, { states, outlook: host.outlook, members: each.members }, was));
  }
}

/**
 * Puts a host into the bucket for new states of its vnodes, together with its other entries. of: the old bucket of the host, if the
 * host was already taken out of it. Returns
 * each entry with its old bucket, the given host first, so that undoMoves can take the moves back.
 */
export function moveHost(universe: Universe, policy: Policy, host: Host, states: readonly VnodeState[], of?: HostBucket): Move[] {
  const origin = host.origin ?? host;
  const bucketFor = (each: Host, was: HostBucket | null): HostBucket =>
    bucketOf(each.set, policy, universe, { states, outlook: origin.outlook, members: each.members }, was);
  const to = bucketFor(host, of ?? host.bucket);
  if (of === undefined && host.bucket === to) return [];
  const moved: Move[] = [];
  const move = (each: Host, was: HostBucket | null, into: HostBucket): void => {
    attach(each.set, each, into);
    if (was !== null) moved.push([each, was]);
  };
  const moveOther = (each: Host): void => {
    const was = detach(each.set, each);
    move(each, was, bucketFor(each, was));
  };
  move(host, of ?? detach(host.set, host), to);
  if (origin !== host) moveOther(origin);
  for (const twin of origin.twins) if (twin !== host) moveOther(twin);
  return moved;
}

/** Puts hosts back into the buckets of their old states. The bookings on them may have changed meanwhile. */
export function undoMoves(universe: Universe, moved: Iterable<Move>): void {
  for (const [host, bucket] of moved) {
    detach(host.set, host);
    const { outlook } = host.origin ?? host;
    const { states } = bucket;
    const parts = { states, outlook, members: host.members };
    const back = bucket.outlook === outlook ? bucket : bucketOf(host.set, universe.policy, universe, parts, bucket);
    attach(host.set, host, back);
  }
}

/** Returns the hosts of a set in the order of definition. */
export function hostsInOrder(set: NodeSet): readonly Host[] {
  set.in_order ??= [...set.hosts.values()].sort((a, b) => a.order - b.order);
  return set.in_order;
}

/** Largest number of empty buckets that are kept, because hosts often return to them soon. */
const EMPTY_BUCKETS_KEPT = 256;

/**
 * Returns the bucket of hosts whose vnodes are in these states. Makes it if there is none. like: a bucket that is mostly the same, such as the host's
 * old one; null: none.
 */
function bucketOf(set: NodeSet, policy: Policy, universe: Universe, parts: BucketParts, like: HostBucket | null): HostBucket {
  const keys = vnodeKeys(parts, like);
  const key = bucketKey(parts, keys);
  let bucket = set.buckets.get(key);
  if (bucket === undefined) {
    if (set.buckets.size > 2 * set.filled + EMPTY_BUCKETS_KEPT)
      for (const [old, { count }] of set.buckets) if (count === 0) set.buckets.delete(old);
    set.buckets.set(key, (bucket = makeBucket(universe, policy, parts, { key, keys, like })));
  }
  return bucket;
}

/** Puts a host that is in no bucket into one, and returns the bucket. */
export function attach(set: NodeSet, host: Host, wanted: HostBucket): HostBucket {
  const bucket = set.buckets.get(wanted.key) ?? wanted;
  if (bucket === wanted) set.buckets.set(bucket.key, bucket);
  host.bucket = bucket;
  if (bucket.heap.length > 2 * bucket.count + 64) compact(bucket);
  heapPush(bucket.heap, host, byOrder);
  bucket.count++;
  if (bucket.count === 1) {
    set.filled++;
    if (bucket.free_count > 0) {
      set.open.add(bucket);
      if (bucket.outlook !== null) set.booked.add(bucket);
    }
  }
  addSums(set, bucket, 1);
  return bucket;
}

/** Takes a host out of its bucket, and returns the bucket; null: the host was in none. */
export function detach(set: NodeSet, host: Host): HostBucket | null {
  const { bucket } = host;
  if (bucket === null) return null;
  host.bucket = null;
  bucket.count--;
  addSums(set, bucket, -1);
  if (bucket.count === 0) {
    set.filled--;
    set.open.delete(bucket);
    set.booked.delete(bucket);
    bucket.heap.length = 0;
  }
  return bucket;
}

function addSums(set: NodeSet, bucket: HostBucket, sign: 1 | -1): void {
  set.front = null;
  set.group?.grouping.changed.add(set);
  set.free_count += sign * bucket.free_count;
  for (let at = 0; at < set.total.length; at++) {
    set.total[at] = amountAt(set.total, at) + sign * amountAt(bucket.total, at);
    set.free[at] = amountAt(set.free, at) + sign * amountAt(bucket.free, at);
  }
}

/** Returns the first host of a bucket in the order of the walk; undefined: the bucket has no host. */
export function firstHost(bucket: HostBucket): Host | undefined {
  for (;;) {
    const host = bucket.heap[0];
    if (host === undefined || host.bucket === bucket) return host;
    heapPop(bucket.heap, byOrder);
  }
}

/** Removes the entries of hosts that have left the bucket from its heap. */
function compact(bucket: HostBucket): void {
  const hosts = new Set(bucket.heap.filter((host) => host.bucket === bucket));
  bucket.heap.length = 0;
  // a sorted array is a heap
  for (const host of [...hosts].sort((a, b) => a.order - b.order)) bucket.heap.push(host);
}

/** Computes a vnode's state again after a reservation on it began or ended. That matters to jobs that need the vnode exclusively. */
export function recountVnode(universe: Universe, name: string): void {
  const vnode = universe.vnodes.get(name);
  if (vnode === undefined) return;
  vnode.state = vnodeState(universe, vnode.node, vnode.state.spec);
  settle(universe, vnode.host);
  judgeAgain(universe, vnode.host.name);
}
