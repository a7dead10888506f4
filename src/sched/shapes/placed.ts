// The placement of a job: its chunks, divided into pieces on vnodes. Types only.

import type { Amount } from "./request.ts";
import type { Host, Move, NodeSet, Vnode } from "./vnode.ts";

/** A part of a chunk on one vnode. */
export type Piece = { readonly vnode: Vnode; readonly amounts: readonly Amount[] };

/** Chunks in the order of the request, each with its pieces. */
export type PlacedChunks = readonly (readonly Piece[])[];

export type Placed = {
  readonly chunks: PlacedChunks;
  /** hosts touched, their entries in other sets, and the buckets they were in */
  readonly moved: readonly Move[];
  /** the set it was placed on, and the host of it that was taken last: round_robin continues there */
  readonly set: NodeSet;
  readonly last: Host | undefined;
};
