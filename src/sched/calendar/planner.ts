// The plans of one cycle. plan() gives a blocked job the earliest start that running entries, bookings and limits allow, and books what
// the job needs from that time on.
//
// B1. Plans are made anew in every cycle, in the order of jobs. A published start stays as long as the planned vnodes are
//     free at that time and no earlier start is found. If a running job leaves these vnodes late, the start moves to the end
//     of that job, even if opt_backfill_fuzzy joins that end with later changes. A plan therefore moves to a later time only
//     if a job ran longer than expected, a vnode went away, or a job earlier in the order took the vnodes.
// B2. No job that this cycle starts is in the way of a plan: the calendar keeps the planned vnodes free (placement's
//     window), and moments keep the limits (ahead.ts).
// B4. Between open() and close() the sets show later times, and no job is started. takeBack() undoes everything.

import { placedText } from "../place/placement.ts";
import type { Holding, Window } from "../shapes/booking.ts";
import { JOB_INFINITY_S, shortestOf } from "../shapes/durations.ts";
import type { JobEntry, Queue } from "../shapes/job-line.ts";
import type { Candidate, Cycle } from "../shapes/module.ts";
import { endOf, holdingOf, holdingOfChunks, meet } from "../shapes/running.ts";
import type { Universe } from "../shapes/universe.ts";
import type { NodeSet } from "../shapes/vnode.ts";
import type { Moment } from "./ahead.ts";
import { checkMoments, createAhead, noteMoments } from "./ahead.ts";
import { book, unbook } from "./calendar.ts";
import type { Forecast } from "./forecast.ts";
import { createForecast } from "./forecast.ts";
import { isPlaceFree } from "./kept-place.ts";
import type { Published } from "./published-place.ts";
import { publishedPlace } from "./published-place.ts";
import type { NoStart, Start, Walk, Wanted } from "./start-search.ts";
import { searchStart, windowAt } from "./start-search.ts";
import { timeBounds } from "./time-bounds.ts";

/** Longest time until a start. A start that is further away is not published as an estimate. */
const ESTIMATE_S_END = JOB_INFINITY_S + 1;

export type Plan = { readonly start_s: number; readonly exec_vnode: string };

export type KeptPlan = { readonly from_s: number; readonly to_s: number; readonly holding: Holding };

export type Planner = {
  readonly moments: readonly Moment[];
  /** Called when the cycle has started a job: counts it at the moments (ahead.ts A2) at which it will still run. */
  started(candidate: Candidate): void;
  /** Plans a job. From then until close(), the node sets show vnodes as they will be at a later time. */
  plan(candidate: Candidate): Plan | NoStart;
  /**
   * Books the published place of a job for its published time or, with whenFree, for the first of some later times at which
   * the place is free. Returns null if no such time was found. The sets show other times until close(), as with plan().
   */
  keep(candidate: Candidate, whenFree: boolean): KeptPlan | null;
  /** Returns the published place of a job; null: there is none. */
  promisedPlace(candidate: Candidate): Holding | null;
  /** Removes the plan of a job. */
  forget(job: string): void;
  /** Makes the sets show the present again. */
  close(): void;
  /** Removes all plans. Must be called after close(). */
  takeBack(): void;
};

