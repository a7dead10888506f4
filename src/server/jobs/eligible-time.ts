// Eligible time of jobs: how long each job has waited only because other jobs had the resources (docs/reference/scheduler.md
// 4). The state of a job decides its accrue type, the kind of time that it gathers. A change of the accrue type is stored
// and logged when it happens.
//
// Several jobs may share a clock (state/clocks.ts). For a job with a clock, the stored eligible_time is the number of
// seconds to add to the clock's time (it may be negative). For a job without a clock it is the eligible time itself.

import { ACCRUE } from "#model/job-state.ts";
import { RUN_LIMIT_ATTRS } from "#model/limits/run-limits.ts";
import { renderDuration } from "#model/values/duration.ts";
import { LOG_EVENT } from "#support/log-event.ts";
import { type Kernel, ownTransaction } from "../engine/kernel.ts";
import type { Transaction } from "../engine/transaction.ts";
import { arrayOf } from "../state/apply.ts";
import { clockId, clockKey, isExecutionQueue, isStopped, readAccrual, shownBy } from "../state/clocks.ts";
import type { Clock, ClockKey } from "../state/entity-sums.ts";
import { type AttrChange, changes } from "../state/event.ts";
import { isWithMom, phaseName } from "../state/job-phase.ts";
import type { Attrs, Job, ServerState } from "../state/state.ts";
import { hasWaiting } from "../state/subjobs.ts";
import { logJob } from "./life.ts";

type AccrueType = (typeof ACCRUE)[keyof typeof ACCRUE];
const NAMES = ["initial_time", "ineligible_time", "eligible_time", "run_time", "exiting"] as const;

/** The accrue type of a job, or the key of the clock on which the accrue type depends. */
type Counting = { readonly type: AccrueType } | { readonly key: ClockKey | null };

/** Decides the accrue type of a job, or its clock, from the job's state. */
function countingOf(state: ServerState, job: Job): Counting {
  const { attrs } = job;
  if (!state.accrual.enabled) return { type: ACCRUE.INITIAL };
  const phase = phaseName(job);
  if (phase === "exiting" || phase === "over") return { type: ACCRUE.EXITING };
  if (isWithMom(job)) return { type: ACCRUE.RUNNING };
  if (!isExecutionQueue(state.queues.get(attrs.queue)) || phase === "transit") return { type: ACCRUE.INITIAL };
  const offersNothing = attrs["array_id"] !== undefined || (job.subjobs !== undefined && !hasWaiting(job.subjobs));
  if (phase === "waiting" || offersNothing) return { type: ACCRUE.INELIGIBLE };
  if (phase !== "held") return { key: clockKey(state, attrs) };
  // The job counts as ineligible if its owner caused the wait: by a user hold or by a dependency. Other holds do not matter.
  const own = attrs.Hold_Types.includes("u") || attrs["depend"] !== undefined;
  return own ? { type: ACCRUE.INELIGIBLE } : { key: null };
}

/** Eligible time and accrue type of a job for display; null: the job has no clock, so its stored attributes can be shown. */
export function shownEligible(state: ServerState, attrs: Attrs, now_s: number): { eligible_time: number; accrue_type: number } | null {
  const clock = state.clocks.get(String(attrs["accrual_clock"] ?? ""));
  if (clock === undefined) return null;
  const eligible_time = Math.max(0, Number(attrs["eligible_time"] ?? 0) + shownBy(clock, now_s));
  return { eligible_time, accrue_type: clock.goes ? ACCRUE.ELIGIBLE : ACCRUE.INELIGIBLE };
}

/** The value to store as eligible_time so that the job shows the given time (qalter). */
export function keptEligible(state: ServerState, attrs: Attrs, eligible_s: number, now_s: number): number {
  const clock = state.clocks.get(String(attrs["accrual_clock"] ?? ""));
  return clock === undefined ? eligible_s : eligible_s - shownBy(clock, now_s);
}

/**
 * Updates the accrue type and the clock of a job. quiet: nothing is logged, because only eligible_time_enable was switched
 * and the job itself has not changed.
 */
function accrueJob(tx: Transaction, job: Job, quiet = false): void {
  const { state, now_s } = tx;
  const { attrs } = job;
  const before = typeof attrs["accrual_clock"] === "string" ? attrs["accrual_clock"] : Number(attrs["accrue_type"] ?? ACCRUE.INITIAL);
  const counting = countingOf(state, job);
  const id = "key" in counting ? clockId(counting.key) : null;
  if (before === (id ?? ("type" in counting ? counting.type : 0))) return;
  const shown = shownEligible(state, attrs, now_s) ?? {
    eligible_time: Number(attrs["eligible_time"] ?? 0),
    accrue_type: Number(attrs["accrue_type"] ?? ACCRUE.INITIAL),
  };
  const clock = "key" in counting ? clockOf(tx, counting.key) : null;
  const type = clock === null ? ("type" in counting ? counting.type : ACCRUE.INITIAL) : clock.goes ? ACCRUE.ELIGIBLE : ACCRUE.INELIGIBLE;
  if (!quiet) logChange(tx, job, { ...shown, type });
  tx.apply({ kind: "job-changed", id: job.id, ...changesFor(attrs, type, clock, shown.eligible_time, now_s) });
}

/** Called when a job was created or changed. Updates its accrue type. Also updates the accrue type of its array, which changes when the last subjob has started. */
export function jobAccrues({ state }: Kernel, tx: Transaction, { id }: Job): void {
  const job = state.jobs.get(id);
  if (job === undefined) return;
  accrueJob(tx, job);
  const array = arrayOf(state, job);
  if (array !== undefined) accrueJob(tx, array);
}

