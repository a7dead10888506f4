// Checks quickly over a whole node set (docs/reference/scheduler.md 5): whether a vnode is free, whether there are enough vnodes to scatter, whether there is
// enough of every resource in total, and whether any vnode has the requested values. A request can never run if it exceeds the totals, if a chunk exceeds every
// host, or if the vnodes and hosts that it names are too small for all its chunks (named-totals.ts).

import type { Why } from "#protocol/sched-link.ts";
import { present } from "#support/assert.ts";
import type { Chunk, Request } from "../shapes/request.ts";
import { amountAt, matchedText } from "../shapes/resource-space.ts";
import type { HostBucket, NodeSet, Vnode, VnodeSpec } from "../shapes/vnode.ts";
import type { Checks } from "../shapes/vnode-fit.ts";
import { isChecked, isMatchChecked, matchesAll, matchesValue, mismatch, shortage } from "../shapes/vnode-fit.ts";
import { namedTogether } from "./named-totals.ts";

/** Largest number of values of a resource that a reason shows. */
const VALUES_SHOWN_MAX = 10;

/** Returns why a request cannot be placed on a node set now, or ever; null: the totals give no reason. */
export function checkTotals(checks: Checks, set: NodeSet | undefined, request: Request): Why | null {
  // A suspended job that kept its cpus can resume only on its own vnodes, so the amounts that are free in the whole set do not matter.
  const now = compare(checks, set, request, request.keeps_cpus === true);
  const ever = now === null ? null : compare(checks, set, request, true);
  if (ever !== null) return { ...ever, never: true };
  const impossible =
    set === undefined || request.keeps_cpus === true ? null : (tooLarge(checks, set, request) ?? namedTogether(checks, set, request));
  return impossible ?? now;
}

function compare(checks: Checks, set: NodeSet | undefined, request: Request, total: boolean): Why | null {
  const free_count = set?.free_count ?? 0;
  if (!total && free_count === 0) return { code: "NO_FREE_NODES", module: "placement" };
  const { arrangement } = request.place;
  if (arrangement === "scatter" || arrangement === "vscatter") {
    const nodes = total ? (set?.vnodes.size ?? 0) : free_count;
    if (nodes < request.chunk_count) return { code: total ? "NO_TOTAL_NODES" : "NO_FREE_NODES", module: "placement" };
  }
  for (const { index, amount } of request.totals) {
    const { name } = present(checks.space.consumed[index], "resource");
    if (!isChecked(checks, index) || checks.policy.resource_unset_infinite.has(name)) continue;
    const all = set?.total[index] ?? 0;
    const have = total ? all : (set?.free[index] ?? 0);
    if (amount > have) return shortage(checks.space, name, { want: amount, have, total: all });
  }
  for (const chunk of request.chunks) {
    const why = unmatched(checks, set, chunk);
    if (why !== null) return why;
  }
  return null;
}

/** Returns a reason if a chunk requests more of a resource than any host that it may use would have if the host were empty. */
function tooLarge(checks: Checks, set: NodeSet, request: Request): Why | null {
  const split = set.multi_vnode_hosts > 0 && request.place.arrangement !== "vscatter";
  for (const chunk of request.chunks) {
    const specs = specsFor(set, chunk);
    if (holdsChunk(checks, specs, chunk)) continue;
    const buckets = split ? bucketsFor(set, chunk) : [];
    if (buckets.some((bucket) => hasAmounts(checks, bucket.total, chunk))) continue;
    const why = mostLacked(checks, specs, buckets, chunk);
    if (why !== null) return { ...why, never: true };
  }
  return null;
}

/** Returns the specs of the vnodes on which the chunk may be: of those that it names, or of all. */
function specsFor(set: NodeSet, { vnode, host }: Chunk): readonly VnodeSpec[] {
  if (vnode !== undefined) return specsOf(set.vnodes.get(vnode));
  if (host !== undefined) return set.hosts.get(host)?.vnodes.flatMap(specsOf) ?? [];
  return [...set.specs.keys()];
}

