// Reads the published start and place of a job back from their texts, as long as this promise can be kept.

import type { SchedJob } from "#protocol/sched-link.ts";
import { keepsToSets } from "../place/placement.ts";
import type { Holding } from "../shapes/booking.ts";
import type { PlacedChunks } from "../shapes/placed.ts";
import type { Request } from "../shapes/request.ts";
import { holdingOfChunks } from "../shapes/running.ts";
import type { Universe } from "../shapes/universe.ts";
import type { NodeSet } from "../shapes/vnode.ts";
import { isPlaceFor, readPlace } from "./kept-place.ts";

export type Published = {
  readonly start_s: number;
  readonly exec_vnode: string;
  readonly chunks: PlacedChunks;
  readonly holding: Holding;
};
/** Returns whether a top job was promised a start that is due now. */
export function isDue({ topjob, estimated }: SchedJob, now_s: number): boolean {
  return topjob === true && (estimated?.start_time ?? Number.POSITIVE_INFINITY) <= now_s;
}

type Asking = { readonly set: NodeSet; readonly request: Request; readonly job: SchedJob };

/** Places that were read from published texts. Each text is read once while it stays the same. */
const READ = new WeakMap<object, Published>();

/** Returns the published place of a job (for a subjob: of its array) if it fits the job's request; null: there is none, or it does not fit. */
export function publishedPlace(universe: Universe, { estimated }: SchedJob, asking: Asking): Published | null {
  const { start_time: start_s, exec_vnode } = estimated ?? {};
  if (estimated === undefined || exec_vnode === undefined || start_s === undefined) return null;
  const { set, request } = asking;
  let published = READ.get(estimated);
  if (published === undefined || !isThere(set, published.chunks)) {
    const chunks = readPlace(universe, set, exec_vnode);
    if (chunks === null) return null;
    published = { start_s, exec_vnode, chunks, holding: holdingOfChunks(request.place, chunks) };
    READ.set(estimated, published);
  }
  const { chunks } = published;
  return isPlaceFor(universe, request, chunks) && keepsToSets(universe, asking, chunks) ? published : null;
}

/** Returns whether the vnodes of placed chunks still exist. A vnode that was deleted and created again is a different one. */
function isThere(set: NodeSet, chunks: PlacedChunks): boolean {
  return chunks.every((pieces) => pieces.every(({ vnode }) => set.vnodes.get(vnode.name) === vnode));
}
