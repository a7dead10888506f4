// What reservations hold of vnodes and of the server, and what their jobs use. To hold means: an amount is set aside for the
// present or next occurrence. All this is derived from the attributes of reservations and their jobs.
//
// I1. During its occurrence a reservation counts in resources_assigned of each of its vnodes, even without jobs. For every
//     resource, the larger of two amounts counts: what the reservation holds there, and what its jobs use there. The same is
//     true of the server. Before and after the occurrence only the jobs count.
// I2. A vnode lists every reservation that has it in the present or a later occurrence (pbsnodes: resv).

import { parseExecVnode } from "#model/request/exec-vnode.ts";
import { placeOf } from "#model/request/place.ts";
import { isPromised } from "#model/resv-state.ts";
import { type Amounts, jobWideAmounts } from "./amounts.ts";
import type { Changes } from "./changes.ts";
import { hostOf, spots } from "./placement.ts";
import type { Placement, Resv, ResvAttrs, ResvSpot, ServerState, Vnode } from "./state.ts";
import { refreshVnode } from "./vnode-states.ts";

type World = Pick<ServerState, "resources" | "vnodes" | "hosts">;

/** Makes a reservation whose derived values are empty. */
export const newResv = (id: string, attrs: ResvAttrs, starts: readonly number[]): Resv => ({
  id,
  attrs,
  starts,
  held: new Map(),
  held_wide: new Map(),
  counted: false,
  vnodes: new Set(),
  used: new Map(),
  used_wide: new Map(),
});

/** Whether the present occurrence has begun and has not ended. */
export const isBegun = (resv: { readonly attrs: ResvAttrs }): boolean => resv.attrs.begun !== undefined;

/** The reservation that a queue belongs to. */
export function resvOfQueue(state: ServerState, queue: string): Resv | undefined {
  const id = state.resv_queues.get(queue);
  return id === undefined ? undefined : state.resvs.get(id);
}

/** Computes again what a reservation holds, after its attributes have changed. changes: null while the state is loaded. */
export function holdAgain(state: ServerState, resv: Resv, changes: Changes | null): void {
  countResv(state, resv, -1, changes);
  for (const name of resv.vnodes) noteOnVnode(state, name, resv, -1, changes);
  resv.held = heldSpots(state, resv.attrs);
  resv.held_wide = jobWideAmounts(state.resources, resv.attrs.Resource_List);
  resv.counted = isBegun(resv);
  resv.vnodes = new Set([...resv.held.keys(), ...promisedVnodes(state, resv.attrs)]);
  for (const name of resv.vnodes) noteOnVnode(state, name, resv, 1, changes);
  countResv(state, resv, 1, changes);
}

/** Removes everything that a reservation holds from the derived values, because it is deleted. */
export function release(state: ServerState, resv: Resv, changes: Changes | null): void {
  countResv(state, resv, -1, changes);
  for (const name of resv.vnodes) noteOnVnode(state, name, resv, -1, changes);
  resv.held = new Map();
  resv.vnodes = new Set();
}

/**
 * Called when a vnode was created and added to the indexes: updates the reservations that were promised this vnode, or its
 * whole host, because of their place or of the sharing of another vnode there.
 */
export function holdNewVnode(state: ServerState, vnode: Vnode, changes: Changes | null): void {
  for (const resv of state.resvs.values())
    if (resv.held.has(vnode.name) || resv.used.has(vnode.name)) countOnVnode(state, resv, vnode.name, 1, changes);
  holdHostAgain(state, hostOf(vnode), changes);
}

/**
 * Called when the set of vnodes of a host, or the sharing of one of them, has changed: reservations that were promised one
 * of these vnodes may now hold more or fewer of them.
 */
export function holdHostAgain(state: ServerState, host: string, changes: Changes | null): void {
  const there = [...(state.hosts.get(host) ?? [])];
  for (const resv of state.resvs.values()) if (there.some((name) => resv.vnodes.has(name))) holdAgain(state, resv, changes);
}

/** Adds what a job in a reservation uses (sign 1), or removes it (-1). */
export function countInside(state: ServerState, resv: Resv, placement: Placement, sign: 1 | -1, changes: Changes | null): void {
  for (const [name, spot] of placement.vnodes) {
    if (spot.amounts.size === 0) continue;
    countOnVnode(state, resv, name, -1, changes, spot.amounts);
    const used = resv.used.get(name) ?? new Map<string, number>();
    add(used, spot.amounts, sign);
    if (used.size === 0) resv.used.delete(name);
    else resv.used.set(name, used);
    countOnVnode(state, resv, name, 1, changes, spot.amounts);
  }
  countServer(state, resv, -1, changes);
  add(resv.used_wide, placement.job_wide, sign);
  countServer(state, resv, 1, changes);
}

