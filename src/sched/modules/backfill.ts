// Module `backfill`: strict_ordering and top jobs (docs/reference/scheduler.md 7). The first blocked jobs in the order get the earliest possible start, and
// later jobs start only where they do not delay these (calendar/planner.ts).
//
// B3. An estimated start is sent to the server only if it differs from the published one.
// B5. Top jobs are collected and planned together: just before another job starts, when there are as many as the depth allows, or after the last job. To
//     plan them earlier would make no difference, and many plans together take little more time than one.
// B6. With sched_preempt_enforce_resumption, preempted jobs are top jobs whatever the order is, and do not count for the depth.
// B7. `backfill.policy: cons`: every blocked job is planned and keeps its plan (calendar/kept-plans.ts); backfill_depth bounds their number if it is set.
// B8. `backfill.matcher` applies to the placement of all jobs, not only of top jobs (place/matcher.ts): it is part of the policy.
// B9. `backfill.order`: when the top jobs are complete, the jobs behind them are tried in another order (order/backfill-order.ts). Without top jobs
//     (depth 0) and with kept plans, which all jobs have, the order of jobs stays.

import { asksFor } from "#model/request/select.ts";
import { BACKFILL_ORDERS } from "#model/sched-policies.ts";
import type { SchedJob, Why } from "#protocol/sched-link.ts";
import { LOG_EVENT } from "#support/log-event.ts";
import { checkMoments } from "../calendar/ahead.ts";
import { endsInOrder } from "../calendar/calendar.ts";
import type { KeptPlans } from "../calendar/kept-plans.ts";
import { keepPlans } from "../calendar/kept-plans.ts";
import { countWhole } from "../calendar/overtakers.ts";
import type { Planner } from "../calendar/planner.ts";
import { createPlanner } from "../calendar/planner.ts";
import { windowAt } from "../calendar/start-search.ts";
import { isOffered } from "../order/array-turn.ts";
import type { Queue } from "../shapes/job-line.ts";
import { ctimeText } from "../shapes/local-time.ts";
import type { Candidate, Cycle, PolicyModule } from "../shapes/module.ts";
import { MATCHER_NAMES } from "../shapes/policy.ts";
import { logText } from "../shapes/reasons.ts";

/** The backfill depth if neither the queue nor the server has one. */
const DEPTH_DEFAULT = 1;

type State = {
  readonly planner: Planner;
  /** Gives the running jobs their former expected ends again (countWhole). */
  readonly giveBack: () => void;
  /** the kept plans with `backfill.policy: cons`; null: plans are made anew in each cycle */
  readonly kept: KeptPlans | null;
  /**
   * numbers of top jobs so far, including those that wait for a plan: under the name of a queue, those that count for the queue's own depth; under "", those
   * that count for the server's depth
   */
  readonly counts: Map<string, number>;
  waiting: { readonly candidate: Candidate; readonly log: Cycle["log"]; readonly counts: boolean }[];
  readonly planned: Set<string>;
  /** classes with a job for which no start was found; no other job of these classes is planned */
  readonly hopeless: Set<unknown>;
};

const STATES = new WeakMap<Cycle, State>();
/** jobs with a published estimate that a cycle has started; the estimate need not be withdrawn */
const STARTED = new WeakMap<Cycle, Set<string>>();

