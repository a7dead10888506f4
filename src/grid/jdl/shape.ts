// Shapes of values in a campaign file. A table of fields (fields.ts) is written with them; the check of a file and the published JSON Schema both follow from the
// table. Pure.

import { parseDuration } from "#model/values/duration.ts";
import type { JsonNode } from "./located-json.ts";

export type Shape =
  /** pattern: what the whole text must match; says: the pattern in words */
  | { readonly kind: "text"; readonly pattern: RegExp; readonly says: string }
  | { readonly kind: "integer"; readonly min: number; readonly max: number }
  | { readonly kind: "number"; readonly min: number; readonly max: number }
  | { readonly kind: "flag" }
  | { readonly kind: "choice"; readonly values: readonly string[] }
  /** [[HH:]MM:]SS as a text, or a whole number of seconds */
  | { readonly kind: "duration" }
  | { readonly kind: "list"; readonly of: Shape; readonly min: number }
  | { readonly kind: "record"; readonly fields: Fields; readonly refused?: Readonly<Record<string, string>> }
  /** an object with names as keys */
  | { readonly kind: "map"; readonly of: Shape; readonly min: number };

/** about: one sentence for the schema. */
export type Field = { readonly shape: Shape; readonly about: string; readonly isRequired?: true };
export type Fields = Readonly<Record<string, Field>>;

/** A fault in a file. path: keys and indices from the top, joined by dots; "": the whole file. at: offset in the text. */
export type ShapeFault = { readonly path: string; readonly at: number; readonly text: string };

/** Names of clusters and campaigns. */
export const NAME_PATTERN = /^[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}$/;
export const DURATION_PATTERN = /^(?:[0-9]{1,6}:){0,2}[0-9]{1,9}$/;
export const DURATION_MAX_S = 999_999_999;

/** Returns the faults of a value: everything in which it differs from its shape. */
export function shapeFaults(node: JsonNode, shape: Shape, path = ""): ShapeFault[] {
  const wrong = (text: string): ShapeFault[] => [{ path, at: node.at, text: `${text}, not ${described(node)}` }];
  switch (shape.kind) {
    case "text":
      return node.kind === "text" && shape.pattern.test(node.value) ? [] : wrong(`${shape.says} is expected`);
    case "integer":
    case "number":
      return node.kind === "number" && isWithin(node.value, shape) ? [] : wrong(`${numberWords(shape)} is expected`);
    case "flag":
      return node.kind === "flag" ? [] : wrong("true or false is expected");
    case "choice":
      return node.kind === "text" && shape.values.includes(node.value) ? [] : wrong(`${shape.values.join(" or ")} is expected`);
    case "duration":
      return durationOf(node) !== null ? [] : wrong("a duration is expected, HH:MM:SS or a number of seconds");
    case "list":
      if (node.kind !== "list" || node.items.length < shape.min)
        return wrong(shape.min > 0 ? "a list that is not empty is expected" : "a list is expected");
      return node.items.flatMap((item, index) => shapeFaults(item, shape.of, joined(path, String(index))));
    case "map":
      return mapFaults(node, shape, path, wrong);
    case "record":
      return recordFaults(node, shape, path, wrong);
    default: {
      const unreachable: never = shape;
      return unreachable;
    }
  }
}

function isWithin(value: number, { kind, min, max }: Extract<Shape, { readonly kind: "integer" | "number" }>): boolean {
  return value >= min && value <= max && (kind === "number" || Number.isInteger(value));
}

/** Returns the seconds of a duration; null: the value is not a duration. */
export function durationOf(node: JsonNode): number | null {
  if (node.kind === "number") return isWithin(node.value, { kind: "integer", min: 1, max: DURATION_MAX_S }) ? node.value : null;
  if (node.kind !== "text" || !DURATION_PATTERN.test(node.value)) return null;
  return parseDuration(node.value);
}

type Wrong = (text: string) => ShapeFault[];

function mapFaults(node: JsonNode, shape: Extract<Shape, { readonly kind: "map" }>, path: string, wrong: Wrong): ShapeFault[] {
  if (node.kind !== "object" || node.members.size < shape.min) return wrong("an object that is not empty is expected");
  return [...node.members].flatMap(([key, { key_at, value }]) => [
    ...(NAME_PATTERN.test(key)
      ? []
      : [{ path: joined(path, key), at: key_at, text: "letters, digits, dots, dashes and underscores are expected in a name" }]),
    ...shapeFaults(value, shape.of, joined(path, key)),
  ]);
}

function recordFaults(node: JsonNode, shape: Extract<Shape, { readonly kind: "record" }>, path: string, wrong: Wrong): ShapeFault[] {
  if (node.kind !== "object") return wrong("an object is expected");
  const faults: ShapeFault[] = [];
  for (const [key, { key_at, value }] of node.members) {
    const field = Object.hasOwn(shape.fields, key) ? shape.fields[key] : undefined;
    if (field !== undefined) faults.push(...shapeFaults(value, field.shape, joined(path, key)));
    else faults.push({ path: joined(path, key), at: key_at, text: unknownText(key, shape) });
  }
  for (const [key, { isRequired }] of Object.entries(shape.fields))
    if (isRequired && !node.members.has(key)) faults.push({ path: joined(path, key), at: node.at, text: "this key is missing" });
  return faults;
}

function unknownText(key: string, { fields, refused = {} }: Extract<Shape, { readonly kind: "record" }>): string {
  const why = Object.hasOwn(refused, key) ? refused[key] : undefined;
  if (why !== undefined) return why;
  const near = Object.keys(fields).find((name) => isNear(name, key));
  return `there is no such key${near === undefined ? "" : `; is ${near} meant?`}`;
}

/** Whether two keys differ by letter case, dashes, or one letter that is missing, added or exchanged. */
function isNear(name: string, key: string): boolean {
  const [a, b] = [name, key.toLowerCase().replaceAll("-", "_")];
  if (a === b) return true;
  if (Math.abs(a.length - b.length) > 1 || a.length < 4) return false;
  let front = 0;
  while (front < Math.min(a.length, b.length) && a.charAt(front) === b.charAt(front)) front++;
  let back = 0;
  while (back < Math.min(a.length, b.length) - front && a.charAt(a.length - 1 - back) === b.charAt(b.length - 1 - back)) back++;
  return Math.max(a.length, b.length) - front - back <= 1;
}

const joined = (path: string, key: string): string => (path === "" ? key : `${path}.${key}`);

const numberWords = ({ kind, min, max }: Extract<Shape, { readonly kind: "integer" | "number" }>): string =>
  `${kind === "integer" ? "a whole number" : "a number"} from ${min} to ${max}`;

function described(node: JsonNode): string {
  switch (node.kind) {
    case "text":
      return JSON.stringify(node.value.length <= 60 ? node.value : `${node.value.slice(0, 57)}...`);
    case "number":
    case "flag":
      return String(node.value);
    case "null":
      return "null";
    case "list":
      return node.items.length === 0 ? "an empty list" : "a list";
    case "object":
      return node.members.size === 0 ? "an empty object" : "an object";
    default: {
      const unreachable: never = node;
      return unreachable;
    }
  }
}
