// Entity limits: `[o:PBS_ALL=n]`, `[u:NAME=n]`, `[g:NAME=n]`, `[p:NAME=n]`, joined by commas (docs/reference/errors.md 3,
// docs/reference/qmgr.md 3). If NAME is PBS_GENERIC, the limit is for each entity without an entry of its own. A name with
// blanks or other unusual characters is written in double quotes.
//
// I1. In memory, limits on numbers of jobs are a record `u:alice -> 5`. Limits on resources are a record with such a record
//     for each resource, in which sizes are canonical texts.
// I2. Entries are shown in the byte order of their keys. Limits on resources are shown for all resources together, ordered
//     by key and then by resource (docs/reference/attributes.md 10).
// I3. A record is never empty: if an operation leaves no entry, the result is undefined.

import type { AttributeDef, EntityLimits, ResourceEntityLimits } from "../attribute.ts";
import { valueName } from "../attribute.ts";
import { isPrintable } from "../attribute-checks.ts";
import { PBSE, reject } from "../pbse.ts";
import { isNumeric, type ResourceDef, type Resources } from "../resource-table.ts";
import { parseInteger } from "./integer.ts";
import { parseResourceValue, renderResourceValue } from "./resource-value.ts";

export const GENERIC = "PBS_GENERIC";
const ALL = "PBS_ALL";
export type EntityKind = "g" | "o" | "p" | "u";

/** One entry as it was written: a key such as `u:alice`, and the text of the amount. */
export type LimitEntry = { readonly key: string; readonly amount: string };
export type LimitSyntax = { readonly ok: true; readonly entries: readonly LimitEntry[] } | { readonly ok: false; readonly column: number };

