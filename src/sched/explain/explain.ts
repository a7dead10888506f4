// Explains why a job waits, and when it could start (`partita explain`). For this, a cycle runs until the turn of the job comes (cycle/probe.ts).
// Then all reasons are collected, whereas a real cycle stops at the first. Pure; afterwards the universe is as it was before.
//
// E1. `why` is the reason that a cycle would give now, as in the comment. The reason why a scheduler schedules nothing at all is given only here.
// E2. If nothing is in the way of a job, a cycle would start it.
// E3. A caller who may not see other users' jobs gets no ids of them.

import { indexCount, parseIndexList, positionOf } from "#model/array-indices.ts";
import type { Fairshare } from "#model/fairshare.ts";
import { subjobIndex } from "#model/job-id.ts";
import type { ExplainedWhy, Explanation, Obstacle } from "#protocol/explanation.ts";
import type { SchedJob, Why } from "#protocol/sched-link.ts";
import { SCHED_COMMAND } from "#protocol/sched-link.ts";
import { present } from "#support/assert.ts";
import { endsInOrder } from "../calendar/calendar.ts";
import type { Plan } from "../calendar/planner.ts";
import { createPlanner } from "../calendar/planner.ts";
import type { NoStart } from "../calendar/start-search.ts";
import { windowAt } from "../calendar/start-search.ts";
import { unlessElastic } from "../cycle/attempt.ts";
import { cycle } from "../cycle/cycle.ts";
import { whyIdle } from "../cycle/opening.ts";
import type { Turn } from "../cycle/probe.ts";
import type { Memory } from "../cycle/result.ts";
import { plannerOf } from "../modules/backfill.ts";
import { chainOf } from "../modules/index.ts";
import { arrayEntryOf, isOffered } from "../order/array-turn.ts";
import { jobsInOrder } from "../order/job-order.ts";
import { findPlace } from "../place/placement.ts";
import type { Booking, Holding, Running, Span } from "../shapes/booking.ts";
import { durationsOf, JOB_INFINITY_S, shortestOf } from "../shapes/durations.ts";
import type { JobEntry } from "../shapes/job-line.ts";
import type { Candidate, Cycle, Stage } from "../shapes/module.ts";
import { STAGES } from "../shapes/module.ts";
import type { PolicyBook } from "../shapes/policy-book.ts";
import { commentText } from "../shapes/reasons.ts";
import { endOf, extension, holdingOf, jobsOn, readHolding } from "../shapes/running.ts";
import type { Universe } from "../shapes/universe.ts";
import type { Vnode } from "../shapes/vnode.ts";
import type { EstimateHistory } from "./estimate-history.ts";
import { estimatesOf } from "./estimate-history.ts";
import { chunkText, nodeClasses } from "./node-classes.ts";

export type ExplainInput = {
  readonly now_s: number;
  readonly job: string;
  readonly memory: Memory;
  /** usage of shares; absent: none */
  readonly fairshare?: Fairshare;
  readonly history: EstimateHistory;
  /** false: ids of other jobs are hidden (E3) */
  readonly sees_others: boolean;
  readonly elapsed_s?: () => number;
};

const CLASSES_MAX = 40;
const OBSTACLES_MAX = 10;
/** Largest number of preceding jobs that is counted. To count more would take too long. */
const BEFORE_MAX = 20_000;

/** Explains a job. Returns null if the scheduler does not see the job. */
export function explainJob(universe: Universe, book: PolicyBook, input: ExplainInput): Explanation | null {
  const entry = universe.entries.get(input.job) ?? arrayEntryOf(universe, input.job);
  const job = universe.jobs.get(input.job) ?? entry?.job;
  if (job === undefined) return null;
  if (job.exec_vnode !== undefined && job.state !== "Q" && job.state !== "S")
    return { ...plain(universe, job, input), verdict: "runs", running: runningOf(universe, job, input.now_s) };
  if (entry === undefined || !isOffered(job)) return { ...plain(universe, job, input), verdict: "held" };
  let found: Explanation | null = null;
  cycle(universe, book, {
    now_s: input.now_s,
    command: SCHED_COMMAND.TIME,
    memory: input.memory,
    ...(input.fairshare === undefined ? {} : { fairshare: input.fairshare }),
    ...(input.elapsed_s === undefined ? {} : { elapsed_s: input.elapsed_s }),
    probe: {
      job: entry.job.id,
      look(run, turn) {
        found = explainTurn(run, turn, input);
      },
    },
  });
  if (found !== null) return found;
  const idle = whyIdle(universe);
  const why = idle === null ? null : explained("scheduler", idle);
  return { ...plain(universe, job, input), verdict: "waits", why, reasons: why === null ? [] : [why] };
}

