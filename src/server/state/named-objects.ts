// Queues, vnodes, schedulers, reservations, backends and runners: creates, changes and deletes them, and updates the values that are derived
// from them.

import { parseResvId } from "#model/job-id.ts";
import { canResvFollow } from "#model/resv-state.ts";
import { assert, present, unreachable } from "#support/assert.ts";
import { type Changes, withAttrs } from "./changes.ts";
import type { Event, NamedObject } from "./event.ts";
import { place } from "./occupancy.ts";
import { hostOf, placedHost, placementOf } from "./placement.ts";
import { holdAgain, holdHostAgain, holdNewVnode, newResv, release } from "./resv-holding.ts";
import { occurrenceStarts } from "./resv-occurrences.ts";
import type { Attrs, Queue, Resv, ResvAttrs, RunnerAttrs, ServerState, Vnode } from "./state.ts";
import { refreshVnode } from "./vnode-states.ts";

/** Creates an object. Its name must be free. */
export function createObject(state: ServerState, event: Extract<Event, { kind: "created" }>, changes: Changes): void {
  const { object, name } = event;
  const attrs = { ...event.attrs };
  const order = state.next_order++;
  changes.server = true;
  switch (object) {
    case "queue": {
      assert(!state.queues.has(name), `queue ${name} exists`);
      let nodes = 0;
      for (const vnode of state.vnodes.values()) if (vnode.attrs["queue"] === name) nodes++;
      state.queues.set(name, newQueue(name, order, attrs, nodes));
      changes.queues.add(name);
      break;
    }
    case "node": {
      assert(!state.vnodes.has(name), `vnode ${name} exists`);
      const vnode = newVnode(name, order, attrs, [...(event.set_by_admin ?? [])]);
      state.vnodes.set(name, vnode);
      indexVnode(state, vnode, changes);
      placeAgain(state, hostOf(vnode), changes);
      holdNewVnode(state, vnode, changes);
      changes.vnodes.add(name);
      break;
    }
    case "sched":
      assert(!state.scheds.has(name), `scheduler ${name} exists`);
      state.scheds.set(name, { name, order, attrs });
      changes.scheds.add(name);
      break;
    case "backend":
      assert(!state.backends.has(name), `backend ${name} exists`);
      state.backends.set(name, { name, order, attrs });
      changes.backends.add(name);
      break;
    case "runner":
      assert(!state.runners.has(name), `runner ${name} exists`);
      state.runners.set(name, { name, order, attrs: attrs as RunnerAttrs });
      changes.runners.add(name);
      break;
    case "resv":
      assert(!state.resvs.has(name), `reservation ${name} exists`);
      addResv(state, name, attrs as ResvAttrs, changes);
      state.next_seq = parseResvId(name)?.seq ?? state.next_seq;
      changes.resvs.add(name);
      break;
    default:
      unreachable(object);
  }
}

/** Adds a reservation to the state and to all derived values. changes: null while the state is loaded. */
export function addResv(state: ServerState, id: string, attrs: ResvAttrs, changes: Changes | null): void {
  const resv = newResv(id, attrs, occurrenceStarts(attrs));
  state.resvs.set(id, resv);
  state.resv_queues.set(attrs.queue, id);
  holdAgain(state, resv, changes);
}

export const newQueue = (name: string, order: number, attrs: Attrs, nodes: number): Queue => ({
  name,
  order,
  attrs,
  counts: new Map(),
  jobs: new Set(),
  assigned: new Map(),
  nodes,
});

export const newVnode = (name: string, order: number, attrs: Attrs, set_by_admin: string[]): Vnode => ({
  name,
  order,
  attrs,
  set_by_admin,
  assigned: new Map(),
  slots: [],
  jobs: new Map(),
  resvs: new Map(),
});

/** Sets and unsets attributes of an object. */
export function changeObject(
  state: ServerState,
  object: NamedObject,
  name: string,
  set: Attrs,
  unset: readonly string[],
  changes: Changes,
): void {
  switch (object) {
    case "queue": {
      const queue = present(state.queues.get(name), `queue ${name}`);
      queue.attrs = withAttrs(queue.attrs, set, unset);
      changes.queues.add(name);
      break;
    }
    case "node": {
      const vnode = present(state.vnodes.get(name), `vnode ${name}`);
      const { sharing } = vnode.attrs;
      const host = placedHost(vnode);
      unindexVnode(state, vnode, changes);
      vnode.attrs = withAttrs(vnode.attrs, set["state"] === undefined ? set : { last_state_change_time: changes.now_s, ...set }, unset);
      indexVnode(state, vnode, changes);
      if (vnode.attrs["sharing"] !== sharing || placedHost(vnode) !== host) {
        placeAgain(state, hostOf(vnode), changes);
        holdHostAgain(state, hostOf(vnode), changes);
      }
      refreshVnode(vnode, changes);
      changes.vnodes.add(name);
      break;
    }
    case "sched": {
      const sched = present(state.scheds.get(name), `scheduler ${name}`);
      sched.attrs = withAttrs(sched.attrs, set, unset);
      changes.scheds.add(name);
      break;
    }
    case "backend": {
      const backend = present(state.backends.get(name), `backend ${name}`);
      backend.attrs = withAttrs(backend.attrs, set, unset);
      changes.backends.add(name);
      break;
    }
    case "runner": {
      const runner = present(state.runners.get(name), `runner ${name}`);
      runner.attrs = withAttrs(runner.attrs, set, unset);
      changes.runners.add(name);
      break;
    }
    case "resv": {
      changeResv(state, present(state.resvs.get(name), `reservation ${name}`), set, unset, changes);
      break;
    }
    default:
      unreachable(object);
  }
}

