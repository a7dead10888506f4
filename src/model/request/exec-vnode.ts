// exec_vnode: the resources that a job has on each vnode, `(vn1:ncpus=2:mem=1gb+vn2:ncpus=1)+(vn1:ncpus=1)`. Each chunk has
// one pair of brackets, which contains several vnodes if the chunk is spread over them (docs/reference/execution.md 2,
// docs/reference/scheduler.md 3).
//
// I1. execVnodeText(parseExecVnode(t)) is t.

import { nth } from "#support/assert.ts";
import { PBSE, reject } from "../pbse.ts";
import type { ResourceDef, Resources } from "../resource-table.ts";
import { parseResourceValue, resourceAmount } from "../values/resource-value.ts";
import { type Pair, quoteValue, Scanner, scanPair } from "./chunk-text.ts";

/** The part of a chunk that is on one vnode. Amounts have the form in which they were written. */
export type VnodePart = { readonly vnode: string; readonly pairs: readonly Pair[] };
export type ExecChunk = readonly VnodePart[];
export type ExecVnode = readonly ExecChunk[];

const VNODE = /[A-Za-z0-9_][A-Za-z0-9._@[\]-]*/y;

/**
 * Parses an exec_vnode. The brackets around a chunk on a single vnode are optional (qrun -H). A malformed text is refused with
 * 15014.
 */
export function parseExecVnode(text: string): ExecVnode {
  if (text === latest.text) return latest.exec;
  const plain = ONE_PART.exec(text);
  const exec = plain === null ? scanChunks(text) : [[{ vnode: nth(plain, 1), pairs: pairsOf(nth(plain, 2)) }]];
  latest = { text, exec, plain: plain !== null };
  return exec;
}

/** Matches the exec_vnode of most jobs: one chunk on one vnode, without quotes. */
const ONE_PART = /^\(([A-Za-z0-9_][A-Za-z0-9._@[\]-]*):([^\s"'()+]+)\)$/;

/**
 * The pairs of a text. Jobs with equal texts share one list, so that results computed from it can be kept
 * (src/server/state/amounts.ts).
 */
function pairsOf(text: string): readonly Pair[] {
  let pairs = pairs_of.get(text);
  if (pairs === undefined) {
    const scanner = new Scanner(`:${text}`);
    pairs = scanPairs(scanner);
    if (!scanner.done) throw malformed();
    if (pairs_of.size >= PAIRS_MAX) pairs_of.clear();
    pairs_of.set(text, pairs);
  }
  return pairs;
}
const pairs_of = new Map<string, readonly Pair[]>();
const PAIRS_MAX = 1000;

function scanChunks(text: string): ExecVnode {
  const scanner = new Scanner(text.trim());
  const chunks: ExecChunk[] = [];
  do chunks.push(scanChunk(scanner));
  while (scanner.take("+"));
  if (!scanner.done) throw malformed();
  return chunks;
}

/**
 * Cache of the last text, because the start of a job parses the same text several times in succession. plain: the text is
 * exactly what execVnodeText would write.
 */
let latest: { readonly text: string | null; readonly exec: ExecVnode; readonly plain: boolean } = { text: null, exec: [], plain: false };

/** Parses an exec_vnode like parseExecVnode, but returns null in place of a refusal. */
export function readExecVnode(text: string): ExecVnode | null {
  try {
    return parseExecVnode(text);
  } catch {
    return null;
  }
}

/** The first vnode of a text that the server has checked, or null if the text is not an exec_vnode. */
export const firstVnode = (text: string): string | null => readExecVnode(text)?.[0]?.[0]?.vnode ?? null;

/** An exec_vnode with the same vnodes, but only with those resources that isKept accepts. */
export function onlyResources(exec: ExecVnode, isKept: (resource: string) => boolean): ExecVnode {
  return exec.map((chunk) => chunk.map(({ vnode, pairs }) => ({ vnode, pairs: pairs.filter(({ name }) => isKept(name)) })));
}

export function execVnodeText(exec: ExecVnode): string {
  if (latest.plain && exec === latest.exec) return latest.text as string;
  return exec.map((chunk) => `(${chunk.map(partText).join("+")})`).join("+");
}

/** Makes the part of a chunk on one vnode from amounts. */
export function partOf(vnode: string, amounts: readonly (readonly [resource: string, text: string])[]): VnodePart {
  return { vnode, pairs: amounts.map(([name, text]) => ({ name, text, raw: `${name}=${quoteValue(text) ?? text}` })) };
}

/** The names of the vnodes in order of appearance, each once. */
export function vnodesOf(exec: ExecVnode): string[] {
  if (exec.length === 1 && exec[0]?.length === 1) return [exec[0][0]?.vnode as string];
  return [...new Set(exec.flatMap((chunk) => chunk.map(({ vnode }) => vnode)))];
}

/** The amounts of each vnode as numbers, by resource; sizes in kilobytes. Unknown and non-numeric resources are left out. */
export function assignedAmounts(exec: ExecVnode, resources: Resources): Map<string, Map<string, number>> {
  const assigned = new Map<string, Map<string, number>>();
  for (const { vnode, pairs } of exec.flat()) {
    const amounts = assigned.get(vnode) ?? new Map<string, number>();
    assigned.set(vnode, amounts);
    for (const { name, text } of pairs) {
      const amount = amountOf(resources.get(name), text);
      if (amount !== null) amounts.set(name, (amounts.get(name) ?? 0) + amount);
    }
  }
  return assigned;
}

function partText({ vnode, pairs }: VnodePart): string {
  let text = vnode;
  for (const { raw } of pairs) text += `:${raw}`;
  return text;
}

function scanChunk(scanner: Scanner): ExecChunk {
  if (!scanner.take("(")) return [scanPart(scanner)];
  const parts: VnodePart[] = [];
  do parts.push(scanPart(scanner));
  while (scanner.take("+"));
  if (!scanner.take(")")) throw malformed();
  return parts;
}

function scanPart(scanner: Scanner): VnodePart {
  const vnode = scanner.match(VNODE);
  if (vnode === null) throw malformed();
  return { vnode, pairs: scanPairs(scanner) };
}

function scanPairs(scanner: Scanner): Pair[] {
  const pairs: Pair[] = [];
  const names = new Set<string>();
  while (scanner.take(":")) {
    const pair = scanPair(scanner);
    if (pair === null || names.has(pair.name)) throw malformed();
    names.add(pair.name);
    pairs.push(pair);
  }
  return pairs;
}

function amountOf(def: ResourceDef | undefined, text: string): number | null {
  if (def === undefined) return null;
  const value = parseResourceValue(def, text);
  return value === null ? null : resourceAmount(def, value);
}

function malformed(): Error {
  return reject(PBSE.BADATVAL);
}