/** Returns what can be said about a job without a cycle. */
function plain(universe: Universe, job: SchedJob, { job: id, now_s, history }: ExplainInput): Omit<Explanation, "verdict"> {
  const { most_s } = durationsOf(universe, job);
  const request = universe.entries.get(job.id)?.request;
  return {
    job: id,
    sched: universe.sched.name,
    at_s: now_s,
    // A waiting subjob has no record of its own; its array gives the answer.
    state: id === job.id ? job.state : "Q",
    queue: job.queue,
    select: job.schedselect,
    place: job.place,
    walltime_s: most_s === JOB_INFINITY_S ? null : most_s,
    why: null,
    comment: job.comment ?? null,
    reasons: [],
    obstacles: [],
    preempts: [],
    preempted_s: job.sched_preempted_s ?? null,
    ...resvOf(universe, job),
    jobs_before: null,
    ...(id === job.id ? {} : subjobsBefore(job, id)),
    top_job: job.topjob === true,
    chunks: request?.chunks.map((chunk) => chunkText(universe, chunk)) ?? [],
    nodes: [],
    nodes_left_out: 0,
    earliest: null,
    estimates: estimatesOf(history, job.id),
    running: null,
  };
}

/** Returns the reservation whose queue holds the job. */
function resvOf(universe: Universe, { queue }: SchedJob): Pick<Explanation, "resv"> {
  for (const { id, held, queue: own } of universe.resvs.values()) {
    const [next] = held;
    if (own === queue && next !== undefined) return { resv: { id, from_s: next.start_s, to_s: next.end_s } };
  }
  return {};
}

function subjobsBefore({ array }: SchedJob, id: string): Pick<Explanation, "subjobs_before"> {
  let subjobs_before = 0;
  for (const range of parseIndexList(array?.indices_remaining ?? "") ?? []) {
    const position = positionOf(range, subjobIndex(id));
    if (position >= 0) return { subjobs_before: subjobs_before + position };
    subjobs_before += indexCount(range);
  }
  return {};
}

function runningOf(universe: Universe, job: SchedJob, now_s: number): NonNullable<Explanation["running"]> {
  const running = universe.calendar.running.get(job.id);
  const unknown = { since_s: job.stime_s ?? null, end_s: null, last_s: null, exec_vnode: job.exec_vnode ?? "" };
  if (running === undefined) return unknown;
  const { from_s, to_s, last_s, grace_s } = running;
  const expected_s = Math.min(to_s > now_s ? to_s : extension(running, now_s), last_s - grace_s);
  return {
    ...unknown,
    end_s: to_s - from_s >= JOB_INFINITY_S ? null : Math.max(expected_s, now_s + 1),
    last_s: last_s - from_s >= JOB_INFINITY_S ? null : Math.max(last_s - grace_s, now_s + 1),
  };
}

// --- when the job's turn comes

function explainTurn(run: Cycle, turn: Turn, input: ExplainInput): Explanation {
  const { universe } = run;
  const { known, candidate, entry, context } = shortest(run, turn);
  const { job, request } = candidate.entry;
  const stopped = candidate.queue?.started === false;
  const reasons = stopped ? [explained("queue", { code: "QUEUE_NOT_STARTED", module: "queue" })] : reasonsOf(run, candidate);
  const here = findPlace(context, candidate.set, request, job);
  const fits = "chunks" in here;
  const aside = fits || context.window === null ? here : findPlace({ ...context, window: null }, candidate.set, request, job);
  if (request.fault !== undefined) reasons.unshift(explained("queue", { code: "NOT_SUPPORTED", where: request.fault, never: true }));
  if (!fits) {
    const lack: Why = "why" in aside ? aside.why : { code: "RESERVATION_CONFLICT", module: "calendar" };
    reasons.push(explained("placement", unlessElastic(universe, job, lack)));
  }
  // The reason that a cycle would give: the one that blocks the job's class or, if there is none, the first reason of the
  // job itself.
  const why = known === null || stopped ? (reasons[0] ?? null) : explained("order", known);
  const hide = input.sees_others ? null : entry.job.id;
  // Obstacles are computed first, while the job's own plan is not yet among the bookings.
  const obstacles = fits ? [] : obstaclesOf(universe, candidate, input.now_s, hide);
  const start = why === null || why.why.never === true ? null : earliestStart(run, turn);
  const preempts = why === null || known !== null || stopped ? null : victimsFor(run, candidate, why.why);
  const classes = candidate.set === undefined ? [] : nodeClasses(universe, { set: candidate.set, entry: candidate.entry, context });
  return {
    ...plain(universe, entry.job, input),
    verdict: why === null ? "starts" : preempts !== null ? "preempts" : why.why.never === true ? "never" : "waits",
    why,
    reasons,
    obstacles,
    preempts: (preempts ?? []).map((id) => (hide === null || id === hide ? id : null)),
    jobs_before: jobsBefore(run, entry),
    nodes: classes.slice(0, CLASSES_MAX).map((row) => ({ ...row, why: row.why === null ? null : explained("placement", row.why) })),
    nodes_left_out: Math.max(0, classes.length - CLASSES_MAX),
    earliest: start === null ? null : earliestOf(run, candidate, start, hide),
  };
}

