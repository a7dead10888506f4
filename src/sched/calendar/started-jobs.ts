// Keeps the jobs that a cycle has started. The vnodes of these jobs matter for limits of vnodes and for the amounts left; their ends matter for bookings.
//
// A1. Jobs on hosts with bookings are entered in the calendar at once. The other jobs are entered only when they are needed there, which makes a start faster.

import type { SchedJob } from "#protocol/sched-link.ts";
import type { Candidate } from "../shapes/module.ts";
import type { Placed } from "../shapes/placed.ts";
import { holdingOfChunks } from "../shapes/running.ts";
import type { Universe } from "../shapes/universe.ts";
import { dropBeside, putBeside, runningTimes } from "./calendar.ts";
import { type Front, frontOf, standsBefore } from "./overtakers.ts";

export type StartedJobs = {
  add(candidate: Candidate, placed: Placed): void;
  /** Returns the jobs that this cycle has started on a vnode. */
  on(vnode: string): readonly SchedJob[];
  /** Enters all started jobs in the calendar, for code that must know when their amounts become free. */
  enter(): void;
  /** Takes the started jobs out of the calendar. */
  takeBack(): void;
  /** all jobs that this cycle has started */
  readonly jobs: readonly SchedJob[];
};

export function startedJobs(universe: Universe, now_s: number): StartedJobs {
  const jobs: SchedJob[] = [];
  const on = new Map<string, SchedJob[]>();
  type Start = { readonly candidate: Candidate; readonly placed: Placed };
  /** the started jobs that are not in `on` yet, and those that are not in the calendar yet */
  let [unnoted, unentered]: [Start[], Start[]] = [[], []];
  const entered: string[] = [];

  function note({ candidate, placed: { chunks } }: Start): void {
    for (const name of new Set(chunks.flat().map((piece) => piece.vnode.name))) {
      const there = on.get(name);
      if (there === undefined) on.set(name, [candidate.entry.job]);
      else there.push(candidate.entry.job);
    }
  }

  function enter({ candidate, placed: { chunks } }: Start, front: () => Front): void {
    const { job, request } = candidate.entry;
    const times = runningTimes(now_s, candidate);
    const expected = times.soft_s !== undefined && standsBefore({ ...job, stime_s: now_s }, front());
    const holding = holdingOfChunks(request.place, chunks);
    const { from_s, last_s, grace_s } = times;
    const to_s = expected ? times.to_s : last_s;
    putBeside(universe, { id: job.id, from_s, to_s, last_s, grace_s, exec_vnode: "", holding, counted: false, gone: false });
    entered.push(job.id);
  }

  /** Returns a function that returns the front of the waiting jobs, without those started so far. The front is computed when it is first needed. */
  function lookAhead(): () => Front {
    let front: Front | null = null;
    return () => (front ??= frontOf(universe, new Set(jobs.map(({ id }) => id))));
  }

  return {
    jobs,
    add(candidate, placed) {
      const { job } = candidate.entry;
      jobs.push(job);
      unnoted.push({ candidate, placed });
      // A job in a reservation is not entered: it uses amounts that the calendar shows as held by the reservation until its end.
      if (job.resv !== undefined) return;
      if (placed.moved.some(([host]) => host.outlook !== null)) enter({ candidate, placed }, lookAhead());
      else unentered.push({ candidate, placed });
    },
    on(vnode) {
      for (const start of unnoted) note(start);
      unnoted = [];
      return on.get(vnode) ?? [];
    },
    enter() {
      const front = lookAhead();
      for (const start of unentered) enter(start, front);
      unentered = [];
    },
    takeBack() {
      for (const id of entered.splice(0)) dropBeside(universe, id);
    },
  };
}
