// Resource lists: values of an attribute that has one value for each resource (`resources_max.mem = 8gb`). The type of each
// value is that of its resource.
//
// I1. Lists are shown in the order of resource names, where upper and lower case are the same.
// I2. A list is never empty: if an operation leaves no value, the result is undefined.

import { type AttributeDef, type ResourceValue, type ResourceValues, valueName } from "../attribute.ts";
import { PBSE, reject } from "../pbse.ts";
import { isConsumable, type ResourceDef, type Resources } from "../resource-table.ts";
import { combineResourceValues, parseResourceValue, renderResourceValue } from "./resource-value.ts";

/** The definition of the resource in `attribute.resource`. Refuses with 15035 if the resource is missing or unknown; in the second case it names both. */
export function listedResource(def: AttributeDef, resource: string | undefined, resources: Resources): ResourceDef {
  const found = resource === undefined ? undefined : resources.get(resource);
  if (found === undefined) throw reject(PBSE.UNKRESC, resource === undefined ? undefined : valueName(def, resource));
  return found;
}

/** Parses one value of a list. Refuses a bad value with 15014, which names `attribute.resource`. */
export function parseListedValue(def: AttributeDef, resc: ResourceDef, text: string): ResourceValue {
  const value = parseResourceValue(resc, text);
  if (value === null || (def.name === "Resource_List" && !isRequestable(resc, value)))
    throw reject(PBSE.BADATVAL, valueName(def, resc.name));
  return value;
}

/**
 * Whether a job may request the value. A negative amount of a consumable resource is not allowed, because then other jobs
 * could use more than there is.
 */
export function isRequestable(resc: ResourceDef, value: ResourceValue): boolean {
  return !(isConsumable(resc) && typeof value === "number" && value < 0);
}

/** The list after `attribute.resource OP value`, or undefined if no value is left. */
export function combineListed(
  def: AttributeDef,
  op: "=" | "+=" | "-=",
  old: ResourceValues | undefined,
  resc: ResourceDef,
  given: ResourceValue,
): ResourceValues | undefined {
  const before = old !== undefined && Object.hasOwn(old, resc.name) ? old[resc.name] : undefined;
  let after: ResourceValue | undefined | null;
  if (op === "=" || (op === "+=" && before === undefined)) after = given;
  else if (before === undefined) after = undefined;
  else after = combineResourceValues(resc, op, before, given);
  if (after === null) throw reject(PBSE.BADATVAL, valueName(def, resc.name));
  return after === undefined ? withoutResource(old, resc.name) : { ...old, [resc.name]: after };
}

/** The list without a resource, or undefined if no value is left. */
export function withoutResource(old: ResourceValues | undefined, resource: string): ResourceValues | undefined {
  const { [resource]: _gone, ...rest } = old ?? {};
  return Object.keys(rest).length === 0 ? undefined : rest;
}

/** The texts of the values by resource, in the order of output. */
export function renderResourceList(list: ResourceValues, resources: Resources): { [resource: string]: string } {
  const rendered: { [resource: string]: string } = {};
  for (const name of sortedNames(list)) {
    const value = list[name];
    if (value !== undefined) rendered[name] = renderResourceValue(resources.get(name), value);
  }
  return rendered;
}

/** The names in the order of output. Most lists have that order already, and to check this is much cheaper than to sort. */
function sortedNames(list: ResourceValues): string[] {
  const names = Object.keys(list);
  for (let at = 1; at < names.length; at++) if (byName(names[at - 1] ?? "", names[at] ?? "") > 0) return names.sort(byName);
  return names;
}

/** Compares two names of resources for the order of output. */
export function byName(a: string, b: string): number {
  const [left, right] = [a.toLowerCase(), b.toLowerCase()];
  return left < right ? -1 : left > right ? 1 : a < b ? -1 : a > b ? 1 : 0;
}
