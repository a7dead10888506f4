// Changes of hooks to vnodes. They are made like those of a manager with qmgr, one vnode after the other. Illegal changes
// are logged and left out.

import type { AttrChanges, ObjectChanges } from "#hooks/run/hook-input.ts";
import { listOf } from "#model/attribute-reader.ts";
import { Reject } from "#model/pbse.ts";
import { NODE_ATTRIBUTES } from "#model/tables/node-attributes.ts";
import type { AttrOp } from "#protocol/messages.ts";
import { LOG_EVENT } from "#support/log-event.ts";
import { logChanged, loggedTerms } from "../attributes/manager-log.ts";
import { changedNode, enterNodeChange, nodeTarget } from "../attributes/vnode-change.ts";
import { serverIdentity } from "../engine/identity.ts";
import type { Transaction } from "../engine/transaction.ts";
import type { Vnode } from "../state/state.ts";
import { opsOf } from "./alteration.ts";

/** State words that a hook may set or remove; all others are set by the server only (docs/reference/attributes.md 5). */
const SETTABLE: ReadonlySet<string> = new Set(["offline", "down", "sleep"]);

/** Makes a hook's changes to vnodes. names: the vnodes that the hook may change; null: all. */
export function changeVnodes(tx: Transaction, changes: ObjectChanges, hook: string, names: ReadonlySet<string> | null = null): void {
  const own = { ...tx, who: serverIdentity(tx.config.host) };
  for (const [name, wanted] of Object.entries(changes)) {
    const vnode = tx.state.vnodes.get(name);
    try {
      if (vnode === undefined || (names !== null && !names.has(name))) throw new Reject(0, "it is not there for this hook");
      setNode(own, vnode, nodeOps(wanted, listOf(vnode.attrs, "state")), hook);
    } catch (error) {
      if (!(error instanceof Reject)) throw error;
      const text = `vnode ${name} is not changed: ${(error.text ?? "").trim()}`;
      tx.log({ event: LOG_EVENT.ERROR, class: "Hook", object: hook, text });
    }
  }
}

/** Sets attributes of a vnode for a hook, as qmgr would. Throws Reject, in which case nothing is changed. */
function setNode(tx: Transaction, vnode: Vnode, ops: readonly AttrOp[], hook: string): void {
  if (ops.length === 0) return;
  const changed = changedNode(tx, vnode, ops);
  logChanged(tx, nodeTarget(vnode.name), "set", loggedTerms(changed), hook);
  enterNodeChange(tx, vnode, ops, changed);
}

/**
 * A hook's changes as operations of qmgr. The value that a hook gives for state is the whole state: words that it leaves out
 * are removed, except those that hooks may not change.
 */
function nodeOps(changes: AttrChanges, states: readonly string[]): AttrOp[] {
  return opsOf(changes).flatMap((op): AttrOp[] => {
    if (NODE_ATTRIBUTES.byName(op.name)?.name !== "state") return [op];
    const wanted = op.op === "unset" ? [] : op.value.split(",").filter((word) => SETTABLE.has(word));
    const gone = states.filter((word) => SETTABLE.has(word) && !wanted.includes(word));
    const ops: AttrOp[] = gone.length === 0 ? [] : [{ name: op.name, op: "-=", value: gone.join(",") }];
    if (wanted.length > 0) ops.push({ name: op.name, op: "+=", value: wanted.join(",") });
    return ops;
  });
}
