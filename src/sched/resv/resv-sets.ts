// Keeps a node set for each running reservation, in which its jobs are placed. The vnodes of the set have the amounts that the reservation holds, minus those
// that its jobs use (docs/reference/scheduler.md 9). The mirror updates these sets when reservations, their jobs or vnodes change. A cycle places jobs there as
// in any other set.
//
// W1. Amounts that the reservation holds on a vnode are available to its jobs, whatever jobs outside do.
// W2. Of resources that the reservation did not request (mem, in a reservation of ncpus), its jobs may use what the vnode has left, minus what was promised to
//     other reservations that begin before its end. No promise to another reservation is therefore broken.
// W3. A vnode that is down or offline is also closed in this set. Otherwise only jobs of the reservation can make a vnode of this set full or exclusively used.

import { isNodeUsable } from "#model/values/node-state.ts";
import type { SchedJob, SchedResv } from "#protocol/sched-link.ts";
import { mustGet } from "#support/assert.ts";
import { dropRunning, putRunning, runningTimes } from "../calendar/calendar.ts";
import { askGroup, requestOf } from "../order/job-lines.ts";
import { makeNodeSet, moveHost, newHost, recountVnode, settle } from "../place/node-sets.ts";
import { durationsOf } from "../shapes/durations.ts";
import { isRunning } from "../shapes/limits.ts";
import type { PlacedChunks } from "../shapes/placed.ts";
import type { Amount } from "../shapes/request.ts";
import type { Insider, ResvInfo, ResvSet, ResvVnode } from "../shapes/reservation.ts";
import { amountAt } from "../shapes/resource-space.ts";
import { readHolding } from "../shapes/running.ts";
import type { Universe } from "../shapes/universe.ts";
import type { Move, Vnode, VnodeSpec, VnodeState } from "../shapes/vnode.ts";
import { sharingOn } from "../shapes/vnode-fit.ts";
import { internSpec, resvSetKey, stateWords } from "../shapes/vnode-state.ts";
import { bookResv, unbookResv } from "./resv-calendar.ts";
import { readResv } from "./resv-info.ts";

/** Adds a reservation, or replaces it by its new state. */
export function putResv(universe: Universe, source: SchedResv): void {
  const old = universe.resvs.get(source.id);
  enter(universe, readResv(universe, source, old), old);
}

function enter(universe: Universe, resv: ResvInfo, old: ResvInfo | undefined): void {
  const before = forget(universe, resv.id);
  // With the first reservation, the duration of jobs begins to matter (order/job-lines.ts).
  if (universe.resvs.size === 0) universe.regroup = true;
  universe.resvs.set(resv.id, resv);
  askGroup(universe, resv.request);
  bookResv(universe, resv, old);
  if (resv.queue !== "") universe.resv_queues.set(resv.queue, resv);
  const names = vnodesOf(resv);
  for (const name of names) addTo(universe.resvs_on, name, resv);
  if (resv.present !== null) addSet(universe, resv);
  settleInsiders(universe, resv.id);
  recountPresent(universe, old, resv);
  for (const name of before) names.add(name);
  for (const name of names) refreshInside(universe, name);
}

/** Computes again the vnodes on which the period of the reservation has begun or ended. */
function recountPresent(universe: Universe, before: ResvInfo | undefined, now: ResvInfo | undefined): void {
  const [old, present] = [before?.present?.holding, now?.present?.holding];
  if (old === present) return;
  for (const name of new Set([...(old?.keys() ?? []), ...(present?.keys() ?? [])])) recountVnode(universe, name);
}

export function dropResv(universe: Universe, id: string): void {
  const old = universe.resvs.get(id);
  if (old === undefined) return;
  const before = forget(universe, id);
  universe.resvs.delete(id);
  if (universe.resvs.size === 0) universe.regroup = true;
  unbookResv(universe, old);
  settleInsiders(universe, id);
  recountPresent(universe, old, undefined);
  for (const name of before) refreshInside(universe, name);
}

