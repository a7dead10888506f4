// Resolves the resource request of a job into what the server stores: adds defaults, converts old-style requests to select
// and place, computes job-wide sums and schedselect (docs/reference/commands.md 1.2). The result depends only on the
// request, the defaults of queue and server, and the definitions of resources.
//
// Steps: 1. check the request for conflicts
//        2. add job-wide defaults: resources_default, then resources_max, first the queue's, then the server's
//        3. if there is no select, make one from nodes or from the job-wide amounts
//        4. place
//        5. make schedselect, which is select with default_chunk
//        6. set the job-wide amounts to the sums of schedselect, and nodect to the number of chunks
// I1. If a request has a select, its job-wide amounts of chunk resources are exactly the sums over the chunks.
// I2. If a resolved old-style request (isOldStyle) is resolved again, the result is the same.

import type { ResourceValue, ResourceValues } from "../attribute.ts";
import { PBSE, reject, rejectNaming } from "../pbse.ts";
import { hasFlag, type Resources } from "../resource-table.ts";
import { byName, renderResourceList } from "../values/resource-list.ts";
import { renderResourceValue } from "../values/resource-value.ts";
import { parseNodesSpec } from "./nodes-spec.ts";
import { parsePlace } from "./place.ts";
import {
  canonicalSelect,
  checkSelect,
  chunkCount,
  pairOf,
  parseSelect,
  type Select,
  selectSums,
  selectText,
  withChunkDefaults,
} from "./select.ts";

/** The attributes of a queue, of the server or of a backend that give defaults. */
export type DefaultsSource = {
  readonly resources_default?: ResourceValues;
  readonly resources_max?: ResourceValues;
  readonly default_chunk?: ResourceValues;
};
/** The sources of defaults, the first one before the others. */
export type RequestDefaults = { readonly queue: DefaultsSource; readonly server: DefaultsSource; readonly backend?: DefaultsSource };
/** The result: what the server stores of a request. */
export type ResolvedRequest = { readonly Resource_List: ResourceValues; readonly schedselect: string };

/**
 * Resolves the request of a submission. asked: Resource_List from the user, with typed values. Refusals: 15109, 15110 and
 * 15111 for conflicts, 15162, 15163 and 15180 for shrink-to-fit jobs, and the error numbers of select, place and nodes.
 */
export function resolveRequest(asked: ResourceValues, defaults: RequestDefaults, resources: Resources): ResolvedRequest {
  checkConflicts(asked, resources);
  const list: { [resource: string]: ResourceValue } = { ...asked };
  applyDefaults(list, defaults, resources);
  checkWalltimes(list);
  const select = chunksOf(list, asked, resources);
  list["select"] = selectText(select);
  list["place"] ??= asked["select"] === undefined ? "pack" : "free";
  parsePlace(String(list["place"]), resources);
  const full = withChunkDefaults(select, chunkDefaults(defaults, resources));
  checkSelect(full, resources);
  Object.assign(list, selectSums(full, resources), { nodect: chunkCount(full) });
  return { Resource_List: inOrderOfOutput(list), schedselect: selectText(canonicalSelect(full, resources)) };
}

/**
 * Resolves a request again after changes (qalter). A value of undefined removes the resource. A new select or nodes replaces
 * the old chunks and everything that was derived from them. If the job has requested chunks, job-wide chunk resources are
 * refused with 15109.
 */
export function alterRequest(
  list: ResourceValues,
  changes: ResourceChanges,
  defaults: RequestDefaults,
  resources: Resources,
): ResolvedRequest {
  const given = withoutUnset(changes);
  const { nodes, ...kept } = withoutChunkResources(list, resources);
  if (given["select"] !== undefined || given["nodes"] !== undefined) {
    const { select: _select, place, ...rest } = kept;
    const keepsPlace = place !== undefined && given["nodes"] === undefined && !isOldStyle(list, defaults, resources);
    return resolveRequest(changed(keepsPlace ? { ...rest, place } : rest, changes), defaults, resources);
  }
  const touched = chunkResources(changes, resources)[0];
  if (touched !== undefined) {
    if (!isOldStyle(list, defaults, resources)) throw rejectNaming(PBSE.INVALJOBRESC, touched);
    return resolveRequest(changed(askedOldStyle(list), changes), defaults, resources);
  }
  const { Resource_List, schedselect } = resolveRequest(changed(kept, changes), defaults, resources);
  return { Resource_List: nodes === undefined ? Resource_List : { ...Resource_List, nodes }, schedselect };
}

/** Changes of a resource list; undefined removes a resource. */
export type ResourceChanges = { readonly [resource: string]: ResourceValue | undefined };

/** Whether the stored select was made from nodes or from job-wide amounts, so that it can be made from them again. */
export function isOldStyle(list: ResourceValues, defaults: RequestDefaults, resources: Resources): boolean {
  if (list["nodes"] !== undefined) return true;
  const place = defaults.queue.resources_default?.["place"] ?? defaults.server.resources_default?.["place"] ?? "pack";
  return list["place"] === place && list["select"] === selectText(oldStyleSelect(list, resources));
}

