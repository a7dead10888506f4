// Amounts of resources as plain numbers, in the units in which the server adds and compares them: sizes in kilobytes,
// durations in seconds, other numbers as they are. Strings and booleans are not amounts.

import type { ResourceDef } from "#model/resource-table.ts";
import { kbText, sizeKb } from "#model/values/size.ts";

export type Amounts = Map<string, number>;

/** The number for a value of a resource; null: the resource is not counted. The value is typed, or a text as in exec_vnode. */
export function amountOf(def: ResourceDef | undefined, value: unknown): number | null {
  if (def === undefined || value === undefined) return null;
  switch (def.type) {
    case "size":
      return typeof value === "string" ? sizeKb(value) : null;
    case "long":
    case "float":
    case "duration": {
      const number = typeof value === "number" ? value : Number(value);
      return Number.isFinite(number) ? number : null;
    }
    case "string":
    case "string_array":
    case "boolean":
      return null;
    default: {
      const unreachable: never = def.type;
      return unreachable;
    }
  }
}

/** The value for an attribute: for a size a text such as `20kb`, else the number. */
export function amountValue(def: ResourceDef | undefined, amount: number): number | string {
  return def?.type === "size" ? kbText(amount) : amount;
}

/** Adds amounts to a target (sign 1), or subtracts them (-1). Entries that become 0 are removed. */
export function addAmounts(target: Amounts, amounts: ReadonlyMap<string, number>, sign: 1 | -1): void {
  for (const [resource, amount] of amounts) {
    const sum = (target.get(resource) ?? 0) + sign * amount;
    // Sums of fractions (float resources) are not exact, so almost 0 counts as 0.
    if (Math.abs(sum) < 1e-9) target.delete(resource);
    else target.set(resource, sum);
  }
}

export function sameAmounts(a: ReadonlyMap<string, number>, b: ReadonlyMap<string, number>): boolean {
  if (a.size !== b.size) return false;
  for (const [resource, amount] of a) if (Math.abs((b.get(resource) ?? Number.NaN) - amount) > 1e-6) return false;
  return true;
}

// --- results that are kept because many jobs share the values

type Definitions = ReadonlyMap<string, ResourceDef>;
type Fixed = ReadonlyMap<string, number>;
/** Results by the list or record that they were computed from. They can be kept, because lists and records never change in place (state.ts I3). */
type Worked = { readonly parts: WeakMap<object, Fixed>; readonly wide: WeakMap<object, Fixed> };
const worked = new WeakMap<Definitions, Worked>();

function workedOf(resources: Definitions): Worked {
  let known = worked.get(resources);
  if (known === undefined) worked.set(resources, (known = { parts: new WeakMap(), wide: new WeakMap() }));
  return known;
}

/** Called when a resource was defined, redefined or deleted: drops all results. */
export const definitionsChanged = (resources: Definitions): void => void worked.delete(resources);

/**
 * The amounts that one part of an exec_vnode consumes on its vnode: only resources with flag n. Returns null if one of
 * the resources has flag f, because the amounts then also depend on the other parts.
 */
export function partAmounts(resources: Definitions, pairs: readonly { readonly name: string; readonly text: string }[]): Fixed | null {
  const { parts } = workedOf(resources);
  const known = parts.get(pairs);
  if (known !== undefined) return known;
  const amounts: Amounts = new Map();
  for (const { name, text } of pairs) {
    const def = resources.get(name);
    if (def?.flags.includes("f") === true) return null;
    if (def?.flags.includes("n") !== true) continue;
    const amount = amountOf(def, text);
    if (amount !== null && amount !== 0) amounts.set(name, amount);
  }
  parts.set(pairs, amounts);
  return amounts;
}

/** The amounts in the Resource_List of a job or reservation that the server and the queue count as assigned: only resources with flag q. */
export function jobWideAmounts(resources: Definitions, record: { readonly [resource: string]: unknown }): Fixed {
  const { wide } = workedOf(resources);
  const known = wide.get(record);
  if (known !== undefined) return known;
  const amounts: Amounts = new Map();
  for (const resource in record) {
    const def = resources.get(resource);
    if (def === undefined || !def.flags.includes("q")) continue;
    const amount = amountOf(def, record[resource]);
    if (amount !== null && amount !== 0) amounts.set(resource, amount);
  }
  wide.set(record, amounts);
  return amounts;
}
