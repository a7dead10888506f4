// Values of attributes by kind, read from a record whose values have no type yet. A value of another kind counts as unset: the attribute tables say which kind
// an attribute is of, and values are checked against them when they are set.

import type { ResourceValues } from "./attribute.ts";

type Record = { readonly [name: string]: unknown };

/** A text; undefined: unset. */
export function textOf(attrs: Record, name: string): string | undefined {
  const value = attrs[name];
  return typeof value === "string" ? value : undefined;
}

/** A list of texts; empty: unset. */
export function listOf(attrs: Record, name: string): readonly string[] {
  const value = attrs[name];
  return Array.isArray(value) ? value : NO_LIST;
}

/** Resources with their values; empty: unset. */
export function resourcesOf(attrs: Record, name: string): ResourceValues {
  const value = attrs[name];
  return isResources(value) ? value : NO_RESOURCES;
}

const NO_LIST: readonly string[] = [];
const NO_RESOURCES: ResourceValues = {};

const isResources = (value: unknown): value is ResourceValues => typeof value === "object" && value !== null && !Array.isArray(value);
