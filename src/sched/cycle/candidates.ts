// The jobs of a cycle as candidates: the request of each, where it may run and for how long. An array is represented by its next subjob
// (order/array-turn.ts T1).

import { subjobIndex } from "#model/job-id.ts";
import { type ArrayTurn, arrayEntryOf, newTurn, nextIndex, subjobOf, takeNext } from "../order/array-turn.ts";
import { nodeSetOf } from "../order/job-lines.ts";
import { setOfSuspended } from "../preempt/room.ts";
import { durationsOf } from "../shapes/durations.ts";
import type { JobEntry } from "../shapes/job-line.ts";
import type { Candidate } from "../shapes/module.ts";
import type { Universe } from "../shapes/universe.ts";

export type CycleCandidates = {
  /** Returns the request of a job, and where it may run. */
  of(entry: JobEntry): Candidate;
  /** Returns the job with an id. For the id of a subjob it returns the array, whose next subjob is then the given one. */
  entryOf(id: string): JobEntry | undefined;
  /** Called when the job has started. If it is an array, its next subjob then becomes the candidate. */
  noteStart(entry: JobEntry): void;
  /** Returns whether more subjobs of an array wait. */
  hasMore(entry: JobEntry): boolean;
  /** Returns whether subjobs of the array have run or were started in this cycle. */
  hasBegun(entry: JobEntry): boolean;
};

export function createCandidates(universe: Universe): CycleCandidates {
  /** the arrays that were examined, with their next subjobs */
  const turns = new Map<JobEntry, ArrayTurn>();
  /** the latest candidate, kept because it is asked for several times and does not change in a cycle */
  let last: Candidate | null = null;

  function turnOf(entry: JobEntry, array: NonNullable<JobEntry["job"]["array"]>): ArrayTurn {
    let turn = turns.get(entry);
    if (turn === undefined) turns.set(entry, (turn = newTurn(array)));
    return turn;
  }

  return {
    of(entry) {
      if (last?.entry === entry) return last;
      const { job } = entry;
      const queue = universe.queues.get(job.queue);
      const set = job.state === "S" ? setOfSuspended(universe, job) : universe.sets.get(nodeSetOf(universe, queue));
      const durations = durationsOf(universe, job);
      if (job.array === undefined) {
        const candidate = { entry, queue, set, ...durations };
        if (job.state === "Q") last = candidate;
        return candidate;
      }
      const turn = turnOf(entry, job.array);
      const index = nextIndex(turn);
      const subjob = index === null ? entry : { ...entry, job: subjobOf(job, index) };
      return { entry: subjob, queue, set, ...durations, array: { job, started: turn.started } };
    },
    entryOf(id) {
      const entry = universe.entries.get(id) ?? arrayEntryOf(universe, id);
      if (entry?.job.array !== undefined) turns.set(entry, newTurn({ ...entry.job.array, indices_remaining: String(subjobIndex(id)) }));
      return entry;
    },
    noteStart(entry) {
      const turn = turns.get(entry);
      if (turn !== undefined) takeNext(turn);
    },
    hasMore(entry) {
      const turn = turns.get(entry);
      return turn !== undefined && nextIndex(turn) !== null;
    },
    hasBegun: (entry) => entry.job.state === "B" || (turns.get(entry)?.started ?? 0) > 0,
  };
}