/** The amounts that count in resources_assigned of a vnode because of a reservation (I1). */
export function countedOn(resv: Resv, name: string): Amounts {
  return larger(resv.counted ? resv.held.get(name)?.amounts : undefined, resv.used.get(name));
}

/** The amounts that count in resources_assigned of the server because of a reservation (I1). */
export function countedWide(resv: Resv): Amounts {
  return larger(resv.counted ? resv.held_wide : undefined, resv.used_wide);
}

/** What an occurrence uses of each vnode. exec_vnode undefined: the occurrence has no place and uses nothing. */
export function spotsOf(world: World, place_text: unknown, exec_vnode: string | undefined): ReadonlyMap<string, ResvSpot> {
  return exec_vnode === undefined ? new Map() : spots(world, parseExecVnode(exec_vnode), placeOf(place_text));
}

function heldSpots(state: ServerState, attrs: ResvAttrs): ReadonlyMap<string, ResvSpot> {
  const { promised } = attrs;
  const text = promised?.places[promised.occurrences[0]?.place ?? 0];
  return isPromised(attrs.reserve_state) ? spotsOf(state, attrs.Resource_List["place"], text) : new Map();
}

/**
 * The vnodes of the present and all later occurrences: those that are named, even if they do not exist, and all vnodes of
 * hosts that are reserved as a whole.
 */
function promisedVnodes(state: ServerState, { promised, reserve_state, Resource_List }: ResvAttrs): ReadonlySet<string> {
  const names = new Set<string>();
  if (!isPromised(reserve_state)) return names;
  const places = new Set(promised?.occurrences.map(({ place }) => place));
  for (const place of places) {
    const text = promised?.places[place];
    if (text === undefined) continue;
    for (const part of parseExecVnode(text).flat()) names.add(part.vnode);
    for (const name of spotsOf(state, Resource_List["place"], text).keys()) names.add(name);
  }
  return names;
}

function noteOnVnode(state: ServerState, name: string, resv: Resv, sign: 1 | -1, changes: Changes | null): void {
  const vnode = state.vnodes.get(name);
  if (vnode === undefined) return;
  if (sign === 1) vnode.resvs.set(resv.id, { exclusive: resv.counted && resv.held.get(name)?.exclusive === true });
  else vnode.resvs.delete(resv.id);
  refreshVnode(vnode, changes);
  changes?.told.vnodes.add(name);
}

function countResv(state: ServerState, resv: Resv, sign: 1 | -1, changes: Changes | null): void {
  for (const name of new Set([...resv.held.keys(), ...resv.used.keys()])) countOnVnode(state, resv, name, sign, changes);
  countServer(state, resv, sign, changes);
}

/** Adds the amounts of a reservation to resources_assigned of a vnode, or removes them. only: the resources to count; absent: all. */
function countOnVnode(
  state: ServerState,
  resv: Resv,
  name: string,
  sign: 1 | -1,
  changes: Changes | null,
  only?: ReadonlyMap<string, number>,
): void {
  const vnode = state.vnodes.get(name);
  if (vnode === undefined) return;
  for (const [resource, amount] of countedOn(resv, name))
    if (only === undefined || only.has(resource)) bump(vnode.assigned, resource, sign * amount);
  changes?.told.vnodes.add(name);
}

function countServer(state: ServerState, resv: Resv, sign: 1 | -1, changes: Changes | null): void {
  add(state.assigned, countedWide(resv), sign);
  if (changes !== null) changes.told.server = true;
}

function larger(held: ReadonlyMap<string, number> | undefined, used: ReadonlyMap<string, number> | undefined): Amounts {
  const sums: Amounts = new Map(held);
  for (const [resource, amount] of used ?? []) sums.set(resource, Math.max(sums.get(resource) ?? 0, amount));
  return sums;
}

function add(target: Amounts, amounts: ReadonlyMap<string, number>, sign: 1 | -1): void {
  for (const [resource, amount] of amounts) bump(target, resource, sign * amount);
}

function bump(target: Amounts, resource: string, by: number): void {
  const sum = (target.get(resource) ?? 0) + by;
  if (Math.abs(sum) < 1e-9) target.delete(resource);
  else target.set(resource, sum);
}
