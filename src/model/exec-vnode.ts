// What a job holds where: `(vn1:ncpus=2:mem=1gb+vn2:ncpus=1)+(vn1:ncpus=1)`, one pair of brackets a chunk, several vnodes in it when the chunk is
// spread over them; and exec_host made of it: `host/slot*ncpus`, one entry for each host of a chunk (pbs/mom.md 2, sched.md 3).
//
// I1. execVnodeText(parseExecVnode(t)) is t.

import { type Pair, quoteValue, Scanner, scanPair } from "./chunk-text.ts";
import { PBSE, reject } from "./pbse.ts";
import type { ResourceDef, Resources } from "./resource-table.ts";
import { parseResourceValue, resourceAmount } from "./values/resource-value.ts";

/** A part of a chunk on one vnode; amounts as written. */
export type VnodePart = { readonly vnode: string; readonly pairs: readonly Pair[] };
export type ExecChunk = readonly VnodePart[];
export type ExecVnode = readonly ExecChunk[];

/** One entry of exec_host: the host, its slot number and the processors there. */
export type ExecHostEntry = { readonly host: string; readonly slot: number; readonly ncpus: number };

const VNODE = /[A-Za-z0-9_][A-Za-z0-9._@[\]-]*/y;
const HOST_ENTRY = /^([^/*+\s]+)\/([0-9]{1,9})(?:\*([0-9]{1,9}))?$/;

/** Brackets may be left out around a chunk on one vnode (qrun -H). Refuses a malformed text with 15014. */
export function parseExecVnode(text: string): ExecVnode {
  if (text === latest.text) return latest.exec;
  const plain = ONE_PART.exec(text);
  const exec = plain === null ? scanChunks(text) : [[{ vnode: plain[1] as string, pairs: pairsOf(plain[2] as string) }]];
  latest = { text, exec, plain: plain !== null };
  return exec;
}

/** One chunk on one vnode, nothing quoted: what most jobs have. */
const ONE_PART = /^\(([A-Za-z0-9_][A-Za-z0-9._@[\]-]*):([^\s"'()+]+)\)$/;

/** Amounts that many jobs ask for are one list: what is worked out of it can be kept with it (amounts.ts). */
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

/** A start reads the same text several times, one after the other. plain: it is what execVnodeText would write. */
let latest: { readonly text: string | null; readonly exec: ExecVnode; readonly plain: boolean } = { text: null, exec: [], plain: false };

export function execVnodeText(exec: ExecVnode): string {
  if (latest.plain && exec === latest.exec) return latest.text as string;
  return exec.map((chunk) => `(${chunk.map(partText).join("+")})`).join("+");
}

/** The text of one part made of typed amounts. */
export function partOf(vnode: string, amounts: readonly (readonly [resource: string, text: string])[]): VnodePart {
  return { vnode, pairs: amounts.map(([name, text]) => ({ name, text, raw: `${name}=${quoteValue(text) ?? text}` })) };
}

/** Names of the vnodes in order of appearance, each once. */
export function vnodesOf(exec: ExecVnode): string[] {
  if (exec.length === 1 && exec[0]?.length === 1) return [exec[0][0]?.vnode as string];
  return [...new Set(exec.flatMap((chunk) => chunk.map(({ vnode }) => vnode)))];
}

/** Amounts of counted resources by vnode: numbers, sizes in kilobytes. Resources that are not known or not numeric are left out. */
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

/**
 * exec_host: for every chunk, one entry for each run of its vnodes on the same host, with the processors summed.
 * @param takenSlots slot numbers on that host which other jobs have; the lowest free ones are given
 */
export function execHosts(
  exec: ExecVnode,
  hostOf: (vnode: string) => string,
  takenSlots: (host: string) => ReadonlySet<number>,
): ExecHostEntry[] {
  const given = new Map<string, Set<number>>();
  const entries: ExecHostEntry[] = [];
  for (const chunk of exec) {
    let last: { host: string; slot: number; ncpus: number } | undefined;
    for (const { vnode, pairs } of chunk) {
      const host = hostOf(vnode);
      const ncpus = Number(pairs.find(({ name }) => name === "ncpus")?.text ?? 0);
      if (last?.host === host) {
        last.ncpus += ncpus;
        continue;
      }
      last = { host, slot: freeSlot(host, given, takenSlots(host)), ncpus };
      entries.push(last);
    }
  }
  return entries;
}

/** `host/slot*ncpus+...`; one processor is not written. */
export function execHostText(entries: readonly ExecHostEntry[]): string {
  const text = entries.map(entryText).join("+");
  written = { text, entries };
  return text;
}

const entryText = ({ host, slot, ncpus }: ExecHostEntry): string => (ncpus === 1 ? `${host}/${slot}` : `${host}/${slot}*${ncpus}`);

/** A start reads what it has just written. */
let written: { readonly text: string; readonly entries: readonly ExecHostEntry[] } | null = null;

/** Refuses a malformed exec_host with 15014. */
export function parseExecHost(text: string): readonly ExecHostEntry[] {
  if (text === written?.text) return written.entries;
  return text.includes("+") ? text.split("+").map(hostEntry) : [hostEntry(text)];
}

function hostEntry(word: string): ExecHostEntry {
  const match = HOST_ENTRY.exec(word);
  if (match === null) throw malformed();
  return { host: match[1] ?? "", slot: Number(match[2]), ncpus: Number(match[3] ?? 1) };
}

function freeSlot(host: string, given: Map<string, Set<number>>, taken: ReadonlySet<number>): number {
  const mine = given.get(host) ?? new Set<number>();
  given.set(host, mine);
  let slot = mine.size;
  while (taken.has(slot) || mine.has(slot)) slot++;
  mine.add(slot);
  return slot;
}

function partText({ vnode, pairs }: VnodePart): string {
  return [vnode, ...pairs.map(({ raw }) => raw)].join(":");
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
