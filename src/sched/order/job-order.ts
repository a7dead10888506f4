// The order in which a cycle looks at jobs (docs/reference/scheduler.md 4). Heaps merge the tracks of lines, so that the time depends on the jobs that
// are looked at, not on all queued jobs. With by_queue, queues follow one after the other; with round_robin, queues of equal Priority give one job each
// in turn; with neither, all jobs are in one list.
//
// Running reservations come before all queues. Within a source (one or several queues) the preemption level decides first. Within a level, jobs that
// were preempted come first, in the order of their preemption. With by_queue, express and preempted jobs of all queues come before the queues.

import type { BackfillOrder } from "#model/sched-policies.ts";
import { present } from "#support/assert.ts";
import { heapPop, heapPush, heapReplace } from "#support/heap.ts";
import type { JobEntry, JobLine, Queue, Track } from "../shapes/job-line.ts";
import type { Policy } from "../shapes/policy.ts";
import type { LevelOf } from "../shapes/ranking.ts";
import type { RankContext, Universe } from "../shapes/universe.ts";
import { type BackfillKeys, backfillKeys } from "./backfill-order.ts";
import { comesBefore, type Ranked, worth } from "./ranking.ts";
import { type Cursor, type Source, shareSource } from "./share-source.ts";
import { advanceTrack, openTrack, reorderTrack } from "./track-cursor.ts";

export type JobsInOrder = {
  /** Returns the job whose turn it is; null: none is left. It is the same job until advance(), stay() or skipToDiffering() is called. */
  next(): { readonly entry: JobEntry; readonly line: JobLine } | null;
  /** Called when the job was tried: continues with the next job of its line. */
  advance(): void;
  /**
   * Puts off the job and those behind it in its track: they follow the other jobs of their queues, in the order of backfill.order. Returns false, and does
   * nothing, if the job was put off before.
   */
  putOff(): boolean;
  /** Called when a subjob of the array has been started: the next subjob of the array may be next. */
  stay(): void;
  /** Called when the line is blocked: continues with the next job of the line whose comment differs from the agreed one. */
  skipToDiffering(): void;
  /** Leaves the jobs of this track that have not had their turn; other tracks continue. */
  skipTrack(): void;
};

/** Returns the execution queues by Priority, and those of equal Priority in the order of creation. */
export function queuesInOrder(universe: Universe): readonly Queue[] {
  universe.sorted_queues ??= [...universe.queues.values()]
    .filter((queue) => queue.execution)
    .sort((a, b) => b.priority - a.priority || a.order - b.order);
  return universe.sorted_queues;
}

/** Returns the jobs of started execution queues in their order at this moment. levels: the present preemption levels; null: they do not matter. */
export function jobsInOrder(ranks: RankContext, policy: Policy, levels: LevelOf | null = null): JobsInOrder {
  const groups = groupsOf(ranks, policy, levels);
  /** past: the jobs that had their turn. leftovers: for each blocked line, its other jobs whose comment differs, by track */
  const past = new Set<JobEntry>();
  const leftovers = new Map<JobLine, Map<Track, Ranked[]>>();
  let group = 0;
  let turn = 0;

  const current = (): Putting | null => {
    for (; group < groups.length; group++, turn = 0) {
      const sources = present(groups[group], "group");
      for (let tries = sources.length; tries > 0; tries--) {
        const source = present(sources[turn % sources.length], "source");
        if (source.best() !== undefined) return source;
        turn++;
      }
    }
    return null;
  };

  /** Moves on after the first job of the current source was tried: the next job of its track replaces it, and the next source has its turn. */
  const step = (move: (cursor: Cursor) => boolean): void => {
    const source = current();
    const cursor = source?.best();
    if (source === null || cursor === undefined) return;
    past.add(cursor.entry);
    source.moved(move(cursor));
    turn++;
  };

  const toNext = (cursor: Cursor): boolean => {
    if (cursor.jobs === null) return toRest(cursor);
    if (!advanceTrack(cursor.jobs, ranks)) return false;
    return toHead(cursor, cursor.jobs);
  };

  const toNextDiffering = (cursor: Cursor): boolean => {
    if (cursor.jobs !== null || cursor.reordered) {
      cursor.jobs = null;
      cursor.reordered = false;
      const { line } = cursor.track;
      let left = leftovers.get(line);
      if (left === undefined) leftovers.set(line, (left = differingOf(line, past, ranks)));
      cursor.rest = left.get(cursor.track) ?? [];
    }
    return toRest(cursor);
  };

  return {
    next() {
      const cursor = current()?.best();
      return cursor === undefined ? null : { entry: cursor.entry, line: cursor.track.line };
    },
    advance: () => step(toNext),
    putOff: () => current()?.putOff() ?? false,
    stay() {
      current()?.moved(true);
      turn++;
    },
    skipToDiffering: () => step(toNextDiffering),
    skipTrack: () => step(() => false),
  };
}

