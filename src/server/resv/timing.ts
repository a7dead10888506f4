// What the server does when a reservation has changed, or when one of its timers is due. Timers: resv:ID is for its next event,
// for example its start; resv-wait:ID ends the wait of a client for the answer; resv-idle:ID deletes a reservation that was
// unused too long.
//
// I1. The time of resv:ID is computed only from attributes of the reservation. After a restart the server computes it again, and
//     events that were due meanwhile happen late.

import { parseResvId } from "#model/job-id.ts";
import { RESV_STATE } from "#model/resv-state.ts";
import type { Kernel } from "../engine/kernel.ts";
import { ownTransaction } from "../engine/kernel.ts";
import { isBegun } from "../state/resv-holding.ts";
import type { Resv, ResvAttrs } from "../state/state.ts";
import { askAll, isRefused, questionOf } from "./asking.ts";
import { reconfirmConflicting, settleHealth } from "./health.ts";
import { begin, cleanUp, deny, end, endPeriod, expire, removeWhenEmpty } from "./life.ts";

/**
 * Called when a reservation was created or has changed: sets its timer, and asks schedulers if there is a new question about
 * it. before: its attributes before the change; null: it is new.
 */
export function resvChanged(kernel: Kernel, id: string, before: ResvAttrs | null): void {
  const resv = kernel.state.resvs.get(id);
  if (resv === undefined) return;
  armResv(kernel, resv);
  const question = questionOf(resv.attrs);
  if (question === (before === null ? null : questionOf(before))) return;
  kernel.resvs.refusals.delete(id);
  if (question !== null) askAll(kernel, resv);
}

export function resvGone(kernel: Kernel, id: string): void {
  for (const timer of ["resv", "resv-wait", "resv-idle"]) kernel.timers.clear(`${timer}:${id}`);
  kernel.resvs.refusals.delete(id);
  kernel.resvs.vain_confirms.delete(id);
  const tx = ownTransaction(kernel);
  tx.act({ kind: "answer-resv", resv: id, word: "DENIED" });
  if (parseResvId(id)?.letter === "M") reconfirmConflicting(tx);
}

/** Called when a scheduler has connected, disconnected, or been switched on or off: other schedulers may have to be asked about reservations. */
export function askersChanged(kernel: Kernel): void {
  for (const resv of [...kernel.state.resvs.values()]) {
    if (questionOf(resv.attrs) === null) continue;
    kernel.changes.told.resvs.add(resv.id);
    if (isRefused(kernel, resv)) deny(ownTransaction(kernel), resv);
  }
}

export function armResv(kernel: Kernel, resv: Resv): void {
  const at_s = nextTime(resv);
  if (at_s === null) kernel.timers.clear(`resv:${resv.id}`);
  else kernel.timers.set(`resv:${resv.id}`, at_s * 1000);
  armIdle(kernel, resv);
  const { interactive, ctime, reserve_state } = resv.attrs;
  if (reserve_state === RESV_STATE.UNCONFIRMED && (interactive ?? 0) < 0)
    kernel.timers.set(`resv-wait:${resv.id}`, (ctime - interactive) * 1000);
}

/** The time of the reservation's next event (epoch seconds): its start, its end, the next search for vnodes, or the end of an alteration. */
function nextTime({ attrs }: Resv): number | null {
  const { reserve_state, reserve_substate, reserve_end, reserve_retry, promised } = attrs;
  if (reserve_state === RESV_STATE.UNCONFIRMED) return reserve_end ?? null;
  if (reserve_state === RESV_STATE.BEING_DELETED) return null;
  const present = promised?.occurrences[0];
  const period_s =
    present === undefined ? (reserve_end ?? 0) : (cleaningAt(attrs) ?? (isBegun({ attrs }) ? present.end_s : present.start_s));
  const retries = isDegraded(reserve_substate) && attrs["reconfirm"] !== true && reserve_retry !== undefined;
  return Math.min(period_s, retries ? reserve_retry : period_s, alterationEnd(attrs) ?? period_s);
}

/**
 * The end of the new period of an alteration (epoch seconds); null: the reservation is not being altered. An alteration that no scheduler has
 * answered by then is denied, because a scheduler that is down or has no vnodes never answers.
 */
