// Resource lists: an attribute with one value per resource (`resources_max.mem = 8gb`), typed by the resource.
//
// I1. Lists are shown in the order of resource names; case is ignored.
// I2. A list always has values: combining yields undefined instead of an empty list.

import { type AttributeDef, type ResourceValue, type ResourceValues, valueName } from "../attribute.ts";
import { PBSE, reject } from "../pbse.ts";
import { isConsumable, type ResourceDef, type Resources } from "../resource-table.ts";
import { combineResourceValues, parseResourceValue, renderResourceValue } from "./resource-value.ts";

/** The resource of an `attribute.resource`. A missing resource is refused with 15035, an unknown one with 15035 naming both. */
export function listedResource(def: AttributeDef, resource: string | undefined, resources: Resources): ResourceDef {
  const found = resource === undefined ? undefined : resources.get(resource);
  if (found === undefined) throw reject(PBSE.UNKRESC, resource === undefined ? undefined : valueName(def, resource));
  return found;
}

/** Parses one value of a list. Refuses with 15014 naming `attribute.resource`. */
export function parseListedValue(def: AttributeDef, resc: ResourceDef, text: string): ResourceValue {
  const value = parseResourceValue(resc, text);
  if (value === null || (def.name === "Resource_List" && !isRequestable(resc, value)))
    throw reject(PBSE.BADATVAL, valueName(def, resc.name));
  return value;
}

/**
 * Whether a job may request the value. A negative amount of a counted resource is refused, because it would give other jobs
 * more than there is.
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

/** resource -> text, in the order of output. */
export function renderResourceList(list: ResourceValues, resources: Resources): { [resource: string]: string } {
  const rendered: { [resource: string]: string } = {};
  for (const name of sortedNames(list)) {
    const value = list[name];
    if (value !== undefined) rendered[name] = renderResourceValue(resources.get(name), value);
  }
  return rendered;
}

/** The names in the order of output. Most lists are already sorted, and checking that is much cheaper than sorting. */
function sortedNames(list: ResourceValues): string[] {
  const names = Object.keys(list);
  for (let at = 1; at < names.length; at++) if (byName(names[at - 1] ?? "", names[at] ?? "") > 0) return names.sort(byName);
  return names;
}

/** The order of resources in output. */
export function byName(a: string, b: string): number {
  const [left, right] = [a.toLowerCase(), b.toLowerCase()];
  return left < right ? -1 : left > right ? 1 : a < b ? -1 : a > b ? 1 : 0;
}