/** Attributes that decide which limits apply to which jobs. */
const LIMITING: readonly string[] = ["eligible_time_enable", "partition", "queue_type", ...RUN_LIMIT_ATTRS];

/** Whether the limits must be read again after this change of the server, a queue or a scheduler. */
export const movesLimits = (change: AttrChange): boolean => changes(change, ...LIMITING);

function changesFor(attrs: Attrs, type: AccrueType, clock: Clock | null, eligible_s: number, now_s: number) {
  const gone = (...names: string[]): string[] => names.filter((name) => attrs[name] !== undefined);
  if (type === ACCRUE.INITIAL) return { set: {}, unset: gone("eligible_time", "accrue_type", "accrual_clock", "sample_starttime") };
  if (clock === null)
    return { set: { eligible_time: eligible_s, accrue_type: type, sample_starttime: now_s }, unset: gone("accrual_clock") };
  const set = { eligible_time: eligible_s - shownBy(clock, now_s), accrual_clock: clock.id, sample_starttime: now_s };
  return { set, unset: gone("accrue_type") };
}

/** Returns the clock with that key; creates it if there is none. */
function clockOf(tx: Transaction, key: ClockKey | null): Clock {
  const id = clockId(key);
  const there = tx.state.clocks.get(id);
  if (there !== undefined) return there;
  const clock: Clock = { id, key, value_s: 0, at_s: tx.now_s, goes: !isStopped(tx.state, key) };
  tx.apply({ kind: "clock-put", clock });
  return clock;
}

type Change = { readonly eligible_time: number; readonly accrue_type: number; readonly type: AccrueType };

/** Logs a change of the accrue type. A new job counts as eligible before its first accrue type. */
function logChange(tx: Transaction, job: Job, { eligible_time, accrue_type, type }: Change): void {
  const before = accrue_type === ACCRUE.INITIAL ? ACCRUE.ELIGIBLE : accrue_type;
  if (before === type || type === ACCRUE.INITIAL) return;
  const clock = tx.state.clocks.get(String(job.attrs["accrual_clock"] ?? ""));
  const since_s = Math.max(Number(job.attrs["sample_starttime"] ?? tx.now_s), clock?.key == null ? 0 : clock.at_s);
  logJob(tx, LOG_EVENT.DEBUG3, job.id, changeText({ type, before, since_s, now_s: tx.now_s, eligible_time }));
}

type ChangeText = {
  readonly type: number;
  readonly before: number;
  readonly since_s: number;
  readonly now_s: number;
  readonly eligible_time: number;
};

function changeText({ type, before, since_s, now_s, eligible_time }: ChangeText): string {
  const lasted_s = Math.max(0, now_s - since_s);
  return `Accrue type has changed to ${NAMES[type]}, previous accrue type was ${NAMES[before]} for ${lasted_s} secs, total eligible_time=${renderDuration(eligible_time)}`;
}

// --- clocks and changes

/** Called before a batch leaves: reads changed limits, stops or restarts clocks, and removes clocks that no job uses. */
export function settleAccrual(kernel: Kernel): void {
  const { state } = kernel;
  const { accrual } = state;
  if (accrual.stale) rereadAll(kernel);
  if (accrual.dirty.size === 0) return;
  const tx = ownTransaction(kernel);
  for (const id of [...accrual.dirty]) {
    accrual.dirty.delete(id);
    const clock = state.clocks.get(id);
    if (clock === undefined) continue;
    if (!accrual.jobs.has(id)) tx.apply({ kind: "clock-deleted", id });
    else if (clock.goes === isStopped(state, clock.key)) turnClock(tx, clock);
  }
}

function rereadAll(kernel: Kernel): void {
  const { state } = kernel;
  const { enabled } = state.accrual;
  readAccrual(state);
  const tx = ownTransaction(kernel);
  // A job gets another clock only if the changed limits give it another key.
  for (const job of [...state.jobs.values()]) accrueJob(tx, job, enabled !== state.accrual.enabled);
}

function turnClock(tx: Transaction, clock: Clock): void {
  const { now_s, state } = tx;
  const goes = !clock.goes;
  if ((Number(state.server["log_events"] ?? 0) & LOG_EVENT.DEBUG3) !== 0) logTurn(tx, clock);
  tx.apply({ kind: "clock-put", clock: { ...clock, value_s: shownBy(clock, now_s), at_s: now_s, goes } });
}

/** Logs the change of the accrue type for each job of a clock that is about to be stopped or restarted. */
function logTurn(tx: Transaction, clock: Clock): void {
  const { state, now_s } = tx;
  const [type, before] = clock.goes ? [ACCRUE.INELIGIBLE, ACCRUE.ELIGIBLE] : [ACCRUE.ELIGIBLE, ACCRUE.INELIGIBLE];
  for (const id of state.queues.get(clock.key?.queue ?? "")?.jobs ?? []) {
    const attrs = state.jobs.get(id)?.attrs;
    if (attrs === undefined || attrs["accrual_clock"] !== clock.id) continue;
    const since_s = Math.max(Number(attrs["sample_starttime"] ?? now_s), clock.at_s);
    const eligible_time = shownEligible(state, attrs, now_s)?.eligible_time ?? 0;
    logJob(tx, LOG_EVENT.DEBUG3, id, changeText({ type, before, since_s, now_s, eligible_time }));
  }
}
