// Status of the server, queues, schedulers, backends and resources. Some values are computed and not stored
// (docs/reference/attributes.md 2-4).

import { mayRead } from "#model/attribute.ts";
import { stateCountText } from "#model/job-state.ts";
import { PBSE, reject } from "#model/pbse.ts";
import { resourceTypeText } from "#model/resource-table.ts";
import { BACKEND_ATTRIBUTES } from "#model/tables/backend-attributes.ts";
import { QUEUE_ATTRIBUTES } from "#model/tables/queue-attributes.ts";
import { SCHED_ATTRIBUTES } from "#model/tables/sched-attributes.ts";
import { SERVER_ATTRIBUTES } from "#model/tables/server-attributes.ts";
import type { StatusItem, StatusRequest } from "#protocol/messages.ts";
import { columnsOf, encode } from "../attributes/encode.ts";
import type { Transaction } from "../engine/transaction.ts";
import { type Amounts, amountValue } from "../state/amounts.ts";
import { runnerCounts, shownHost } from "../state/partitions.ts";
import type { Attrs, Backend, Queue, ResourceRecord, ServerState } from "../state/state.ts";

export function serverStatus(tx: Transaction, { attrs }: StatusRequest): StatusItem[] {
  const { state, config } = tx;
  const columns = columnsOf(state, tx.who, SERVER_ATTRIBUTES, attrs);
  const computed: Attrs = {
    server_state: state.server["server_state"] ?? "Active",
    server_host: state.server["server_host"] ?? config.host,
    pbs_version: config.pbs_version,
    total_jobs: state.jobs.size + state.history_count,
    state_count: stateCountText(state.counts),
    resources_assigned: assignedRecord(state, state.assigned),
  };
  return [{ id: state.name, attrs: encode(columns, state.server, computed) }];
}

export function queueStatus(tx: Transaction, { ids, attrs }: StatusRequest): StatusItem[] {
  const { state } = tx;
  const columns = columnsOf(state, tx.who, QUEUE_ATTRIBUTES, attrs);
  return named(state.queues, ids, PBSE.UNKQUE, (queue) => encode(columns, queue.attrs, queueFacts(state, queue)));
}

function queueFacts(state: ServerState, queue: Queue): Attrs {
  return {
    total_jobs: queue.jobs.size,
    state_count: stateCountText(queue.counts),
    resources_assigned: assignedRecord(state, queue.assigned),
    hasnodes: queue.nodes > 0 ? true : undefined,
  };
}

/** The value of resources_assigned; undefined: nothing is assigned. */
function assignedRecord(state: ServerState, assigned: Amounts): ResourceRecord | undefined {
  if (assigned.size === 0) return undefined;
  return Object.fromEntries([...assigned].map(([name, amount]) => [name, amountValue(state.resources.get(name), amount)]));
}

export function schedStatus(tx: Transaction, { ids, attrs }: StatusRequest): StatusItem[] {
  const columns = columnsOf(tx.state, tx.who, SCHED_ATTRIBUTES, attrs);
  return named(tx.state.scheds, ids, PBSE.UNKSCHED, (sched) => {
    const sched_host = shownHost(sched, tx.config);
    return encode(columns, sched.attrs, sched_host === undefined ? {} : { sched_host });
  });
}

export function backendStatus(tx: Transaction, { ids, attrs }: StatusRequest): StatusItem[] {
  const columns = columnsOf(tx.state, tx.who, BACKEND_ATTRIBUTES, attrs);
  return named(tx.state.backends, ids, PBSE.IVALREQ, (backend) => encode(columns, backend.attrs, backendFacts(tx.state, backend)));
}

function backendFacts(state: ServerState, { name, attrs }: Backend): Attrs {
  const { asked, idle, busy, lost } = runnerCounts(state, name);
  return {
    state: attrs["state"] ?? (attrs["enabled"] === true ? "starting" : "disabled"),
    state_count: `Asked:${asked} Idle:${idle} Busy:${busy} Lost:${lost}`,
  };
}

/** The status of resources; without names, of all, including built-in ones. Resources with flag i are not shown to users. */
export function resourceStatus(tx: Transaction, { ids }: StatusRequest): StatusItem[] {
  const visible = new Map([...tx.state.resources].filter(([, def]) => mayRead(def, tx.who)));
  return named(visible, ids, PBSE.UNKRESC, (def) => ({
    type: resourceTypeText(def.type),
    ...(def.flags === "" ? {} : { flag: def.flags }),
  }));
}

/** Makes an item for each name; without names, for all objects. An unknown name gives an error item with the code. */
export function named<T extends { readonly name: string }>(
  objects: ReadonlyMap<string, T>,
  ids: readonly string[],
  unknown: number,
  attrsOf: (object: T) => Extract<StatusItem, { readonly attrs: unknown }>["attrs"],
): StatusItem[] {
  if (ids.length === 0) return [...objects.values()].map((object) => ({ id: object.name, attrs: attrsOf(object) }));
  return ids.map((id) => {
    const object = objects.get(id);
    if (object !== undefined) return { id, attrs: attrsOf(object) };
    const { code, text } = reject(unknown);
    return { id, code, text };
  });
}