/** Returns the jobs that would be preempted for the job in this cycle; null: there are none, or not enough. All of them are put back afterwards. */
function victimsFor(run: Cycle, candidate: Candidate, why: Why): string[] | null {
  const { room } = run;
  const mark = room.mark();
  const before = new Set(room.away.keys());
  const makes = chainOf(run.book).some((module) => (module.makeRoom?.(run, candidate, why) ?? null) !== null);
  const victims = [...room.away.keys()].filter((id) => !before.has(id));
  room.rollBack(mark);
  return makes ? victims : null;
}

/** Returns the turn with the candidate reduced to the shortest time of a shrink-to-fit job: if the job can start at all, it can start with that time. */
function shortest({ universe, now_s }: Cycle, turn: Turn): Turn {
  const { candidate, context } = turn;
  const min_s = shortestOf(universe.space, candidate.entry.job);
  if (min_s === null) return turn;
  const shorter: Candidate = { ...candidate, expected_s: min_s, most_s: min_s };
  return { ...turn, candidate: shorter, context: { ...context, window: context.window === null ? null : windowAt(shorter, now_s) } };
}

/** Returns the reason of each stage that has one. */
function reasonsOf(run: Cycle, candidate: Candidate): ExplainedWhy[] {
  const reasons: ExplainedWhy[] = [];
  for (const stage of STAGES) {
    const why = run.check(run, candidate, [stage]);
    if (why !== null) reasons.push(explained(stage, why));
  }
  return reasons;
}

function explained(stage: Stage | "placement" | "order" | "scheduler", why: Why): ExplainedWhy {
  return { stage, why, text: commentText(why) };
}

/** Returns the number of jobs before this one in the order in which the cycle tries jobs; null: too many to count. */
function jobsBefore({ ranks, policy }: Cycle, entry: JobEntry): number | null {
  const jobs = jobsInOrder(ranks, policy);
  for (let count = 0; count < BEFORE_MAX; count++) {
    const next = jobs.next();
    if (next === null) return null;
    if (next.entry === entry) return count;
    jobs.advance();
  }
  return null;
}

// --- obstacles

/**
 * Returns the bookings and running jobs on the vnodes that the job may use, as far as they overlap the time in which it
 * would run. Reservations and plans come first, then running jobs by their ends.
 */
function obstaclesOf(universe: Universe, { set, most_s, entry: { job } }: Candidate, now_s: number, hide: string | null): Obstacle[] {
  if (set === undefined) return [];
  const vnodesOf = (holding: Holding): number => [...holding.keys()].filter((name) => set.vnodes.has(name)).length;
  const booked = [...universe.calendar.bookings.values()].flatMap((booking): Obstacle[] => {
    const during = booking.times.filter(({ from_s, to_s }) => to_s > now_s && from_s < now_s + most_s);
    const vnodes = during.length === 0 ? 0 : vnodesOf(booking.holding);
    return vnodes === 0 ? [] : during.map((span) => obstacle(universe, bookedId(booking), span, { vnodes, hide, booked: true }));
  });
  const running: Obstacle[] = [];
  for (const one of endsInOrder(universe, now_s)) {
    if (running.length + booked.length >= OBSTACLES_MAX) break;
    const vnodes = one.id === job.id ? 0 : vnodesOf(holdingOf(universe.space, one));
    if (vnodes > 0) running.push(runningObstacle(universe, one, { vnodes, hide, now_s }));
  }
  return [...booked.sort((a, b) => a.from_s - b.from_s), ...running].slice(0, OBSTACLES_MAX);
}

