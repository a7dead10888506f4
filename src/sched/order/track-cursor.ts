// The jobs of a track, best first, as they are during a cycle. The strands of the track are merged by the present values of their next jobs.
//
// Values change slowly (eligible_time grows), but an upper bound for the values of a strand until a later time is known
// (src/model/formula/formula-bounds.ts). Strands are kept in a heap by that bound, which stays valid for many cycles. A cycle evaluates the formula only for
// strands whose bound is at least as high as the best value found so far.
//
// T1. A cursor gives all jobs of its track above the threshold, in the order of comesBefore.
// T2. Bounds are computed again after BOUNDS_S seconds, or when shares or priorities of queues have changed. A cycle leaves heap and strands as they were.

import { present } from "#support/assert.ts";
import { heapPop, heapPush, heapReplace } from "#support/heap.ts";
import { firstPlace } from "#support/search.ts";
import type { JobEntry, Strand, StrandBound, Track } from "../shapes/job-line.ts";
import type { RankContext } from "../shapes/universe.ts";
import { comesBefore, type Ranked, worth, worthUntil } from "./ranking.ts";

/** How many seconds a bound stays valid. The longer, the less often bounds are computed; the shorter, the closer they are to the values. */
const BOUNDS_S = 64;

/** A position in a strand: its next job and the value of that job. */
type Head = { readonly strand: Strand; at: number; entry: JobEntry; value: number };
export type TrackCursor = {
  readonly track: Track;
  /** the job whose turn it is, and its value */
  entry: JobEntry;
  value: number;
  /** the positions in strands that were evaluated so far, best first; it is the turn of the first one */
  readonly heads: Head[];
  /** the bounds to examine next, as indexes in the heap, best first. When an index has been examined, the indexes of its children replace it here */
  readonly frontier: number[];
};

/** Returns a cursor at the first job of a track; null: the track has no job above the threshold. */
export function openTrack(track: Track, ranks: RankContext): TrackCursor | null {
  const heads: Head[] = [];
  const frontier: number[] = [];
  if (track.strands.size === 1) {
    for (const strand of track.strands.values()) addHead(heads, strand, 0, ranks);
  } else {
    keepBounds(track, ranks);
    if (track.bounds.length > 0) frontier.push(0);
    lookAhead(track, heads, frontier, ranks);
  }
  const [best] = heads;
  return best === undefined ? null : { track, entry: best.entry, value: best.value, heads, frontier };
}

/** Moves on to the next job. Returns false if there is none. */
export function advanceTrack(cursor: TrackCursor, ranks: RankContext): boolean {
  const { track, heads, frontier } = cursor;
  const less = (a: Ranked, b: Ranked): boolean => comesBefore(ranks, a, b);
  const head = present(heads[0], "head");
  const next = nextMember(head.strand, head.at + 1);
  if (next < 0) heapPop(heads, less);
  else {
    head.at = next;
    head.entry = present(head.strand.members[next], "member");
    head.value = worth(ranks, head.entry.job).value;
    heapReplace(heads, head, less);
  }
  if (frontier.length > 0) lookAhead(track, heads, frontier, ranks);
  const [best] = heads;
  if (best === undefined) return false;
  cursor.entry = best.entry;
  cursor.value = best.value;
  return true;
}

/** Orders the positions again after shares have changed. Values stay those of the beginning of the cycle, but jobs with equal values may change their order. */
export function reorderTrack(cursor: TrackCursor, ranks: RankContext): void {
  if (cursor.heads.length < 2) return;
  const heads = cursor.heads.splice(0);
  for (const head of heads) heapPush(cursor.heads, head, (a, b) => comesBefore(ranks, a, b));
  const best = present(cursor.heads[0], "head");
  cursor.entry = best.entry;
  cursor.value = best.value;
}

function addHead(heads: Head[], strand: Strand, from: number, ranks: RankContext): void {
  const at = nextMember(strand, from);
  if (at < 0) return;
  const entry = present(strand.members[at], "member");
  heapPush(heads, { strand, at, entry, value: worth(ranks, entry.job).value }, (a, b) => comesBefore(ranks, a, b));
}

