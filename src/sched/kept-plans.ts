// `backfill.policy: cons`: plans are kept from cycle to cycle. A job is given its start when it is first blocked; when something ends early or becomes free
// otherwise, plans move up in the order of jobs, each with all others where they are, never back. What is kept is what was published.
//
// Q1. A kept plan is booked before any job is looked at, if its place is still free at its time; else it is gone and the job planned anew when its turn comes.
// Q2. While nothing has become free since the last cycle, a job whose planned start is to come is not looked at, but in the periodic cycle
//     (scheduler_iteration): a plan that stood behind another one moves up then when that one has moved up or is gone, and so does a job that now asks for less.
// Q3. What has become free is forgotten only by a cycle that has looked at all jobs: not by one that was given up, and not by a question (partita explain).

import type { Candidate, Cycle } from "./module.ts";
import type { Planner } from "./planner.ts";

export type KeptPlans = {
  /** nothing is to be done for a job in this cycle: its plan stands. false: its plan was taken off, it is to be started or planned */
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

/** What has become free that was not expected to be when plans were made (calendar.ts). */
type Freed = { readonly loosened: boolean; readonly freed_s: number };

/** Takes it; the next cycle asks for what comes then. */
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
