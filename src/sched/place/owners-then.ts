// The jobs of an owner on a vnode at a later time, for limits of vnodes by owner (max_user_run, max_group_run). Vnodes with such limits share their bucket
// with no other vnode.

import { arrayIdOf } from "#model/job-id.ts";
import type { SchedJob } from "#protocol/sched-link.ts";
import type { Window } from "../shapes/booking.ts";
import { jobsOn } from "../shapes/running.ts";
import type { Universe } from "../shapes/universe.ts";
import type { Vnode } from "../shapes/vnode.ts";
import type { OwnerCounts } from "../shapes/vnode-fit.ts";
import { ownerCounts } from "../shapes/vnode-fit.ts";

type Then = { readonly job: SchedJob; readonly window: Window; isOver(job: string): boolean };

/** Counts the jobs of the job's owner that will be on a vnode when a window begins, and those that are planned there during the window. */
export function ownersThen(universe: Universe, vnode: Vnode, { job, window, isOver }: Then): OwnerCounts {
  const there = [...jobsOn(vnode)].flatMap((id) => (isOver(id) ? [] : (universe.jobs.get(id) ?? [])));
  return ownerCounts([...there, ...startedBeside(universe, vnode.name, isOver), ...plannedOn(universe, vnode.name, window)], job);
}

/** Returns the jobs that this cycle has started on a vnode, if they are in the calendar. Leaves out the jobs that will have ended (isOver). */
export function startedBeside({ calendar, jobs }: Universe, vnode: string, isOver: (job: string) => boolean): SchedJob[] {
  return (calendar.besides.get(vnode) ?? []).flatMap(({ id }) => (isOver(id) ? [] : (jobs.get(id) ?? jobs.get(arrayIdOf(id) ?? "") ?? [])));
}

/** Returns the jobs that are planned on a vnode during a window; without a window, none. */
export function plannedOn({ calendar }: Universe, vnode: string, window: Window | null): SchedJob[] {
  if (window === null || !calendar.on.has(vnode)) return [];
  const planned: SchedJob[] = [];
  for (const { job, from_s, to_s, holding } of calendar.bookings.values())
    if (job !== undefined && from_s < window.to_s && to_s > window.from_s && holding.get(vnode)?.own === true) planned.push(job);
  return planned;
}