const specsOf = (vnode: Vnode | undefined): readonly VnodeSpec[] => (vnode === undefined ? [] : [vnode.state.spec]);

/** Returns the buckets of the hosts over whose vnodes the chunk may be split. A chunk that names a vnode is never split. */
function bucketsFor(set: NodeSet, { vnode, host }: Chunk): readonly HostBucket[] {
  if (vnode !== undefined) return [];
  if (host === undefined) return [...set.buckets.values()].filter(({ count }) => count > 0);
  const bucket = set.hosts.get(host)?.bucket ?? null;
  return bucket === null ? [] : [bucket];
}

function holdsChunk(checks: Checks, specs: readonly VnodeSpec[], chunk: Chunk): boolean {
  return specs.some((spec) => hasAmounts(checks, spec.avail, chunk) && matchesAll(checks, spec, chunk));
}

const hasAmounts = (checks: Checks, have: readonly number[], { amounts }: Chunk): boolean =>
  amounts.every(({ index, amount }) => !isChecked(checks, index) || amount <= amountAt(have, index));

/**
 * Returns a reason for the first resource of which no possible host of the chunk has enough. Returns null if each resource
 * alone is available on some host, but no host has enough of all resources.
 */
function mostLacked(checks: Checks, specs: readonly VnodeSpec[], buckets: readonly HostBucket[], chunk: Chunk): Why | null {
  const matching = specs.filter((spec) => matchesAll(checks, spec, chunk));
  for (const { index, amount } of chunk.amounts) {
    const { name } = present(checks.space.consumed[index], "resource");
    const most = Math.max(0, ...matching.map(({ avail }) => amountAt(avail, index)), ...buckets.map(({ total }) => amountAt(total, index)));
    if (isChecked(checks, index) && amount > most) return shortage(checks.space, name, { want: amount, have: most, total: most });
  }
  return null;
}

/** Returns why a chunk cannot be placed if it requests a value that no vnode of the set has at all; null: each requested value exists. */
function unmatched(checks: Checks, set: NodeSet | undefined, chunk: Chunk): Why | null {
  if (chunk.host !== undefined && set?.hosts.has(chunk.host) !== true) return mismatch("host", chunk.host, shown(set?.hosts.keys() ?? []));
  if (chunk.vnode !== undefined && set?.vnodes.has(chunk.vnode) !== true)
    return mismatch("vnode", chunk.vnode, shown(set?.vnodes.keys() ?? []));
  const specs = set === undefined ? [] : [...set.specs.keys()];
  for (const match of chunk.matches) {
    if (!isMatchChecked(checks, match) || specs.some((spec) => matchesValue(checks.space, spec, match))) continue;
    return mismatch(
      match.resource,
      matchedText(match.value),
      typeof match.value === "boolean" ? matchedText(!match.value) : valuesOf(set, match.resource),
    );
  }
  for (const { resource, amount } of chunk.levels) {
    const have = specs.reduce((most, spec) => Math.max(most, spec.levels.get(resource) ?? 0), 0);
    if (checks.policy.resources.has(resource) && amount > have)
      return shortage(checks.space, resource, { want: amount, have, total: have });
  }
  return null;
}

/** Returns the distinct values of a resource on the vnodes of the set, as a text. */
function valuesOf(set: NodeSet | undefined, resource: string): string {
  const values = new Set<string>();
  for (const spec of [...(set?.specs.keys() ?? [])].sort((a, b) => a.id - b.id)) {
    const value = spec.matches.get(resource);
    if (value !== undefined) for (const element of String(value).split(",")) values.add(element);
  }
  return shown(values);
}

function shown(values: Iterable<string>): string {
  const first: string[] = [];
  for (const value of values) {
    if (first.length === VALUES_SHOWN_MAX) return `${first.join()},...`;
    first.push(value);
  }
  return first.join();
}