/** Returns, by track, the jobs of a line whose comment differs and that have not had their turn. Each list is reversed: its last job is tried first. */
function differingOf(line: JobLine, past: ReadonlySet<JobEntry>, ranks: RankContext): Map<Track, Ranked[]> {
  const tracks = new Map<Track, Ranked[]>();
  for (const entry of line.differ) {
    if (past.has(entry) || entry.strand === null) continue;
    const { track } = entry.strand;
    const ranked = { entry, value: worth(ranks, entry.job).value };
    const list = tracks.get(track);
    if (list === undefined) tracks.set(track, [ranked]);
    else list.push(ranked);
  }
  for (const list of tracks.values()) list.sort((a, b) => (comesBefore(ranks, a, b) ? 1 : -1));
  return tracks;
}

function toRest(cursor: Cursor): boolean {
  const next = cursor.rest.pop();
  return next !== undefined && toHead(cursor, next);
}

function toHead(cursor: Cursor, { entry, value }: Ranked): true {
  cursor.entry = entry;
  cursor.value = value;
  return true;
}

// --- sources

/** Returns groups of sources. The sources of a group take turns, and a group follows when the one before has no job left. */
function groupsOf(ranks: RankContext, policy: Policy, levels: LevelOf | null): Putting[][] {
  const { universe } = ranks;
  const started = queuesInOrder(universe).filter((queue) => queue.started);
  const inside = started.filter((queue) => universe.resv_queues.has(queue.name));
  const queues = inside.length === 0 ? started : started.filter((queue) => !universe.resv_queues.has(queue.name));
  return [...inside.map((queue) => [sourceOf({ ranks, levels }, [queue])]), ...groupsOfQueues({ ranks, levels }, policy, queues)];
}

type Order = { readonly ranks: RankContext; readonly levels: LevelOf | null };
type LineFilter = (line: JobLine, queue: Queue) => boolean;

function groupsOfQueues(order: Order, policy: Policy, queues: readonly Queue[]): Putting[][] {
  if (policy.round_robin) {
    const groups: Putting[][] = [];
    queues.forEach((queue, at) => {
      if (at > 0 && queues[at - 1]?.priority === queue.priority) groups.at(-1)?.push(sourceOf(order, [queue]));
      else groups.push([sourceOf(order, [queue])]);
    });
    return groups;
  }
  if (!policy.by_queue) return [[sourceOf(order, queues)]];
  const { universe } = order.ranks;
  const isFirst: LineFilter = (line, queue) =>
    line.preempted_s !== undefined || (order.levels !== null && queue.priority >= universe.preempt.queue_prio);
  const linesOf = (queue: Queue): readonly JobLine[] => [...(universe.lines.get(queue.name) ?? [])];
  if (!queues.some((queue) => linesOf(queue).some((line) => isFirst(line, queue))))
    return queues.map((queue) => [sourceOf(order, [queue])]);
  return [[sourceOf(order, queues, isFirst)], ...queues.map((queue) => [sourceOf(order, [queue], (line) => !isFirst(line, queue))])];
}

/** Returns a source with cursors on all tracks of the queues. They are made when the source is first used, with the values of that moment. */
function sourceOf(order: Order, queues: readonly Queue[], filter?: LineFilter): Putting {
  let made: Putting | null = null;
  const make = (): Putting => tiersOf(order, cursorsOf(order.ranks, queues, filter), queues);
  /** the best cursor; it stays the same until it has moved, even if its job changes the usage of shares meanwhile */
  let given: Cursor | undefined;
  return {
    best: () => (given ??= (made ??= make()).best()),
    moved(alive) {
      given = undefined;
      made?.moved(alive);
    },
    putOff() {
      given = undefined;
      return made?.putOff() ?? false;
    },
  };
}

/**
 * Returns a source in the primary order: by level, then by time of preemption. Among jobs that were preempted together,
 * jobs of the first queue come first.
 */
function tiersOf({ ranks, levels }: Order, cursors: readonly Cursor[], queues: readonly Queue[]): Putting {
  const { ranking, policy } = ranks.universe;
  const plain = (some: readonly Cursor[]): Putting => {
    const source = ranking.fair_share && ranking.formula === null ? shareSource(ranks, some) : heapSource(ranks, some);
    const { backfill_order: order } = policy;
    return order === null || order === "queue" ? withoutOrder(source) : twoOrders(ranks, source, order);
  };
  if (levels === null && cursors.every(({ track }) => track.line.preempted_s === undefined)) return plain(cursors);
  const turns = new Map(queues.map((queue, at) => [queue.name, ranks.universe.policy.by_queue ? at : 0]));
  const tiers = new Map<string, { readonly key: readonly number[]; readonly cursors: Cursor[] }>();
  for (const cursor of cursors) {
    const { preempted_s = Number.POSITIVE_INFINITY, queue } = cursor.track.line;
    const turn = preempted_s === Number.POSITIVE_INFINITY ? 0 : (turns.get(queue) ?? 0);
    const key = [-(levels?.(cursor.entry.job) ?? 0), preempted_s, turn];
    const tier = tiers.get(key.join());
    if (tier === undefined) tiers.set(key.join(), { key, cursors: [cursor] });
    else tier.cursors.push(cursor);
  }
  const sorted = [...tiers.values()].sort((a, b) => compareKeys(a.key, b.key));
  return sorted.length === 1 ? plain(cursors) : inTurn(sorted.map((tier) => plain(tier.cursors)));
}

