// The events resvsub and modifyresv: hooks see a reservation as pbs_rsub requests it, or as it would be after pbs_ralter.
// Their changes become part of the request.

import type { AttrChanges, HookInput, HookObject } from "#hooks/run/hook-input.ts";
import { changedObject } from "#hooks/run/merge.ts";
import { RESV_ATTRIBUTES } from "#model/tables/resv-attributes.ts";
import type { AttrValueText, WireAttrs } from "#protocol/messages.ts";
import type { Transaction } from "../engine/transaction.ts";
import type { Resv } from "../state/state.ts";
import { eventBase } from "./alteration.ts";
import { RESV_WRITABLE, resvObject } from "./objects.ts";

/**
 * Runs the resvsub hooks. Returns the attributes of the pbs_rsub with the changes of the hooks, and the transaction in which
 * to read them. If a hook has changed something, this transaction has a manager's rights; the caller has already checked the
 * user's attributes under the user's rights. Throws the refusal of a hook.
 */
export function afterResvsubHooks(
  tx: Transaction,
  given: readonly AttrValueText[],
): { readonly tx: Transaction; readonly attrs: readonly AttrValueText[] } {
  const input = (): HookInput => ({
    ...eventBase(tx, "resvsub"),
    resv: { id: null, attrs: textsOf(given) },
    writable: { resv: [...RESV_WRITABLE, "partition"] },
  });
  const [verdict] = tx.hooks([{ key: "resvsub", event: "resvsub", input }]);
  if (verdict?.kind === "reject") throw verdict.reject;
  const changes = verdict?.changes.resv;
  if (changes === undefined) return { tx, attrs: given };
  return { tx: raised(tx), attrs: valuesOf(changedObject({ id: null, attrs: textsOf(given) }, changes)) };
}

/** Does the same as afterResvsubHooks for the attributes of a pbs_ralter. */
export function afterModifyresvHooks(
  tx: Transaction,
  resv: Resv,
  given: readonly AttrValueText[],
): { readonly tx: Transaction; readonly attrs: readonly AttrValueText[] } {
  const before = resvObject(tx, resv.id, resv.attrs);
  const input = (): HookInput => ({
    ...eventBase(tx, "modifyresv"),
    resv: changedObject(before, textsOf(given) as AttrChanges),
    resv_o: before,
    writable: { resv: RESV_WRITABLE },
  });
  const [verdict] = tx.hooks([{ key: "modifyresv", event: "modifyresv", input }]);
  if (verdict?.kind === "reject") throw verdict.reject;
  const changes = verdict?.changes.resv;
  if (changes === undefined) return { tx, attrs: given };
  return { tx: raised(tx), attrs: valuesOf(changedObject({ id: null, attrs: textsOf(given) }, changes)) };
}

const raised = (tx: Transaction): Transaction => ({ ...tx, who: { ...tx.who, level: "manager" } });
const spelled = (name: string): string => RESV_ATTRIBUTES.byName(name)?.name ?? name;

function textsOf(given: readonly AttrValueText[]): WireAttrs {
  const attrs: { [name: string]: WireAttrs[string] } = {};
  for (const { name, resource, value } of given) {
    if (value === "") continue;
    if (resource === undefined) attrs[spelled(name)] = value;
    else attrs[spelled(name)] = { ...(attrs[spelled(name)] as { [resource: string]: string } | undefined), [resource]: value };
  }
  return attrs;
}

function valuesOf({ attrs }: HookObject): AttrValueText[] {
  return Object.entries(attrs).flatMap(([name, value]): AttrValueText[] => {
    if (typeof value === "string") return [{ name, value }];
    return Object.entries(value).map(([resource, text]) => ({ name, resource, value: String(text) }));
  });
}