/** Refuses conflicting requests: nodes with select or place, place without select, select with job-wide chunk resources. */
function checkConflicts(asked: ResourceValues, resources: Resources): void {
  const has = (name: string): boolean => asked[name] !== undefined;
  if (has("nodes") && (has("select") || has("place"))) throw rejectNaming(PBSE.INVALNODEPLACE, "nodes");
  if (has("place") && !has("select")) throw reject(PBSE.PLACENOSELECT);
  const clash = has("select") ? chunkResources(asked, resources)[0] : undefined;
  if (clash !== undefined) throw rejectNaming(PBSE.INVALJOBRESC, clash);
}

/** The list in the order of output. It is stored in that order, so that it need not be sorted whenever it is shown. */
function inOrderOfOutput(list: ResourceValues): ResourceValues {
  return Object.fromEntries(Object.entries(list).sort(([a], [b]) => byName(a, b)));
}

/** The names of those resources in a list that belong in chunks (chunk resources), in the order of the list. */
function chunkResources(list: ResourceChanges, resources: Resources): string[] {
  return Object.keys(list).filter((name) => {
    const def = resources.get(name);
    return def !== undefined && hasFlag(def, "h");
  });
}

/**
 * Adds defaults for resources that the job does not request. Chunk resources are added only if the job requests neither
 * select nor nodes; select and nodes are added only if the job requests neither of them and no chunk resource. If a default
 * select or nodes is added, no job-wide chunk resources are.
 */
function applyDefaults(
  list: { [resource: string]: ResourceValue },
  { queue, server, backend }: RequestDefaults,
  resources: Resources,
): void {
  const plain = list["select"] === undefined && list["nodes"] === undefined;
  const bare = plain && chunkResources(list, resources).length === 0;
  for (const source of [
    queue.resources_default,
    server.resources_default,
    queue.resources_max,
    server.resources_max,
    backend?.resources_default,
  ]) {
    for (const [name, value] of Object.entries(source ?? {})) {
      const def = resources.get(name);
      if (def === undefined || list[name] !== undefined || name === "nodect") continue;
      if (name === "select" || name === "nodes" ? !bare : hasFlag(def, "h") && !plain) continue;
      list[name] = value;
    }
  }
  if (!plain || (list["select"] === undefined && list["nodes"] === undefined)) return;
  for (const name of chunkResources(list, resources)) delete list[name];
}

/** The chunks of a request. nodes and job-wide amounts are converted to chunks; nodes also gives a place. */
function chunksOf(list: { [resource: string]: ResourceValue }, asked: ResourceValues, resources: Resources): Select {
  if (list["nodes"] !== undefined) {
    const { select, place } = parseNodesSpec(String(list["nodes"]), asked, resources);
    list["place"] ??= place;
    return select;
  }
  if (list["select"] !== undefined) {
    list["place"] ??= "free";
    return parseSelect(String(list["select"]));
  }
  return oldStyleSelect(list, resources);
}

/** One chunk with all job-wide chunk resources, in order of name. */
function oldStyleSelect(list: ResourceValues, resources: Resources): Select {
  const names = chunkResources(list, resources).sort(byName);
  return { chunks: [{ count: 1, pairs: names.map((name) => pairOf(name, renderResourceValue(resources.get(name), list[name] ?? ""))) }] };
}

/** The resources in default_chunk of the queue, then the resources in default_chunk of the server, each in order of name. If both have a resource, the queue's value counts. */
function chunkDefaults({ queue, server }: RequestDefaults, resources: Resources): { name: string; text: string }[] {
  const defaults = new Map<string, string>();
  for (const source of [queue.default_chunk, server.default_chunk]) {
    for (const [name, text] of Object.entries(renderResourceList(source ?? {}, resources)))
      if (!defaults.has(name)) defaults.set(name, text);
  }
  return [...defaults].map(([name, text]) => ({ name, text }));
}

/** The original request of an old-style job: its Resource_List without derived values. */
function askedOldStyle(list: ResourceValues): { [resource: string]: ResourceValue } {
  const { select: _select, place: _place, nodect: _nodect, ...asked } = list;
  if (asked["nodes"] === undefined) return asked;
  const { mpiprocs: _mpiprocs, ...beside } = asked;
  return beside;
}

/** A list without the values derived from chunks: the sums and the number of chunks. */
function withoutChunkResources(list: ResourceValues, resources: Resources): ResourceValues {
  const sums = new Set(chunkResources(list, resources));
  return Object.fromEntries(Object.entries(list).filter(([name]) => name !== "nodect" && !sums.has(name)));
}

function changed(list: ResourceValues, changes: ResourceChanges): ResourceValues {
  return withoutUnset({ ...list, ...changes });
}

function withoutUnset(changes: ResourceChanges): ResourceValues {
  return Object.fromEntries(Object.entries(changes).filter((entry): entry is [string, ResourceValue] => entry[1] !== undefined));
}

/** Checks the rules for min_walltime, max_walltime and soft_walltime (shrink-to-fit jobs). */
function checkWalltimes(list: ResourceValues): void {
  const { min_walltime, max_walltime, soft_walltime } = list;
  if (max_walltime !== undefined && min_walltime === undefined) throw reject(PBSE.MAX_NO_MINWT);
  if (typeof min_walltime === "number" && typeof max_walltime === "number" && min_walltime > max_walltime) throw reject(PBSE.MIN_GT_MAXWT);
  if (min_walltime !== undefined && soft_walltime !== undefined) throw reject(PBSE.SOFTWT_STF);
}
