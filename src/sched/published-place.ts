// The start and the place that were published about a job, read back from their text: what the job was promised, as long as it can be had.

import type { SchedJob } from "#protocol/sched-link.ts";
import { isPlaceFor, readPlace } from "./kept-place.ts";
import { keepsToSets } from "./placement.ts";
import type { PlacedChunks } from "./placement-search.ts";
import type { Request } from "./request.ts";
import type { Holding } from "./running.ts";
import { holdingOfChunks } from "./running.ts";
import type { NodeSet, Universe } from "./universe.ts";

export type Published = {
  readonly start_s: number;
  readonly exec_vnode: string;
  readonly chunks: PlacedChunks;
  readonly holding: Holding;
};
/** Whether a top job was promised a start that is due now. */
export function isDue({ topjob, estimated }: SchedJob, now_s: number): boolean {
  return topjob === true && (estimated?.start_time ?? Number.POSITIVE_INFINITY) <= now_s;
}

type Asking = { readonly set: NodeSet; readonly request: Request; readonly job: SchedJob };

/** Places read from what was published: as long as it stays the same, it is read once. */
const READ = new WeakMap<object, Published>();

/** What was published about a job (of a subjob: about its array), where it is a place for what the job asks; null: nothing, or none. */
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

/** Vnodes that went and came back are others. */
function isThere(set: NodeSet, chunks: PlacedChunks): boolean {
  return chunks.every((pieces) => pieces.every(({ vnode }) => set.vnodes.get(vnode.name) === vnode));
}
