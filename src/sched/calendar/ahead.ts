// Checks a job as if a cycle ran at a later time. Run limits, and resources of queue and server, are then counted without
// the jobs that will have ended by that time, and with the planned jobs that will run at that time.
//
// A1. close() restores the counts of the universe.
// A2. A moment is the time at which a planned job starts, with the counts of limits at that time. The counts also include
//     every job that is started or planned after this plan was made and will still run at that time. A job may start only if
//     the limits also hold at each moment at which it would still run. Otherwise the planned job would have to start later.

import { arrayIdOf } from "#model/job-id.ts";
import type { SchedJob, Why } from "#protocol/sched-link.ts";
import { count } from "../order/run-count.ts";
import type { Window } from "../shapes/booking.ts";
import { primeStatus } from "../shapes/holidays.ts";
import { countJob } from "../shapes/limits.ts";
import type { Candidate, Cycle, Stage } from "../shapes/module.ts";
import { amountOf } from "../shapes/resource-space.ts";
import type { Universe } from "../shapes/universe.ts";
import type { Forecast } from "./forecast.ts";

/** A job that is planned, with the begin and end of its booking in the calendar. */
export type Planned = { readonly job: SchedJob; readonly from_s: number; readonly to_s: number };
export type Moment = Planned & {
  /** the cycle as it would be at that time; null: there is no limit on amounts or numbers of jobs */
  readonly view: View | null;
};
type View = Cycle & { readonly server_taken: Map<string, number> };

export type Ahead = {
  /** Returns why a job may not start at the forecast's time, without regard to vnodes; null: it may. The times of successive calls must ascend. */
  admits(candidate: Candidate, forecast: Forecast): Why | null;
  /** Returns the counts that limits use at the forecast's time, with a planned job that starts then. */
  moment(planned: Planned, forecast: Forecast): Moment;
  close(): void;
};

/** Returns whether jobs are limited by anything except vnodes, time and order. */
export function hasLimits(universe: Universe): boolean {
  const { limits, server_available, queues } = universe;
  if (limits.run.size > 0 || limits.resources.size > 0 || server_available.size > 0) return true;
  for (const queue of queues.values())
    if (queue.limits.run.size > 0 || queue.limits.resources.size > 0 || queue.available.size > 0) return true;
  return false;
}

/** Creates the checks at later times. plans: the plans made so far. */
export function createAhead(cycle: Cycle, plans: readonly Planned[]): Ahead {
  const { universe, book } = cycle;
  const limited = hasLimits(universe);
  const server_taken = new Map(cycle.server_taken);
  let prime = cycle.prime;
  let over = 0;
  const ended: SchedJob[] = [];
  const running = new Set<Planned>();

  const take = (job: SchedJob, sign: 1 | -1): void => {
    count(universe, job, sign);
    takeFromServer(universe, server_taken, job, sign);
  };

  /** Changes the counts to the counts at the forecast's time. */
  function follow(forecast: Forecast): void {
    if (!limited) return;
    for (; over < forecast.over; over++) {
      const id = forecast.ends[over]?.id ?? "";
      // A subjob that this cycle has started is known only through its array.
      const job = universe.jobs.get(id) ?? universe.jobs.get(arrayIdOf(id) ?? "");
      if (job === undefined) continue;
      take(job, -1);
      ended.push(job);
    }
    for (const plan of plans) {
      const runs = plan.from_s <= forecast.at_s && forecast.at_s < plan.to_s;
      if (runs === running.has(plan)) continue;
      take(plan.job, runs ? 1 : -1);
      if (runs) running.add(plan);
      else running.delete(plan);
    }
  }

  function at(now_s: number): View {
    if (prime.until_s !== null && now_s >= prime.until_s) prime = primeStatus(book.holidays, book.local, now_s);
    const policy = prime === cycle.prime ? cycle.policy : prime.prime ? book.prime : book.non_prime;
    return { ...viewOf(cycle), universe, policy, prime, now_s, server_taken };
  }

  return {
    admits(candidate, forecast) {
      follow(forecast);
      return cycle.check(at(forecast.at_s), candidate);
    },
    moment(planned, forecast) {
      if (!limited) return { ...planned, view: null };
      follow(forecast);
      const usage = new Map([...universe.usage].map(([scope, table]) => [scope, cloneTable(table)]));
      const view: View = { ...at(forecast.at_s), universe: { ...universe, usage }, server_taken: new Map(server_taken) };
      const moment = { ...planned, view };
      countInto(moment, planned.job);
      return moment;
    },
    close() {
      for (const job of ended) count(universe, job, 1);
      for (const { job } of running) count(universe, job, -1);
    },
  };
}