type Facts = {
  readonly vnodes: number;
  /** the id of the explained job if all other ids are hidden; null: all ids are shown */
  readonly hide: string | null;
};

function obstacle(
  universe: Universe,
  id: string,
  { from_s, to_s }: Span,
  { vnodes, hide, booked }: Facts & { readonly booked: boolean },
): Obstacle {
  const kind = universe.resvs.has(id) ? "reservation" : booked ? "top job" : "job";
  return { kind, id: kind === "reservation" || hide === null || id === hide ? id : null, from_s, to_s, vnodes };
}

function runningObstacle(universe: Universe, one: Running, { now_s, ...facts }: Facts & { readonly now_s: number }): Obstacle {
  return obstacle(universe, one.id, { from_s: one.from_s, to_s: endOf(one, now_s) }, { ...facts, booked: false });
}

/** Returns the id of the job or reservation of a booking: `plan of 12.svr` is that of job 12.svr, `R5.svr 0 (n1:ncpus=4)` is one of reservation R5.svr. */
function bookedId({ id, kind }: Booking): string {
  return kind === "plan" ? id.replace(/^(plan of|published) /, "") : present(id.split(" ")[0], "name");
}

/** Returns the running entries of a vnode: those of its jobs, as far as their ends are known, and those that are not among its jobs, such as reservations. */
function runningOn({ calendar }: Universe, vnode: Vnode): Running[] {
  return [...[...jobsOn(vnode)].flatMap((id) => calendar.running.get(id) ?? []), ...(calendar.besides.get(vnode.name) ?? [])];
}

/**
 * Plans the job as the cycle would plan it now, in addition to the plans that the cycle has already made. This must be the last step, because it makes
 * bookings.
 */
function earliestStart(run: Cycle, { candidate }: Turn): Plan | NoStart | null {
  if (candidate.set === undefined) return null;
  const theirs = plannerOf(run);
  const planner = theirs ?? createPlanner(run);
  const found = planner.plan(candidate);
  planner.close();
  if (theirs === null) planner.takeBack();
  return found;
}

function earliestOf(run: Cycle, candidate: Candidate, found: Plan | NoStart, hide: string | null): NonNullable<Explanation["earliest"]> {
  const { universe, now_s } = run;
  if (found.start_s === null) {
    const why = found.why === null ? null : explained("placement", found.why);
    return { start_s: null, exec_vnode: null, after: [], why, late: found.late };
  }
  const names = [...readHolding(universe.space, found.exec_vnode).keys()];
  const own = candidate.entry.job.id;
  const ended = new Map<Running, number>();
  for (const name of names) {
    const vnode = universe.vnodes.get(name);
    if (vnode === undefined) continue;
    for (const one of runningOn(universe, vnode)) {
      if (endOf(one, now_s) <= found.start_s && one.id !== own) ended.set(one, (ended.get(one) ?? 0) + 1);
    }
  }
  const running = [...ended].map(([one, vnodes]) => runningObstacle(universe, one, { vnodes, hide, now_s }));
  const after = [...running, ...bookedUntil(universe, names, { own, hide, now_s, start_s: found.start_s })]
    .sort((a, b) => b.to_s - a.to_s)
    .slice(0, OBSTACLES_MAX);
  return { start_s: found.start_s, exec_vnode: found.exec_vnode, after, why: null, late: false };
}

type Until = { readonly own: string; readonly hide: string | null; readonly now_s: number; readonly start_s: number };

/** Returns the plans of top jobs, and the reservations, that end on some of these vnodes before the job starts there. */
function bookedUntil(universe: Universe, names: readonly string[], { own, hide, now_s, start_s }: Until): Obstacle[] {
  return [...universe.calendar.bookings.values()].flatMap((booking): Obstacle[] => {
    const id = bookedId(booking);
    const over = booking.times.filter(({ to_s }) => to_s > now_s && to_s <= start_s);
    const vnodes = id === own || over.length === 0 ? 0 : names.filter((name) => booking.holding.has(name)).length;
    return vnodes === 0 ? [] : over.map((span) => obstacle(universe, id, span, { vnodes, hide, booked: true }));
  });
}
