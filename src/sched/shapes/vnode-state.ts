// Derives from a vnode's attributes its spec (one object for equal attributes), its state, its set and its host.

import { isNodeUsable } from "#model/values/node-state.ts";
import type { SchedNode } from "#protocol/sched-link.ts";
import { isRecord, isTextList } from "#support/guards.ts";
import { amountOf, matchedOf } from "./resource-space.ts";
import type { Universe } from "./universe.ts";
import type { NodeSet, Vnode, VnodeSpec, VnodeState } from "./vnode.ts";

/** Returns the key of the set to which a vnode belongs. */
export function setKeyOfNode(node: SchedNode): string {
  return nodeSetKey(partitionOf(node.attrs["partition"]), textOf(node.attrs["queue"]));
}

export function nodeSetKey(partition: string, queue: string): string {
  return `${partition}\n${queue}`;
}

/** Returns the key of a running reservation's set. No node set of a partition has such a key. */
export function resvSetKey(id: string): string {
  return `resv\n${id}\n`;
}

/** Returns a partition by its name in an attribute. "" means the partition of the default scheduler: the attribute is unset or pbs-default. */
export function partitionOf(value: unknown): string {
  const name = textOf(value);
  return name === "pbs-default" ? "" : name;
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}

/** Returns the host of a vnode: its resource `host`, otherwise the first host of its moms, otherwise its own name. */
export function hostOf(node: SchedNode): string {
  const host = recordOf(node.attrs["resources_available"])["host"];
  if (typeof host === "string") return host;
  const moms = node.attrs["Mom"];
  const mom = Array.isArray(moms) ? moms[0] : moms;
  return typeof mom === "string" ? mom : node.name;
}

/** Returns the spec of a vnode's attributes under the present policy. */
export function specOf(universe: Universe, node: SchedNode): VnodeSpec {
  const counted = node.attrs["max_user_run"] !== undefined || node.attrs["max_group_run"] !== undefined;
  const { attrs } = node;
  const key = JSON.stringify([
    ownResources(universe, attrs),
    attrs["sharing"],
    attrs["no_multinode_jobs"],
    attrs["max_running"],
    attrs["max_user_run"],
    attrs["max_group_run"],
    attrs["Priority"],
    attrs["resv_enable"] === false,
    counted ? node.name : "",
    attrs["runner_bucket"],
    isCrowded(universe, node),
  ]);
  return internSpec(universe, key, (id) => makeSpec(universe, node, id));
}

/** Returns the spec with this key; there is only one. Makes it, with a new number, when it is first requested. */
export function internSpec(universe: Universe, key: string, make: (id: number) => VnodeSpec): VnodeSpec {
  let spec = universe.specs.get(key);
  if (spec === undefined) {
    if (universe.specs.size > SPECS_KEPT + 2 * universe.vnodes.size) forgetSpecs(universe);
    universe.specs.set(key, (spec = make(universe.next_id++)));
  }
  return spec;
}

const SPECS_KEPT = 1000;

/** Removes specs that no vnode has, because attributes of vnodes may change all the time. */
function forgetSpecs(universe: Universe): void {
  const used = new Set([...universe.sets.values()].flatMap((set) => [...set.specs.keys()]));
  for (const [key, spec] of universe.specs) if (!used.has(spec)) universe.specs.delete(key);
}

/**
 * Returns resources_available without the names of the vnode. Of the environments with which the vnode could be provisioned it has only the current one,
 * because nothing is provisioned. For resources that jobs use up (flag n) the administrator's value counts. For others the mom's value counts if mom_resources
 * names the resource.
 */
function ownResources({ policy, space }: Universe, attrs: SchedNode["attrs"]): [string, unknown][] {
  const own = recordOf(attrs["resources_available"]);
  const isAsked = (name: string): boolean => policy.mom_resources.has(name) && (space.all.get(name)?.index ?? -1) < 0;
  const said = policy.mom_resources.size === 0 ? [] : Object.entries(recordOf(attrs["site_resources"])).filter(([name]) => isAsked(name));
  const current = attrs["current_aoe"];
  return Object.entries(said.length === 0 ? own : { ...own, ...Object.fromEntries(said) }).flatMap(([name, value]): [string, unknown][] => {
    if (name === "host" || name === "vnode") return [];
    if (name !== "aoe") return [[name, value]];
    return current === undefined ? [] : [[name, current]];
  });
}