export const backfill: PolicyModule = {
  name: "backfill",
  options: [
    {
      name: "policy",
      default: "depth",
      values: ["depth", "cons"],
      help: "depth: plans for backfill_depth jobs, made anew in every cycle; cons: a plan for every job, kept, moved up when something becomes free",
    },
    {
      name: "matcher",
      default: "first_fit",
      values: MATCHER_NAMES,
      help: "first_fit: a chunk goes to the first host that can take it; best_fit: to the one that takes most of what is asked and has least left",
    },
    {
      name: "order",
      default: "queue",
      values: BACKFILL_ORDERS,
      help: "in which order the jobs behind the last top job are tried: as queued, shortest walltime or smallest area first, most expanded first, by backfill.formula",
    },
    { name: "formula", default: "", help: "for backfill.order formula: jobs with larger values are tried first" },
  ],
  begin(cycle) {
    if (cycle.qrun || !(cycle.policy.strict_ordering || enforcesResumption(cycle))) return;
    const giveBack = countWhole(cycle.universe);
    const planner = createPlanner(cycle);
    const kept = isConservative(cycle) ? keepPlans(cycle, planner) : null;
    STATES.set(cycle, { planner, giveBack, kept, counts: new Map(), waiting: [], planned: new Set(), hopeless: new Set() });
  },
  /**
   * With kept plans each job of a class is tried. A plan that has moved to an earlier time leaves room, which a later job of the class may be able to use
   * although an earlier one was not.
   */
  triesEach: (cycle) => (STATES.get(cycle)?.kept ?? null) !== null,
  stays(cycle, candidate) {
    const state = STATES.get(cycle);
    if (state?.kept?.stays(candidate) !== true) return false;
    const { of } = depthOf(cycle, candidate.queue);
    state.counts.set(of, (state.counts.get(of) ?? 0) + 1);
    state.planned.add(candidate.array?.job.id ?? candidate.entry.job.id);
    return true;
  },
  checks: [{ stage: "calendar", check: checkPlans }],
  started(cycle, candidate) {
    STATES.get(cycle)?.planner.started(candidate);
    const { id } = candidate.entry.job;
    if (!cycle.universe.estimated.has(id)) return;
    const started = STARTED.get(cycle) ?? new Set();
    STARTED.set(cycle, started.add(id));
  },
  putsOff(cycle, { job }) {
    const { backfill_order: order, strict_ordering, backfill: backfills } = cycle.policy;
    if (order === null || order === "queue" || !strict_ordering || !backfills || job.resv !== undefined) return false;
    const state = STATES.get(cycle);
    if (state === undefined || state.kept !== null) return false;
    const { of, most } = depthOf(cycle, cycle.universe.queues.get(job.queue));
    return most > 0 && (state.counts.get(of) ?? 0) >= most;
  },
  wants: isTopJob,
  blocked(cycle, candidate, why) {
    const state = STATES.get(cycle);
    if (state === undefined || why.never === true) return "go on";
    const { of, most } = depthOf(cycle, candidate.queue);
    const counts = !mustResume(cycle, candidate);
    if (counts && cycle.policy.strict_ordering && (!cycle.policy.backfill || most === 0))
      return { code: "STRICT_ORDERING", module: "backfill" };
    if (!isTopJob(cycle, candidate)) return "go on";
    if (state.waiting.length === 0) cycle.later(() => planAll(cycle, state));
    state.waiting.push({ candidate, log: cycle.logHere(), counts });
    if (!counts) return "go on";
    const count = (state.counts.get(of) ?? 0) + 1;
    state.counts.set(of, count);
    // With fairshare, a plan counts as usage and changes the order of the next jobs. With kept plans, a plan that was removed must be booked again
    // before the next one is removed.
    if (count >= most || cycle.policy.fair_share || state.kept !== null) planAll(cycle, state);
    return "go on";
  },
  end(cycle) {
    const state = STATES.get(cycle);
    if (cycle.complete && cycle.keepsOn()) withdraw(cycle, state?.planned ?? new Set());
    state?.kept?.end();
    if (state !== undefined) wakeForPlans(cycle, state.planner);
    state?.planner.takeBack();
    state?.giveBack();
  },
};

/** Returns the planner of a cycle; null: the cycle plans nothing (a qrun, or neither strict_ordering nor sched_preempt_enforce_resumption). */
export function plannerOf(cycle: Cycle): Planner | null {
  return STATES.get(cycle)?.planner ?? null;
}

const isConservative = ({ book, policy }: Cycle): boolean =>
  policy.strict_ordering && book.module_options?.get("backfill")?.get("policy") === "cons";

const enforcesResumption = ({ universe }: Cycle): boolean => universe.sched.attrs["sched_preempt_enforce_resumption"] === true;

/** Returns whether a job was preempted and must be able to resume. */
function mustResume(cycle: Cycle, { entry: { job } }: Candidate): boolean {
  return job.sched_preempted_s !== undefined && enforcesResumption(cycle);
}

/** Returns a reason if a start now would break a limit that a plan needs. */
function checkPlans(cycle: Cycle, candidate: Candidate): Why | null {
  const moments = STATES.get(cycle)?.planner.moments ?? [];
  return moments.length === 0 ? null : checkMoments(cycle, moments, candidate, windowAt(candidate, cycle.now_s));
}

/** Returns the depth that applies to a queue, and the name of the queue whose depth it is ("": the server's). */
function depthOf(cycle: Cycle, queue: Queue | undefined): { readonly of: string; readonly most: number } {
  const { universe } = cycle;
  const own = queue?.attrs["backfill_depth"];
  if (typeof own === "number" && queue !== undefined) return { of: queue.name, most: own };
  const all = universe.server.attrs["backfill_depth"];
  return { of: "", most: typeof all === "number" ? all : isConservative(cycle) ? Number.POSITIVE_INFINITY : DEPTH_DEFAULT };
}

