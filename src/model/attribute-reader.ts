// Reads attribute values of one kind from a record of untyped values. A value of another kind counts as
// unset. The attribute tables give the kind of each attribute, and values are checked against the tables when
// they are set.

import type { ResourceValues } from "./attribute.ts";

type Record = { readonly [name: string]: unknown };

/** The text of an attribute, or undefined if it is unset. */
export function textOf(attrs: Record, name: string): string | undefined {
  const value = attrs[name];
  return typeof value === "string" ? value : undefined;
}

/** The list of texts of an attribute, empty if it is unset. */
export function listOf(attrs: Record, name: string): readonly string[] {
  const value = attrs[name];
  return Array.isArray(value) ? value : NO_LIST;
}

/** The resources of an attribute with their values, empty if it is unset. */
export function resourcesOf(attrs: Record, name: string): ResourceValues {
  const value = attrs[name];
  return isResources(value) ? value : NO_RESOURCES;
}

const NO_LIST: readonly string[] = [];
const NO_RESOURCES: ResourceValues = {};

const isResources = (value: unknown): value is ResourceValues => typeof value === "object" && value !== null && !Array.isArray(value);
