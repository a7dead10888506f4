// Converts the text of one value of a resource to its form in memory, and back. The form depends on the type of the
// resource: long, float: number · size: canonical text · duration: seconds · boolean: boolean · string, string_array: text.

import type { ResourceValue } from "../attribute.ts";
import { isPrintable } from "../attribute-checks.ts";
import type { ResourceDef } from "../resource-table.ts";
import { parseBoolean, renderBoolean } from "./boolean.ts";
import { DURATION_S_MAX, parseDuration, renderDuration } from "./duration.ts";
import { parseFloatText, renderFloat } from "./float.ts";
import { parseInteger, renderInteger } from "./integer.ts";
import { canonicalSize, combineSizes, compareSizes, parseSize, renderSize, sizeKb } from "./size.ts";
import { addToList, joinList, removeFromList, splitList } from "./string-array.ts";

/** Parses a value. Returns null if the text is not a value of the resource's type. */
export function parseResourceValue(def: ResourceDef, text: string): ResourceValue | null {
  switch (def.type) {
    case "long": {
      const value = parseInteger(text);
      if (value === null || (value < 0 && isCount(def))) return null;
      return def.name === "nice" && def.builtin === true && (value < NICE_MIN || value > NICE_MAX) ? null : value;
    }
    case "float":
      return parseFloatText(text);
    case "size":
      return canonicalSize(text);
    case "duration":
      return parseDuration(text);
    case "boolean":
      return parseBoolean(text);
    case "string":
      return text === "" || !isPrintable(text) ? null : text;
    case "string_array": {
      if (!isPrintable(text)) return null;
      const list = joinList(splitList(text));
      return list === "" ? null : list;
    }
    default: {
      const unreachable: never = def.type;
      return unreachable;
    }
  }
}

const NICE_MIN = -20;
const NICE_MAX = 19;

/**
 * Whether values of the resource must not be negative. This is true of built-in whole numbers, which count things, except
 * nice, which is a priority. Custom resources may mean anything.
 */
function isCount(def: ResourceDef): boolean {
  return def.builtin === true && def.name !== "nice";
}

/** The text of a value. def undefined: the resource is not known (any more); the stored value is then shown as it is. */
export function renderResourceValue(def: ResourceDef | undefined, value: ResourceValue): string {
  if (typeof value === "boolean") return renderBoolean(value);
  if (typeof value === "string") return value;
  if (def?.type === "duration") return renderDuration(value);
  return Number.isInteger(value) ? renderInteger(value) : renderFloat(value);
}

/**
 * Computes old += given or old -= given. Numbers and sizes are added or subtracted, string lists append or remove elements,
 * strings are concatenated or removed if equal, booleans are replaced. Returns null if the result is not a value (a size below
 * zero), and undefined if no value is left.
 */
export function combineResourceValues(
  def: ResourceDef,
  op: "+=" | "-=",
  old: ResourceValue,
  given: ResourceValue,
): ResourceValue | undefined | null {
  const sign = op === "+=" ? 1 : -1;
  switch (def.type) {
    case "long":
    case "duration":
    case "float": {
      const sum = Number(old) + sign * Number(given);
      if (
        !Number.isFinite(sum) ||
        Math.abs(sum) > Number.MAX_SAFE_INTEGER ||
        (def.type === "duration" && (sum < 0 || sum > DURATION_S_MAX))
      )
        return null;
      return def.type === "float" ? Number(sum.toPrecision(15)) : sum;
    }
    case "size": {
      const [a, b] = [parseSize(String(old)), parseSize(String(given))];
      const sum = a === null || b === null ? null : combineSizes(a, b, sign);
      return sum === null ? null : renderSize(sum);
    }
    case "boolean":
      return op === "+=" ? given : old === given ? undefined : old;
    case "string":
      return op === "+=" ? `${old}${given}` : old === given ? undefined : old;
    case "string_array": {
      const [a, b] = [splitList(String(old)), splitList(String(given))];
      const list = joinList(op === "+=" ? addToList(a, b) : removeFromList(a, b));
      return list === "" ? undefined : list;
    }
    default: {
      const unreachable: never = def.type;
      return unreachable;
    }
  }
}

/**
 * A value as a number for sums and comparisons: sizes in kilobytes rounded up, durations in seconds. Returns null if the value
 * is not an amount.
 */
export function resourceAmount(def: ResourceDef, value: ResourceValue): number | null {
  if (def.type === "size") return typeof value === "string" ? sizeKb(value) : null;
  return typeof value === "number" ? value : null;
}

/**
 * Compares two values of one resource: negative, 0 or positive. Sizes are compared by their bytes. Returns null for types
 * without an order (texts, booleans).
 */
export function compareResourceValues(def: ResourceDef, a: ResourceValue, b: ResourceValue): number | null {
  if (def.type === "size") {
    const [left, right] = [parseSize(String(a)), parseSize(String(b))];
    return left === null || right === null ? null : compareSizes(left, right);
  }
  return typeof a === "number" && typeof b === "number" ? a - b : null;
}
