// Keeps results that thousands of submissions share, so that they are computed once: parsed lists, environments, resolved
// resource requests. Entries are dropped when something changes on which they depend: resources, attributes of the server or
// the queue.
//
// I1. Nothing here is state: without this memory every answer would be the same, only slower.
// I2. Values that are returned are shared and never changed in place.

import type { Reject } from "#model/pbse.ts";
import type { ResolvedRequest } from "#model/request/job-request.ts";
import type { ResourceDef } from "#model/resource-table.ts";
import type { Attrs, Queue, ServerState } from "../state/state.ts";

/** A request with its defaults. bounds: the refusal by the bounds of the queue; null: there is none. */
export type KeptRequest = ResolvedRequest & { readonly bounds: Reject | null };

export type SubmitMemo = {
  /** returns the value of a key; calls make if there is no value yet */
  value<T>(key: string, make: () => T): T;
  request(key: string, make: () => KeptRequest): KeptRequest;
};

/** The largest number of entries in a table. When it is reached, the table is emptied. */
const ENTRIES_MAX = 4096;
/** The longest key that is kept. A longer key probably belongs to a single job. */
const KEY_LENGTH_MAX = 20_000;

type Memory = {
  resources: readonly ResourceDef[];
  server: Attrs;
  values: Map<string, unknown>;
  readonly queues: Map<string, { readonly attrs: Attrs; readonly requests: Map<string, KeptRequest>; readonly memo: SubmitMemo }>;
};

const MEMORIES = new WeakMap<ServerState, Memory>();

export function memoOf(state: ServerState, queue: Queue): SubmitMemo {
  const memory = memoryOf(state);
  let kept = memory.queues.get(queue.name);
  if (kept === undefined || kept.attrs !== queue.attrs) {
    const requests = new Map<string, KeptRequest>();
    kept = {
      attrs: queue.attrs,
      requests,
      memo: {
        value: (key, make) => remembered(memory.values, key, make) as never,
        request: (key, make) => remembered(requests, key, make),
      },
    };
    memory.queues.set(queue.name, kept);
  }
  return kept.memo;
}

function memoryOf(state: ServerState): Memory {
  let memory = MEMORIES.get(state);
  if (memory === undefined) {
    memory = { resources: [], server: {}, values: new Map(), queues: new Map() };
    MEMORIES.set(state, memory);
  }
  if (memory.server === state.server && sameResources(memory.resources, state.resources)) return memory;
  memory.server = state.server;
  memory.resources = [...state.resources.values()];
  memory.values = new Map();
  memory.queues.clear();
  return memory;
}

function sameResources(known: readonly ResourceDef[], resources: ReadonlyMap<string, ResourceDef>): boolean {
  if (known.length !== resources.size) return false;
  let at = 0;
  for (const def of resources.values()) if (def !== known[at++]) return false;
  return true;
}

function remembered<T>(table: Map<string, T>, key: string, make: () => T): T {
  const found = table.get(key);
  if (found !== undefined) return found;
  const value = make();
  if (key.length > KEY_LENGTH_MAX) return value;
  if (table.size >= ENTRIES_MAX) table.clear();
  table.set(key, value);
  return value;
}