function compareKeys(a: readonly number[], b: readonly number[]): number {
  const at = a.findIndex((value, index) => value !== b[index]);
  return at < 0 ? 0 : present(a[at], "value") < present(b[at], "value") ? -1 : 1;
}

/** Returns a source that uses up one source after the other. */
function inTurn(sources: readonly Putting[]): Putting {
  let at = 0;
  const best = (): Cursor | undefined => {
    for (; at < sources.length; at++) {
      const cursor = sources[at]?.best();
      if (cursor !== undefined) return cursor;
    }
    return undefined;
  };
  return { best, moved: (alive) => sources[at]?.moved(alive), putOff: () => sources[at]?.putOff() ?? false };
}

function cursorsOf(ranks: RankContext, queues: readonly Queue[], filter?: LineFilter): Cursor[] {
  const cursors: Cursor[] = [];
  for (const queue of queues) {
    for (const line of ranks.universe.lines.get(queue.name) ?? []) {
      if (filter?.(line, queue) === false) continue;
      for (const track of line.tracks.values()) {
        const jobs = openTrack(track, ranks);
        if (jobs !== null) cursors.push({ track, jobs, entry: jobs.entry, value: jobs.value, rest: [], key: 0, reordered: false });
      }
    }
  }
  return cursors;
}

/** A source whose jobs can be put off. */
type Putting = Source & {
  /** Puts off the best cursor. Returns false if it was put off before. */
  putOff(): boolean;
};

const withoutOrder = (source: Source): Putting => ({ ...source, putOff: () => false });

/** Returns a source that first gives the jobs of another source, and then those that were put off, in the order of backfill.order. */
function twoOrders(ranks: RankContext, first: Source, order: BackfillOrder): Putting {
  const later: Cursor[] = [];
  let heap: Cursor[] | null = null;
  const keys = backfillKeys(ranks, order);
  const before = (a: Cursor, b: Cursor): boolean => a.key < b.key || (a.key === b.key && comesBefore(ranks, a, b));
  const reorder = (): Cursor[] => {
    const made: Cursor[] = [];
    for (const cursor of later) {
      if (keys.by_job) sortByKey(ranks, cursor, keys);
      cursor.key = keys.of(cursor.entry.job);
      heapPush(made, cursor, before);
    }
    return made;
  };
  return {
    best() {
      const cursor = heap === null ? first.best() : heap[0];
      if (cursor !== undefined || heap !== null) return cursor;
      heap = reorder();
      return heap[0];
    },
    moved(alive) {
      if (heap === null) first.moved(alive);
      else if (alive) {
        const cursor = present(heap[0], "cursor");
        if (keys.by_job) cursor.key = keys.of(cursor.entry.job);
        heapReplace(heap, cursor, before);
      } else heapPop(heap, before);
    },
    putOff() {
      const cursor = heap === null ? first.best() : undefined;
      if (cursor === undefined) return false;
      later.push(cursor);
      first.moved(false);
      return true;
    },
  };
}

/** Gives the remaining jobs of a track the order of their keys. Evaluates all of them. */
function sortByKey(ranks: RankContext, cursor: Cursor, { of }: BackfillKeys): void {
  const jobs: { readonly entry: JobEntry; readonly value: number; readonly key: number }[] = [];
  do jobs.push({ entry: cursor.entry, value: cursor.value, key: of(cursor.entry.job) });
  while (cursor.jobs === null ? toRest(cursor) : advanceTrack(cursor.jobs, ranks) && toHead(cursor, cursor.jobs));
  // sort is stable, and the jobs are in their order. Reversed, because the last job of `rest` is tried first.
  cursor.rest = jobs.sort((a, b) => a.key - b.key).reverse();
  cursor.jobs = null;
  cursor.reordered = true;
  toRest(cursor);
}

/** Returns a source that is a heap in the order of jobs. If shares decide among equal jobs, the heap is made again when shares have changed. */
function heapSource(ranks: RankContext, cursors: readonly Cursor[]): Source {
  const before = (a: Cursor, b: Cursor): boolean => comesBefore(ranks, a, b);
  const { fairshare } = ranks;
  const { fair_share } = ranks.universe.ranking;
  let { version } = fairshare;
  let heap: Cursor[] = [];
  for (const cursor of cursors) heapPush(heap, cursor, before);
  return {
    best() {
      if (fair_share && version !== fairshare.version) {
        version = fairshare.version;
        const all = heap;
        heap = [];
        for (const cursor of all) {
          if (cursor.jobs !== null) {
            reorderTrack(cursor.jobs, ranks);
            toHead(cursor, cursor.jobs);
          }
          heapPush(heap, cursor, before);
        }
      }
      return heap[0];
    },
    moved(alive) {
      if (alive) heapReplace(heap, present(heap[0], "cursor"), before);
      else heapPop(heap, before);
    },
  };
}
