// Objects as the interface shows them: attributes under their PBS names, with JSON types where the attribute table has a number or a boolean.

import type { AttributeDef, AttributeTable } from "#model/attribute.ts";
import type { StatusItem, WireAttrs } from "#protocol/messages.ts";

type WireValue = WireAttrs[string];
export type ShownValue = WireValue | number | boolean;
export type Shown = { readonly id: string; readonly attributes: { readonly [name: string]: ShownValue } };

/** Converts an item of a status reply. The item must not be an error. */
export function shown(table: AttributeTable, { id, attrs }: Extract<StatusItem, { readonly attrs: unknown }>): Shown {
  const entries = Object.entries(attrs).map(([name, value]) => [name, typed(table.byName(name), value)] as const);
  return { id, attributes: Object.fromEntries(entries) };
}

const WHOLE = /^-?\d{1,15}$/;

/** A value that is not of the form of its type remains a text, for example an integer above 2^53. */
function typed(def: AttributeDef | undefined, value: WireValue): ShownValue {
  if (def === undefined || typeof value !== "string") return value;
  switch (def.type) {
    case "boolean":
      return value === "True" ? true : value === "False" ? false : value;
    case "integer":
    case "long64":
    case "time":
      return WHOLE.test(value) ? Number(value) : value;
    default:
      return value;
  }
}
