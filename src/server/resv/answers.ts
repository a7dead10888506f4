// Handles what schedulers answer about reservations: checks an answer against the present state, then carries it out.
//
// I1. A reservation is confirmed once. If a second scheduler also confirms it, that scheduler is refused.
// I2. At no time are larger amounts of a vnode promised than the vnode has.

import { PBSE, Reject, reject } from "#model/pbse.ts";
import { parseExecVnode } from "#model/request/exec-vnode.ts";
import type { Decision } from "#protocol/sched-link.ts";
import type { Kernel } from "../engine/kernel.ts";
import type { Transaction } from "../engine/transaction.ts";
import { notNow } from "../jobs/resv-fit.ts";
import { partitionOf, partitionsOf } from "../state/partitions.ts";
import type { Promised, Resv, ServerState } from "../state/state.ts";
import { askOf, refusedBy } from "./asking.ts";
import { settleHealth } from "./health.ts";
import { confirm, deny } from "./life.ts";
import { checkPromises } from "./promises.ts";

type Confirm = Extract<Decision, { readonly kind: "confirm-resv" }>;
type Deny = Extract<Decision, { readonly kind: "deny-resv" }>;

/**
 * Confirms a reservation with the vnodes that a scheduler has chosen. Refuses with 15084 an unknown reservation, with 15016
 * a reservation that the scheduler was not asked about, with 15044 vnodes that can no longer be promised.
 */
export function confirmResv(kernel: Kernel, tx: Transaction, sched_name: string, decision: Confirm): void {
  const resv = asked(kernel, sched_name, decision.resv);
  const sched = kernel.state.scheds.get(sched_name);
  if (sched === undefined || !partitionsOf(sched).includes(decision.partition)) throw notNow("the partition is another scheduler's");
  if (resv.attrs.partition !== undefined && resv.attrs.partition !== decision.partition) throw notNow("it is for another partition");
  const promised = { occurrences: decision.occurrences, places: decision.places };
  checkTimes(kernel, resv, sched_name, promised);
  checkPlaces(tx.state, resv, decision.partition, promised);
  confirm(tx, resv, promised, decision.partition);
  // The vnodes may have been lost since the scheduler chose them. Other occurrences may still have no vnodes.
  settleHealth(kernel, tx, resv);
}

/** Called when a scheduler refuses a reservation. If no other scheduler can confirm it, the reservation is denied. */
export function denyResv(kernel: Kernel, tx: Transaction, sched: string, decision: Deny): void {
  refuseFor(kernel, tx, sched, asked(kernel, sched, decision.resv));
}

/** Notes that the scheduler refuses the reservation, so that it is not asked again. If no other scheduler can confirm it, the reservation is denied. */
export function refuseFor(kernel: Kernel, tx: Transaction, sched: string, resv: Resv): void {
  if (refusedBy(kernel, resv, sched)) deny(tx, resv);
}

function asked(kernel: Kernel, sched_name: string, id: string): Resv {
  const resv = kernel.state.resvs.get(id);
  if (resv === undefined) throw reject(PBSE.UNKRESVID);
  const sched = kernel.state.scheds.get(sched_name);
  if (sched === undefined || askOf(kernel, resv, sched) === undefined) throw reject(PBSE.BADSTATE);
  return resv;
}

function checkTimes(kernel: Kernel, resv: Resv, sched: string, promised: Promised): void {
  const object = kernel.state.scheds.get(sched);
  const ask = object === undefined ? undefined : askOf(kernel, resv, object);
  if (ask === undefined) throw reject(PBSE.BADSTATE);
  const { occurrences, places } = promised;
  if (occurrences.some(({ place }) => places[place] === undefined)) throw notNow("an occurrence has no place");
  if (ask.duration_s !== undefined) {
    const [only, ...others] = occurrences;
    if (only === undefined || others.length > 0 || only.end_s - only.start_s !== ask.duration_s) throw notNow("its times are others");
    return;
  }
  const same = ask.occurrences.every(({ start_s, end_s }, at) => occurrences[at]?.start_s === start_s && occurrences[at]?.end_s === end_s);
  if (!same || occurrences.length !== ask.occurrences.length) throw notNow("its times are others");
}

/** Checks the vnodes that a scheduler has chosen: they exist, belong to the partition, can be reserved, and are free at those times (I2). */
function checkPlaces(state: ServerState, resv: Resv, partition: string, promised: Promised): void {
  const place_text = resv.attrs.Resource_List["place"];
  for (const text of promised.places) {
    for (const { vnode: name } of parseExecVnode(text).flat()) {
      const vnode = state.vnodes.get(name);
      if (vnode === undefined) throw new Reject(PBSE.UNKNODE, `Unknown node  ${name}`);
      if (partitionOf(vnode) !== partition) throw notNow(`vnode ${name} is in another partition`);
      if (vnode.attrs["resv_enable"] === false) throw notNow(`vnode ${name} takes no reservations`);
    }
  }
  checkPromises(state, { id: resv.id, place: place_text }, promised);
}
