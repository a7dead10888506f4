// What vnodes have been promised to reservations over time, and whether there is room for one more promise.
//
// I1. At no time are more than its resources promised of a vnode; what is promised to one alone is promised to nobody else.

import { PBSE, Reject } from "#model/pbse.ts";
import { isPromised } from "#model/resv-state.ts";
import { type Amounts, addAmounts } from "../amounts.ts";
import { availableAmount } from "../apply.ts";
import type { Promised, ResvSpot, ServerState } from "../state.ts";
import { spotsOf } from "./holding.ts";
import type { Times } from "./occurrences.ts";

/** What somebody was promised of a vnode for a time. */
export type Claim = Times & ResvSpot & { readonly id: string };

/** Whose promise it would be (null: a reservation that is still to be made), and his place. */
export type Claimant = { readonly id: string | null; readonly place: unknown };

/** Refuses with 15044 a promise for which there is no room (I1). */
export function checkPromises(state: ServerState, claimant: Claimant, promised: Promised): void {
  const spots = promised.places.map((text) => spotsOf(state, claimant.place, text));
  const others = claimsOn(state, new Set(spots.flatMap((vnodes) => [...vnodes.keys()])), claimant.id);
  for (const { start_s, end_s, place } of promised.occurrences) {
    for (const [name, spot] of spots[place] ?? []) {
      const beside = (others.get(name) ?? []).filter((other) => other.start_s < end_s && start_s < other.end_s);
      checkRoom(state, name, spot, { start_s, beside });
    }
  }
}

/** The most is taken when something begins. */
function checkRoom(
  state: ServerState,
  name: string,
  spot: ResvSpot,
  { start_s, beside }: { readonly start_s: number; readonly beside: readonly Claim[] },
): void {
  const alone = beside.find((other) => spot.exclusive || other.exclusive);
  if (alone !== undefined) throw notNow(`vnode ${name} is promised to ${alone.id}`);
  const vnode = state.vnodes.get(name);
  if (vnode === undefined) return;
  for (const moment_s of new Set([start_s, ...beside.map((other) => Math.max(start_s, other.start_s))])) {
    const taken: Amounts = new Map(spot.amounts);
    for (const other of beside) if (other.start_s <= moment_s && moment_s < other.end_s) addAmounts(taken, other.amounts, 1);
    for (const resource of spot.amounts.keys()) {
      const available = availableAmount(state, vnode, resource);
      if (available !== null && (taken.get(resource) ?? 0) > available + 1e-9) throw notNow(`vnode ${name} has too little ${resource}`);
    }
  }
}

/** By vnode, what reservations were promised of it. except: one that is left out. */
export function claimsOn(
  state: ServerState,
  names: ReadonlySet<string>,
  except: string | null = null,
): ReadonlyMap<string, readonly Claim[]> {
  const by_vnode = new Map<string, Claim[]>();
  const ids = new Set([...names].flatMap((name) => [...(state.vnodes.get(name)?.resvs.keys() ?? [])]));
  for (const id of ids) {
    const other = id === except ? undefined : state.resvs.get(id);
    const { promised } = other?.attrs ?? {};
    if (other === undefined || promised === undefined || !isPromised(other.attrs.reserve_state)) continue;
    const spots = promised.places.map((text) => spotsOf(state, other.attrs.Resource_List["place"], text));
    for (const { start_s, end_s, place } of promised.occurrences) {
      for (const [name, { amounts, exclusive }] of spots[place] ?? []) {
        if (!names.has(name)) continue;
        const list = by_vnode.get(name) ?? [];
        list.push({ id, start_s, end_s, exclusive, amounts });
        by_vnode.set(name, list);
      }
    }
  }
  return by_vnode;
}

export const notNow = (why: string): Reject => new Reject(PBSE.RESCUNAV, `Resource temporarily unavailable: ${why}`);
