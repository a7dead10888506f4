// Makes exec_host, `host/slot*ncpus+...`, from an exec_vnode, and parses it. Consecutive vnodes of a chunk that are on the
// same host share one entry. host-entry.ts reads the hosts of an exec_host without checking the text.
//
// I2. execHostText(parseExecHost(t)) is t, except that `*1` is not written.

import { PBSE, reject } from "../pbse.ts";
import type { ExecVnode } from "./exec-vnode.ts";
import { entryTexts } from "./host-entry.ts";

/** One entry of exec_host: the host, the slot number, and the number of processors. */
export type ExecHostEntry = { readonly host: string; readonly slot: number; readonly ncpus: number };

const HOST_ENTRY = /^([^/*+\s]+)\/([0-9]{1,9})(?:\*([0-9]{1,9}))?$/;

/**
 * Makes an exec_host. Each entry is for consecutive vnodes of one chunk that are on the same host, with the sum of their processors. takenSlots: returns the
 * slot numbers that other jobs use on a host; the new entries get the lowest free numbers.
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

/** Writes `host/slot*ncpus+...`; `*1` is not written. */
export function execHostText(entries: readonly ExecHostEntry[]): string {
  const text = entries.map(entryText).join("+");
  written = { text, entries };
  return text;
}

const entryText = ({ host, slot, ncpus }: ExecHostEntry): string => (ncpus === 1 ? `${host}/${slot}` : `${host}/${slot}*${ncpus}`);

/** Cache of the last text that was written, because the start of a job parses that text soon after. */
let written: { readonly text: string; readonly entries: readonly ExecHostEntry[] } | null = null;

/** Parses an exec_host. Refuses a malformed text with 15014. */
export function parseExecHost(text: string): readonly ExecHostEntry[] {
  if (text === written?.text) return written.entries;
  if (text === "") throw malformed();
  return entryTexts(text).map(hostEntry);
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

function malformed(): Error {
  return reject(PBSE.BADATVAL);
}
