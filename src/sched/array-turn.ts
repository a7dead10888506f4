// An array in a cycle: its next subjob stands for it and is tried like a job; when it is started the one after it takes its place (docs/reference/scheduler.md 7).
//
// T1. What a check sees is a job with the subjob's id; the array it belongs to is told beside it. Comments are the array's.

import { type IndexRange, indexAt, indexCount, parseIndexList, positionOf } from "#model/array-indices.ts";
import { arrayIdOf, subjobId, subjobIndex } from "#model/job-id.ts";
import { SUBSTATE } from "#model/job-state.ts";
import type { SchedJob } from "#protocol/sched-link.ts";
import type { JobEntry, Universe } from "./universe.ts";

/** Where a cycle stands in an array's subjobs that wait. */
export type ArrayTurn = {
  readonly ranges: readonly IndexRange[];
  /** the range and the place in it of the next subjob */
  range: number;
  place: number;
  /** subjobs started in this cycle */
  started: number;
};

/** Whether a cycle may start something of the job: it waits, is suspended until there is room, or is an array of which subjobs wait. */
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
  if (turn.place < indexCount(turn.ranges[turn.range] as IndexRange)) return;
  turn.range++;
  turn.place = 0;
}

/** The subjob as a job. */
export function subjobOf({ array: _, ...job }: SchedJob, index: number): SchedJob {
  return { ...job, id: subjobId(job.id, index), array_id: job.id };
}

/** The array of a subjob that waits, by the subjob's id; undefined: it is unknown, or does not wait. */
export function arrayEntryOf(universe: Universe, id: string): JobEntry | undefined {
  const array_id = arrayIdOf(id);
  const entry = array_id === null ? undefined : universe.entries.get(array_id);
  const ranges = parseIndexList(entry?.job.array?.indices_remaining ?? "");
  return ranges?.some((range) => positionOf(range, subjobIndex(id)) >= 0) === true ? entry : undefined;
}
