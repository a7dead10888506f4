// Checks whether a job may start on a vnode now. A job of a reservation must fit into what the reservation holds there. Any other job must not conflict with
// the reservations that are running there.

import { PBSE, Reject } from "#model/pbse.ts";
import { addAmounts } from "../state/amounts.ts";
import { availableAmount } from "../state/occupancy.ts";
import type { Resv, ResvSpot, ServerState, Vnode } from "../state/state.ts";

/** The refusal of a start that is not possible now (15044). */
export const notNow = (why: string): Reject => new Reject(PBSE.RESCUNAV, `Resource temporarily unavailable: ${why}`);

/** Refuses with 15044 a vnode or an amount that is not in the job's reservation, or that jobs from before the reservation still use. */
export function checkInside(state: ServerState, resv: Resv, vnode: Vnode, spot: ResvSpot): void {
  const held = resv.held.get(vnode.name);
  if (!resv.counted || held === undefined) throw notNow(`vnode ${vnode.name} is not in reservation ${resv.id}`);
  const used = resv.used.get(vnode.name);
  for (const [resource, amount] of spot.amounts) {
    const own = held.amounts.get(resource);
    const available = availableAmount(state, vnode, resource);
    if (own === undefined) {
      if (available !== null && (vnode.assigned.get(resource) ?? 0) + amount > available + 1e-9)
        throw notNow(`vnode ${vnode.name} has too little ${resource}`);
    } else if ((used?.get(resource) ?? 0) + amount > own + 1e-9) {
      throw notNow(`reservation ${resv.id} has too little ${resource} on vnode ${vnode.name}`);
    } else if (available !== null && usedByJobs(state, vnode, resource) + amount > available + 1e-9) {
      throw notNow(`vnode ${vnode.name} still gives ${resource} to jobs of before the reservation`);
    }
  }
}

function usedByJobs(state: ServerState, vnode: Vnode, resource: string): number {
  const sum = new Map<string, number>();
  for (const id of vnode.jobs.keys()) {
    const placement = state.placements.get(id);
    if (placement !== undefined) addAmounts(sum, placement.vnodes.get(vnode.name)?.amounts ?? new Map(), 1);
  }
  return sum.get(resource) ?? 0;
}

/** Refuses with 15044 a job without reservation on a vnode of a running reservation, if the job or the reservation needs the vnode exclusively. */
export function checkOutside(state: ServerState, vnode: Vnode, spot: ResvSpot): void {
  for (const [id, { exclusive }] of vnode.resvs) {
    if (state.resvs.get(id)?.counted !== true) continue;
    if (exclusive || (spot.exclusive && state.resvs.get(id)?.held.has(vnode.name) === true))
      throw notNow(`vnode ${vnode.name} is reserved by ${id}`);
  }
}
