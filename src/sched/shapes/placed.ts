// The placement of a job: its chunks, divided into pieces on vnodes. Types only.

import type { Amount } from "./request.ts";
import type { Host, Move, NodeSet, Vnode } from "./vnode.ts";

/** What a chunk takes of one vnode. */
export type Piece = { readonly vnode: Vnode; readonly amounts: readonly Amount[] };

/** The chunks in the order of the request, each with its pieces. */
export type PlacedChunks = readonly (readonly Piece[])[];

export type Placed = {
  readonly chunks: PlacedChunks;
  /** the hosts that were touched, with their entries in other sets and the buckets in which they were */
  readonly moved: readonly Move[];
  /** the set on which the job was placed, and the last host taken in it, behind which round_robin continues */
  readonly set: NodeSet;
  readonly last: Host | undefined;
};
