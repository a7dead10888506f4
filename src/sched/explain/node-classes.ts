// The hosts that a job may use, in classes of hosts that are equal for it: what they have, what is free, how many of its chunks fit, and why no more fit
// (explain.ts). It reads buckets of equal hosts, so the time depends on the number of kinds of hosts, not of hosts.

import type { NodeClass } from "#protocol/explanation.ts";
import type { Why } from "#protocol/sched-link.ts";
import { copiesOn } from "../place/copy-counts.ts";
import { firstHost } from "../place/node-sets.ts";
import type { PlaceContext } from "../place/placement.ts";
import { Search } from "../place/placement-search.ts";
import { whyNotOn } from "../place/placement-why.ts";
import type { JobEntry } from "../shapes/job-line.ts";
import type { Chunk, Request } from "../shapes/request.ts";
import { amountAt, amountText, matchedText } from "../shapes/resource-space.ts";
import type { Universe } from "../shapes/universe.ts";
import type { HostBucket, NodeSet, VnodeState } from "../shapes/vnode.ts";

const EXAMPLES = 3;

export type ClassesAsked = { readonly set: NodeSet; readonly entry: JobEntry; readonly context: PlaceContext };
/** A class whose reason has no text yet. */
export type PlainClass = Omit<NodeClass, "why"> & { readonly why: Why | null };

/** Returns all classes, those with most hosts first. */
export function nodeClasses(universe: Universe, { set, entry, context }: ClassesAsked): PlainClass[] {
  const view = new Search(context, set, entry.request, entry.job);
  const classes = new Map<string, PlainClass>();
  for (const bucket of set.buckets.values()) {
    if (bucket.count === 0) continue;
    const row = classOf(universe, view, bucket);
    if (row === null) continue;
    const { hosts: _, examples: __, ...same } = row;
    const key = JSON.stringify(same);
    const known = classes.get(key);
    if (known === undefined) classes.set(key, row);
    else classes.set(key, { ...known, hosts: known.hosts + row.hosts, examples: [...known.examples, ...row.examples].slice(0, EXAMPLES) });
  }
  return [...classes.values()].sort((a, b) => b.hosts - a.hosts || compare(a.examples[0] ?? "", b.examples[0] ?? ""));
}

const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

function classOf(universe: Universe, view: Search, bucket: HostBucket): PlainClass | null {
  const { request } = view;
  const states = view.usable.statesOf(bucket);
  const first = firstHost(bucket);
  if (first === undefined) return null;
  const empty = states.map((state) => ({
    ...state,
    used: state.used.map(() => 0),
    jobs: 0,
    closed: isForGood(state) ? state.closed : undefined,
  }));
  const copies = (of: readonly VnodeState[]): number[] => request.chunks.map((chunk) => copiesOn(universe.checks, request, of, chunk));
  const copies_now = view.usable.of(bucket, first) === null ? request.chunks.map(() => 0) : copies(states);
  const missing = request.chunks.find((_, at) => copies_now[at] === 0);
  return {
    hosts: bucket.count,
    examples: examplesOf(bucket),
    has: amountsText(universe, request, states, ({ spec }, index) => amountAt(spec.avail, index)),
    free: amountsText(universe, request, states, (state, index) =>
      isForGood(state) ? 0 : Math.max(0, amountAt(state.spec.avail, index) - amountAt(state.used, index)),
    ),
    state: states.find(({ closed }) => closed !== undefined)?.closed ?? null,
    copies_now,
    copies_empty: copies(empty),
    why: missing === undefined ? null : whyNotOn(view, first, bucket, missing),
  };
}

/** Returns whether a vnode has a state that stays when the present jobs end. */
function isForGood({ closed }: VnodeState): boolean {
  return closed !== undefined && !["job-busy", "job-exclusive", "resv-exclusive"].includes(closed);
}

/** Returns the names of the first hosts of a bucket. The heap may also contain hosts that have left the bucket; these are skipped. */
function examplesOf(bucket: HostBucket): string[] {
  const names: string[] = [];
  for (const host of [...bucket.heap].sort((a, b) => a.order - b.order)) {
    if (host.bucket === bucket && !names.includes(host.name)) names.push(host.name);
    if (names.length === EXAMPLES) break;
  }
  return names;
}

/** Returns the amounts of the requested resources over all vnodes of a host: `ncpus=16:mem=64gb`. */
function amountsText(
  { space }: Universe,
  { chunks }: Request,
  states: readonly VnodeState[],
  amountOf: (state: VnodeState, index: number) => number,
): string {
  const parts = new Map<string, string>();
  for (const { index } of chunks.flatMap(({ amounts }) => amounts)) {
    const resource = space.consumed[index];
    const amount = states.reduce((sum, state) => sum + amountOf(state, index), 0);
    if (resource !== undefined) parts.set(resource.name, amount === Number.POSITIVE_INFINITY ? "infinite" : amountText(resource, amount));
  }
  for (const { resource } of chunks.flatMap(({ matches }) => matches)) {
    const values = new Set(states.flatMap(({ spec }) => (spec.matches.has(resource) ? [matchedText(spec.matches.get(resource))] : [])));
    parts.set(resource, [...values].join("|"));
  }
  for (const { resource } of chunks.flatMap(({ levels }) => levels)) {
    const values = new Set(states.flatMap(({ spec }) => spec.levels.get(resource) ?? []));
    parts.set(resource, [...values].map((amount) => amountText(space.all.get(resource), amount)).join("|"));
  }
  return [...parts].map(([name, value]) => `${name}=${value}`).join(":");
}

/** Returns a chunk as it was requested: `2:ncpus=4:mem=8gb`. */
export function chunkText({ space }: Universe, { count, amounts, matches, levels, host, vnode }: Chunk): string {
  const named = host === undefined ? (vnode === undefined ? [] : [`vnode=${vnode}`]) : [`host=${host}`];
  return [
    String(count),
    ...amounts.map(({ index, amount }) => `${space.consumed[index]?.name}=${amountText(space.consumed[index], amount)}`),
    ...matches.map(({ resource, value }) => `${resource}=${matchedText(value)}`),
    ...levels.map(({ resource, amount }) => `${resource}=${amountText(space.all.get(resource), amount)}`),
    ...named,
  ].join(":");
}