const PLAIN_NAME = /^[^\s"=[\]/;:|<>+,?*]+$/;

/**
 * Checks the syntax of a text with limits, but not its amounts. qmgr does this before it sends the request. If the text is
 * malformed, returns the column (from 0) at which qmgr shows the caret.
 */
export function parseLimitSyntax(text: string): LimitSyntax {
  const reader = new Reader(text);
  const entries: LimitEntry[] = [];
  do {
    const entry = readEntry(reader);
    if (entry === null) return { ok: false, column: reader.at };
    entries.push(entry);
    reader.skipBlanks();
  } while (reader.take(","));
  return reader.at === text.length ? { ok: true, entries } : { ok: false, column: reader.at };
}

/** Parses limits on numbers of jobs. Refuses with 15014 and the attribute's name. */
export function parseEntityLimits(def: AttributeDef, text: string): EntityLimits {
  if (!isPrintable(text)) throw reject(PBSE.BADATVAL, def.name);
  const limits: { [entity: string]: number } = {};
  for (const { key, amount } of entriesOf(def, text)) {
    const count = parseInteger(amount);
    if (count === null || count < 0) throw reject(PBSE.BADATVAL, def.name);
    limits[key] = count;
  }
  return sorted(limits);
}

/**
 * Parses limits on amounts of one resource. Refuses an unknown resource with 15035, a resource without amounts with 15109, a
 * bad value with 15014; each refusal names `attribute.resource`.
 */
export function parseResourceLimits(
  def: AttributeDef,
  resource: string,
  text: string,
  resources: Resources,
): { [entity: string]: number | string } {
  const resc = limitableResource(def, resource, resources);
  if (!isPrintable(text)) throw reject(PBSE.BADATVAL, valueName(def, resource));
  const limits: { [entity: string]: number | string } = {};
  for (const { key, amount } of entriesOf(def, text, resource)) {
    const value = parseResourceValue(resc, amount);
    if (value === null || typeof value === "boolean" || (typeof value === "number" && value < 0))
      throw reject(PBSE.BADATVAL, valueName(def, resource));
    limits[key] = value;
  }
  return sorted(limits);
}

function limitableResource(def: AttributeDef, resource: string, resources: Resources): ResourceDef {
  const resc = resources.get(resource);
  if (resc === undefined) throw reject(PBSE.UNKRESC, valueName(def, resource));
  if (!isNumeric(resc.type)) throw reject(PBSE.INVALJOBRESC, valueName(def, resource));
  return resc;
}

/** The texts of limits: one text such as `[u:alice=20]` for each entry. */
export function renderEntityLimits(limits: EntityLimits): string[] {
  return Object.keys(limits)
    .sort(byBytes)
    .map((key) => renderEntry(key, String(limits[key])));
}

/** The texts of limits on resources, by resource. resourceLimitLines makes one list of them in the order of PBS. */
export function renderResourceLimits(limits: ResourceEntityLimits, resources: Resources): { [resource: string]: string[] } {
  const rendered: { [resource: string]: string[] } = {};
  for (const resource of Object.keys(limits).sort(byBytes)) {
    const entries = limits[resource] ?? {};
    rendered[resource] = Object.keys(entries)
      .sort(byBytes)
      .map((key) => renderEntry(key, renderResourceValue(resources.get(resource), entries[key] ?? 0)));
  }
  return rendered;
}

/** The entries of all resources as list and print show them: by entity, then by resource. */
export function resourceLimitLines(rendered: { readonly [resource: string]: readonly string[] }): { resource: string; text: string }[] {
  const lines = Object.entries(rendered).flatMap(([resource, entries]) =>
    entries.map((text) => ({ resource, text, key: keyOfEntry(text) })),
  );
  lines.sort((a, b) => byBytes(a.key, b.key) || byBytes(a.resource, b.resource));
  return lines.map(({ resource, text }) => ({ resource, text }));
}

/**
 * Applies an operator to limits. = replaces all entries; += adds entries or replaces them; -= removes entries with equal
 * values. Returns undefined if no entry is left.
 */
export function combineLimits<T extends number | string>(
  op: "=" | "+=" | "-=",
  old: { readonly [entity: string]: T } | undefined,
  given: { readonly [entity: string]: T },
): { [entity: string]: T } | undefined {
  const result: { [entity: string]: T } = op === "=" ? {} : { ...old };
  for (const [key, value] of Object.entries(given)) {
    if (op !== "-=") result[key] = value;
    else if (result[key] === value) delete result[key];
  }
  return Object.keys(result).length === 0 ? undefined : sorted(result);
}

/** The limit that applies to an entity: its own, or else the generic one. Returns undefined if there is none. */
export function limitFor<T>(
  limits: { readonly [entity: string]: T } | undefined,
  kind: EntityKind,
  name: string,
): { readonly key: string; readonly limit: T } | undefined {
  if (limits === undefined) return undefined;
  for (const key of kind === "o" ? [`o:${ALL}`] : [`${kind}:${name}`, `${kind}:${GENERIC}`]) {
    const limit = Object.hasOwn(limits, key) ? limits[key] : undefined;
    if (limit !== undefined) return { key, limit };
  }
  return undefined;
}

function entriesOf(def: AttributeDef, text: string, resource?: string): readonly LimitEntry[] {
  const parsed = parseLimitSyntax(text);
  if (!parsed.ok) throw reject(PBSE.BADATVAL, valueName(def, resource));
  return parsed.entries;
}

/** Reads `[k:name=amount]`. If it is malformed, returns null; reader.at is then the position of the fault. */
function readEntry(reader: Reader): LimitEntry | null {
  reader.skipBlanks();
  if (!reader.take("[")) return null;
  reader.skipBlanks();
  const kind = reader.peek();
  if (kind === "" || !"ogpu".includes(kind)) return null;
  reader.at++;
  reader.skipBlanks();
  if (!reader.take(":")) return null;
  reader.skipBlanks();
  const start = reader.at;
  const name = readName(reader);
  if (name === null) return null;
  if ((kind === "o") !== (name === ALL)) {
    reader.at = start + 2; // PBS places the caret here (measured)
    return null;
  }
  reader.skipBlanks();
  if (!reader.take("=")) return null;
  reader.skipBlanks();
  const amount = reader.word("],[=");
  reader.skipBlanks();
  if (amount === "" || !reader.take("]")) return null;
  return { key: `${kind}:${name}`, amount };
}

function readName(reader: Reader): string | null {
  if (reader.take('"')) {
    const end = reader.text.indexOf('"', reader.at);
    if (end <= reader.at) return null;
    const name = reader.text.slice(reader.at, end);
    reader.at = end + 1;
    return name;
  }
  const start = reader.at;
  const name = reader.word('="[]/;:|<>+,?*');
  return name === "" || reader.at === start ? null : name;
}

function renderEntry(key: string, amount: string): string {
  const name = key.slice(2);
  return `[${key.slice(0, 2)}${PLAIN_NAME.test(name) ? name : `"${name}"`}=${amount}]`;
}

function keyOfEntry(text: string): string {
  const parsed = parseLimitSyntax(text);
  return parsed.ok ? (parsed.entries[0]?.key ?? "") : text;
}

function sorted<T>(limits: { [entity: string]: T }): { [entity: string]: T } {
  return Object.fromEntries(Object.entries(limits).sort(([a], [b]) => byBytes(a, b)));
}

function byBytes(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** A text with the position up to which it has been read. */
class Reader {
  readonly text: string;
  at = 0;
  constructor(text: string) {
    this.text = text;
  }
  peek(): string {
    return this.text[this.at] ?? "";
  }
  take(character: string): boolean {
    if (this.peek() !== character) return false;
    this.at++;
    return true;
  }
  skipBlanks(): void {
    while (this.peek() === " " || this.peek() === "\t") this.at++;
  }
  /** reads the characters up to a blank, the end of the text or one of `stops` */
  word(stops: string): string {
    const start = this.at;
    while (this.at < this.text.length && !/\s/.test(this.peek()) && !stops.includes(this.peek())) this.at++;
    return this.text.slice(start, this.at);
  }
}
