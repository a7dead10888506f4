// The settings with which an adapter is opened: the backend object, and the directory in which the controller keeps files for it. Reads the attributes of the
// object. Pure.

import type { AttributeValue } from "#model/attribute.ts";
import { BACKEND_OPTION_ROWS } from "#model/tables/backend-options.ts";
import { parseSize, sizeBytes } from "#model/values/size.ts";
import type { BackendType } from "./backend.ts";
import { BackendError } from "./fault.ts";

export type BackendSettings = {
  /** the name of the backend object */
  readonly name: string;
  readonly type: BackendType;
  /** the complex's key in tags (tag.ts) */
  readonly complex: string;
  /** the attributes of the object as they are in memory */
  readonly attributes: Readonly<Record<string, AttributeValue>>;
  /** user mode: the name of the user of the complex, to whom all runners belong; null: system mode */
  readonly user: string | null;
  /** a directory for this backend object alone, which exists and which only the controller's user can write */
  readonly state_dir: string;
};

type Attributes = BackendSettings["attributes"];

/** The values that are assumed for attributes that are unset. */
const ASSUMED: ReadonlyMap<string, AttributeValue | undefined> = new Map(
  BACKEND_OPTION_ROWS.map(([name, , , , , options]) => [name, options?.assumed]),
);

/** Returns the value of an attribute that is a text; null: it is unset, and nothing is assumed for it. */
export function textSetting(attributes: Attributes, name: string): string | null {
  const value = attributes[name] ?? ASSUMED.get(name) ?? null;
  return value === null || typeof value === "string" ? value : wrong(name, "a text");
}

/** Returns the value of an attribute that is a number; null: it is unset, and nothing is assumed for it. */
export function numberSetting(attributes: Attributes, name: string): number | null {
  const value = attributes[name] ?? ASSUMED.get(name) ?? null;
  return value === null || typeof value === "number" ? value : wrong(name, "a number");
}

/** Whether a boolean attribute is true. */
export function flagSetting(attributes: Attributes, name: string): boolean {
  const value = attributes[name] ?? ASSUMED.get(name) ?? false;
  return typeof value === "boolean" ? value : wrong(name, "true or false");
}

/** Returns the milliseconds that a program or request may take (command_timeout). */
export function timeoutOf(attributes: Attributes): number {
  return (numberSetting(attributes, "command_timeout") ?? wrong("command_timeout", "a number")) * 1000;
}

/** Returns the amounts of an attribute that is a resource list; sizes are in kilobytes. */
export function amountsSetting(attributes: Attributes, name: string): Readonly<Record<string, number>> {
  const value = attributes[name];
  if (value === undefined) return {};
  if (typeof value !== "object" || Array.isArray(value)) return wrong(name, "a list of resources");
  return Object.fromEntries(
    Object.entries(value).map(([resource, amount]) => [resource, amountOf(amount) ?? wrong(`${name}.${resource}`, "a number or size")]),
  );
}

/** Returns a value that is a number, or the kilobytes of a value that is a size with a unit; null: the value is neither. */
export function amountOf(value: unknown): number | null {
  if (typeof value === "number") return Number.isFinite(value) ? value : null;
  if (typeof value === "boolean") return value ? 1 : 0;
  if (typeof value !== "string") return null;
  if (/^[0-9]{1,15}(\.[0-9]{1,6})?$/.test(value)) return Number(value);
  const size = parseSize(value);
  return size === null ? null : Math.ceil(sizeBytes(size) / 1024);
}

function wrong(name: string, what: string): never {
  throw new BackendError({ kind: "configuration", text: `attribute ${name} must be ${what}` });
}
