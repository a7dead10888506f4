// Finds the vnodes for an occurrence of a reservation. First, its present vnodes are tried. If they are not free at the
// requested time, every chunk that can stay keeps its vnodes, and only the other chunks get new ones. If this fails too, all
// chunks get new vnodes.
//
// R4. exec_vnode names the chunks in the order of the request, so the old one is a pattern for the new one, chunk by chunk.
// R5. A chunk on whose vnodes a job of the reservation runs stays there, whatever the state of these vnodes. A reservation
//     with running jobs is never moved as a whole.

import { type ExecChunk, type ExecVnode, execVnodeText, readExecVnode } from "#model/request/exec-vnode.ts";
import { isNodeUsable } from "#model/values/node-state.ts";
import type { SchedJob, Why } from "#protocol/sched-link.ts";
import { present } from "#support/assert.ts";
import type { Forecast } from "../calendar/forecast.ts";
import { execOf, findPlace, placedText } from "../place/placement.ts";
import { checkTotals } from "../place/set-totals.ts";
import type { Window } from "../shapes/booking.ts";
import type { PlacedChunks } from "../shapes/placed.ts";
import type { Amount, Chunk, Request } from "../shapes/request.ts";
import type { ResvInfo } from "../shapes/reservation.ts";
import { readHolding } from "../shapes/running.ts";
import type { Universe } from "../shapes/universe.ts";
import type { NodeSet } from "../shapes/vnode.ts";
import { stateWords } from "../shapes/vnode-state.ts";

export type ResvView = { readonly universe: Universe; readonly set: NodeSet; readonly window: Window; readonly forecast: Forecast };

const NOBODY = { id: "", user: "", group: "", project: "" } as SchedJob;

/** Returns the exec_vnode of a reservation in a window, or the reason why there is none. old: its present exec_vnode. */
export function placeAgain(view: ResvView, resv: ResvInfo, old: string | null): string | Why {
  const pattern = old === null ? null : patternOf(view, resv, old);
  if (pattern === null) return placeNew(view, resv);
  const kept = placeKept(view, resv, pattern);
  if (kept !== null) return kept;
  return pattern.some((one) => one.busy) ? { code: "RESERVATION_CONFLICT", module: "reservations" } : placeNew(view, resv);
}

function placeNew(view: ResvView, { request }: ResvInfo): string | Why {
  const { universe, set } = view;
  const short = checkTotals(universe.checks, set, request);
  if (short !== null) return short;
  const found = find(view, request);
  return "why" in found ? found.why : placedText(universe, found.chunks);
}

function find({ universe, set, window, forecast }: ResvView, request: Request): ReturnType<typeof findPlace> {
  const context = { universe, policy: universe.policy, startedOn: () => [], after: null, window, isOver: forecast.isOver, resv: true };
  return findPlace(context, set, request, NOBODY);
}

// --- chunks that stay

/**
 * A requested chunk (one copy) and where it is at present. old null: it is nowhere and must be placed. busy: a job of the
 * reservation runs on its vnodes. up: its vnodes are up.
 */
type Patterned = { readonly chunk: Chunk; readonly old: ExecChunk | null; readonly busy: boolean; readonly up: boolean };

/** Returns each requested chunk with its part of the old exec_vnode; null: the old exec_vnode does not fit the request. */
function patternOf(view: ResvView, resv: ResvInfo, old: string): readonly Patterned[] | null {
  const { universe, set } = view;
  const chunks = readExecVnode(old);
  const copies = resv.request.chunks.flatMap((chunk) => Array.from({ length: chunk.count }, () => ({ ...chunk, count: 1 })));
  if (chunks === null || copies.length > chunks.length) return null;
  const inUse = vnodesInUse(universe, resv.id);
  const found = chunks.map((exec) => ({
    exec,
    busy: exec.some(({ vnode }) => inUse.has(vnode)),
    up: exec.every(({ vnode }) => {
      const there = set.vnodes.get(vnode);
      return there !== undefined && isNodeUsable(stateWords(there.node));
    }),
  }));
  if (copies.length === chunks.length) return copies.map((chunk, at) => patterned(chunk, present(found[at], "place")));
  // The request has fewer chunks than before. Those that are in use are kept first, then those whose vnodes are up.
  const left = [...found].sort((a, b) => Number(b.busy) - Number(a.busy) || Number(b.up) - Number(a.up));
  const pattern = copies.map((chunk): Patterned => {
    const at = left.findIndex(({ exec }) => hasAmounts(universe, exec, chunk));
    const [one] = at < 0 ? [] : left.splice(at, 1);
    return one === undefined ? { chunk, old: null, busy: false, up: false } : patterned(chunk, one);
  });
  return left.some(({ busy }) => busy) ? null : pattern;
}

