// The numbering of resources in a scheduler: a number for each resource that vnodes consume, so that amounts are short arrays of numbers, and the
// texts for reasons and exec_vnode.
//
// I1. Amounts of sizes are kilobytes, rounded up (as the server counts resources_assigned).
// I2. A consumable that a vnode does not set has the amount 0 there.

import type { ResourceValue } from "#model/attribute.ts";
import type { AmountOf } from "#model/limits/run-limits.ts";
import type { ResourceType } from "#model/resource-table.ts";
import { BUILTIN_RESOURCES, isNumeric } from "#model/resource-table.ts";
import { parseBoolean } from "#model/values/boolean.ts";
import { parseDuration, renderDuration } from "#model/values/duration.ts";
import { kbText, sizeKb } from "#model/values/size.ts";
import type { SchedResource } from "#protocol/sched-link.ts";
import { present } from "#support/assert.ts";

export type Resource = {
  readonly name: string;
  readonly type: ResourceType;
  readonly flags: string;
  /** place in amount arrays; -1: vnodes do not consume it */
  readonly index: number;
};

export type ResourceSpace = {
  readonly all: ReadonlyMap<string, Resource>;
  /** resources that vnodes consume, by index */
  readonly consumed: readonly Resource[];
  readonly ncpus: number;
};

/** The built-in resources and those that the server reports besides. */
export function resourceSpace(defs: readonly SchedResource[]): ResourceSpace {
  const all = new Map<string, Resource>();
  const consumed: Resource[] = [];
  const known = new Map<string, SchedResource>(BUILTIN_RESOURCES.map((def) => [def.name, def]));
  for (const def of defs) known.set(def.name, def);
  for (const def of known.values()) {
    const type = def.type as ResourceType;
    const isConsumed = isNumeric(type) && (def.flags.includes("n") || def.flags.includes("f"));
    const resource: Resource = { name: def.name, type, flags: def.flags, index: isConsumed ? consumed.length : -1 };
    if (isConsumed) consumed.push(resource);
    all.set(def.name, resource);
  }
  return { all, consumed, ncpus: all.get("ncpus")?.index ?? -1 };
}

/** The amount of a resource in an array over all consumed resources. resource: its index; an index that no resource has is an assertion. */
export function amountAt(amounts: readonly number[], resource: number): number {
  return present(amounts[resource], "amount");
}

/** A value as a number that may be added and compared; null: it is a text or a boolean. */
export function amountOf(resource: Resource | undefined, value: unknown): number | null {
  if (typeof value === "number") return value;
  if (typeof value !== "string" || resource === undefined) return null;
  switch (resource.type) {
    case "size":
      return sizeKb(value);
    case "duration":
      return parseDuration(value);
    case "long":
    case "float": {
      const number = Number(value);
      return Number.isFinite(number) ? number : null;
    }
    case "boolean":
    case "string":
    case "string_array":
      return null;
    default: {
      const unreachable: never = resource.type;
      return unreachable;
    }
  }
}

/** The same, by the resource's name. */
export function amountsIn(space: ResourceSpace): AmountOf {
  return (resource, value) => amountOf(space.all.get(resource), value);
}

/** A value that is matched and not counted: a boolean, or the text of a string (array). */
export function matchedOf(resource: Resource | undefined, value: unknown): string | boolean {
  if (typeof value === "boolean") return value;
  const text = String(value);
  return resource?.type === "boolean" ? (parseBoolean(text) ?? false) : text;
}

const UNITS = ["kb", "mb", "gb", "tb", "pb"] as const;

/** An amount as the (R: A: T:) form shows it: sizes in the largest unit that divides them. */
export function amountText(resource: Resource | undefined, amount: number): string {
  if (resource?.type === "size") {
    let unit = 0;
    let count = amount;
    while (count !== 0 && count % 1024 === 0 && unit < UNITS.length - 1) {
      count /= 1024;
      unit++;
    }
    return `${count}${UNITS[unit]}`;
  }
  if (resource?.type === "duration") return renderDuration(amount);
  return Number.isInteger(amount) ? String(amount) : String(Number(amount.toPrecision(12)));
}

/** An amount as exec_vnode shows it: sizes in kilobytes. */
export function execAmountText(resource: Resource, amount: number): string {
  return resource.type === "size" ? kbText(amount) : amountText(resource, amount);
}

/** A matched value as the (a != b) form shows it. */
export function matchedText(value: ResourceValue | undefined): string {
  if (value === undefined) return "";
  return typeof value === "boolean" ? (value ? "True" : "False") : String(value);
}
