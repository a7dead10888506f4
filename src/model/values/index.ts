// Parses and renders values of attributes, and applies the operators = += -= and unset (docs/reference/qmgr.md 3,
// docs/reference/attributes.md 10). This file selects what to do by the type of the attribute; the other files of this
// folder do it for one type each.
//
// I1. For any text, these functions throw only Reject.
// I2. parse(render(value)) equals value for every value that parse returns.
// I3. Empty lists, empty records and empty texts are not values: they mean "not set" (undefined).

import {
  type AttributeDef,
  type AttributeTable,
  type AttributeValue,
  type EntityLimits,
  type ResourceEntityLimits,
  type ResourceValues,
  valueAfterUnset,
  valueName,
} from "../attribute.ts";
import { isPrintable, isPrintableText } from "../attribute-checks.ts";
import { PBSE, type Reject, reject } from "../pbse.ts";
import type { Resources } from "../resource-table.ts";
import { addToAcl, parseAcl } from "./acl.ts";
import { parseBoolean, renderBoolean } from "./boolean.ts";
import { DURATION_S_MAX, parseDuration, renderDuration } from "./duration.ts";
import { combineLimits, parseEntityLimits, parseResourceLimits, renderEntityLimits, renderResourceLimits } from "./entity-limit.ts";
import { parseFloatText, renderFloat } from "./float.ts";
import { addHolds, parseHolds, removeHolds } from "./hold.ts";
import { parseInteger, renderInteger } from "./integer.ts";
import { jobNameFault } from "./job-name.ts";
import { combineNodeStates, parseNodeStates, renderNodeStates } from "./node-state.ts";
import { combineListed, listedResource, parseListedValue, renderResourceList, withoutResource } from "./resource-list.ts";
import { canonicalSize, combineSizes, parseSize, renderSize, sizeBytes } from "./size.ts";
import { addToList, joinList, removeFromList, splitList } from "./string-array.ts";

/** An operation on one attribute, with the value as the user has typed it. AttrOp of the protocol has the same fields. */
export type AttributeChange = { readonly resource?: string; readonly op: "=" | "+=" | "-=" | "unset"; readonly value: string };
/** A value as it is sent to clients (WireAttrs of the protocol): a text, the entries of limits, or either of these by resource. */
export type WireValue = string | readonly string[] | { readonly [resource: string]: string | readonly string[] };

/**
 * Parses a text into a value. For resource lists and limits per resource, `resource` names the resource, and the result is a
 * record with that one resource. Refuses with 15014 and related numbers; badValue decides when the refusal names the attribute.
 */
export function parseValue(def: AttributeDef, text: string, resources: Resources, resource?: string): AttributeValue {
  if (def.type === "resource_list") {
    const resc = listedResource(def, resource, resources);
    return { [resc.name]: parseListedValue(def, resc, text) };
  }
  if (def.type === "entity_limit_res") {
    if (resource === undefined) throw reject(PBSE.UNKRESC, def.name);
    return { [resource]: parseResourceLimits(def, resource, text, resources) };
  }
  if (resource !== undefined) throw badValue(def, resource);
  const value = parseScalar(def, text);
  if (value === null) throw badValue(def);
  return inRange(def, value);
}

/** The form of a value for clients (WireValue). A time is sent as epoch seconds. */
export function renderValue(def: AttributeDef, value: AttributeValue, resources: Resources): WireValue {
  switch (def.type) {
    case "boolean":
      return renderBoolean(value === true);
    case "interactive":
      return renderBoolean(value !== 0 && value !== false);
    case "integer":
    case "long64":
    case "time":
      return renderInteger(Number(value));
    case "float":
      return renderFloat(Number(value));
    case "duration":
      return renderDuration(Number(value));
    case "node_state":
      return renderNodeStates(value as readonly string[]);
    case "string_array":
    case "acl_user":
    case "acl_group":
    case "acl_host":
    case "acl_manager":
      return joinList(value as readonly string[]);
    case "resource_list":
      return renderResourceList(value as ResourceValues, resources);
    case "entity_limit":
      return renderEntityLimits(value as EntityLimits);
    case "entity_limit_res":
      return renderResourceLimits(value as ResourceEntityLimits, resources);
    case "size":
    case "string":
    case "name":
    case "formula":
    case "char":
    case "keyword":
    case "hold":
      return String(value);
    default: {
      const unreachable: never = def.type;
      return unreachable;
    }
  }
}

