// The resource select, which lists the chunks that a job requests: `[N:]res=value[:res=value...][+...]`, where a chunk may
// be just N (docs/reference/commands.md 1.2). The parser is written by hand. A chevrotain parser takes 5 µs longer for one
// chunk and 9 µs longer for two; at 8,000 submissions a second this is 4 and 7 % of the time of a submission. Moreover,
// scheduler, moms and simulator need not load a parser library.
//
// I1. A select has at least one chunk, and counts are at least 1.
// I2. selectText(parseSelect(t)) is t, except for blanks at its ends.

import type { ResourceValue } from "../attribute.ts";
import { PBSE, reject, rejectNaming } from "../pbse.ts";
import { hasFlag, isConsumable, isNumeric, type ResourceDef, type Resources } from "../resource-table.ts";
import { isRequestable } from "../values/resource-list.ts";
import { combineResourceValues, parseResourceValue, renderResourceValue } from "../values/resource-value.ts";
import { parseSize, renderSize } from "../values/size.ts";
import { makePair, type Pair, Scanner, scanPair } from "./chunk-text.ts";

/** A chunk. count null: the text gives no count; it is then 1, or the default of the resource nchunk. */
export type SelectChunk = { readonly count: number | null; readonly pairs: readonly Pair[] };
export type Select = { readonly chunks: readonly SelectChunk[] };

/** Equal chunks in the form for placement: their number, and the resources of each with typed values. */
export type ChunkRequest = { readonly count: number; readonly resources: { readonly [resource: string]: ResourceValue } };

const COUNT = /[0-9]{1,9}/y;
/** The name in the refusal of a malformed select. */
const SELECT_NAME = "Resource_List.select";

/** Parses a select. Refuses a malformed text with 15014, which names Resource_List.select; a count of 0 with 15014 without a name. */
export function parseSelect(text: string): Select {
  const scanner = new Scanner(text.trim());
  const chunks: SelectChunk[] = [];
  do chunks.push(scanChunk(scanner));
  while (scanner.take("+"));
  if (!scanner.done) throw malformed();
  return { chunks };
}

/** Parses a select like parseSelect, but returns null in place of a refusal. */
export function readSelect(text: string): Select | null {
  try {
    return parseSelect(text);
  } catch {
    return null;
  }
}

/** Whether a chunk of a checked select contains the resource. */
export function asksFor(text: string, resource: string): boolean {
  if (!text.includes(resource)) return false;
  return readSelect(text)?.chunks.some(({ pairs }) => pairs.some(({ name }) => name === resource)) === true;
}

/** The chunks of a select one by one: a chunk with count N becomes N chunks with count 1, as in exec_vnode. */
export function eachChunk(select: Select): Select["chunks"] {
  return select.chunks.flatMap(({ count, pairs }) => Array.from({ length: count ?? 1 }, () => ({ count: 1, pairs })));
}

/** The text of a select, with every chunk as it was written. */
export function selectText(select: Select): string {
  return chunkTexts(select).join("+");
}

/** The text of each chunk, as it was written. */
export function chunkTexts(select: Select): readonly string[] {
  return select.chunks.map(chunkText);
}

/**
 * Checks names and values against the resources. Refusals: unknown resource 15035, not allowed in a chunk 15108, given twice
 * 15116, bad value 15014 (`select.ncpus`).
 */
export function checkSelect(select: Select, resources: Resources): void {
  for (const chunk of select.chunks) typedResources(chunk, resources);
}

/** The chunks of a checked select with typed values. */
export function typedChunks(select: Select, resources: Resources): ChunkRequest[] {
  return select.chunks.map((chunk) => ({ count: chunk.count ?? 1, resources: typedResources(chunk, resources) }));
}

/** A checked select with each value in the canonical form of its type: `100K` becomes `100kb`, `true` becomes `True`. */
export function canonicalSelect(select: Select, resources: Resources): Select {
  const canonical = (pair: Pair): Pair => {
    const def = resources.get(pair.name);
    const value = def === undefined ? null : parseResourceValue(def, pair.text);
    const text = value === null ? pair.text : renderResourceValue(def, value);
    return text === pair.text ? pair : pairOf(pair.name, text);
  };
  return { chunks: select.chunks.map(({ count, pairs }) => ({ count, pairs: pairs.map(canonical) })) };
}

