// The subjobs of an array. A subjob that has started is a job of its own, with a row in the store. For all others, the array
// has only the state, in one byte each. In the row of the array the states are a text of letters and counts: `D2F97R2Q3`
// means two deleted subjobs, 97 finished ones, two that are jobs, and three that wait.
//
// I1. The state of a subjob is LIVE if and only if there is a live job with its id (core/invariants.ts).
// I2. A subjob that has ended never runs again.

import { type IndexRange, indexAt, indexCount, indexListText, parseArrayIndices, positionOf, rangesOf } from "#model/array-indices.ts";
import { assert, present } from "#support/assert.ts";

/** The letters of the states in the row. The index of a letter is the byte of that state in memory. */
const LETTERS = "QRFXD";
export const SUBJOB = {
  /** the subjob waits and has never started */
  QUEUED: 0,
  /** the subjob is a job of its own: it runs, or waits to run again */
  LIVE: 1,
  /** the subjob has ended with Exit_status 0 */
  FINISHED: 2,
  /** the subjob has ended in another way, but was not deleted */
  FAILED: 3,
  DELETED: 4,
} as const;
export type SubjobState = (typeof SUBJOB)[keyof typeof SUBJOB];

export type Subjobs = {
  readonly range: IndexRange;
  /** the state of each subjob, by its position in the range of indices */
  readonly states: Uint8Array;
  /** the number of subjobs in each state */
  readonly counts: [queued: number, live: number, finished: number, failed: number, deleted: number];
  /** derived from the jobs: the number of live subjobs by job_state */
  readonly live: Map<string, number>;
  /** the indices of live subjobs that wait to run again */
  readonly requeued: Set<number>;
};

/** The largest number of subjobs, even if max_array_size is larger, because their states are in memory. */
export const SUBJOBS_MAX = 10_000_000;

/** The subjobs of a new array, all of which wait. indices: `X-Y[:Z]`, already checked. */
export function newSubjobs(indices: string): Subjobs {
  const range = parseArrayIndices(indices);
  assert(range !== null, `indices ${indices}`);
  const count = indexCount(range);
  return { range, states: new Uint8Array(count), counts: [count, 0, 0, 0, 0], live: new Map(), requeued: new Set() };
}

/** Makes subjobs from the text in a row. The job_state of live subjobs is added when their jobs are loaded (noteLive). */
export function loadSubjobs(indices: string, runs: string): Subjobs {
  const subjobs = newSubjobs(indices);
  let at = 0;
  subjobs.counts.fill(0);
  for (const [, letter = "", count = ""] of runs.matchAll(/([A-Z])([0-9]+)/g)) {
    const state = LETTERS.indexOf(letter) as SubjobState;
    subjobs.states.fill(state, at, at + Number(count));
    subjobs.counts[state] += Number(count);
    at += Number(count);
  }
  assert(at === subjobs.states.length, `subjobs ${indices}: the row tells of ${at}`);
  return subjobs;
}

/** The text for the row of an array. */
export function subjobsText({ states }: Subjobs): string {
  let text = "";
  for (let at = 0; at < states.length; ) {
    const state = present(states[at], "state");
    let end = at + 1;
    while (states[end] === state) end++;
    text += `${LETTERS[state]}${end - at}`;
    at = end;
  }
  return text;
}

/** The state of a subjob; undefined: the array has no such index. */
export function subjobState({ range, states }: Subjobs, index: number): SubjobState | undefined {
  return states[positionOf(range, index)] as SubjobState | undefined;
}

/** Sets the state of a subjob. Only apply.ts may call this. */
export function setSubjobState(subjobs: Subjobs, index: number, state: SubjobState): void {
  const at = positionOf(subjobs.range, index);
  const before = subjobs.states[at] as SubjobState | undefined;
  assert(before !== undefined && before <= SUBJOB.LIVE && before !== state, `subjob ${index} goes from ${before} to ${state}`);
  subjobs.states[at] = state;
  subjobs.counts[before]--;
  subjobs.counts[state]++;
}

/** Counts that a live subjob enters a job_state (1) or leaves it (-1). */
export function noteLive({ live, requeued }: Subjobs, index: number, letter: string, by: 1 | -1): void {
  if (letter === "Q" && by === 1) requeued.add(index);
  else if (letter === "Q") requeued.delete(index);
  const count = (live.get(letter) ?? 0) + by;
  if (count === 0) live.delete(letter);
  else live.set(letter, count);
}

/** Whether all subjobs have ended. */
export const isOver = ({ counts }: Subjobs): boolean => counts[SUBJOB.QUEUED] + counts[SUBJOB.LIVE] === 0;

export function* allIndices({ range, states }: Subjobs): Generator<number> {
  for (let at = 0; at < states.length; at++) yield indexAt(range, at);
}

/** The indices of the subjobs in a state, in order. */
export function* indicesIn({ range, states }: Subjobs, state: SubjobState): Generator<number> {
  for (let at = states.indexOf(state); at >= 0; at = states.indexOf(state, at + 1)) yield indexAt(range, at);
}

/** The indices of the array that are in these ranges, each once, in order. */
export function namedIndices({ range }: Subjobs, ranges: readonly IndexRange[]): number[] {
  const named = new Set<number>();
  for (const asked of ranges) {
    // The loop goes through the smaller of the two sets of indices.
    const few = indexCount(asked) < indexCount(range) ? asked : range;
    for (let at = 0; at < indexCount(few); at++) {
      const index = indexAt(few, at);
      if (positionOf(asked, index) >= 0 && positionOf(range, index) >= 0) named.add(index);
    }
  }
  return [...named].sort((a, b) => a - b);
}

/** Whether any subjob waits to run, for the first time or again. */
export const hasWaiting = ({ counts, requeued }: Subjobs): boolean => counts[SUBJOB.QUEUED] + requeued.size > 0;

/** The text of array_indices_remaining: the indices of subjobs that wait to run, for the first time or again. */
export function remainingText({ range, states, counts, requeued }: Subjobs): string {
  const first = states.indexOf(SUBJOB.QUEUED);
  // Subjobs usually start in order. Then all subjobs from the first waiting one to the last are waiting, and the text is one range.
  if (requeued.size === 0 && first >= 0 && states.length - first === counts[SUBJOB.QUEUED])
    return indexListText([{ ...range, first: indexAt(range, first), last: indexAt(range, states.length - 1) }]);
  return indexListText(rangesOf(range, (at) => states[at] === SUBJOB.QUEUED || (requeued.size > 0 && requeued.has(indexAt(range, at)))));
}

/** The text of array_state_count. Suspended subjobs count as running. */
export function subjobCountText({ counts, live }: Subjobs): string {
  const sum = (letters: string): number => [...letters].reduce((total, letter) => total + (live.get(letter) ?? 0), 0);
  const expired = counts[SUBJOB.FINISHED] + counts[SUBJOB.FAILED] + counts[SUBJOB.DELETED];
  return `Queued:${counts[SUBJOB.QUEUED] + sum("Q")} Running:${sum("RSU")} Exiting:${sum("E")} Expired:${expired}`;
}
