// What jobs occupy: amounts and cpu slots of vnodes, chunk indexes of hosts, amounts of queues and of the server. All this
// is derived from placements (placement.ts) and never stored.

import { addAmounts, amountOf } from "./amounts.ts";
import type { Changes } from "./changes.ts";
import { countInside, resvOfQueue } from "./resv-holding.ts";
import type { Job, Placement, ServerState, Vnode } from "./state.ts";
import { refreshVnode } from "./vnode-states.ts";

/** Adds what a placement occupies (sign 1), or removes it (-1). Vnodes that no longer exist are skipped. */
export function place(state: ServerState, job: Job, placement: Placement, sign: 1 | -1, changes: Changes | null): void {
  if (sign === 1) state.placements.set(job.id, placement);
  else state.placements.delete(job.id);
  const resv = resvOfQueue(state, job.attrs.queue);
  if (resv !== undefined) countInside(state, resv, placement, sign, changes);
  for (const { host, slot } of placement.chunk_slots) setChunkSlot(state.chunk_slots, host, slot, sign === 1 ? job.id : "");
  for (const [name, spot] of placement.vnodes) {
    const vnode = state.vnodes.get(name);
    if (vnode === undefined) continue;
    if (resv === undefined) addAmounts(vnode.assigned, spot.amounts, sign);
    if (sign === 1) vnode.jobs.set(job.id, placement.counted ? (spot.exclusive ? ALONE : SHARED) : SUSPENDED);
    else vnode.jobs.delete(job.id);
    fillSlots(vnode, job.id, spot.ncpus, sign);
    refreshVnode(vnode, changes);
    changes?.told.vnodes.add(name);
  }
  const queue = state.queues.get(job.attrs.queue);
  if (placement.job_wide.size === 0) return;
  if (queue !== undefined) addAmounts(queue.assigned, placement.job_wide, sign);
  if (resv === undefined) addAmounts(state.assigned, placement.job_wide, sign);
  if (changes === null) return;
  changes.told.server = true;
  if (queue !== undefined) changes.told.queues.add(queue.name);
}

/** The ways in which a job uses a vnode. */
const ALONE = { exclusive: true, suspended: false } as const;
const SHARED = { exclusive: false, suspended: false } as const;
const SUSPENDED = { exclusive: false, suspended: true } as const;

function setChunkSlot(chunk_slots: Map<string, string[]>, host: string, slot: number, id: string): void {
  const slots = chunk_slots.get(host);
  if (slots === undefined) {
    if (id === "") return;
    const first = slot === 0 ? [id] : [...Array.from({ length: slot }, () => ""), id];
    chunk_slots.set(host, first);
    return;
  }
  while (slots.length < slot) slots.push("");
  slots[slot] = id;
  while (slots.length > 0 && slots[slots.length - 1] === "") slots.pop();
  if (slots.length === 0) chunk_slots.delete(host);
}

/** Gives the job the lowest free cpu slots of a vnode (sign 1), or frees its slots (-1). */
function fillSlots(vnode: Vnode, id: string, ncpus: number, sign: 1 | -1): void {
  const { slots } = vnode;
  if (sign === -1) {
    for (let at = 0; at < slots.length; at++) if (slots[at] === id) slots[at] = "";
    while (slots.length > 0 && slots[slots.length - 1] === "") slots.pop();
    return;
  }
  let at = 0;
  for (let left = Math.ceil(ncpus); left > 0; left--) {
    while (slots[at] !== undefined && slots[at] !== "") at++;
    slots[at] = id;
  }
}

/** The amount of a resource that a vnode has, in the units of amounts.ts; null: it is not set there. */
export function availableAmount(state: ServerState, vnode: Vnode, resource: string): number | null {
  const record = vnode.attrs["resources_available"] as { readonly [resource: string]: unknown } | undefined;
  return record?.[resource] === undefined ? null : amountOf(state.resources.get(resource), record[resource]);
}