function alterationEnd({ reserve_state, reserve_end }: ResvAttrs): number | null {
  return reserve_state === RESV_STATE.BEING_ALTERED ? (reserve_end ?? null) : null;
}

/** The time at which jobs of the present occurrence are ended, so that it can be cleaned up; null: there is no such time, or it has passed. */
function cleaningAt({ promised, begun, cleaning, post_processing = 0 }: ResvAttrs): number | null {
  const present = promised?.occurrences[0];
  return begun === undefined || cleaning === true || post_processing === 0 || present === undefined
    ? null
    : present.end_s - post_processing;
}

const isDegraded = (substate: number): boolean => substate === RESV_STATE.DEGRADED || substate === RESV_STATE.IN_CONFLICT;

/** Called by the timer resv:ID: carries out the event that is due. */
export function resvDue(kernel: Kernel, id: string): void {
  const resv = kernel.state.resvs.get(id);
  if (resv === undefined) return;
  const tx = ownTransaction(kernel);
  const { reserve_state, reserve_substate, reserve_retry = 0, promised, reserve_end } = resv.attrs;
  const present = promised?.occurrences[0];
  if (reserve_state === RESV_STATE.UNCONFIRMED) deny(tx, resv);
  else if (tx.now_s >= (present?.end_s ?? reserve_end ?? 0)) {
    endPeriod(tx, resv);
    if (kernel.state.resvs.has(id)) settleHealth(kernel, tx, resv);
  } else if (tx.now_s >= (alterationEnd(resv.attrs) ?? Number.POSITIVE_INFINITY)) deny(tx, resv);
  else if (tx.now_s >= (cleaningAt(resv.attrs) ?? Number.POSITIVE_INFINITY)) cleanUp(tx, resv);
  else if (!isBegun(resv) && present !== undefined && tx.now_s >= present.start_s) begin(tx, resv);
  else if (isDegraded(reserve_substate) && tx.now_s >= reserve_retry)
    tx.apply({ kind: "changed", object: "resv", name: id, set: { reconfirm: true }, unset: [] });
  // A further event may be due already.
  const still = kernel.state.resvs.get(id);
  if (still !== undefined) armResv(kernel, still);
}

/** Called when a job has entered or left the reservation's queue: sets the timer resv-idle, and deletes a reservation that has ended if no job is left. */
export function resvJobsChanged(kernel: Kernel, id: string): void {
  const resv = kernel.state.resvs.get(id);
  if (resv === undefined) return;
  armIdle(kernel, resv);
  removeWhenEmpty(ownTransaction(kernel), resv);
}

/** Sets the timer for delete_idle_time, which counts while the period runs and the queue has no job. After a restart it counts from the beginning. */
function armIdle(kernel: Kernel, resv: Resv): void {
  const idle_s = resv.attrs["delete_idle_time"];
  const timer = `resv-idle:${resv.id}`;
  const idle = isBegun(resv) && resv.attrs.cleaning !== true && (kernel.state.queues.get(resv.attrs.queue)?.jobs.size ?? 0) === 0;
  if (typeof idle_s !== "number" || !idle) kernel.timers.clear(timer);
  else if (kernel.timers.at(timer) === undefined) kernel.timers.set(timer, kernel.now_ms + idle_s * 1000);
}

/** Called by the timer resv-idle:ID: ends the reservation, which was unused for too long. */
export function idleTooLong(kernel: Kernel, id: string): void {
  const resv = kernel.state.resvs.get(id);
  if (resv !== undefined) end(ownTransaction(kernel), resv);
}

/** Called by the timer resv-wait:ID, when no scheduler has answered in time: tells the client, or deletes the reservation if its owner has limited the wait. */
export function waitOver(kernel: Kernel, id: string): void {
  const resv = kernel.state.resvs.get(id);
  const tx = ownTransaction(kernel);
  if (resv !== undefined && resv.attrs.reserve_state === RESV_STATE.UNCONFIRMED && (resv.attrs.interactive ?? 0) < 0) expire(tx, resv);
  else tx.act({ kind: "answer-resv", resv: id, word: "UNCONFIRMED" });
}
