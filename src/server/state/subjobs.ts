// The subjobs of an array, one byte each. A subjob that has started is a job of its own with a row. For all other
// subjobs the array holds only the state.
// The row of the array holds them as runs: `D2F97R2Q3` means two deleted subjobs, 97 finished ones, two that are jobs, and three that wait.
//
// I1. A subjob is LIVE here exactly while a job of its id is among the live jobs (core/invariants.ts).
// I2. A subjob that is over stays over.

import { type IndexRange, indexAt, indexCount, indexListText, parseArrayIndices, positionOf, rangesOf } from "#model/array-indices.ts";
import { assert, present } from "#support/assert.ts";

/** Letters of the row; the index of a letter is the byte. */
const LETTERS = "QRFXD";
export const SUBJOB = {
  /** waits, has never started */
  QUEUED: 0,
  /** a job of its own: runs, or waits to run again */
  LIVE: 1,
  /** over with Exit_status 0 */
  FINISHED: 2,
  /** over otherwise */
  FAILED: 3,
  DELETED: 4,
} as const;
export type SubjobState = (typeof SUBJOB)[keyof typeof SUBJOB];

export type Subjobs = {
  readonly range: IndexRange;
  /** SubjobState by position */
  readonly states: Uint8Array;
  /** how many are in each state */
  readonly counts: [queued: number, live: number, finished: number, failed: number, deleted: number];
  /** live ones by job_state, derived from the jobs */
  readonly live: Map<string, number>;
  /** indices of live ones that wait for another run */
  readonly requeued: Set<number>;
};

/** The largest number of subjobs, even if max_array_size is larger, because their states are in memory. */
export const SUBJOBS_MAX = 10_000_000;

/** The subjobs of a new array: all of them wait. indices: `X-Y[:Z]`, already checked. */
export function newSubjobs(indices: string): Subjobs {
  const range = parseArrayIndices(indices);
  assert(range !== null, `indices ${indices}`);
  const count = indexCount(range);
  return { range, states: new Uint8Array(count), counts: [count, 0, 0, 0, 0], live: new Map(), requeued: new Set() };
}

/** Subjobs from the runs of a row. The states of live ones are noted when their jobs are loaded (noteLive). */
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

/** The runs for a row. */
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

/** undefined: the array has no such index. */
export function subjobState({ range, states }: Subjobs, index: number): SubjobState | undefined {
  return states[positionOf(range, index)] as SubjobState | undefined;
}

/** apply.ts only. */
export function setSubjobState(subjobs: Subjobs, index: number, state: SubjobState): void {
  const at = positionOf(subjobs.range, index);
  const before = subjobs.states[at] as SubjobState | undefined;
  assert(before !== undefined && before <= SUBJOB.LIVE && before !== state, `subjob ${index} goes from ${before} to ${state}`);
  subjobs.states[at] = state;
  subjobs.counts[before]--;
  subjobs.counts[state]++;
}

/** A live subjob enters a state (1) or leaves it (-1). */
export function noteLive({ live, requeued }: Subjobs, index: number, letter: string, by: 1 | -1): void {
  if (letter === "Q" && by === 1) requeued.add(index);
  else if (letter === "Q") requeued.delete(index);
  const count = (live.get(letter) ?? 0) + by;
  if (count === 0) live.delete(letter);
  else live.set(letter, count);
}

/** Whether no subjob waits or runs. */
export const isOver = ({ counts }: Subjobs): boolean => counts[SUBJOB.QUEUED] + counts[SUBJOB.LIVE] === 0;

export function* allIndices({ range, states }: Subjobs): Generator<number> {
  for (let at = 0; at < states.length; at++) yield indexAt(range, at);
}

/** Indices in a state, in order. */
export function* indicesIn({ range, states }: Subjobs, state: SubjobState): Generator<number> {
  for (let at = states.indexOf(state); at >= 0; at = states.indexOf(state, at + 1)) yield indexAt(range, at);
}

/** The indices of the array that ranges name, each once, in order. */
export function namedIndices({ range }: Subjobs, ranges: readonly IndexRange[]): number[] {
  const named = new Set<number>();
  for (const asked of ranges) {
    // The loop is over the shorter of the two sets of indices.
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

/** array_indices_remaining: the indices that wait to run, for the first time or again. */
export function remainingText({ range, states, counts, requeued }: Subjobs): string {
  const first = states.indexOf(SUBJOB.QUEUED);
  // Subjobs usually start in order, so all indices from the first waiting one on are waiting.
  if (requeued.size === 0 && first >= 0 && states.length - first === counts[SUBJOB.QUEUED])
    return indexListText([{ ...range, first: indexAt(range, first), last: indexAt(range, states.length - 1) }]);
  return indexListText(rangesOf(range, (at) => states[at] === SUBJOB.QUEUED || (requeued.size > 0 && requeued.has(indexAt(range, at)))));
}

/** array_state_count. Suspended subjobs count as running. */
export function subjobCountText({ counts, live }: Subjobs): string {
  const sum = (letters: string): number => [...letters].reduce((total, letter) => total + (live.get(letter) ?? 0), 0);
  const expired = counts[SUBJOB.FINISHED] + counts[SUBJOB.FAILED] + counts[SUBJOB.DELETED];
  return `Queued:${counts[SUBJOB.QUEUED] + sum("Q")} Running:${sum("RSU")} Exiting:${sum("E")} Expired:${expired}`;
}
