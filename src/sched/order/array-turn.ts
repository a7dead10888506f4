// An array in a cycle. Its next subjob represents it and is tried like a job. When that subjob has started, the following one
// represents the array (docs/reference/scheduler.md 7).
//
// T1. A check gets a job with the subjob's id, and also the array. Comments are set for the array.

import { type IndexRange, indexAt, indexCount, parseIndexList, positionOf } from "#model/array-indices.ts";
import { arrayIdOf, subjobId, subjobIndex } from "#model/job-id.ts";
import { SUBSTATE } from "#model/job-state.ts";
import type { SchedJob } from "#protocol/sched-link.ts";
import { present } from "#support/assert.ts";
import type { JobEntry } from "../shapes/job-line.ts";
import type { Universe } from "../shapes/universe.ts";

/** How far a cycle has gone through the waiting subjobs of an array. */
export type ArrayTurn = {
  readonly ranges: readonly IndexRange[];
  /** the next subjob: index of its range in `ranges`, and its position in that range */
  range: number;
  place: number;
  /** number of subjobs started in this cycle */
  started: number;
};

/** Returns whether a cycle may start the job: it is queued, or is suspended until there is room, or is an array with waiting subjobs. */
export function isOffered({ state, substate, array }: SchedJob): boolean {
  return array === undefined
    ? state === "Q" || (state === "S" && substate === SUBSTATE.SCHED_SUSPENDED)
    : (state === "Q" || state === "B") && array.indices_remaining !== "-";
}

export function newTurn(array: NonNullable<SchedJob["array"]>): ArrayTurn {
  return { ranges: parseIndexList(array.indices_remaining) ?? [], range: 0, place: 0, started: 0 };
}

/** Returns the index of the next subjob; null: none is left. */
export function nextIndex({ ranges, range, place }: ArrayTurn): number | null {
  const at = ranges[range];
  return at === undefined ? null : indexAt(at, place);
}

/** Notes that the next subjob was started, and moves on to the following one. */
export function takeNext(turn: ArrayTurn): void {
  turn.started++;
  turn.place++;
  if (turn.place < indexCount(present(turn.ranges[turn.range], "range"))) return;
  turn.range++;
  turn.place = 0;
}

/** Returns a subjob as a job. */
export function subjobOf({ array: _, ...job }: SchedJob, index: number): SchedJob {
  return { ...job, id: subjobId(job.id, index), array_id: job.id };
}

/** Returns the array of a waiting subjob, by the subjob's id; undefined: the id is unknown, or the subjob does not wait. */
export function arrayEntryOf(universe: Universe, id: string): JobEntry | undefined {
  const array_id = arrayIdOf(id);
  const entry = array_id === null ? undefined : universe.entries.get(array_id);
  const ranges = parseIndexList(entry?.job.array?.indices_remaining ?? "");
  return ranges?.some((range) => positionOf(range, subjobIndex(id)) >= 0) === true ? entry : undefined;
}
