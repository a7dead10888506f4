// Applies a list of attribute operations to a record of attributes (docs/reference/qmgr.md 3 and 5). For each operation in
// turn, the attribute is looked up in its table, the right of the caller is checked, and the value is parsed and combined
// with the old one. The record itself is not changed: if all operations succeed, there is a new record; otherwise the
// request is refused.
//
// I1. The first operation that is illegal gives the refusal: unknown attribute 15002, no right 15003, bad value 15014 and
//     similar numbers.

import { type AttributeDef, type AttributeTable, type AttributeValue, attributeOf, checkSettable, valueName } from "#model/attribute.ts";
import { PBSE, reject } from "#model/pbse.ts";
import type { ResourceDef } from "#model/resource-table.ts";
import { alterValue } from "#model/values/index.ts";
import type { AttrOp } from "#protocol/messages.ts";
import type { Identity } from "../engine/transaction.ts";
import type { Attrs } from "../state/state.ts";

export type ChangeContext = {
  readonly table: AttributeTable;
  readonly resources: ReadonlyMap<string, ResourceDef>;
  readonly who: Identity;
  /** whether the object is being created; attributes that can be set only then are refused otherwise */
  readonly creating?: boolean;
  /** the values that attributes of this object get when they are unset, if these differ from the table's defaults */
  readonly fresh?: Attrs;
};

/** The result of a list of operations. touched: names of the attributes in the order of the operations, each once. */
export type Changed = {
  readonly before: Attrs;
  readonly after: Attrs;
  readonly touched: ReadonlySet<string>;
  readonly terms: readonly { readonly def: AttributeDef; readonly op: AttrOp }[];
};

export function changeAttrs(before: Attrs, ops: readonly AttrOp[], context: ChangeContext): Changed {
  const after: Attrs = { ...before };
  const touched = new Set<string>();
  const terms = ops.map((op) => {
    const def = attributeOf(context.table, op.name);
    if (!isRestated(def, op, before, context)) checkRight(def, op, context);
    const value =
      (isUnset(op) ? context.fresh?.[def.name] : undefined) ??
      alterValue(def, after[def.name] as AttributeValue | undefined, op, context.resources);
    if (value === undefined) delete after[def.name];
    else after[def.name] = value;
    touched.add(def.name);
    return { def, op };
  });
  return { before, after, touched, terms };
}

/** Whether an operation unsets the whole attribute, which an empty value also does (docs/reference/qmgr.md 3). */
export const isUnset = ({ op, value, resource }: AttrOp): boolean =>
  resource === undefined && (op === "unset" || (op === "=" && value === ""));

/** Whether a manager only sets the value that the attribute already has. This is allowed even for some attributes that cannot be changed. */
function isRestated(def: AttributeDef, op: AttrOp, before: Attrs, { who }: ChangeContext): boolean {
  return def.restatable === true && who.level === "manager" && op.op === "=" && op.value === before[def.name];
}

function checkRight(def: AttributeDef, op: AttrOp, { who, resources, creating }: ChangeContext): void {
  const resource = op.resource === undefined ? undefined : resources.get(op.resource);
  checkSettable(def, who, resource);
  if (def.createOnly === true && creating !== true) throw reject(PBSE.ATTRRO, valueName(def, op.resource));
}

/**
 * A change in the form for events: the values that were set, and the names that were removed. An attribute that was set to
 * its former value counts as set.
 */
export function delta({ before, after, touched }: Pick<Changed, "before" | "after" | "touched">): {
  readonly set: Attrs;
  readonly unset: string[];
} {
  const set: Attrs = {};
  const unset: string[] = [];
  for (const name of touched) {
    if (after[name] !== undefined) set[name] = after[name];
    else if (before[name] !== undefined) unset.push(name);
  }
  return { set, unset };
}

/** Returns the change with one more attribute set, or removed if the value is undefined. */
export function withValue(changed: Changed, name: string, value: unknown): Changed {
  const after = { ...changed.after };
  if (value === undefined) delete after[name];
  else after[name] = value;
  return { ...changed, after, touched: new Set([...changed.touched, name]) };
}