const cloneTable = (table: ReadonlyMap<string, { readonly jobs: number; readonly amounts: readonly number[] }>) =>
  new Map([...table].map(([entity, { jobs, amounts }]) => [entity, { jobs, amounts: [...amounts] }]));

/** Returns the properties of a cycle that do not depend on the time. */
function viewOf(cycle: Cycle): Omit<Cycle, "universe" | "policy" | "prime" | "now_s" | "server_taken"> {
  return {
    book: cycle.book,
    qrun: cycle.qrun,
    periodic: cycle.periodic,
    probing: cycle.probing,
    fairshare: cycle.fairshare,
    ranks: cycle.ranks,
    complete: cycle.complete,
    log: (record) => cycle.log(record),
    decide: (decision) => cycle.decide(decision),
    check: (view, candidate, stages) => cycle.check(view, candidate, stages),
    planned: (candidate, start_s) => cycle.planned(candidate, start_s),
    candidate: (entry) => cycle.candidate(entry),
    enterStarted: () => cycle.enterStarted(),
    later: (work) => cycle.later(work),
    logHere: () => cycle.logHere(),
    settle: () => cycle.settle(),
    keepsOn: () => cycle.keepsOn(),
    wakeAt: (at_s) => cycle.wakeAt(at_s),
    room: cycle.room,
    failed_victims: cycle.failed_victims,
    tell: (entry, why) => cycle.tell(entry, why),
  };
}

const LIMITING: readonly Stage[] = ["limits", "queue-resources", "server-resources"];

/** Returns why a job may not run during a window, because of planned jobs that start in it; null: it may. */
export function checkMoments(cycle: Cycle, moments: readonly Moment[], candidate: Candidate, window: Window): Why | null {
  for (const { view, from_s } of moments) {
    if (view === null || from_s <= window.from_s || from_s >= window.to_s) continue;
    const why = cycle.check(view, candidate, LIMITING);
    if (why !== null) return why;
  }
  return null;
}

/** Changes the counts of every moment at which a job will run. sign 1: adds a job that starts or is planned; -1: removes it. */
export function noteMoments(moments: readonly Moment[], job: SchedJob, window: Pick<Window, "from_s" | "to_s">, sign: 1 | -1 = 1): void {
  for (const moment of moments) if (window.from_s <= moment.from_s && moment.from_s < window.to_s) countInto(moment, job, sign);
}

function countInto({ view }: Moment, job: SchedJob, sign: 1 | -1 = 1): void {
  if (view === null) return;
  const { universe, server_taken } = view;
  for (const scope of ["", job.queue]) {
    let table = universe.usage.get(scope);
    if (table === undefined) universe.usage.set(scope, (table = new Map()));
    countJob(universe.space, universe.profile, table, job, sign);
  }
  takeFromServer(universe, server_taken, job, sign);
}

/** Adds to `taken` the amounts that a job takes of the server's resources. sign -1: subtracts them. */
export function takeFromServer(
  { server_available, dynamic, space }: Universe,
  taken: Map<string, number>,
  job: SchedJob,
  sign: 1 | -1,
): void {
  for (const name of server_available.keys()) {
    const resource = space.all.get(name);
    // If a program reports the amount of a resource (server_dyn_res), it reports it again before the next cycle. What the jobs started in this cycle take of
    // the resource is counted here.
    const amount = resource?.flags.includes("q") === true || dynamic.has(name) ? amountOf(resource, job.resources[name]) : null;
    if (amount !== null) taken.set(name, (taken.get(name) ?? 0) + sign * amount);
  }
}
