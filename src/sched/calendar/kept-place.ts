// Reads the place that was published for a job (exec_vnode) back from its text. Tells whether the place still fits the job's request, and whether it is free at
// a time. A published promise is therefore kept as long as nothing is in the way, even if a search would now find another place first.

import { parseExecVnode } from "#model/request/exec-vnode.ts";
import { present } from "#support/assert.ts";
import { statesDuring } from "../place/outlook.ts";
import { ownersThen } from "../place/owners-then.ts";
import type { Holding, Window } from "../shapes/booking.ts";
import type { Piece, PlacedChunks } from "../shapes/placed.ts";
import type { Amount, Chunk, Request } from "../shapes/request.ts";
import { amountAt, amountOf } from "../shapes/resource-space.ts";
import type { Universe } from "../shapes/universe.ts";
import type { NodeSet } from "../shapes/vnode.ts";
import { ineligible, isChecked, matchesAll } from "../shapes/vnode-fit.ts";
import type { Wanted } from "./start-search.ts";

/** Converts an exec_vnode text to placed chunks on the vnodes of a set. Returns null if a vnode is missing or the text is malformed. */
export function readPlace(universe: Universe, set: NodeSet, exec_vnode: string): PlacedChunks | null {
  const chunks: Piece[][] = [];
  /** the amounts for each text; equal texts share them */
  const known = new Map<string, readonly Amount[]>();
  try {
    for (const parts of parseExecVnode(exec_vnode)) {
      const pieces: Piece[] = [];
      for (const { vnode: name, pairs } of parts) {
        const vnode = set.vnodes.get(name);
        if (vnode === undefined) return null;
        const text = pairs.map(({ raw }) => raw).join(":");
        let amounts = known.get(text);
        if (amounts === undefined) known.set(text, (amounts = amountsOf(universe, pairs)));
        pieces.push({ vnode, amounts });
      }
      chunks.push(pieces);
    }
  } catch {
    return null;
  }
  return chunks;
}

function amountsOf({ space }: Universe, pairs: readonly { readonly name: string; readonly text: string }[]): Amount[] {
  return pairs.flatMap(({ name, text }): Amount[] => {
    const resource = space.all.get(name);
    const amount = resource === undefined || resource.index < 0 ? null : amountOf(resource, text);
    return amount === null || resource === undefined ? [] : [{ index: resource.index, amount }];
  });
}

/** Returns whether placed chunks match the request. */
export function isPlaceFor(universe: Universe, request: Request, placed: PlacedChunks): boolean {
  const asked = request.chunks.flatMap((chunk) => Array.from({ length: chunk.count }, () => chunk));
  if (asked.length !== placed.length) return false;
  if (!asked.every((chunk, at) => holdsChunk(universe, chunk, present(placed[at], "place")))) return false;
  switch (request.place.arrangement) {
    case "scatter":
      return new Set(placed.map((pieces) => pieces[0]?.vnode.host)).size === placed.length;
    case "vscatter":
      return new Set(placed.flat().map(({ vnode }) => vnode)).size === placed.length;
    case "pack":
      return request.chunk_count === 1 || new Set(placed.flat().map(({ vnode }) => vnode.host)).size === 1;
    case "free":
      return true;
    default: {
      const unreachable: never = request.place.arrangement;
      return unreachable;
    }
  }
}

function holdsChunk({ checks }: Universe, chunk: Chunk, pieces: readonly Piece[]): boolean {
  if (new Set(pieces.map(({ vnode }) => vnode.host)).size !== 1) return false;
  for (const { index, amount } of chunk.amounts) {
    const held = pieces.reduce((sum, { amounts }) => sum + (amounts.find((one) => one.index === index)?.amount ?? 0), 0);
    if (held !== amount) return false;
  }
  return pieces.every(
    ({ vnode }) =>
      matchesAll(checks, vnode.state.spec, chunk) &&
      (chunk.vnode === undefined || chunk.vnode === vnode.name) &&
      (chunk.host === undefined || chunk.host === vnode.host.name),
  );
}

/** Returns whether the amounts of placed chunks are available during a window. The forecast must show the beginning of the window. */
export function isPlaceFree(
  universe: Universe,
  { request, set, job }: Wanted,
  { holding }: { readonly holding: Holding },
  { window, isOver }: { readonly window: Window; isOver(job: string): boolean },
): boolean {
  const { checks } = universe;
  for (const [name, { amounts, own }] of holding) {
    if (!own) continue; // the job closes this vnode only because it uses another vnode of the host, which is checked in its turn
    const vnode = set.vnodes.get(name);
    if (vnode === undefined) return false;
    const { bucket } = vnode.host;
    if (bucket === null) return false;
    const states = statesDuring(bucket, window);
    const state = states[states.length === 1 ? 0 : vnode.host.vnodes.indexOf(vnode)];
    if (state === undefined || ineligible(request, state, states, () => ownersThen(universe, vnode, { job, window, isOver })) !== null)
      return false;
    const used = [...state.used];
    for (const { index, amount } of amounts) {
      used[index] = amountAt(used, index) + amount;
      if (isChecked(checks, index) && amount > 0 && amountAt(used, index) > amountAt(state.spec.avail, index)) return false;
    }
  }
  return true;
}
