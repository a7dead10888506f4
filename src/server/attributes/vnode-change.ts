// Changes of a vnode by an administrator, or by a hook with an administrator's rights (docs/reference/attributes.md 5 and 10).
// Changed attributes are marked, so that reports of the mom do not overwrite them.

import { PBSE, Reject, reject } from "#model/pbse.ts";
import { NODE_ATTRIBUTES } from "#model/tables/node-attributes.ts";
import type { AttrOp } from "#protocol/messages.ts";
import type { Transaction } from "../engine/transaction.ts";
import type { Attrs, ServerState, Vnode } from "../state/state.ts";
import { type Changed, changeAttrs, delta } from "./change.ts";
import type { LogTarget } from "./manager-log.ts";
import { checkNodePartition } from "./partition-rules.ts";

/** Attributes of a vnode that are shown, but count as unknown when they are set (15002), as in PBS. */
const SHOWN_ONLY = "license";

/** Refuses with 15002 attributes that are shown but cannot be set. */
export function checkKnown(ops: readonly AttrOp[]): void {
  if (ops.some(({ name }) => name.toLowerCase() === SHOWN_ONLY)) throw reject(PBSE.NOATTR);
}

/** The vnode after operations of qmgr, checked against the caller's rights. Nothing is changed yet. */
export function changedNode(tx: Transaction, vnode: Vnode, ops: readonly AttrOp[]): Changed {
  const { state } = tx;
  checkKnown(ops);
  // The state is never unset: a list without words means free.
  const attrs = ops.map((op) =>
    op.op === "unset" && op.name.toLowerCase() === "state" ? ({ ...op, op: "=", value: "free" } as const) : op,
  );
  const changed = changeAttrs(vnode.attrs, attrs, { table: NODE_ATTRIBUTES, resources: state.resources, who: tx.who });
  checkNode(state, changed, vnode);
  return changed;
}

/** vnode null: the vnode is being created. */
export function checkNode(state: ServerState, changed: Changed, vnode: Vnode | null): void {
  const { after, touched } = changed;
  const name = after["queue"];
  if (touched.has("queue") && typeof name === "string") {
    const queue = state.queues.get(name);
    if (queue === undefined) throw reject(PBSE.UNKQUE);
    if (queue.attrs["queue_type"] !== "Execution") throw reject(PBSE.ATTRTYPE);
  }
  checkProvisioning(changed);
  checkNodePartition(state, changed, vnode);
}

/** The environment must be one that the vnode already has, because provisioning is not supported. */
function checkProvisioning({ after, touched }: Changed): void {
  if (touched.has("provision_enable") && after["provision_enable"] === true)
    throw new Reject(PBSE.NOSUP, "Feature/function not supported: vnodes are not provisioned, provision_enable cannot be True");
  const current = after["current_aoe"];
  if (!touched.has("current_aoe") || typeof current !== "string") return;
  const aoe = (after["resources_available"] as { readonly [name: string]: unknown } | undefined)?.["aoe"];
  const known = Array.isArray(aoe) ? aoe : String(aoe ?? "").split(",");
  if (!known.includes(current)) throw reject(PBSE.NODE_BAD_CURRENT_AOE);
}

/** Applies a change that was checked, and marks the attributes that an administrator set. */
export function enterNodeChange(tx: Transaction, vnode: Vnode, ops: readonly AttrOp[], changed: Changed): void {
  tx.apply({ kind: "changed", object: "node", name: vnode.name, ...delta(changed) });
  tx.apply({ kind: "vnode-admin-set", name: vnode.name, ...marks(changed.after, ops, vnode.set_by_admin) });
}

/**
 * The attributes that belong to the administrator after a change, without those that return to the mom: `comment`, `resources_available.mem`.
 * before: the administrator's attributes until now.
 */
export function marks(
  after: Attrs,
  ops: readonly AttrOp[],
  before: readonly string[] = [],
): { readonly add: string[]; readonly remove: string[] } {
  const add: string[] = [];
  const remove: string[] = [];
  for (const op of ops) {
    const attribute = NODE_ATTRIBUTES.byName(op.name)?.name ?? op.name;
    const value = after[attribute];
    if (op.resource !== undefined) {
      const there = (value as { readonly [name: string]: unknown } | undefined)?.[op.resource] !== undefined;
      (there ? add : remove).push(`${attribute}.${op.resource}`);
    } else if (op.op === "unset" || value === undefined)
      remove.push(attribute, ...before.filter((mark) => mark.startsWith(`${attribute}.`)));
    else add.push(attribute);
  }
  return { add, remove };
}

/** The name of a vnode in lines of the log. */
export const nodeTarget = (name: string): LogTarget => ({ class: "Node", object: name });