function patterned(
  chunk: Chunk,
  { exec, busy, up }: { readonly exec: ExecChunk; readonly busy: boolean; readonly up: boolean },
): Patterned {
  return { chunk, old: exec, busy, up };
}

function vnodesInUse({ insiders }: Universe, id: string): Set<string> {
  const names = new Set<string>();
  for (const { job, holding } of insiders.values()) if (job.resv === id) for (const name of holding.keys()) names.add(name);
  return names;
}

function amountsOf(universe: Universe, exec: ExecChunk): Map<number, number> {
  const sums = new Map<number, number>();
  for (const { amounts } of readHolding(universe.space, execVnodeText([exec])).values())
    for (const { index, amount } of amounts) sums.set(index, (sums.get(index) ?? 0) + amount);
  return sums;
}

function hasAmounts(universe: Universe, exec: ExecChunk, { amounts }: Chunk): boolean {
  const sums = amountsOf(universe, exec);
  return amounts.length === sums.size && amounts.every(({ index, amount }) => sums.get(index) === amount);
}

/** Leaves every chunk whose vnodes are up where it is, and places the others elsewhere. Returns null if that is not possible. */
function placeKept(view: ResvView, resv: ResvInfo, pattern: readonly Patterned[]): string | null {
  const { universe } = view;
  const stays = pattern.map(({ old, busy, up }) => old !== null && (up || busy));
  const pinned: Chunk[] = [];
  const free: Chunk[] = [];
  pattern.forEach(({ chunk, old, up }, at) => {
    if (stays[at] !== true) free.push(chunk);
    else if (up && old !== null) pinned.push(...pinnedChunks(universe, chunk, old));
  });
  pinned.push(...besideChunks(view, resv));
  const split = pattern.some(({ old }) => (old?.length ?? 0) > 1);
  const { place } = resv.request;
  // Chunks that stay are requested again as pins, which name their vnodes. Placement then keeps all chunks on different hosts, if the request says so. This
  // does not work for a chunk on several vnodes, because it has several pins.
  if (free.length > 0 && split && place.arrangement !== "free") return null;
  const arrangement = free.length === 0 ? "free" : place.arrangement;
  const chunks = [...pinned, ...free];
  const found = chunks.length === 0 ? { chunks: [] } : find(view, { ...resv.request, ...sumsOf(chunks), place: { ...place, arrangement } });
  if ("why" in found) return null;
  const moved = found.chunks.slice(pinned.length)[Symbol.iterator]();
  return execVnodeText(pattern.flatMap(({ old }, at) => (stays[at] === true && old !== null ? [old] : nextChunk(universe, moved))));
}

function nextChunk(universe: Universe, moved: Iterator<PlacedChunks[number]>): ExecVnode {
  const next = moved.next();
  return next.done === true ? [] : execOf(universe, [next.value]);
}

/**
 * Returns the amounts that jobs in the reservation have on vnodes in addition to the amounts of the reservation. If the reservation gets longer, the jobs also
 * keep these amounts longer.
 */
function besideChunks({ universe, set }: ResvView, resv: ResvInfo): Chunk[] {
  if (resv.present === null) return [];
  const chunks: Chunk[] = [];
  for (const { job } of universe.insiders.values()) {
    if (job.resv !== resv.id) continue;
    for (const [vnode, { amounts }] of universe.calendar.running.get(job.id)?.holding ?? []) {
      const there = set.vnodes.get(vnode);
      if (amounts.length > 0 && there !== undefined && isNodeUsable(stateWords(there.node)))
        chunks.push({ count: 1, amounts, matches: [], levels: [], host: undefined, vnode });
    }
  }
  return chunks;
}

function pinnedChunks({ space }: Universe, chunk: Chunk, old: ExecChunk): Chunk[] {
  return [...readHolding(space, execVnodeText([old]))].map(([vnode, { amounts }]) => ({ ...chunk, amounts, host: undefined, vnode }));
}

function sumsOf(chunks: readonly Chunk[]): Pick<Request, "chunks" | "chunk_count" | "totals"> {
  const sums = new Map<number, number>();
  for (const { amounts } of chunks) for (const { index, amount } of amounts) sums.set(index, (sums.get(index) ?? 0) + amount);
  return { chunks, chunk_count: chunks.length, totals: [...sums].map(([index, amount]): Amount => ({ index, amount })) };
}
