// `backfill.policy: cons`: plans are kept from cycle to cycle. A job gets its start when it is first blocked. When something ends early or becomes free
// unexpectedly, plans move up in the order of jobs, each with all others in their places, and never back. The published plans are the kept ones.
//
// Q1. A kept plan is booked before any job is tried, if its place is still free at its time. Otherwise it is dropped, and the job is planned anew at its turn.
// Q2. While nothing has become free since the last cycle, a job with a later planned start is not tried, except in the periodic cycle
//     (scheduler_iteration). Then a plan behind another one moves up if that one has moved or is gone, and so does a job that now requests less.
// Q3. The fact that something became free is forgotten only by a cycle that has tried all jobs, not by one that was given up, and not by a question (partita
//     explain).

import type { Candidate, Cycle } from "./module.ts";
import type { Planner } from "./planner.ts";

export type KeptPlans = {
  /** nothing is to be done for a job in this cycle, because its plan stands. false: its plan was removed, and the job must be started or planned */
  stays(candidate: Candidate): boolean;
  readonly count: number;
  /** the cycle ends */
  end(): void;
};

/** Books the plans that were published. */
export function keepPlans(cycle: Cycle, planner: Planner): KeptPlans {
  const { universe, now_s } = cycle;
  const starts = new Map<string, number>();
  const published = [...universe.estimated].flatMap((id) => {
    const entry = universe.entries.get(id);
    const start_s = entry?.job.topjob === true ? entry.job.estimated?.start_time : undefined;
    return entry === undefined || entry.line === null || start_s === undefined ? [] : [{ entry, start_s }];
  });
  // By time, so that the forecast goes one way.
  published.sort((a, b) => a.start_s - b.start_s || a.entry.job.rank - b.entry.job.rank);
  for (const { entry, start_s } of published) if (planner.keep(cycle.candidate(entry))) starts.set(entry.job.id, start_s);
  planner.close();
  const freed = takeFreed(cycle);
  const movesUp = freed.loosened || freed.freed_s > now_s || (cycle.periodic && !cycle.probing);
  return {
    stays({ entry, array }) {
      const id = array?.job.id ?? entry.job.id;
      const start_s = starts.get(id);
      if (start_s === undefined) return false;
      if (!movesUp && start_s > now_s) return true;
      starts.delete(id);
      planner.forget(entry.job.id);
      return false;
    },
    get count() {
      return starts.size;
    },
    end() {
      if (!cycle.complete || cycle.probing) giveBack(cycle, freed);
    },
  };
}

/** Something became free that was not expected to when plans were made (calendar.ts). */
type Freed = { readonly loosened: boolean; readonly freed_s: number };

/** Reads and resets it; the next cycle asks for later events. */
function takeFreed({ universe: { calendar } }: Cycle): Freed {
  const { loosened, freed_s } = calendar;
  calendar.loosened = false;
  calendar.freed_s = Number.NEGATIVE_INFINITY;
  return { loosened, freed_s };
}

/** Q3. */
function giveBack({ universe: { calendar } }: Cycle, { loosened, freed_s }: Freed): void {
  calendar.loosened ||= loosened;
  calendar.freed_s = Math.max(calendar.freed_s, freed_s);
}
