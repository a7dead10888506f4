// The jobs of an owner on a vnode at a later time, for limits of vnodes by owner (max_user_run, max_group_run). Such vnodes share their bucket with no other.

import { arrayIdOf } from "#model/job-id.ts";
import type { SchedJob } from "#protocol/sched-link.ts";
import type { Window } from "../shapes/booking.ts";
import { jobsOn } from "../shapes/running.ts";
import type { Universe } from "../shapes/universe.ts";
import type { Vnode } from "../shapes/vnode.ts";
import type { OwnerCounts } from "../shapes/vnode-fit.ts";
import { ownerCounts } from "../shapes/vnode-fit.ts";

type Then = { readonly job: SchedJob; readonly window: Window; isOver(job: string): boolean };

/** Jobs of the job's owner on a vnode when a window begins, including those that are planned there during it. */
export function ownersThen(universe: Universe, vnode: Vnode, { job, window, isOver }: Then): OwnerCounts {
  const there = [...jobsOn(vnode)].flatMap((id) => (isOver(id) ? [] : (universe.jobs.get(id) ?? [])));
  return ownerCounts([...there, ...startedBeside(universe, vnode.name, isOver), ...plannedOn(universe, vnode.name, window)], job);
}

/** Jobs that this cycle has started on a vnode, if they are in the calendar and not over by then. */
export function startedBeside({ calendar, jobs }: Universe, vnode: string, isOver: (job: string) => boolean): SchedJob[] {
  return (calendar.besides.get(vnode) ?? []).flatMap(({ id }) => (isOver(id) ? [] : (jobs.get(id) ?? jobs.get(arrayIdOf(id) ?? "") ?? [])));
}

/** Jobs that are planned on a vnode during a window; empty without a window. */
export function plannedOn({ calendar }: Universe, vnode: string, window: Window | null): SchedJob[] {
  if (window === null || !calendar.on.has(vnode)) return [];
  const planned: SchedJob[] = [];
  for (const { job, from_s, to_s, holding } of calendar.bookings.values())
    if (job !== undefined && from_s < window.to_s && to_s > window.from_s && holding.get(vnode)?.own === true) planned.push(job);
  return planned;
}