function makeSpec(universe: Universe, node: SchedNode, id: number): VnodeSpec {
  const { space, policy } = universe;
  const avail = space.consumed.map(({ name }) => (policy.resource_unset_infinite.has(name) ? Number.POSITIVE_INFINITY : 0));
  const matches = new Map<string, string | boolean>();
  const levels = new Map<string, number>();
  for (const [name, value] of ownResources(universe, node.attrs)) {
    const resource = space.all.get(name);
    const amount = amountOf(resource, value);
    if (amount === null) matches.set(name, matchedOf(resource, value));
    else if (resource !== undefined && resource.index >= 0) avail[resource.index] = amount;
    else levels.set(name, amount);
  }
  const number = (name: string): number | undefined => {
    const value = node.attrs[name];
    return typeof value === "number" ? value : undefined;
  };
  return {
    id,
    avail,
    matches,
    levels,
    sharing: textOf(node.attrs["sharing"]) || "default_shared",
    no_multinode_jobs: node.attrs["no_multinode_jobs"] === true,
    max_running: number("max_running"),
    max_user_run: number("max_user_run"),
    max_group_run: number("max_group_run"),
    priority: number("Priority") ?? 0,
    resv_enable: node.attrs["resv_enable"] !== false,
    bucket: textOf(node.attrs["runner_bucket"]) || undefined,
    crowded: isCrowded(universe, node),
  };
}

/** The state words that keep jobs off a vnode because other jobs or reservations have it, and not because it is unusable. */
const TAKEN = ["job-busy", "job-exclusive", "resv-exclusive"];
/** Returns whether a state word only says that jobs or reservations have the vnode. */
export const isTaken = (word: string | undefined): boolean => word !== undefined && TAKEN.includes(word);

export function vnodeState(universe: Universe, node: SchedNode, spec: VnodeSpec): VnodeState {
  const used = universe.space.consumed.map(({ name }) => node.assigned[name] ?? 0);
  const words = stateWords(node);
  // Of several words, one that keeps jobs away even after the present jobs have ended is taken before others.
  const closed = words.find((word) => !isTaken(word) && !isNodeUsable([word])) ?? words.find(isTaken);
  let jobs = spec.max_running === undefined ? Math.min(1, node.jobs.length) : new Set(node.jobs).size;
  for (const { present } of universe.resvs_on.get(node.name) ?? []) if (present?.holding.get(node.name)?.own === true) jobs++;
  return { spec, used, closed, jobs: spec.max_running === undefined ? Math.min(1, jobs) : jobs };
}

/** Returns the words of a vnode's state. */
export function stateWords(node: SchedNode): readonly string[] {
  const { state } = node.attrs;
  return isTextList(state) ? state : typeof state === "string" ? [state] : [];
}

export function recordOf(value: unknown): Readonly<Record<string, unknown>> {
  return isRecord(value) ? value : {};
}

// --- hosts with vnodes in several sets

/** Notes that a host has a vnode in a set. Other sets may also have vnodes of that host. */
export function shareHost({ sets, shared_hosts }: Universe, set: NodeSet, host: string): void {
  for (const other of sets.values()) {
    if (other === set || !other.hosts.has(host)) continue;
    const sharing = shared_hosts.get(host) ?? new Set();
    shared_hosts.set(host, sharing.add(other).add(set));
  }
}

/** Notes that a set no longer has a vnode of a host. */
export function unshareHost({ shared_hosts }: Universe, set: NodeSet, host: string): void {
  const sharing = shared_hosts.get(host);
  sharing?.delete(set);
  if (sharing?.size === 1) shared_hosts.delete(host);
}

/**
 * Returns the vnodes of a host in these sets for which `crowded` must change, because vnodes in other sets are now in use or free. Vnodes that a running
 * reservation gives its jobs do not count (resv/resv-sets.ts).
 */
export function misjudged(universe: Universe, host: string, sets: Iterable<NodeSet>): readonly Vnode[] {
  const vnodes = [...sets].flatMap((set) => set.hosts.get(host)?.vnodes ?? []);
  return vnodes.filter(
    (vnode) => universe.vnodes.get(vnode.node.name) === vnode && vnode.state.spec.crowded !== isCrowded(universe, vnode.node),
  );
}

/** Returns whether vnodes of the same host in other sets are in use. That matters to jobs that need the host exclusively. */
function isCrowded({ shared_hosts }: Universe, node: SchedNode): boolean {
  if (node.crowded === true) return true;
  if (shared_hosts.size === 0) return false;
  const host = hostOf(node);
  const own = setKeyOfNode(node);
  for (const set of shared_hosts.get(host) ?? []) {
    if (set.key === own) continue;
    for (const { state } of set.hosts.get(host)?.vnodes ?? []) if (state.jobs > 0 && state.spec.sharing !== "ignore_excl") return true;
  }
  return false;
}