/**
 * Computes `old OP given` for two values in memory. Returns undefined if no value is left. Refuses with 15014 an impossible
 * result (a size below zero, a number out of bounds), and with 15055 an entry that an access list already contains.
 */
export function combineValue(
  def: AttributeDef,
  op: "=" | "+=" | "-=",
  old: AttributeValue | undefined,
  given: AttributeValue,
  resources: Resources,
): AttributeValue | undefined {
  switch (def.type) {
    case "boolean":
    case "time":
    case "keyword":
    case "char":
    case "interactive":
      if (op === "-=") return old === given ? undefined : old;
      return given;
    case "integer":
    case "long64":
    case "float":
    case "duration":
      return combineNumbers(def, op, old as number | undefined, given as number);
    case "size":
      return combineSizeTexts(def, op, old as string | undefined, given as string);
    case "string":
    case "name":
    case "formula":
      return combineTexts(def, op, old as string | undefined, given as string);
    case "hold":
      return combineHolds(op, (old ?? "n") as string, given as string);
    case "node_state":
      return combineNodeStates(op, (old ?? []) as readonly string[], given as readonly string[]);
    case "string_array":
      return combineLists(def, op, (old ?? []) as readonly string[], given as readonly string[]);
    case "acl_user":
    case "acl_group":
    case "acl_host":
    case "acl_manager":
      return combineAcls(def, op, (old ?? []) as readonly string[], given as readonly string[]);
    case "resource_list":
      return combineResourceLists(def, op, old as ResourceValues | undefined, given as ResourceValues, resources);
    case "entity_limit":
      return combineLimits(op, old as EntityLimits | undefined, given as EntityLimits);
    case "entity_limit_res":
      return combineResourceLimits(op, old as ResourceEntityLimits | undefined, given as ResourceEntityLimits);
    default: {
      const unreachable: never = def.type;
      return unreachable;
    }
  }
}

/**
 * Computes the value of an attribute after an operation `attribute[.resource] OP value`. unset and the empty value (`= ""`)
 * remove the value. Returns undefined if the attribute is then unset. qmgr set and unset, qalter and vnode reports all use
 * this function.
 */
export function alterValue(
  def: AttributeDef,
  old: AttributeValue | undefined,
  change: AttributeChange,
  resources: Resources,
): AttributeValue | undefined {
  if (change.op === "unset" || (change.value === "" && change.op === "=")) return unsetValue(def, old, change.resource, resources);
  if (change.value === "") return old;
  const given = parseValue(def, change.value, resources, change.resource);
  return combineValue(def, change.op, old, given, resources);
}

/** A record of attributes in the form for clients: in the order of the table, and only the rows that `visible` accepts. */
export function encodeAttrs(
  table: AttributeTable,
  attrs: { readonly [name: string]: unknown },
  resources: Resources,
  visible: (def: AttributeDef) => boolean = () => true,
): { [name: string]: WireValue } {
  return attrsEncoder(table, resources, visible)(attrs);
}

/** Returns a function that does the same as encodeAttrs for many objects of one type. The rows are selected only once. */
function attrsEncoder(
  table: AttributeTable,
  resources: Resources,
  visible: (def: AttributeDef) => boolean = () => true,
): (attrs: { readonly [name: string]: unknown }) => { [name: string]: WireValue } {
  const rows = table.rows.filter(visible);
  return (attrs) => {
    const wire: { [name: string]: WireValue } = {};
    for (const def of rows) {
      const value = attrs[def.name];
      if (value !== undefined && value !== null) wire[def.name] = renderValue(def, value as AttributeValue, resources);
    }
    return wire;
  };
}

/**
 * The refusal of a bad value, 15014. It names attributes of jobs and reservations always, and attributes of servers, queues,
 * nodes and schedulers only for resources and limits (docs/reference/qmgr.md 5, docs/reference/errors.md 4).
 */
function badValue(def: AttributeDef, resource?: string): Reject {
  const named = resource !== undefined || def.object === "job" || def.object === "resv";
  return reject(PBSE.BADATVAL, named ? valueName(def, resource) : undefined);
}

