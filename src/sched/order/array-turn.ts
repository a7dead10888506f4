// An array in a cycle: its next subjob represents it and is tried like a job. When it has started, the following one takes its place
// (docs/reference/scheduler.md 7).
//
// T1. A check sees a job with the subjob's id, and gets its array beside it. Comments belong to the array.

import { type IndexRange, indexAt, indexCount, parseIndexList, positionOf } from "#model/array-indices.ts";
import { arrayIdOf, subjobId, subjobIndex } from "#model/job-id.ts";
import { SUBSTATE } from "#model/job-state.ts";
import type { SchedJob } from "#protocol/sched-link.ts";
import { present } from "#support/assert.ts";
import type { JobEntry } from "../shapes/job-line.ts";
import type { Universe } from "../shapes/universe.ts";

/** The position of a cycle among the waiting subjobs of an array. */
export type ArrayTurn = {
  readonly ranges: readonly IndexRange[];
  /** the range and the place in it of the next subjob */
  range: number;
  place: number;
  /** subjobs started in this cycle */
  started: number;
};

/** Whether a cycle may start the job: it waits, is suspended until there is room, or is an array with waiting subjobs. */
export function isOffered({ state, substate, array }: SchedJob): boolean {
  return array === undefined
    ? state === "Q" || (state === "S" && substate === SUBSTATE.SCHED_SUSPENDED)
    : (state === "Q" || state === "B") && array.indices_remaining !== "-";
}

export function newTurn(array: NonNullable<SchedJob["array"]>): ArrayTurn {
  return { ranges: parseIndexList(array.indices_remaining) ?? [], range: 0, place: 0, started: 0 };
}

/** Index of the next subjob; null: none is left. */
export function nextIndex({ ranges, range, place }: ArrayTurn): number | null {
  const at = ranges[range];
  return at === undefined ? null : indexAt(at, place);
}

/** The next subjob was started. */
export function takeNext(turn: ArrayTurn): void {
  turn.started++;
  turn.place++;
  if (turn.place < indexCount(present(turn.ranges[turn.range], "range"))) return;
  turn.range++;
  turn.place = 0;
}

/** The subjob as a job. */
export function subjobOf({ array: _, ...job }: SchedJob, index: number): SchedJob {
  return { ...job, id: subjobId(job.id, index), array_id: job.id };
}

/** The array of a waiting subjob, by the subjob's id; undefined: unknown, or not waiting. */
export function arrayEntryOf(universe: Universe, id: string): JobEntry | undefined {
  const array_id = arrayIdOf(id);
  const entry = array_id === null ? undefined : universe.entries.get(array_id);
  const ranges = parseIndexList(entry?.job.array?.indices_remaining ?? "");
  return ranges?.some((range) => positionOf(range, subjobIndex(id)) >= 0) === true ? entry : undefined;
}
