// Finds the attributes of each type of object, for the parser, the printer and the completion. Pure.

import type { AttributeTable } from "#model/attribute.ts";
import { ATTRIBUTE_TABLES } from "#model/tables/tables.ts";
import type { ManagedObject } from "#protocol/messages.ts";
import type { AttributeLookup } from "./tokens.ts";

/** Returns the table of the attributes of an object type. Resources have no table, but two fixed attributes. */
export function tableOf(object: ManagedObject): AttributeTable | undefined {
  if (object === "resource") return undefined;
  return ATTRIBUTE_TABLES[object === "pbshook" ? "hook" : object];
}

export const attributeLookup: AttributeLookup = {
  isAttribute: (object, name) => tableOf(object)?.byName(name) !== undefined,
  isEntityLimit: (object, name) => tableOf(object)?.byName(name)?.type.startsWith("entity_limit") ?? false,
};
