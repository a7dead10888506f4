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

/** An attribute of vnodes that is shown, but counts as unknown when someone sets it (15002), as in PBS. */
const SHOWN_ONLY = "license";

/** Refuses with 15002 operations on the attribute SHOWN_ONLY. */
export function checkKnown(ops: readonly AttrOp[]): void {
  if (ops.some(({ name }) => name.toLowerCase() === SHOWN_ONLY)) throw reject(PBSE.NOATTR);
}

/** Computes what operations of qmgr would change in a vnode, with the caller's rights. Changes nothing. */
export function changedNode(tx: Transaction, vnode: Vnode, ops: readonly AttrOp[]): Changed {
  const { state } = tx;
  checkKnown(ops);
  // To unset state means to set it to free.
  const attrs = ops.map((op) =>
    op.op === "unset" && op.name.toLowerCase() === "state" ? ({ ...op, op: "=", value: "free" } as const) : op,
  );
  const changed = changeAttrs(vnode.attrs, attrs, { table: NODE_ATTRIBUTES, resources: state.resources, who: tx.who });
  checkNode(state, changed, vnode);
  return changed;
}

/** Checks a vnode as it would be after a change. vnode: the present vnode; null: it is being created. */
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

/** Refuses changes that need provisioning, which is not supported: current_aoe must be an environment that the vnode already has. */
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
 * The names that count as set by an administrator after a change, for example `comment` or `resources_available.mem`. Names
 * that were unset are removed, so that reports of the mom apply again. before: the names before the change.
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

/** The object of log lines about a vnode. */
export const nodeTarget = (name: string): LogTarget => ({ class: "Node", object: name });