/** Removes a reservation from the indexes. Returns the vnodes that it held. */
function forget(universe: Universe, id: string): Set<string> {
  const old = universe.resvs.get(id);
  if (old === undefined) return new Set();
  if (universe.resv_queues.get(old.queue) === old) universe.resv_queues.delete(old.queue);
  const names = vnodesOf(old);
  for (const name of names) dropFrom(universe.resvs_on, name, old);
  const own = universe.resv_sets.get(id);
  if (own === undefined) return names;
  universe.resv_sets.delete(id);
  universe.sets.delete(own.set.key);
  for (const name of own.vnodes.keys()) dropFrom(universe.resv_sets_on, name, own);
  return names;
}

/** Reads all reservations and their jobs again after the resources, the policy or all vnodes have changed. The calendar must be new. */
export function indexResvs(universe: Universe, all: readonly SchedResv[]): void {
  const { resvs, resv_queues, resvs_on, resv_sets, resv_sets_on, insiders } = universe;
  for (const index of [resvs, resv_queues, resvs_on, resv_sets, resv_sets_on, insiders]) index.clear();
  for (const source of all) putResv(universe, source);
  for (const job of universe.jobs.values()) if (job.resv !== undefined) putInsider(universe, job);
}

/** Reads again the reservations that hold these vnodes, because a vnode was changed, created or deleted. */
export function rereadResvsOn(universe: Universe, names: Iterable<string>): void {
  const resvs = new Set<ResvInfo>();
  for (const name of names) for (const resv of universe.resvs_on.get(name) ?? []) resvs.add(resv);
  for (const old of resvs) enter(universe, readResv(universe, old.source), old);
}

/** Computes a vnode again in the sets of reservations, because its state, or what was promised to others there (W2), has changed. */
export function refreshInside(universe: Universe, name: string): void {
  // Reservations that hold a vnode that no longer exists are read again one after the other. Until then there is nothing to
  // compute.
  if (!universe.vnodes.has(name)) return;
  for (const resvSet of universe.resv_sets_on.get(name) ?? []) refresh(universe, resvSet, name);
}

function vnodesOf(resv: ResvInfo): Set<string> {
  const names = new Set<string>();
  for (const holding of new Set(resv.held.map(({ holding }) => holding))) for (const name of holding.keys()) names.add(name);
  return names;
}

function addTo<T>(index: Map<string, Set<T>>, name: string, item: T): void {
  const items = index.get(name);
  if (items === undefined) index.set(name, new Set([item]));
  else items.add(item);
}

function dropFrom<T>(index: Map<string, Set<T>>, name: string, item: T): void {
  const items = index.get(name);
  items?.delete(item);
  if (items?.size === 0) index.delete(name);
}

// --- jobs in reservations

/** Adds a job that runs in a reservation, or replaces it by its new state. */
export function putInsider(universe: Universe, job: SchedJob): void {
  const old = universe.insiders.get(job.id)?.job;
  if (old !== undefined && isRunning(job) && old.resv === job.resv && old.exec_vnode === job.exec_vnode) return;
  dropInsider(universe, job.id);
  if (job.resv === undefined || !isRunning(job) || job.exec_vnode === undefined) return;
  const insider: Insider = { job, holding: readHolding(universe.space, job.exec_vnode) };
  universe.insiders.set(job.id, insider);
  settleInsider(universe, insider);
  countInsider(universe, insider, 1);
}

export function dropInsider(universe: Universe, id: string): void {
  const insider = universe.insiders.get(id);
  if (insider === undefined) return;
  universe.insiders.delete(id);
  dropRunning(universe, id);
  countInsider(universe, insider, -1);
}

function countInsider(universe: Universe, insider: Insider, sign: 1 | -1): void {
  const resvSet = universe.resv_sets.get(insider.job.resv ?? "");
  if (resvSet === undefined) return;
  for (const name of insider.holding.keys()) {
    const inner = resvSet.vnodes.get(name);
    if (inner === undefined) continue;
    addInsider(universe, inner, insider, sign);
    refresh(universe, resvSet, name);
  }
}

