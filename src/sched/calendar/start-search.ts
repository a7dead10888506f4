// Finds the first time at which a request fits, and the vnodes for it. The search goes forward in time from change to change and tries placement at
// each, with the vnodes as they will be then. A change is the end of a running entry or of a booking, or a bound of dedicated or prime time.
//
// T1. A request becomes possible only at a change, so the first change at which it fits is its earliest start.
// T2. Placement is tried only if there are enough copies of each chunk (place/copy-counts.ts) and nothing else forbids a start (`admits`). Times at
//     which the whole set has too little of something are skipped.
// T3. The search ends at the last change, at `until_s`, or when `keepsOn` returns false (sched_cycle_length).

import type { SchedJob, Why } from "#protocol/sched-link.ts";
import { present } from "#support/assert.ts";
import { createCopyCounts } from "../place/copy-counts.ts";
import { startedBeside } from "../place/owners-then.ts";
import { findPlace } from "../place/placement.ts";
import type { Running, Window } from "../shapes/booking.ts";
import type { PlacedChunks } from "../shapes/placed.ts";
import type { Request } from "../shapes/request.ts";
import { endOf } from "../shapes/running.ts";
import type { Universe } from "../shapes/universe.ts";
import type { NodeSet } from "../shapes/vnode.ts";
import { resvEnds } from "./calendar.ts";
import type { Forecast } from "./forecast.ts";
import { createForecast } from "./forecast.ts";

export type Wanted = {
  readonly set: NodeSet;
  readonly request: Request;
  /** the job; needed because limits of vnodes count the other jobs of its owner */
  readonly job: SchedJob;
  /** how long the job may run; it must not overlap firm bookings in that time */
  readonly most_s: number;
  /** how long after most_s the job may still have its vnodes; it must not overlap plans in that time either */
  readonly grace_s: number;
  /** true: the request belongs to a reservation */
  readonly resv?: boolean;
};

export type Walk = {
  readonly now_s: number;
  /** the first time that is tried, not before now; undefined: the first change after now */
  readonly from_s?: number;
  /** the search ends at this time */
  readonly until_s: number;
  /** further times at which something may become possible, ascending: bounds of dedicated and prime time */
  readonly bounds?: Iterable<number>;
  /** opt_backfill_fuzzy: changes within this number of seconds count as one change, at the time of the last of them */
  readonly fuzzy_s?: number;
  /** Returns why a start at the forecast's time is not possible for other reasons than vnodes; null: it is possible. */
  admits?(forecast: Forecast): Why | null;
  /**
   * a place that was found before, with ascending times. If no earlier start is found, the place is taken at the first of
   * these times at which it is still valid
   */
  readonly kept?: KeptPlace;
  /** Returns false when the search must end for lack of time. */
  keepsOn?(): boolean;
};

export type KeptPlace = {
  readonly times: Iterable<number>;
  readonly chunks: PlacedChunks;
  /** Returns whether the place is still valid. The forecast must show one of the times of the place. */
  holds(forecast: Forecast): boolean;
};
export type Start = { readonly start_s: number; readonly chunks: PlacedChunks };
/** The result if no start was found. why: the last obstacle, if one is known. late: the search ended before it had examined everything. */
export type NoStart = { readonly start_s: null; readonly why: Why | null; readonly late: boolean };

/** Finds the earliest start. The universe is afterwards as it was before. */
export function findStart(universe: Universe, wanted: Wanted, walk: Walk): Start | NoStart {
  const forecast = createForecast(universe, wanted.set, walk.now_s);
  try {
    return searchStart(universe, wanted, walk, forecast);
  } finally {
    forecast.close();
  }
}

/** Tries to place a request in a window that begins at the forecast's time. */
function findPlaceAt(universe: Universe, wanted: Wanted, forecast: Forecast): ReturnType<typeof findPlace> {
  const window = windowAt(wanted, forecast.at_s);
  const { resv = false } = wanted;
  const startedOn = (vnode: string): SchedJob[] => startedBeside(universe, vnode, forecast.isOver);
  const context = { universe, policy: universe.policy, startedOn, after: null, window, isOver: forecast.isOver, resv };
  return findPlace(context, wanted.set, wanted.request, wanted.job);
}

/** Number of changes that are examined one by one. Then the search asks from what time on the whole set has enough, and skips the changes before it. */
const STEPS_BEFORE_JUMP = 64;

