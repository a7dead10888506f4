// Placement sets (docs/reference/scheduler.md 5): the vnodes of a node set grouped by the values of a resource, so that a job stays in one rack, switch or
// cabinet. node_group_key of server and queues, and jobs with place=group=, name these resources. The mirror keeps the groupings up to date, and a cycle only
// reads them.
//
// G1. A vnode is in the set of each of its values (a string array has several). Without a value it is in the set `rack=""`, unless only_explicit_psets is set.
// G2. A grouping is made once, by visiting all vnodes of a node set. Afterwards only vnodes that change are visited (shapes/universe.ts U6).
// G3. Sets are tried smallest first: by cpus, then memory, then free cpus and memory, then in the order of their definition.

import type { SchedNode } from "#protocol/sched-link.ts";
import { present } from "#support/assert.ts";
import { firstPlace } from "#support/search.ts";
import { groupResources } from "../order/group-resources.ts";
import { nodeSetOf } from "../order/job-lines.ts";
import type { Queue } from "../shapes/job-line.ts";
import type { Request } from "../shapes/request.ts";
import type { Universe } from "../shapes/universe.ts";
import type { Grouping, Host, NodeSet } from "../shapes/vnode.ts";
import { recordOf } from "../shapes/vnode-state.ts";
import { addTwin, dropTwins, makeNodeSet } from "./node-sets.ts";

/** Makes the groupings that are wanted and drops all others. Then enters the hosts that are new or have changed. */
export function keepGroupings(universe: Universe): void {
  if (universe.groups_stale) updateGroupings(universe);
  for (const host of universe.ungrouped) group(universe, host);
  universe.ungrouped.clear();
}

function updateGroupings(universe: Universe): void {
  universe.groups_stale = false;
  const wanted = wantedGroupings(universe);
  const rest = universe.sched.attrs["only_explicit_psets"] !== true;
  for (const set of universe.sets.values()) {
    const lists = wanted.get(set.key) ?? new Map<string, readonly string[]>();
    const isSame = set.groupings.size === lists.size && [...set.groupings.values()].every((one) => lists.has(one.key) && one.rest === rest);
    if (isSame) continue;
    set.groupings.clear();
    for (const [key, resources] of lists) set.groupings.set(key, { key, resources, rest, sets: new Map(), sorted: [], changed: new Set() });
    for (const host of set.hosts.values()) {
      dropTwins(host);
      group(universe, host);
    }
  }
}

/** Returns for each node set the lists of resources by which its vnodes are to be grouped. */
function wantedGroupings(universe: Universe): Map<string, Map<string, readonly string[]>> {
  const wanted = new Map<string, Map<string, readonly string[]>>();
  for (const queue of universe.queues.values()) {
    if (!queue.execution) continue;
    const set = nodeSetOf(universe, queue);
    let lists = wanted.get(set);
    if (lists === undefined) wanted.set(set, (lists = new Map()));
    for (const resources of [groupResources(universe, queue), ...[...universe.asked_groups].map((name) => [name])])
      if (resources.length > 0) lists.set(keyOf(resources), resources);
  }
  return wanted;
}

const keyOf = (resources: readonly string[]): string => resources.join();

/** Enters a host in the placement sets of its node set. */
function group(universe: Universe, host: Host): void {
  const { set } = host;
  if (set.hosts.get(host.name) !== host || host.twins.length > 0) return;
  for (const grouping of set.groupings.values()) {
    for (const resource of grouping.resources) {
      const values = host.vnodes.map((vnode) => valuesOf(vnode.node, resource));
      for (const value of new Set(values.flatMap((own) => (own.length > 0 ? own : grouping.rest ? [""] : [])))) {
        const members = values.map((own) => (value === "" ? own.length === 0 : own.includes(value)));
        addTwin(universe, placementSet(universe, set, grouping, `${resource}="${value}"`), host, members);
      }
    }
  }
}

function valuesOf(node: SchedNode, resource: string): readonly string[] {
  const value = recordOf(node.attrs["resources_available"])[resource];
  if (value === undefined) return [];
  const text = typeof value === "boolean" ? (value ? "True" : "False") : String(value);
  return [...new Set(text.split(",").map((part) => part.trim()))].filter((part) => part !== "");
}

function placementSet(universe: Universe, of: NodeSet, grouping: Grouping, name: string): NodeSet {
  let set = grouping.sets.get(name);
  if (set === undefined) grouping.sets.set(name, (set = makeNodeSet(universe, `${of.key}\n${grouping.key}\n${name}`, { name, grouping })));
  return set;
}

/** Returns the grouping for a job of a queue; null: the job may use all vnodes of the set. */
export function groupingFor(universe: Universe, set: NodeSet, queue: Queue | undefined, { place, resumes }: Request): Grouping | null {
  if (resumes === true) return null;
  const resources = place.group === undefined ? groupResources(universe, queue) : [place.group];
  return resources.length === 0 ? null : (set.groupings.get(keyOf(resources)) ?? null);
}

/** Returns the placement sets of a grouping, smallest first (G3). Only sets whose vnodes have changed since the last call get another position. */
export function setsInOrder(universe: Universe, grouping: Grouping): readonly NodeSet[] {
  const { changed, sorted, sets } = grouping;
  if (changed.size === 0) return sorted;
  const before = orderOf(universe, grouping);
  if (changed.size * 4 > sets.size) grouping.sorted = [...sets.values()].sort((a, b) => (before(a, b) ? -1 : 1));
  else {
    grouping.sorted = sorted.filter((set) => !changed.has(set));
    for (const set of changed) insert(grouping.sorted, set, before);
  }
  changed.clear();
  return grouping.sorted;
}

type Before = (a: NodeSet, b: NodeSet) => boolean;

function orderOf({ space }: Universe, { resources }: Grouping): Before {
  const mem = space.all.get("mem")?.index ?? -1;
  const counted = [space.ncpus, mem].filter((at) => at >= 0);
  return (a, b) => {
    for (const amounts of ["total", "free"] as const)
      for (const at of counted) {
        const [left, right] = [present(a[amounts][at], "value"), present(b[amounts][at], "value")];
        if (left !== right) return left < right;
      }
    const [left, right] = [resourceOf(resources, a), resourceOf(resources, b)];
    if (left !== right) return left < right;
    const [first, second] = [firstOrder(a), firstOrder(b)];
    return first < second || (first === second && (a.group?.name ?? "") < (b.group?.name ?? ""));
  };
}

const resourceOf = (resources: readonly string[], { group: own }: NodeSet): number =>
  resources.findIndex((name) => own?.name.startsWith(`${name}="`) === true);

function firstOrder(set: NodeSet): number {
  if (set.first_order === null) {
    set.first_order = Number.POSITIVE_INFINITY;
    for (const { order } of set.vnodes.values()) if (order < set.first_order) set.first_order = order;
  }
  return set.first_order;
}

function insert(sets: NodeSet[], set: NodeSet, before: Before): void {
  const at = firstPlace(sets, (other) => before(set, other));
  sets.splice(at, 0, set);
}