function unsetValue(
  def: AttributeDef,
  old: AttributeValue | undefined,
  resource: string | undefined,
  resources: Resources,
): AttributeValue | undefined {
  if (resource === undefined) return valueAfterUnset(def);
  if (def.type === "resource_list") {
    listedResource(def, resource, resources);
    const restored = def.restoredResources?.[resource];
    return restored === undefined
      ? withoutResource(old as ResourceValues | undefined, resource)
      : { ...(old as ResourceValues | undefined), [resource]: restored };
  }
  if (def.type !== "entity_limit_res") throw badValue(def, resource);
  if (!resources.has(resource)) throw reject(PBSE.UNKRESC, valueName(def, resource));
  const { [resource]: _gone, ...rest } = (old ?? {}) as ResourceEntityLimits;
  return Object.keys(rest).length === 0 ? undefined : rest;
}

/** Parses types without resources. Returns null if the text is not a value of the type. */
function parseScalar(def: AttributeDef, text: string): AttributeValue | null {
  switch (def.type) {
    case "boolean":
      return parseBoolean(text);
    case "interactive":
      return parseInteger(text) ?? (parseBoolean(text) === null ? null : Number(parseBoolean(text)));
    case "integer":
    case "long64":
    case "time":
      return def.check?.(text) === false ? null : parseInteger(text);
    case "float":
      return parseFloatText(text);
    case "duration":
      return parseDuration(text);
    case "size":
      return canonicalSize(text);
    case "string":
    case "formula":
      return hasItsCharacters(def, text) && def.check?.(text) !== false ? text : null;
    case "char":
      return text.length === 1 && hasItsCharacters(def, text) ? text : null;
    case "name":
      return parseName(def, text);
    case "keyword":
      return parseKeyword(def, text);
    case "hold":
      return parseHolds(text);
    case "node_state":
      return parseNodeStates(text, def.name);
    case "string_array":
      return parseList(def, text);
    case "acl_user":
    case "acl_group":
    case "acl_host":
    case "acl_manager":
      return parseAcl(def, text);
    case "entity_limit":
      return parseEntityLimits(def, text);
    case "resource_list":
    case "entity_limit_res":
      return null;
    default: {
      const unreachable: never = def.type;
      return unreachable;
    }
  }
}

function parseName(def: AttributeDef, text: string): string | null {
  if (jobNameFault(text) === "too long") throw reject(PBSE.JOBNBIG);
  return jobNameFault(text) === null && def.check?.(text) !== false ? text : null;
}

function parseKeyword(def: AttributeDef, text: string): string | null {
  const word = text.toLowerCase();
  const found = def.keywords?.find((keyword) => keyword.toLowerCase() === word);
  if (found !== undefined || def.prefix !== true || word === "") return found ?? null;
  return def.keywords?.find((keyword) => keyword.toLowerCase().startsWith(word)) ?? null;
}

function parseList(def: AttributeDef, text: string): string[] | null {
  if (!hasItsCharacters(def, text)) return null;
  const elements = splitList(text, def.verbatim === true);
  if (elements.length === 0 || elements.some((element) => def.check?.(element) === false)) return null;
  return def.unique === true ? [...new Set(elements)] : elements;
}

/** Whether a text has only characters that the attribute allows. NUL is never allowed, because it ends a text in programs that receive it. */
function hasItsCharacters({ characters }: AttributeDef, text: string): boolean {
  if (characters === "any") return !text.includes("\0");
  return characters === "lines" ? isPrintableText(text) : isPrintable(text);
}

/** Returns the value; refuses a number, duration or size outside the bounds of the attribute. */
function inRange(def: AttributeDef, value: AttributeValue): AttributeValue {
  const [min, max] = boundsOf(def);
  if (min === undefined && max === undefined) return value;
  const size = def.type === "size" ? parseSize(String(value)) : null;
  const amount = size === null ? Number(value) : sizeBytes(size);
  if (amount >= (min ?? Number.NEGATIVE_INFINITY) && amount <= (max ?? Number.POSITIVE_INFINITY)) return value;
  throw def.rangeError === undefined ? badValue(def) : reject(def.rangeError);
}

