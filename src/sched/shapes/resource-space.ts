// Gives each resource that jobs use up on vnodes a number (index), so that amounts are short arrays of numbers. Also converts amounts to the
// texts of reasons and exec_vnode.
//
// I1. Amounts of sizes are kilobytes, rounded up (as the server counts resources_assigned).
// I2. If a resource that jobs use up is unset on a vnode, its amount there is 0.

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
  /** index in arrays of amounts; -1: jobs do not use it up on vnodes */
  readonly index: number;
};

export type ResourceSpace = {
  readonly all: ReadonlyMap<string, Resource>;
  /** the resources that jobs use up on vnodes, by index */
  readonly consumed: readonly Resource[];
  readonly ncpus: number;
};

/** Makes the space of the built-in resources and of those that the server sends. */
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

/** Returns the amount of a resource from an array of amounts. resource: its index. Throws if there is no such index. */
export function amountAt(amounts: readonly number[], resource: number): number {
  return present(amounts[resource], "amount");
}

/** Returns a value as a number that can be added and compared; null: it is a text or a boolean. */
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

/** Returns a function that does the same as amountOf for a resource given by its name. */
export function amountsIn(space: ResourceSpace): AmountOf {
  return (resource, value) => amountOf(space.all.get(resource), value);
}

/** Returns a value that is compared and not counted: a boolean, or the text of a string or string_array. */
export function matchedOf(resource: Resource | undefined, value: unknown): string | boolean {
  if (typeof value === "boolean") return value;
  const text = String(value);
  return resource?.type === "boolean" ? (parseBoolean(text) ?? false) : text;
}

const UNITS = ["kb", "mb", "gb", "tb", "pb"] as const;

/** Returns an amount as (R: A: T:) shows it. Sizes have the largest unit that divides them. */
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

/** Returns an amount as exec_vnode shows it. Sizes are in kilobytes. */
export function execAmountText(resource: Resource, amount: number): string {
  return resource.type === "size" ? kbText(amount) : amountText(resource, amount);
}

/** Returns a compared value as (a != b) shows it. */
export function matchedText(value: ResourceValue | undefined): string {
  if (value === undefined) return "";
  return typeof value === "boolean" ? (value ? "True" : "False") : String(value);
}