export function createPlanner(cycle: Cycle): Planner {
  const { universe, now_s } = cycle;
  const moments: Moment[] = [];
  const forecasts = new Map<NodeSet, Forecast>();
  const booked = new Set<string>();

  function forecastOf(set: NodeSet): Forecast {
    let forecast = forecasts.get(set);
    if (forecast === undefined) forecasts.set(set, (forecast = createForecast(universe, set, now_s)));
    return forecast;
  }

  const idOf = (job: string): string => `plan of ${job}`;

  function enter({ job }: JobEntry, { from_s, to_s, firm_to_s, holding, moment }: Entered): void {
    book(universe, { id: idOf(job.id), kind: "plan", from_s, to_s, firm_to_s, holding, job });
    booked.add(idOf(job.id));
    noteMoments(moments, job, { from_s, to_s });
    moments.push(moment);
  }

  return {
    moments,
    started: (candidate) => noteMoments(moments, candidate.entry.job, windowAt(candidate, now_s)),
    plan(whole) {
      cycle.enterStarted();
      const candidate = shortened(universe, whole);
      const { request } = candidate.entry;
      const wanted = wantedOf(candidate, candidate.set as NodeSet);
      const found = search(cycle, moments, { candidate, wanted, forecast: forecastOf(wanted.set) });
      if (found.start_s === null) return found;
      const { start_s, chunks, moment } = found;
      const { holding, exec_vnode } = found.published ?? {
        holding: holdingOfChunks(request.place, chunks),
        exec_vnode: placedText(universe, chunks),
      };
      enter(candidate.entry, { ...windowAt(wanted, start_s), holding, moment });
      return { start_s, exec_vnode };
    },
    keep(whole, whenFree) {
      const candidate = shortened(universe, whole);
      const asked = promisedTo(universe, candidate);
      if (asked === null) return null;
      const { published, wanted } = asked;
      const forecast = forecastOf(wanted.set);
      for (const start_s of timesFor(universe, forecast, published, now_s)) {
        const moment = stillHolds(cycle, moments, { candidate, wanted, forecast }, { published, start_s });
        if (moment !== null) {
          const plan = { ...windowAt(wanted, start_s), holding: published.holding };
          enter(candidate.entry, { ...plan, moment });
          return plan;
        }
        if (!whenFree) break;
      }
      return null;
    },
    promisedPlace: (whole) => promisedTo(universe, shortened(universe, whole))?.published.holding ?? null,
    forget(job) {
      const at = moments.findIndex((moment) => moment.job.id === job);
      const moment = moments[at];
      if (moment === undefined) return;
      moments.splice(at, 1);
      noteMoments(moments, moment.job, moment, -1);
      unbook(universe, idOf(job));
      booked.delete(idOf(job));
    },
    close() {
      for (const forecast of forecasts.values()) forecast.close();
      forecasts.clear();
    },
    takeBack() {
      unbook(universe, ...booked);
      booked.clear();
    },
  };
}

function wantedOf({ entry: { request, job }, most_s, grace_s }: Candidate, set: NodeSet): Wanted {
  return { set, request, job, most_s, grace_s };
}

/** Returns the candidate with the shortest time of a shrink-to-fit job: it is planned with that time, and gets more time if there is room when it starts. */
function shortened(universe: Universe, candidate: Candidate): Candidate {
  const min_s = shortestOf(universe.space, candidate.entry.job);
  return min_s === null ? candidate : { ...candidate, expected_s: min_s, most_s: min_s };
}

type Entered = Window & { readonly holding: Holding; readonly moment: Moment };
type Task = { readonly candidate: Candidate; readonly wanted: Wanted; readonly forecast: Forecast };
type Found = Start & { readonly moment: Moment; readonly published: Published | null };

function search(cycle: Cycle, moments: readonly Moment[], { candidate, wanted, forecast }: Task): Found | NoStart {
  const { universe, now_s, book: policies } = cycle;
  const { job } = candidate.entry;
  const published = publishedPlace(universe, candidate.array?.job ?? job, wanted);
  const ahead = createAhead(cycle, moments);
  const admits = (then: Forecast) => ahead.admits(candidate, then) ?? checkMoments(cycle, moments, candidate, windowAt(wanted, then.at_s));
  const kept =
    published === null
      ? null
      : {
          times: after(timesFor(universe, forecast, published, now_s), now_s),
          chunks: published.chunks,
          holds: (then: Forecast) =>
            admits(then) === null && isPlaceFree(universe, wanted, published, { window: windowAt(wanted, then.at_s), isOver: then.isOver }),
        };
  const walk: Walk = {
    now_s,
    until_s: now_s + ESTIMATE_S_END,
    bounds: timeBounds(policies, now_s, dependsOnPrime(cycle, candidate.queue)),
    fuzzy_s: fuzzyOf(cycle),
    admits,
    keepsOn: () => cycle.keepsOn(),
    ...(kept === null ? {} : { kept }),
  };
  try {
    const found = searchStart(universe, wanted, walk, forecast);
    if (found.start_s === null) return found;
    const moment = ahead.moment({ job, ...windowAt(wanted, found.start_s) }, forecast);
    return { ...found, moment, published: found.chunks === published?.chunks ? published : null };
  } finally {
    ahead.close();
  }
}