/** The bounds of an attribute. The bounds in its row of the table come first, then the bounds of its type. A time must be a valid date, and an integer must fit into 32 bits. */
function boundsOf({ type, min, max }: AttributeDef): readonly [min: number | undefined, max: number | undefined] {
  switch (type) {
    case "time":
      return [min ?? 0, max ?? TIME_S_MAX];
    case "integer":
      return [min ?? -INTEGER_MAX - 1, max ?? INTEGER_MAX];
    case "duration":
      return [min, max ?? DURATION_S_MAX];
    default:
      return [min, max];
  }
}

/** The largest time: the end of the year 9999. */
const TIME_S_MAX = 253_402_300_799;
const INTEGER_MAX = 2 ** 31 - 1;

function combineNumbers(def: AttributeDef, op: "=" | "+=" | "-=", old: number | undefined, given: number): AttributeValue {
  if (op === "=") return given;
  const sum = (old ?? 0) + (op === "+=" ? given : -given);
  if (Math.abs(sum) > Number.MAX_SAFE_INTEGER || (def.type === "duration" && sum < 0)) throw badValue(def);
  return inRange(def, def.type === "float" ? Number(sum.toPrecision(15)) : sum);
}

function combineSizeTexts(def: AttributeDef, op: "=" | "+=" | "-=", old: string | undefined, given: string): AttributeValue {
  const right = parseSize(given);
  const left = parseSize(old ?? "") ?? (right === null ? null : { ...right, count: 0 });
  const sum = op === "=" ? right : left === null || right === null ? null : combineSizes(left, right, op === "+=" ? 1 : -1);
  if (sum === null) throw badValue(def);
  return inRange(def, renderSize(sum));
}

/** Applies an operator to a text. += appends the given text. -= removes it from the end; if the old text does not end with it, nothing changes. */
function combineTexts(def: AttributeDef, op: "=" | "+=" | "-=", old: string | undefined, given: string): AttributeValue | undefined {
  if (op === "=" || (op === "+=" && old === undefined)) return given;
  if (old === undefined) return undefined;
  const text = op === "+=" ? old + given : old.endsWith(given) ? old.slice(0, old.length - given.length) : old;
  if (text === "") return undefined;
  const checked = parseScalar(def, text);
  if (checked === null) throw badValue(def);
  return checked;
}

function combineHolds(op: "=" | "+=" | "-=", old: string, given: string): string {
  if (op === "=") return given;
  return op === "+=" ? addHolds(old, given) : removeHolds(old, given);
}

function combineLists(def: AttributeDef, op: "=" | "+=" | "-=", old: readonly string[], given: readonly string[]): string[] | undefined {
  const unique = def.unique === true;
  const list = op === "-=" ? removeFromList(old, given) : addToList(op === "=" ? [] : old, given, unique);
  return list.length === 0 ? undefined : list;
}

function combineAcls(def: AttributeDef, op: "=" | "+=" | "-=", old: readonly string[], given: readonly string[]): string[] | undefined {
  const list = op === "-=" ? removeFromList(old, given) : addToAcl(def, op === "=" ? [] : old, given);
  return list.length === 0 ? undefined : list;
}

function combineResourceLists(
  def: AttributeDef,
  op: "=" | "+=" | "-=",
  old: ResourceValues | undefined,
  given: ResourceValues,
  resources: Resources,
): ResourceValues | undefined {
  let list = old;
  for (const [resource, value] of Object.entries(given))
    list = combineListed(def, op, list, listedResource(def, resource, resources), value);
  return list;
}

/** Applies an operator to limits on resources. Only the given resources change: `=` replaces the limits on that resource. */
function combineResourceLimits(
  op: "=" | "+=" | "-=",
  old: ResourceEntityLimits | undefined,
  given: ResourceEntityLimits,
): ResourceEntityLimits | undefined {
  const limits: { [resource: string]: { readonly [entity: string]: number | string } } = { ...old };
  for (const [resource, entries] of Object.entries(given)) {
    const combined = combineLimits(op, limits[resource], entries);
    if (combined === undefined) delete limits[resource];
    else limits[resource] = combined;
  }
  return Object.keys(limits).length === 0 ? undefined : limits;
}
