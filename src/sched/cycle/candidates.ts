// The jobs of a cycle as candidates: the request of each, where it may run and for how long. The next subjob represents an array (order/array-turn.ts T1).

import { subjobIndex } from "#model/job-id.ts";
import { type ArrayTurn, arrayEntryOf, newTurn, nextIndex, subjobOf, takeNext } from "../order/array-turn.ts";
import { nodeSetOf } from "../order/job-lines.ts";
import { setOfSuspended } from "../preempt/room.ts";
import { durationsOf } from "../shapes/durations.ts";
import type { JobEntry } from "../shapes/job-line.ts";
import type { Candidate } from "../shapes/module.ts";
import type { Universe } from "../shapes/universe.ts";

export type CycleCandidates = {
  /** the request of a job, and where it may run */
  of(entry: JobEntry): Candidate;
  /** a job by its id. For the id of a subjob: its array, whose next subjob then is this one */
  entryOf(id: string): JobEntry | undefined;
  /** the job has started; the next subjob of an array takes its place */
  noteStart(entry: JobEntry): void;
  /** whether more subjobs of an array wait */
  hasMore(entry: JobEntry): boolean;
  /** subjobs of the array have run or were started in this cycle */
  hasBegun(entry: JobEntry): boolean;
};

export function createCandidates(universe: Universe): CycleCandidates {
  /** arrays that were examined */
  const turns = new Map<JobEntry, ArrayTurn>();
  /** the last candidate is kept, because a waiting job does not change in a cycle and is asked for several times */
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