/** The number of chunks, which is the value of the resource nodect. */
export function chunkCount(select: Select): number {
  return select.chunks.reduce((sum, chunk) => sum + (chunk.count ?? 1), 0);
}

/**
 * Adds default resources, in their order, to every chunk that does not name them. In the result every chunk has a count; a
 * chunk without one gets the value of the default resource nchunk.
 */
export function withChunkDefaults(select: Select, defaults: readonly { readonly name: string; readonly text: string }[]): Select {
  const nchunk = Number(defaults.find(({ name }) => name === "nchunk")?.text ?? 1);
  return {
    chunks: select.chunks.map((chunk) => {
      const named = new Set(chunk.pairs.map(({ name }) => name));
      const added = defaults.filter(({ name }) => name !== "nchunk" && !named.has(name)).map(({ name, text }) => pairOf(name, text));
      return { count: chunk.count ?? Math.max(1, nchunk), pairs: [...chunk.pairs, ...added] };
    }),
  };
}

/** Makes a pair. Refuses a value that cannot be written with 15014. */
export function pairOf(name: string, text: string): Pair {
  const pair = makePair(name, text);
  if (pair === null) throw reject(PBSE.BADATVAL, `select.${name}`);
  return pair;
}

/** The sums of consumable resources (flags n, f, q) over all chunks. Refuses a sum that is too large with 15014. */
export function selectSums(select: Select, resources: Resources): { [resource: string]: ResourceValue } {
  const sums: { [resource: string]: ResourceValue } = {};
  for (const { count, resources: amounts } of typedChunks(select, resources)) {
    for (const [name, amount] of Object.entries(amounts)) {
      const def = resources.get(name);
      if (def === undefined || !isConsumable(def) || !isNumeric(def.type)) continue;
      const product = times(def, amount, count);
      const before = sums[name];
      const sum = product === null || before === undefined ? product : combineResourceValues(def, "+=", before, product);
      if (sum === null || sum === undefined) throw reject(PBSE.BADATVAL, `select.${name}`);
      sums[name] = sum;
    }
  }
  return sums;
}

/** The resources of a chunk with typed values; refuses as checkSelect does. */
function typedResources(chunk: SelectChunk, resources: Resources): { readonly [resource: string]: ResourceValue } {
  const typed: { [resource: string]: ResourceValue } = {};
  for (const { name, text } of chunk.pairs) {
    const def = resources.get(name);
    if (def === undefined) throw rejectNaming(PBSE.UNKRESC, name);
    if (!hasFlag(def, "h")) throw rejectNaming(PBSE.INVALSELECTRESC, name);
    if (Object.hasOwn(typed, name)) throw rejectNaming(PBSE.DUPRESC, name);
    const value = parseResourceValue(def, text);
    if (value === null || !isRequestable(def, value)) throw reject(PBSE.BADATVAL, `select.${name}`);
    typed[name] = value;
  }
  return typed;
}

function chunkText({ count, pairs }: SelectChunk): string {
  const parts = pairs.map(({ raw }) => raw);
  return (count === null ? parts : [String(count), ...parts]).join(":");
}

/** Scans a chunk: `N`, `N:pair[:pair...]` or `pair[:pair...]`. */
function scanChunk(scanner: Scanner): SelectChunk {
  const digits = scanner.match(COUNT);
  const count = digits === null ? null : Number(digits);
  if (count === 0) throw reject(PBSE.BADATVAL);
  const pairs: Pair[] = [];
  if (count === null || scanner.take(":")) {
    do {
      const pair = scanPair(scanner);
      if (pair === null) throw malformed();
      pairs.push(pair);
    } while (scanner.take(":"));
  }
  return { count, pairs };
}

function times(def: ResourceDef, amount: ResourceValue, count: number): ResourceValue | null {
  if (def.type === "size") {
    const size = parseSize(String(amount));
    if (size === null || !Number.isSafeInteger(size.count * count)) return null;
    return renderSize({ ...size, count: size.count * count });
  }
  const product = Number(amount) * count;
  return Math.abs(product) <= Number.MAX_SAFE_INTEGER ? product : null;
}

function malformed(): Error {
  return reject(PBSE.BADATVAL, SELECT_NAME);
}
