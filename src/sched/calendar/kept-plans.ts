// `backfill.policy: cons`: plans are kept from cycle to cycle. A job gets its planned start when it is first blocked. When something ends early or becomes free
// unexpectedly, plans move to earlier times, one after the other in the order of jobs, while all other plans stay as they are. A plan moves to a later time only
// if it cannot be kept (Q1, Q4). The kept plans are those that were published.
//
// Q1. A kept plan is booked before any job is tried, if its place is still free at its time. Otherwise it is dropped, and the job is planned anew when its
//     turn in the cycle comes.
// Q2. A job whose planned start lies in the future is tried only if something has become free since the last cycle, if its plan is late (Q4), or in the
//     periodic cycle (scheduler_iteration). In that cycle a plan moves to an earlier time if a plan before it has moved or is gone, or if its job now requests less.
// Q3. Only a cycle that has tried all jobs forgets what became free. A cycle that was given up, or that only answers `partita explain`, leaves it to the next
//     cycle.
// Q4. If a running job leaves its vnodes later than expected, a plan for these vnodes is booked from that later end on. The plans of later jobs on these
//     vnodes are booked after it, so that they cannot delay it further. When the turn of its job comes, the late plan is made anew.

import type { Candidate, Cycle } from "../shapes/module.ts";
import { meet } from "../shapes/running.ts";
import { hasLimits } from "./ahead.ts";
import { waitingOrder } from "./overtakers.ts";
import type { KeptPlan, Planner } from "./planner.ts";

export type KeptPlans = {
  /**
   * Returns true if nothing is to be done for a job in this cycle, because its plan stays valid. Returns false if it had no
   * plan or its plan was removed: the job must be started or planned.
   */
  stays(candidate: Candidate): boolean;
  readonly count: number;
  /** Called at the end of the cycle. If the cycle has not tried all jobs, lets the next one see what became free (Q3). */
  end(): void;
};

/** A job with a published plan, and the published start. */
type Published = { readonly id: string; readonly candidate: Candidate; readonly start_s: number };
/** A plan that is booked. late: it is booked for a later time than the published one. */
type Kept = Published & KeptPlan & { readonly late: boolean };

/** Books the published plans. */
export function keepPlans(cycle: Cycle, planner: Planner): KeptPlans {
  const { now_s } = cycle;
  const kept = new Map<string, Kept>();
  const keep = (one: Published, whenFree: boolean): boolean => {
    const plan = planner.keep(one.candidate, whenFree);
    if (plan === null) return false;
    kept.set(one.id, { ...one, ...plan, late: plan.from_s > Math.max(now_s, one.start_s) });
    return true;
  };
  const gone = publishedPlans(cycle).filter((one) => !keep(one, false));
  keepLate(cycle, gone, { kept, planner, keep });
  planner.close();
  const freed = takeFreed(cycle);
  const movesUp = freed.loosened || freed.freed_s > now_s || (cycle.periodic && !cycle.probing);
  return {
    stays({ entry, array }) {
      const id = array?.job.id ?? entry.job.id;
      const plan = kept.get(id);
      if (plan === undefined) return false;
      if (!movesUp && !plan.late && plan.start_s > now_s) return true;
      kept.delete(id);
      planner.forget(entry.job.id);
      return false;
    },
    get count() {
      return kept.size;
    },
    end() {
      if (!cycle.complete || cycle.probing) giveBack(cycle, freed);
    },
  };
}

/** Returns the published plans by time, so that the forecast moves in one direction. */
function publishedPlans(cycle: Cycle): Published[] {
  const { universe } = cycle;
  const published = [...universe.estimated].flatMap((id) => {
    const entry = universe.entries.get(id);
    const start_s = entry?.job.topjob === true ? entry.job.estimated?.start_time : undefined;
    return entry === undefined || entry.line === null || start_s === undefined
      ? []
      : [{ id, candidate: cycle.candidate(entry), start_s, entry }];
  });
  return published.sort((a, b) => a.start_s - b.start_s || a.entry.job.rank - b.entry.job.rank);
}

/** Largest number of late plans that one cycle books for a later time. The jobs of further late plans are planned anew. */
const LATE_PLANS = 100;
/**
 * Largest number of plans of later jobs that one cycle books again because of late plans. To book one again takes time in proportion to the number of all
 * plans.
 */
const REBOOKED_PLANS = 500;

type Keeping = { readonly kept: Map<string, Kept>; readonly planner: Planner; keep(one: Published, whenFree: boolean): boolean };

/** Books late plans for a later time (Q4). gone: the plans whose vnodes are not free at the published time. */
function keepLate(cycle: Cycle, gone: readonly Published[], { kept, planner, keep }: Keeping): void {
  const { universe } = cycle;
  const order = gone.length === 0 ? null : waitingOrder(universe);
  if (order === null) return;
  const compare = (a: Published, b: Published): number => order(universe.entries.get(a.id)?.job, universe.entries.get(b.id)?.job);
  const late = [...gone].sort(compare);
  // With run limits, plans on any vnodes may be in each other's way.
  const limited = hasLimits(universe);
  let left = REBOOKED_PLANS;
  for (let count = 0; count < LATE_PLANS; count++) {
    const first = late.shift();
    if (first === undefined || !cycle.keepsOn()) return;
    const place = planner.promisedPlace(first.candidate);
    if (place === null) continue;
    const behind = [...kept.values()].filter(
      (other) => other.to_s > first.start_s && compare(first, other) < 0 && (limited || meet(other.holding, place)),
    );
    left -= behind.length;
    if (left < 0) return;
    // Sorted by time, so that the forecast moves in one direction.
    behind.sort((a, b) => a.start_s - b.start_s);
    for (const other of behind) {
      kept.delete(other.id);
      planner.forget(other.candidate.entry.job.id);
    }
    keep(first, true);
    late.push(...behind.filter((other) => !keep(other, false)));
    late.sort(compare);
  }
}

/** Whether something became free that was not expected to become free when the plans were made (calendar.ts). */
type Freed = { readonly loosened: boolean; readonly freed_s: number };

/** Reads from the calendar what became free, and resets it there, so that the next cycle sees only what happens from now on. */
function takeFreed({ universe: { calendar } }: Cycle): Freed {
  const { loosened, freed_s } = calendar;
  calendar.loosened = false;
  calendar.freed_s = Number.NEGATIVE_INFINITY;
  return { loosened, freed_s };
}

/** Writes back to the calendar what became free, so that the next cycle sees it too (Q3). */
function giveBack({ universe: { calendar } }: Cycle, { loosened, freed_s }: Freed): void {
  calendar.loosened ||= loosened;
  calendar.freed_s = Math.max(calendar.freed_s, freed_s);
}