/**
 * Enters the jobs of a reservation in the calendar again: without the amounts that the reservation holds, and expected to
 * end with it (resv-calendar.ts V4).
 */
function settleInsiders(universe: Universe, id: string): void {
  for (const insider of universe.insiders.values()) if (insider.job.resv === id) settleInsider(universe, insider);
}

function settleInsider(universe: Universe, { job, holding }: Insider): void {
  const resvSet = universe.resv_sets.get(job.resv ?? "");
  const beside = new Map(
    [...holding].map(([name, held]) => {
      const granted = resvSet?.vnodes.get(name)?.granted;
      const amounts = granted === undefined ? held.amounts : held.amounts.filter(({ index }) => granted[index] === undefined);
      return [name, { ...held, amounts }];
    }),
  );
  const from_s = (job.stime_s ?? job.qtime_s) + (job.paused_s ?? 0);
  const end_s = resvSet?.resv.present?.end_s ?? Number.POSITIVE_INFINITY;
  const { expected_s, most_s, grace_s } = durationsOf(universe, job);
  const left_s = end_s - from_s;
  const times = runningTimes(from_s, { expected_s: Math.min(left_s, expected_s), most_s: Math.min(left_s, most_s), grace_s });
  const to_s = Math.min(end_s, times.to_s);
  putRunning(universe, { id: job.id, ...times, to_s, exec_vnode: job.exec_vnode ?? "", holding: beside, counted: true, gone: false });
}

function addInsider(universe: Universe, inner: ResvVnode, { job, holding }: Insider, sign: 1 | -1): void {
  const { place } = requestOf(universe, job.schedselect, job.place);
  for (const { index, amount } of holding.get(inner.vnode.name)?.amounts ?? [])
    inner.inside[index] = amountAt(inner.inside, index) + sign * amount;
  inner.jobs += sign;
  if (sharingOn(place, inner.vnode.state.spec) !== "shared") inner.exclusive += sign;
}

/**
 * Called when a cycle starts a job in a reservation. Amounts of resources that the reservation did not request are taken from the vnodes themselves. Returns
 * the hosts that were moved.
 */
export function takeBeside(universe: Universe, id: string, chunks: PlacedChunks): Move[] {
  const moved: Move[] = [];
  for (const { vnode, amounts } of chunks.flat()) {
    const granted = universe.resv_sets.get(id)?.vnodes.get(vnode.name)?.granted;
    const beside = amounts.filter(({ index, amount }) => amount > 0 && granted?.[index] === undefined);
    const outer = universe.vnodes.get(vnode.name);
    const bucket = outer?.host.bucket ?? null;
    if (beside.length === 0 || outer === undefined || bucket === null) continue;
    const at = outer.host.vnodes.indexOf(outer);
    const states = bucket.states.map((state, index) => (index === at ? { ...state, used: added(state.used, beside) } : state));
    moved.push(...moveHost(universe, universe.policy, outer.host, states));
  }
  return moved;
}

function added(used: readonly number[], amounts: readonly Amount[]): number[] {
  const sums = [...used];
  for (const { index, amount } of amounts) sums[index] = amountAt(sums, index) + amount;
  return sums;
}

// --- node sets

function addSet(universe: Universe, resv: ResvInfo): void {
  const set = makeNodeSet(universe, resvSetKey(resv.id));
  const vnodes = new Map<string, ResvVnode>();
  for (const [name, held] of resv.present?.holding ?? []) {
    const outer = universe.vnodes.get(name);
    if (outer === undefined || !held.own) continue;
    const granted: (number | undefined)[] = universe.space.consumed.map(() => undefined);
    for (const { index } of resv.request.totals) granted[index] = 0;
    for (const { index, amount } of held.amounts) granted[index] = amount;
    const spec = grantedSpec(universe, outer.state.spec, granted);
    const state: VnodeState = { spec, used: universe.space.consumed.map(() => 0), closed: undefined, jobs: 0 };
    const host = newHost(set, outer.host.name, [], null);
    const vnode: Vnode = { name, order: outer.order, set, host, node: outer.node, state };
    vnodes.set(name, { vnode, granted, inside: universe.space.consumed.map(() => 0), jobs: 0, exclusive: 0 });
  }
  const resvSet: ResvSet = { resv, set, vnodes };
  for (const insider of universe.insiders.values()) {
    if (insider.job.resv !== resv.id) continue;
    for (const name of insider.holding.keys()) {
      const inner = vnodes.get(name);
      if (inner !== undefined) addInsider(universe, inner, insider, 1);
    }
  }
  addHosts(universe, resvSet);
  universe.sets.set(set.key, set);
  universe.resv_sets.set(resv.id, resvSet);
}

