// Changes of hooks to vnodes: carried out as a manager's with qmgr, one vnode after the other. Illegal changes are logged and left out.

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

/** States that a hook may give or take; others are the server's own (docs/reference/attributes.md 5). */
const SETTABLE: ReadonlySet<string> = new Set(["offline", "down", "sleep"]);

/** names: only these vnodes may be changed; null: all. */
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

/** A hook sets attributes of a vnode, as qmgr would. Throws Reject before anything is changed. */
function setNode(tx: Transaction, vnode: Vnode, ops: readonly AttrOp[], hook: string): void {
  if (ops.length === 0) return;
  const changed = changedNode(tx, vnode, ops);
  logChanged(tx, nodeTarget(vnode.name), "set", loggedTerms(changed), hook);
  enterNodeChange(tx, vnode, ops, changed);
}

/** For a hook, state is the whole state: words that it leaves out are removed; words that hooks may not change stay as they are. */
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