/** Finds the earliest start with a forecast. It does not matter what time the forecast shows at first; afterwards it shows the start that was found. */
export function searchStart(universe: Universe, wanted: Wanted, walk: Walk, forecast: Forecast): Start | NoStart {
  const { until_s, kept } = walk;
  const counts = createCopyCounts(universe, wanted.set, wanted.request);
  const next = changesAfter(universe, walk, forecast.ends);
  const passOver = (from_s: number | null): number | null => {
    const enough_s = forecast.enoughFrom(wanted.request.totals);
    return from_s === null || enough_s <= from_s ? from_s : next(enough_s - 1);
  };
  let why: Why | null = null;
  const places = keptStarts(kept, forecast);
  let steps = 0;
  let at_s = walk.from_s ?? next(walk.now_s);
  if (forecast.knowsEnough) at_s = passOver(at_s);
  forecast.goTo(at_s ?? walk.now_s);
  counts.reset();
  forecast.listen(counts.move);
  for (; at_s !== null && at_s < until_s; at_s = next(at_s)) {
    if (++steps === STEPS_BEFORE_JUMP) {
      at_s = passOver(at_s);
      if (at_s === null || at_s >= until_s) break;
    }
    if (walk.keepsOn?.() === false) return { start_s: null, why, late: true };
    const again = places.until(at_s);
    if (again !== null) return again;
    forecast.goTo(at_s);
    if (!counts.allow(windowAt(wanted, at_s))) continue;
    const refused = walk.admits?.(forecast) ?? null;
    const found = refused === null ? findPlaceAt(universe, wanted, forecast) : { why: refused };
    if ("chunks" in found) return { start_s: at_s, chunks: found.chunks };
    ({ why } = found);
  }
  // No change is left. The kept place may still be valid at one of its remaining times.
  return places.until(until_s) ?? { start_s: null, why, late: false };
}

/**
 * Returns a function `until`. It returns the first time, up to the given one, at which the kept place is valid; null: there is none. A time that was tried once
 * is not tried again.
 */
function keptStarts(kept: KeptPlace | undefined, forecast: Forecast): { until(at_s: number): Start | null } {
  if (kept === undefined) return { until: () => null };
  const times = kept.times[Symbol.iterator]();
  let next = times.next();
  return {
    until(at_s) {
      for (; next.done !== true && next.value <= at_s; next = times.next()) {
        forecast.goTo(next.value);
        if (kept.holds(forecast)) return { start_s: next.value, chunks: kept.chunks };
      }
      return null;
    },
  };
}

/** Returns the window of a job that starts at a time and uses all its time. */
export function windowAt({ most_s, grace_s }: Pick<Wanted, "most_s" | "grace_s">, at_s: number): Window {
  return { from_s: at_s, to_s: at_s + most_s + grace_s, firm_to_s: at_s + most_s };
}

/** Returns a function that gives the next change after a time; null: there is none. The times given to it must ascend. */
function changesAfter(
  { calendar }: Universe,
  { now_s, bounds = [], fuzzy_s = 0 }: Walk,
  ends: readonly Running[],
): (after_s: number) => number | null {
  const planned = [...calendar.bookings.values()].flatMap(({ kind, to_s }) => (kind === "plan" ? [to_s] : [])).sort((a, b) => a - b);
  const reserved = resvEnds(calendar);
  const further = bounds[Symbol.iterator]();
  let [end, plan, resv, bound] = [0, 0, 0, further.next()];
  const nextOne = (after_s: number): number => {
    while (end < ends.length && endOf(present(ends[end], "run"), now_s) <= after_s) end++;
    while (plan < planned.length && present(planned[plan], "time") <= after_s) plan++;
    while (resv < reserved.length && present(reserved[resv], "time") <= after_s) resv++;
    while (bound.done !== true && bound.value <= after_s) bound = further.next();
    return Math.min(
      end < ends.length ? endOf(present(ends[end], "run"), now_s) : Number.POSITIVE_INFINITY,
      planned[plan] ?? Number.POSITIVE_INFINITY,
      reserved[resv] ?? Number.POSITIVE_INFINITY,
      bound.done === true ? Number.POSITIVE_INFINITY : bound.value,
    );
  };
  return (after_s) => {
    const first_s = nextOne(after_s);
    let at_s = first_s;
    for (let later_s = at_s; fuzzy_s > 0 && later_s <= first_s + fuzzy_s && later_s !== Number.POSITIVE_INFINITY; later_s = nextOne(at_s))
      at_s = later_s;
    return at_s === Number.POSITIVE_INFINITY ? null : at_s;
  };
}