/** Returns the position of the next job that still exists and is above the threshold; -1: none. Jobs at or below the threshold are at the end. */
function nextMember({ members }: Strand, from: number): number {
  for (let at = from; at < members.length; at++) {
    const entry = present(members[at], "member");
    if (entry.under && !entry.gone) return -1;
    if (!entry.gone) return at;
  }
  return -1;
}

/** Evaluates further strands as long as one of them might have a value that is as high as the best value so far. */
function lookAhead({ bounds }: Track, heads: Head[], frontier: number[], ranks: RankContext): void {
  const less = (a: number, b: number): boolean => present(bounds[a], "bound").high > present(bounds[b], "bound").high;
  for (;;) {
    const [at] = frontier;
    if (at === undefined) return;
    const bound = present(bounds[at], "bound");
    const [best] = heads;
    if (best !== undefined && bound.high < best.value) return;
    heapPop(frontier, less);
    for (const child of [2 * at + 1, 2 * at + 2]) if (child < bounds.length) heapPush(frontier, child, less);
    if (bound.strand.bound === bound) addHead(heads, bound.strand, 0, ranks);
  }
}

// --- bounds of strands

const higher = (a: StrandBound, b: StrandBound): boolean => a.high > b.high;

function keepBounds(track: Track, ranks: RankContext): void {
  renewVersion(track, ranks);
  if (ranks.now_s >= track.bounds_until_s) {
    track.bounds_until_s = ranks.now_s + BOUNDS_S;
    track.bounds = [];
    track.fresh.clear();
    for (const strand of track.strands.values()) track.fresh.add(strand);
  } else if (track.bounds.length > 2 * track.strands.size + BOUNDS_S) {
    track.bounds = [...track.strands.values()].flatMap(({ bound }) => bound ?? []).sort((a, b) => b.high - a.high);
  }
  for (const strand of track.fresh) {
    const at = strand.members.findIndex((entry) => !entry.gone);
    const bound = { strand, high: worthUntil(ranks, present(strand.members[at], "member").job, track.bounds_until_s).high };
    strand.bound = bound;
    heapPush(track.bounds, bound, higher);
  }
  track.fresh.clear();
}

/** Drops the bounds if they were computed with other shares or priorities of queues. */
function renewVersion(track: Track, { universe, fairshare }: RankContext): void {
  const version = universe.ranking_version + (universe.ranking.entity === null ? 0 : fairshare.usage_version);
  if (track.version === version) return;
  track.version = version;
  track.bounds_until_s = 0;
  for (const strand of track.strands.values()) strand.settled_until_s = 0;
}

// --- the threshold

/** Computes again which jobs are at or below job_sort_formula_threshold. moved: called for each job whose value has crossed the threshold. */
export function settleTrack(track: Track, threshold: number, ranks: RankContext, moved: (entry: JobEntry) => void): void {
  renewVersion(track, ranks);
  for (const strand of track.strands.values()) {
    if (strand.settled_until_s <= ranks.now_s) settleStrand(strand, threshold, ranks, moved);
  }
}

function settleStrand(strand: Strand, threshold: number, ranks: RankContext, moved: (entry: JobEntry) => void): void {
  const members = strand.members.filter((entry) => !entry.gone);
  const low = firstPlace(members, ({ job }) => worth(ranks, job).value <= threshold);
  members.forEach((entry, at) => {
    if (entry.under === at >= low) return;
    entry.under = at >= low;
    moved(entry);
  });
  const until_s = ranks.now_s + BOUNDS_S;
  const [above, under] = [members[low - 1], members[low]];
  const stays =
    (above === undefined || worthUntil(ranks, above.job, until_s).low > threshold) &&
    (under === undefined || worthUntil(ranks, under.job, until_s).high <= threshold);
  strand.settled_until_s = stays ? until_s : ranks.now_s;
}
