// Invariants of reservations. They are checked together with all other invariants of the state (./invariants.ts).
//
// I1. A reservation has a queue of its own. The amounts that are counted as used in a reservation are the sums over its jobs.
// I2. A vnode refers to a reservation if and only if it was promised to that reservation.
// I3. At no time are larger amounts of a vnode promised than it has, and a vnode that is promised exclusively is promised to
//     no other reservation. There are three exceptions: a place that a manager forced (pbs_ralter -W force), a reservation
//     for which the vnode has become too small (resv/lowered.ts), and a host in several maintenance reservations.
// I4. The occurrences of a promise are in order of time and do not overlap. Each refers to one of the promise's places, or to
//     none (NO_PLACE).
//     An unconfirmed reservation has no promise and has not begun.

import { RESV_STATE } from "#model/resv-state.ts";
import { type Claim, claimsOn } from "../resv/promises.ts";
import { type Amounts, addAmounts, sameAmounts } from "../state/amounts.ts";
import { availableAmount } from "../state/occupancy.ts";
import { NO_PLACE } from "../state/resv-occurrences.ts";
import type { Resv, ServerState } from "../state/state.ts";

export type Check = (holds: boolean, fault: () => string) => void;

export function checkResvs(state: ServerState, check: Check): void {
  for (const resv of state.resvs.values()) {
    checkQueue(state, resv, check);
    checkUse(state, resv, check);
    checkPromise(resv, check);
    for (const name of resv.vnodes)
      check(state.vnodes.get(name)?.resvs.has(resv.id) !== false, () => `${resv.id} is not noted on vnode ${name}`);
  }
  for (const vnode of state.vnodes.values()) {
    for (const id of vnode.resvs.keys())
      check(state.resvs.get(id)?.vnodes.has(vnode.name) === true, () => `vnode ${vnode.name} notes ${id}, which does not have it`);
  }
  for (const [queue, id] of state.resv_queues)
    check(state.resvs.get(id)?.attrs.queue === queue, () => `queue ${queue} is not that of ${id}`);
  checkOverlap(state, check);
}

function checkQueue(state: ServerState, { id, attrs }: Resv, check: Check): void {
  check(state.queues.has(attrs.queue), () => `${id} has no queue`);
  check(state.resv_queues.get(attrs.queue) === id, () => `${id}: its queue does not know it`);
  check(
    attrs.reserve_state !== RESV_STATE.BEING_DELETED || (state.queues.get(attrs.queue)?.jobs.size ?? 0) > 0,
    () => `${id} is over and has no job left, but is still there`,
  );
}

function checkUse(state: ServerState, resv: Resv, check: Check): void {
  const used = new Map<string, Amounts>();
  for (const id of state.queues.get(resv.attrs.queue)?.jobs ?? []) {
    const placement = state.placements.get(id);
    if (placement === undefined) continue;
    for (const [name, { amounts }] of placement.vnodes) {
      if (amounts.size === 0) continue;
      const sum = used.get(name) ?? new Map<string, number>();
      addAmounts(sum, amounts, 1);
      used.set(name, sum);
    }
  }
  check(used.size === resv.used.size, () => `${resv.id}: its jobs are on ${used.size} vnodes, ${resv.used.size} are counted`);
  for (const [name, sum] of used)
    check(sameAmounts(sum, resv.used.get(name) ?? new Map()), () => `${resv.id}: its use of ${name} is wrong`);
}

function checkPromise({ id, attrs }: Resv, check: Check): void {
  const { promised, begun, reserve_state } = attrs;
  check(reserve_state !== RESV_STATE.UNCONFIRMED || promised === undefined, () => `${id} is not confirmed but was promised something`);
  check(begun === undefined || reserve_state !== RESV_STATE.UNCONFIRMED, () => `${id} began unconfirmed`);
  let last_s = 0;
  for (const { start_s, end_s, place } of promised?.occurrences ?? []) {
    check(start_s < end_s && start_s >= last_s, () => `${id}: occurrences overlap`);
    check(place === NO_PLACE || promised?.places[place] !== undefined, () => `${id}: an occurrence has no place`);
    last_s = end_s;
  }
}

function checkOverlap(state: ServerState, check: Check): void {
  const reserved = new Set([...state.vnodes.values()].filter(({ resvs }) => resvs.size > 1).map(({ name }) => name));
  for (const [name, claims] of claimsOn(state, reserved)) {
    const kept = claims.filter(({ id }) => isToFit(state.resvs.get(id), name));
    if (kept.length > 1) checkVnodeOverlap(state, name, kept, check);
  }
}

const isToFit = (resv: Resv | undefined, vnode: string): boolean =>
  resv?.attrs["forced"] !== true && resv?.attrs.short?.includes(vnode) !== true;

/** Checks the sums of the promises of a vnode at the start of every occurrence. */
function checkVnodeOverlap(state: ServerState, name: string, claims: readonly Claim[], check: Check): void {
  const vnode = state.vnodes.get(name);
  if (vnode === undefined) return;
  for (const { start_s } of claims) {
    const now = claims.filter((claim) => claim.start_s <= start_s && start_s < claim.end_s);
    const ids = now.map(({ id }) => id).join(" ");
    if (now.every(({ id }) => id.startsWith("M"))) continue;
    check(now.length < 2 || !now.some(({ exclusive }) => exclusive), () => `vnode ${name} is promised to one alone and to others: ${ids}`);
    const sum: Amounts = new Map();
    for (const { amounts } of now) addAmounts(sum, amounts, 1);
    for (const [resource, amount] of sum) {
      const available = availableAmount(state, vnode, resource);
      check(
        available === null || amount <= available + 1e-9,
        () => `vnode ${name}: ${amount} of ${available} ${resource} promised to ${ids}`,
      );
    }
  }
}