function addHosts(universe: Universe, resvSet: ResvSet): void {
  const { set, vnodes } = resvSet;
  const hosts = new Map<string, Vnode[]>();
  for (const { vnode } of [...vnodes.values()].sort((a, b) => a.vnode.order - b.vnode.order)) {
    addTo(universe.resv_sets_on, vnode.name, resvSet);
    set.vnodes.set(vnode.name, vnode);
    set.specs.set(vnode.state.spec, (set.specs.get(vnode.state.spec) ?? 0) + 1);
    const there = hosts.get(vnode.host.name);
    if (there === undefined) hosts.set(vnode.host.name, [vnode]);
    else there.push(vnode);
  }
  for (const [name, own] of hosts) {
    const host = newHost(set, name, own, null);
    for (const vnode of own) {
      vnode.host = host;
      vnode.state = stateInside(universe, resvSet, vnode.name);
    }
    if (own.length > 1) set.multi_vnode_hosts++;
    set.hosts.set(name, host);
    settle(universe, host);
  }
  universe.groups_stale = true;
}

function refresh(universe: Universe, resvSet: ResvSet, name: string): void {
  const { vnode } = mustGet(resvSet.vnodes, name);
  vnode.state = stateInside(universe, resvSet, name);
  settle(universe, vnode.host);
}

function grantedSpec(universe: Universe, spec: VnodeSpec, granted: readonly (number | undefined)[]): VnodeSpec {
  const key = `${spec.id} granted ${granted.map((amount) => amount ?? "").join()}`;
  return internSpec(universe, key, (id) => ({
    ...spec,
    id,
    crowded: false,
    avail: spec.avail.map((amount, index) => granted[index] ?? amount),
  }));
}

function stateInside(universe: Universe, { resv, vnodes }: ResvSet, name: string): VnodeState {
  const { vnode, granted, inside, jobs, exclusive } = mustGet(vnodes, name);
  const outer = mustGet(universe.vnodes, name);
  vnode.node = outer.node;
  const { spec } = vnode.state;
  const used = granted.map((amount, index) =>
    amount === undefined ? amountAt(outer.state.used, index) + promisedBy(universe, name, index, resv) : amountAt(inside, index),
  );
  const { ncpus } = universe.space;
  const isFull = amountAt(spec.avail, ncpus) > 0 && amountAt(used, ncpus) >= amountAt(spec.avail, ncpus);
  const closed =
    stateWords(outer.node).find((word) => !isNodeUsable([word])) ?? (exclusive > 0 ? "job-exclusive" : isFull ? "job-busy" : undefined);
  return { spec, used, closed, jobs: spec.max_running === undefined ? Math.min(1, jobs) : new Set(outer.node.jobs).size };
}

/**
 * Returns the amount of a vnode that is promised in total to other reservations that begin before this one ends (W2). Reservations that already run are
 * included in the vnode's assigned amounts.
 */
function promisedBy(universe: Universe, name: string, index: number, resv: ResvInfo): number {
  const end_s = resv.present?.end_s ?? 0;
  let sum = 0;
  for (const other of universe.resvs_on.get(name) ?? []) {
    if (other.id === resv.id) continue;
    for (const { start_s, holding } of other.present === null ? other.held : other.held.slice(1)) {
      if (start_s >= end_s) break;
      sum += holding.get(name)?.amounts.find((amount) => amount.index === index)?.amount ?? 0;
    }
  }
  return sum;
}