type Asked = { readonly published: Published; readonly wanted: Wanted };

/** Returns the published start and place of a job; null: nothing is published, or the place no longer satisfies the request. */
function promisedTo(universe: Universe, candidate: Candidate): Asked | null {
  const { entry, array, set } = candidate;
  if (set === undefined) return null;
  const wanted = wantedOf(candidate, set);
  const published = publishedPlace(universe, array?.job ?? entry.job, wanted);
  return published === null ? null : { published, wanted };
}

/** If a promised start is not possible, at most this many ends of running jobs on the promised vnodes are tried as later starts. */
const LATE_ENDS = 4;

/** Yields times at which a promised place may be free: the promised start (a due job keeps its place until its turn), then later ends of running jobs there. */
function* timesFor({ space }: Universe, { ends }: Forecast, { start_s, holding }: Published, now_s: number): Iterable<number> {
  let last_s = Math.max(now_s, start_s);
  yield last_s;
  let tried = 0;
  for (const running of ends) {
    const end_s = endOf(running, now_s);
    if (end_s <= last_s || !meet(holdingOf(space, running), holding)) continue;
    if (tried++ === LATE_ENDS) return;
    last_s = end_s;
    yield end_s;
  }
}

function* after(times: Iterable<number>, at_s: number): Iterable<number> {
  for (const time_s of times) if (time_s > at_s) yield time_s;
}

type Promised = { readonly published: Published; readonly start_s: number };

/** Returns the moment (ahead.ts A2) of a plan that begins at start_s at the published place, if the job can start there at that time; null: it cannot. */
function stillHolds(cycle: Cycle, moments: readonly Moment[], { candidate, wanted, forecast }: Task, promised: Promised): Moment | null {
  const { published, start_s } = promised;
  const window = windowAt(wanted, start_s);
  const ahead = createAhead(cycle, moments);
  try {
    forecast.goTo(start_s);
    const why = ahead.admits(candidate, forecast) ?? checkMoments(cycle, moments, candidate, window);
    if (why !== null || !isPlaceFree(cycle.universe, wanted, published, { window, isOver: forecast.isOver })) return null;
    return ahead.moment({ job: candidate.entry.job, ...window }, forecast);
  } finally {
    ahead.close();
  }
}

/** Returns whether jobs of a queue depend on prime time. */
function dependsOnPrime({ book: { prime, non_prime }, policy }: Cycle, queue: Queue | undefined): boolean {
  if (prime.backfill_prime || non_prime.backfill_prime) return true;
  return [policy.primetime_prefix, policy.nonprimetime_prefix].some((prefix) => prefix !== "" && queue?.name.startsWith(prefix) === true);
}

const FUZZY_S: Readonly<Record<string, number>> = { off: 0, low: 60, medium: 3600, high: 43_200 };

/** Returns opt_backfill_fuzzy in seconds. Its value is a word or a number of seconds. */
function fuzzyOf({ universe }: Cycle): number {
  const text = String(universe.sched.attrs["opt_backfill_fuzzy"] ?? "low");
  return FUZZY_S[text] ?? (/^[0-9]+$/.test(text) ? Number(text) : (FUZZY_S["low"] as number));
}
