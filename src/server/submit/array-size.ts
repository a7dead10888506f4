// max_array_size of server and queue: the largest number of subjobs of an array (15107).

import { indexCount, parseArrayIndices } from "#model/array-indices.ts";
import { PBSE, reject } from "#model/pbse.ts";
import type { Attrs, Queue, ServerState } from "../state/state.ts";
import { SUBJOBS_MAX } from "../state/subjobs.ts";

/** The number of jobs that a submission counts for: an array counts for its subjobs. */
export function subjobCount(attrs: Attrs): number {
  const range = parseArrayIndices(String(attrs["array_indices_submitted"] ?? ""));
  return range === null ? 1 : indexCount(range);
}

/** Refuses an array that is too large for the complex or the queue. */
export function checkArraySize(state: ServerState, queue: Queue, attrs: Attrs): void {
  if (attrs["array_indices_submitted"] === undefined) return;
  const count = subjobCount(attrs);
  for (const limit of [state.server["max_array_size"] ?? MAX_ARRAY_SIZE_DEFAULT, queue.attrs["max_array_size"], SUBJOBS_MAX]) {
    if (typeof limit === "number" && count > limit) throw reject(PBSE.MaxArraySize);
  }
}

const MAX_ARRAY_SIZE_DEFAULT = 10_000;