function changeResv(state: ServerState, resv: Resv, set: Attrs, unset: readonly string[], changes: Changes): void {
  const { reserve_state } = resv.attrs;
  resv.attrs = withAttrs(resv.attrs, { mtime: changes.now_s, ...set }, unset);
  assert(
    canResvFollow(reserve_state, resv.attrs.reserve_state),
    `reservation ${resv.id} cannot go from ${reserve_state} to ${resv.attrs.reserve_state}`,
  );
  if (HOLDING.some((name) => set[name] !== undefined || unset.includes(name))) holdAgain(state, resv, changes);
  changes.resvs.add(resv.id);
}

/** Attributes that decide which resources a reservation holds. */
const HOLDING = ["promised", "begun", "reserve_state", "Resource_List"] as const;

/** Deletes an object, which no job may use. */
export function removeObject(state: ServerState, object: NamedObject, name: string, changes: Changes): void {
  switch (object) {
    case "queue": {
      const queue = present(state.queues.get(name), `queue ${name}`);
      assert(queue.jobs.size === 0, `queue ${name} holds jobs`);
      state.queues.delete(name);
      changes.queues.add(name);
      break;
    }
    case "node": {
      const vnode = present(state.vnodes.get(name), `vnode ${name}`);
      assert(vnode.jobs.size === 0, `vnode ${name} runs jobs`);
      unindexVnode(state, vnode, changes);
      state.vnodes.delete(name);
      changes.vnodes.add(name);
      break;
    }
    case "sched":
      assert(state.scheds.delete(name), `no scheduler ${name}`);
      changes.scheds.add(name);
      break;
    case "backend":
      assert(state.backends.delete(name), `no backend ${name}`);
      changes.backends.add(name);
      break;
    case "runner":
      assert(state.runners.delete(name), `no runner ${name}`);
      changes.runners.add(name);
      break;
    case "resv": {
      const resv = present(state.resvs.get(name), `reservation ${name}`);
      assert(resv.used.size === 0 && resv.used_wide.size === 0, `reservation ${name} runs jobs`);
      release(state, resv, changes);
      state.resvs.delete(name);
      state.resv_queues.delete(resv.attrs.queue);
      changes.resvs.add(name);
      break;
    }
    default:
      unreachable(object);
  }
}

/** Adds a vnode to the indexes by host and by queue. changes: null while the state is loaded. */
export function indexVnode(state: ServerState, vnode: Vnode, changes: Changes | null): void {
  const host = hostOf(vnode);
  const names = state.hosts.get(host);
  if (names === undefined) state.hosts.set(host, new Set([vnode.name]));
  else names.add(vnode.name);
  countNode(state, vnode, 1, changes);
}

/** Called when a host has got another vnode. A job that has the whole host exclusively gets this vnode, too. */
function placeAgain(state: ServerState, host: string, changes: Changes): void {
  const ids = new Set<string>();
  for (const name of state.hosts.get(host) ?? []) for (const id of state.vnodes.get(name)?.jobs.keys() ?? []) ids.add(id);
  for (const id of ids) {
    const job = present(state.jobs.get(id), `job ${id}`);
    const [old, next] = [state.placements.get(id), placementOf(state, job.attrs)];
    if (old !== undefined) place(state, job, old, -1, changes);
    if (next !== null) place(state, job, next, 1, changes);
  }
}

function unindexVnode(state: ServerState, vnode: Vnode, changes: Changes): void {
  const host = hostOf(vnode);
  const names = state.hosts.get(host);
  names?.delete(vnode.name);
  if (names?.size === 0) state.hosts.delete(host);
  countNode(state, vnode, -1, changes);
}

function countNode(state: ServerState, vnode: Vnode, by: 1 | -1, changes: Changes | null): void {
  const name = vnode.attrs["queue"];
  const queue = typeof name === "string" ? state.queues.get(name) : undefined;
  if (queue === undefined) return;
  queue.nodes += by;
  changes?.told.queues.add(queue.name);
}
