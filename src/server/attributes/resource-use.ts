// Finds the objects that have values of a resource. A resource cannot be deleted while jobs or reservations request it.
// Values of server, queues and vnodes are deleted with the resource (docs/reference/attributes.md 10).

import type { AttributeTable } from "#model/attribute.ts";
import { asksFor } from "#model/request/select.ts";
import { NODE_ATTRIBUTES } from "#model/tables/node-attributes.ts";
import { QUEUE_ATTRIBUTES } from "#model/tables/queue-attributes.ts";
import { SERVER_ATTRIBUTES } from "#model/tables/server-attributes.ts";
import type { Transaction } from "../engine/transaction.ts";
import type { Attrs, ServerState } from "../state/state.ts";

/** The kind of a live object that requests the resource: `job` or `reservation`; null: there is none. */
export function usedByJob(state: ServerState, resource: string): "job" | "reservation" | null {
  for (const job of state.jobs.values()) if (usedByJobAttrs(job.attrs, resource)) return "job";
  for (const resv of state.resvs.values()) if (usedByJobAttrs(resv.attrs, resource)) return "reservation";
  return null;
}

export function usedByJobAttrs(attrs: Attrs, resource: string): boolean {
  for (const name of ["Resource_List", "resources_used"]) {
    const record = attrs[name] as { readonly [resource: string]: unknown } | undefined;
    if (record !== undefined && Object.hasOwn(record, resource)) return true;
  }
  const select = attrs["schedselect"];
  return typeof select === "string" && asksFor(select, resource);
}

/** The kind of object that has a value of the resource; null: none has. */
export function holderOf(state: ServerState, resource: string): "server" | "queue" | "node" | null {
  if (holds(SERVER_ATTRIBUTES, state.server, resource)) return "server";
  for (const queue of state.queues.values()) if (holds(QUEUE_ATTRIBUTES, queue.attrs, resource)) return "queue";
  for (const vnode of state.vnodes.values()) if (holds(NODE_ATTRIBUTES, vnode.attrs, resource)) return "node";
  return null;
}

/** Removes the resource's values from server, queues and vnodes. */
export function removeResource(tx: Transaction, resource: string): void {
  const { state } = tx;
  const server = without(SERVER_ATTRIBUTES, state.server, resource);
  if (server !== null) tx.apply({ kind: "server-changed", ...server });
  for (const { name, attrs } of state.queues.values()) {
    const change = without(QUEUE_ATTRIBUTES, attrs, resource);
    if (change !== null) tx.apply({ kind: "changed", object: "queue", name, ...change });
  }
  for (const { name, attrs, set_by_admin } of state.vnodes.values()) {
    const change = without(NODE_ATTRIBUTES, attrs, resource);
    if (change !== null) tx.apply({ kind: "changed", object: "node", name, ...change });
    const mark = `resources_available.${resource}`;
    if (set_by_admin.includes(mark)) tx.apply({ kind: "vnode-admin-set", name, add: [], remove: [mark] });
  }
}

const recordNames = (table: AttributeTable): readonly string[] =>
  table.rows.filter(({ type }) => type === "resource_list" || type === "entity_limit_res").map(({ name }) => name);
const RECORDS = new Map([SERVER_ATTRIBUTES, QUEUE_ATTRIBUTES, NODE_ATTRIBUTES].map((table) => [table, recordNames(table)]));

function holds(table: AttributeTable, attrs: Attrs, resource: string): boolean {
  return (RECORDS.get(table) ?? []).some((name) => Object.hasOwn((attrs[name] as object | undefined) ?? {}, resource));
}

function without(table: AttributeTable, attrs: Attrs, resource: string): { readonly set: Attrs; readonly unset: string[] } | null {
  const set: Attrs = {};
  const unset: string[] = [];
  for (const name of RECORDS.get(table) ?? []) {
    const record = attrs[name] as { readonly [resource: string]: unknown } | undefined;
    if (record === undefined || !Object.hasOwn(record, resource)) continue;
    const { [resource]: _gone, ...rest } = record;
    if (Object.keys(rest).length === 0) unset.push(name);
    else set[name] = rest;
  }
  return Object.keys(set).length + unset.length === 0 ? null : { set, unset };
}