/** Returns whether a blocked job becomes a top job. */
function isTopJob(cycle: Cycle, candidate: Candidate): boolean {
  const { entry, queue, set } = candidate;
  const { job, request, line } = entry;
  const state = STATES.get(cycle);
  if (state === undefined || !cycle.policy.backfill || set === undefined) return false;
  if (!mustResume(cycle, candidate)) {
    const { of, most } = depthOf(cycle, queue);
    if (!cycle.policy.strict_ordering || (state.counts.get(of) ?? 0) >= most) return false;
  }
  if (!cycle.keepsOn()) return false;
  if (job.topjob_ineligible === true || job.resv !== undefined || request.fault !== undefined) return false;
  if (state.hopeless.has(line?.class)) return false;
  return cycle.policy.allow_aoe_calendar || !asksFor(job.schedselect, "aoe");
}

// --- plans

function planAll(cycle: Cycle, state: State): void {
  const { waiting } = state;
  state.waiting = [];
  for (const { candidate, log, counts } of waiting) {
    if (!plan(cycle, state, candidate, log) && counts) {
      const { of } = depthOf(cycle, candidate.queue);
      state.counts.set(of, (state.counts.get(of) ?? 0) - 1);
    }
  }
  state.planner.close();
}

/** Makes a plan for a job. Returns false if no start was found. */
function plan(cycle: Cycle, state: State, candidate: Candidate, log: Cycle["log"]): boolean {
  const { job, line } = candidate.entry;
  const tell = (event: number, text: string): void => log({ event, class: "Job", object: job.id, text });
  tell(LOG_EVENT.DEBUG2, "Estimating the start time for a top job.");
  const found = state.planner.plan(candidate);
  if (found.start_s === null) {
    const reason = found.late ? "the cycle has taken too long" : found.why === null ? "it never fits" : logText(found.why);
    state.hopeless.add(line?.class);
    tell(LOG_EVENT.DEBUG, `Can't find start time estimate ${reason}`);
    if (!found.late) tell(LOG_EVENT.SCHED, "Error in calculation of start time of top job");
    return false;
  }
  // For an array, its next subjob is planned; the published plan belongs to the array.
  const published = candidate.array?.job ?? job;
  state.planned.add(published.id);
  publish(cycle, published, found.start_s, found.exec_vnode);
  cycle.planned(candidate, found.start_s);
  tell(LOG_EVENT.DEBUG, `Job is a top job and will run at ${ctimeText(cycle.book.local.civil(found.start_s))}`);
  return true;
}

/** Longest time in seconds between two checks of plans that wait for overdue jobs. */
const OVERDUE_S_MAX = 60;

/**
 * Requests a cycle for the time at which the first planned start is due. If the job cannot start then, this cycle makes a new plan, so that no published start lies in
 * the past. The cycle comes no earlier than a quarter of the longest overdue time of a running job from now, or OVERDUE_S_MAX if that is less.
 */
function wakeForPlans(cycle: Cycle, { moments }: Planner): void {
  if (moments.length === 0) return;
  const { universe, now_s } = cycle;
  let overdue_s = 0;
  for (const { to_s, last_s } of endsInOrder(universe, now_s)) {
    if (to_s > now_s) break;
    overdue_s = Math.max(overdue_s, now_s - last_s);
  }
  const soonest_s = now_s + Math.max(1, Math.min(OVERDUE_S_MAX, Math.ceil(overdue_s / 4)));
  const first_s = moments.reduce((first, { from_s }) => Math.min(first, from_s), Number.POSITIVE_INFINITY);
  cycle.wakeAt(Math.max(soonest_s, first_s));
}

// --- reports to the server

function publish(cycle: Cycle, job: SchedJob, start_s: number, exec_vnode: string): void {
  const { estimated, topjob } = job;
  if (topjob === true && estimated?.start_time === start_s && estimated.exec_vnode === exec_vnode) return;
  cycle.decide({ kind: "estimate", job: job.id, start_s, exec_vnode, topjob: true });
}

/** Withdraws what was published about jobs that are no longer top jobs: the mark as a top job, and the estimate if clear_topjob_estimates_enable says so. */
function withdraw(cycle: Cycle, planned: ReadonlySet<string>): void {
  const { universe } = cycle;
  const clears = universe.server.attrs["clear_topjob_estimates_enable"] === true;
  for (const id of universe.estimated) {
    const job = universe.jobs.get(id);
    if (job === undefined || !isOffered(job) || planned.has(id) || STARTED.get(cycle)?.has(id) === true) continue;
    const { start_time, exec_vnode } = clears ? {} : (job.estimated ?? {});
    if (clears || job.topjob === true)
      cycle.decide({ kind: "estimate", job: id, start_s: start_time ?? null, exec_vnode: exec_vnode ?? null, topjob: false });
  }
}
