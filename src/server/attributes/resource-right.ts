// Who may ask for which resource: job-wide, and within the chunks of a select (docs/reference/attributes.md 1: flags i and r).

import { type AttributeDef, checkSettable, maySet, valueName } from "#model/attribute.ts";
import { PBSE, reject } from "#model/pbse.ts";
import { parseSelect } from "#model/request/select.ts";
import type { ResourceDef, Resources } from "#model/resource-table.ts";
import type { Identity } from "../engine/transaction.ts";

/**
 * Refuses with 15003 a resource the caller may not set: itself, or one that a chunk of the select names. text: the value; null: it is taken away.
 * Refuses with 15014 a select or nodes that asks for nothing; an empty value of another resource takes it away.
 */
export function checkAskable(def: AttributeDef, resource: ResourceDef, text: string | null, who: Identity, resources: Resources): void {
  checkSettable(def, who, resource);
  if (text === null) return;
  const is_select = resource.name === "select";
  if ((is_select || resource.name === "nodes") && text.trim() === "") throw reject(PBSE.BADATVAL, valueName(def, resource.name));
  if (!is_select || who.level === "manager") return;
  for (const { pairs } of parseSelect(text).chunks) {
    for (const { name } of pairs) {
      const named = resources.get(name);
      if (named !== undefined && !maySet(named, who)) throw reject(PBSE.ATTRRO, valueName(def, name));
    }
  }
}
