// The amounts of vnodes that are promised to reservations at each time, and the check whether one more promise is possible.
//
// I1. At no time are larger amounts of a vnode promised than the vnode has. While a vnode is promised exclusively, it is
//     promised to no other reservation.

import { isPromised } from "#model/resv-state.ts";
import { nth } from "#support/assert.ts";
import { firstPlace } from "#support/search.ts";
import { notNow } from "../jobs/resv-fit.ts";
import { type Amounts, addAmounts } from "../state/amounts.ts";
import { availableAmount } from "../state/occupancy.ts";
import { spotsOf } from "../state/resv-holding.ts";
import type { Times } from "../state/resv-occurrences.ts";
import type { Promised, ResvSpot, ServerState } from "../state/state.ts";

/** An amount of a vnode that is promised for a period. */
export type Claim = Times & ResvSpot & { readonly id: string };

/** The reservation that a promise is for. id null: it does not exist yet. place: its request for exclusiveness (-l place). */
export type Claimant = { readonly id: string | null; readonly place: unknown };

/**
 * Refuses with 15044 a promise that is not possible (I1). Of several vnodes with equal amounts and equal promises only one is
 * checked, and an occurrence is compared only with occurrences at about the same time. To check a reservation for every night
 * of a year therefore takes hardly longer on 1000 vnodes than on one.
 */
export function checkPromises(state: ServerState, claimant: Claimant, promised: Promised): void {
  const spots = promised.places.map((text) => spotsOf(state, claimant.place, text));
  const names = new Set(spots.flatMap((vnodes) => [...vnodes.keys()]));
  const others = promisesOn(state, names, claimant.id);
  const by_vnode = Map.groupBy(
    others.flatMap((other) => [...other.vnodes].map((name) => ({ name, other }))),
    ({ name }) => name,
  );
  const seen = new Set<string>();
  for (const name of names) {
    const there = (by_vnode.get(name) ?? []).map(({ other }) => other);
    const key = likeness(state, name, spots, there);
    if (seen.has(key)) continue;
    seen.add(key);
    checkVnode(state, name, timeline(name, there), { spots, promised });
  }
}

/**
 * Returns a text that contains everything on which the check of a vnode depends: its amounts of the requested resources, what
 * is requested of it, and its promises. Of several vnodes with equal texts, only one need be checked.
 */
function likeness(state: ServerState, name: string, spots: readonly ReadonlyMap<string, ResvSpot>[], there: readonly Grant[]): string {
  const vnode = state.vnodes.get(name);
  const wanted = new Set(spots.flatMap((vnodes) => [...(vnodes.get(name)?.amounts.keys() ?? [])]));
  const has = [...wanted].map((resource) => (vnode === undefined ? "" : availableAmount(state, vnode, resource)));
  return JSON.stringify([
    has,
    spots.map((vnodes) => spotText(vnodes.get(name))),
    there.map((one) => [one.id, one.spots.map((vnodes) => spotText(vnodes.get(name)))]),
  ]);
}

const spotText = (spot: ResvSpot | undefined): string =>
  spot === undefined ? "" : `${spot.exclusive} ${[...spot.amounts].map(([resource, amount]) => `${resource}=${amount}`).join()}`;

/** The promises of a vnode in the order of their starts. longest_s: duration of the longest promise. */
type Timeline = { readonly claims: readonly Claim[]; readonly longest_s: number };

function timeline(name: string, there: readonly Grant[]): Timeline {
  const claims = there
    .flatMap(({ id, occurrences, spots }) =>
      occurrences.flatMap(({ start_s, end_s, place }): Claim[] => {
        const spot = spots[place]?.get(name);
        return spot === undefined ? [] : [{ id, start_s, end_s, ...spot }];
      }),
    )
    .sort((a, b) => a.start_s - b.start_s);
  return { claims, longest_s: claims.reduce((most_s, { start_s, end_s }) => Math.max(most_s, end_s - start_s), 0) };
}

type Wanted = { readonly spots: readonly ReadonlyMap<string, ResvSpot>[]; readonly promised: Promised };

function checkVnode(state: ServerState, name: string, others: Timeline, { spots, promised }: Wanted): void {
  for (const { start_s, end_s, place } of promised.occurrences) {
    const spot = spots[place]?.get(name);
    if (spot !== undefined) checkRoom(state, name, spot, { start_s, beside: claimsDuring(others, start_s, end_s) });
  }
}

function claimsDuring({ claims, longest_s }: Timeline, from_s: number, to_s: number): readonly Claim[] {
  const first = firstPlace(claims, ({ start_s }) => start_s > from_s - longest_s);
  const found: Claim[] = [];
  for (let at = first; at < claims.length; at++) {
    const claim = nth(claims, at);
    if (claim.start_s >= to_s) break;
    if (claim.end_s > from_s) found.push(claim);
  }
  return found;
}

/** Refuses a promise if the sum of promises would be too large at some time. Sums grow only at the starts of promises, so only these are checked. */
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

/** The promises to one reservation on some vnodes. spots: for each of the reservation's places, what is promised of each vnode. */
type Grant = {
  readonly id: string;
  readonly occurrences: Promised["occurrences"];
  readonly spots: readonly ReadonlyMap<string, ResvSpot>[];
  readonly vnodes: ReadonlySet<string>;
};

function promisesOn(state: ServerState, names: ReadonlySet<string>, except: string | null): readonly Grant[] {
  const ids = new Set([...names].flatMap((name) => [...(state.vnodes.get(name)?.resvs.keys() ?? [])]));
  return [...ids].flatMap((id): Grant[] => {
    const other = id === except ? undefined : state.resvs.get(id);
    const { promised } = other?.attrs ?? {};
    if (other === undefined || promised === undefined || !isPromised(other.attrs.reserve_state)) return [];
    const spots = promised.places.map((text) => spotsOf(state, other.attrs.Resource_List["place"], text));
    const vnodes = new Set(spots.flatMap((spot) => [...spot.keys()].filter((name) => names.has(name))));
    return [{ id, occurrences: promised.occurrences, spots, vnodes }];
  });
}

/** The promises to reservations by vnode. except: the id of a reservation that is left out. */
export function claimsOn(
  state: ServerState,
  names: ReadonlySet<string>,
  except: string | null = null,
): ReadonlyMap<string, readonly Claim[]> {
  const promises = promisesOn(state, names, except);
  const vnodes = new Set(promises.flatMap((one) => [...one.vnodes]));
  return new Map(
    [...vnodes].map((name) => [
      name,
      timeline(
        name,
        promises.filter((one) => one.vnodes.has(name)),
      ).claims,
    ]),
  );
}
