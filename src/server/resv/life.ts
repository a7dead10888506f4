// What happens to a reservation after its submission: it is confirmed or denied, begins, ends, and is deleted
// (docs/reference/commands.md 5, docs/reference/scheduler.md 9). Its states are in src/model/resv-state.ts. The place of a
// reservation is the vnodes and amounts that are promised to it.
//
// I1. A reservation and its queue are deleted together, and only when the queue has no job.
// I2. A promise is kept until the reservation ends, until an alteration is confirmed, or until a maintenance reservation
//     takes the vnodes.

import { RESV_STATE } from "#model/resv-state.ts";
import { SCHED_COMMAND, type SchedCommand } from "#protocol/sched-link.ts";
import { LOG_EVENT } from "#support/log-event.ts";
import type { Transaction } from "../engine/transaction.ts";
import { partitionOf, schedOfPartition } from "../state/partitions.ts";
import { isBegun } from "../state/resv-holding.ts";
import { execVnodesText, NO_PLACE, occurrencesLeft, withPlaces } from "../state/resv-occurrences.ts";
import type { Attrs, Promised, Resv } from "../state/state.ts";
import { deleteJobs, moveSourceJob } from "./jobs.ts";
import { accessOf, amountsOf, removeQueue } from "./queue.ts";
import { accountBegun, accountConfirmed, accountRemoved, logResv, resvRequestor } from "./records.ts";

const { CONFIRMED, RUNNING, BEING_DELETED, DELETING_JOBS, DEGRADED, BEING_ALTERED, UNCONFIRMED, IN_CONFLICT } = RESV_STATE;

/**
 * Called when a place was found: by a scheduler for its partition, or by the server itself (partition null). What follows
 * depends on the state: the reservation is new, is being altered, or had lost its place.
 */
export function confirm(tx: Transaction, resv: Resv, found: Promised, partition: string | null): void {
  switch (resv.attrs.reserve_state) {
    case UNCONFIRMED:
      return confirmNew(tx, resv, found, partition);
    case BEING_ALTERED:
      return confirmAlteration(tx, resv, found);
    default:
      settle(tx, resv, withPlaces(resv.attrs.promised, found, occurrencesLeft(resv)));
      logResv(tx, LOG_EVENT.RESV, resv.id, "Reservation confirmed");
      accountConfirmed(tx, resv, resvRequestor(tx));
  }
}

function confirmNew(tx: Transaction, resv: Resv, found: Promised, partition: string | null): void {
  const set: Attrs = partition === null ? {} : { partition };
  const [first] = found.occurrences;
  if (resv.attrs.reserve_start === undefined && first !== undefined)
    Object.assign(set, { reserve_start: first.start_s, reserve_end: first.end_s });
  settle(tx, resv, found, set);
  tx.apply({ kind: "changed", object: "queue", name: resv.attrs.queue, set: { enabled: true, ...set_partition(partition) }, unset: [] });
  logResv(tx, LOG_EVENT.RESV, resv.id, "Reservation confirmed");
  accountConfirmed(tx, resv, resvRequestor(tx));
  mail(tx, resv, "c", "Reservation transitioned from state UNCONFIRMED to CONFIRMED");
  if (moveSourceJob(tx, resv)) tx.act({ kind: "answer-resv", resv: resv.id, word: "CONFIRMED" });
  else giveUp(tx, resv);
}

const set_partition = (partition: string | null): Attrs => (partition === null ? {} : { partition });

/** Puts the new times and amounts of an alteration into effect. If the period had begun and its new start lies in the future, it counts as not begun. */
function confirmAlteration(tx: Transaction, resv: Resv, found: Promised): void {
  const { reserve_start = 0 } = resv.attrs;
  const ahead = isBegun(resv) && reserve_start > tx.now_s;
  const promised = withPlaces(resv.attrs.promised, found, occurrencesLeft(resv));
  const longer = resv.attrs.cleaning === true && cleansFrom(resv) > tx.now_s;
  settle(tx, resv, promised, {}, ahead ? ["begun", "cleaning"] : longer ? ["cleaning"] : []);
  if (ahead) setStarted(tx, resv, false);
  else if (longer) setStarted(tx, resv, true);
  followQueue(tx, resv);
  logResv(tx, LOG_EVENT.RESV, resv.id, "Reservation alter confirmed");
  accountConfirmed(tx, resv, resvRequestor(tx));
  mail(tx, resv, "c", `Reservation alter successful for ${resv.id}`);
  tx.act({ kind: "answer-resv", resv: resv.id, word: "CONFIRMED" });
}

const cleansFrom = ({ attrs: { reserve_end = 0, post_processing = 0 } }: Resv): number => reserve_end - post_processing;

/** Sets the state of a reservation whose occurrences all have places. */
function settle(tx: Transaction, resv: Resv, promised: Promised, more: Attrs = {}, gone: readonly string[] = []): void {
  const state = isBegun(resv) && !gone.includes("begun") ? RUNNING : CONFIRMED;
  const [first] = promised.occurrences;
  const set: Attrs = {
    promised,
    reserve_state: state,
    reserve_substate: state,
    reserve_execvnodes: execVnodesText(promised),
    ...more,
  };
  const nodes = first === undefined ? undefined : promised.places[first.place];
  if (nodes !== undefined) set["resv_nodes"] = nodes;
  const unset = ["alteration", "reconfirm", "short", ...gone].filter((name) => resv.attrs[name] !== undefined);
  tx.apply({ kind: "changed", object: "resv", name: resv.id, set, unset });
}

/** Updates the queue of a reservation: it admits the users of the reservation, and its limits are the reserved amounts. */
export function followQueue(tx: Transaction, { attrs }: Resv): void {
  const queue = tx.state.queues.get(attrs.queue);
  if (queue === undefined) return;
  const set: Attrs = { ...accessOf(attrs), ...amountsOf(tx.state, attrs) };
  const same = Object.entries(set).every(([name, value]) => JSON.stringify(queue.attrs[name]) === JSON.stringify(value));
  if (!same) tx.apply({ kind: "changed", object: "queue", name: queue.name, set, unset: [] });
}

/**
 * Called when no scheduler has found a place, or none has answered in time. A new reservation is deleted, an alteration is
 * taken back, and for a degraded reservation the schedulers search again later.
 */
export function deny(tx: Transaction, resv: Resv): void {
  switch (resv.attrs.reserve_state) {
    case UNCONFIRMED:
      logResv(tx, LOG_EVENT.JOB, resv.id, "Reservation denied");
      giveUp(tx, resv);
      break;
    case BEING_ALTERED:
      takeBack(tx, resv);
      break;
    default:
      retryLater(tx, resv, { unset: ["reconfirm"] });
  }
}

function giveUp(tx: Transaction, resv: Resv): void {
  mail(tx, resv, "a", "Reservation denied");
  tx.act({ kind: "answer-resv", resv: resv.id, word: "DENIED" });
  end(tx, resv);
  logResv(tx, LOG_EVENT.DEBUG, resv.id, "reservation deleted");
}

/** Takes back an alteration that was denied: restores the reservation. */
function takeBack(tx: Transaction, resv: Resv): void {
  const { alteration, reserve_substate } = resv.attrs;
  const before = alteration?.before ?? {};
  const set: Attrs = {
    reserve_state: isBegun(resv) ? RUNNING : reserve_substate === DEGRADED || reserve_substate === IN_CONFLICT ? DEGRADED : CONFIRMED,
  };
  const unset = ["alteration"];
  for (const [name, value] of Object.entries(before)) {
    if (value === null) unset.push(name);
    else set[name] = value;
  }
  tx.apply({ kind: "changed", object: "resv", name: resv.id, set, unset });
  followQueue(tx, resv);
  logResv(tx, LOG_EVENT.RESV, resv.id, "Reservation alter denied");
  mail(tx, resv, "a", `Unable to alter reservation ${resv.id}`);
  tx.act({ kind: "answer-resv", resv: resv.id, word: "DENIED" });
}

const RETRY_S_DEFAULT = 600;

/** Sets the time of the next search for a place: after reserve_retry_time, at the latest at the start of the period. */
export function retryLater(tx: Transaction, resv: Resv, change: { readonly set?: Attrs; readonly unset?: readonly string[] } = {}): void {
  const { server } = tx.state;
  const wait_s = Number(server["reserve_retry_time"] ?? server["reserve_retry_init"] ?? RETRY_S_DEFAULT);
  const { reserve_start = 0 } = resv.attrs;
  const reserve_retry = reserve_start > tx.now_s ? Math.min(tx.now_s + wait_s, reserve_start) : tx.now_s + wait_s;
  const unset = (change.unset ?? []).filter((name) => resv.attrs[name] !== undefined);
  tx.apply({ kind: "changed", object: "resv", name: resv.id, set: { ...change.set, reserve_retry }, unset });
  logResv(tx, LOG_EVENT.DEBUG2, resv.id, `An attempt to reconfirm reservation will be made on ${tx.config.ctime(reserve_retry)}`);
}

/** Deletes a reservation that was not confirmed within the time that its owner has given. */
export function expire(tx: Transaction, resv: Resv): void {
  tx.act({ kind: "answer-resv", resv: resv.id, word: "delete, wait period expired" });
  end(tx, resv);
}

/** Called when an occurrence begins: starts the queue of the reservation and triggers its schedulers. */
export function begin(tx: Transaction, resv: Resv): void {
  const { reserve_state, reserve_substate } = resv.attrs;
  const set: Attrs = { begun: tx.now_s };
  if (reserve_state !== BEING_ALTERED) set["reserve_state"] = RUNNING;
  if (reserve_substate === CONFIRMED) set["reserve_substate"] = RUNNING;
  tx.apply({ kind: "changed", object: "resv", name: resv.id, set, unset: [] });
  accountBegun(tx, resv);
  mail(tx, resv, "b", "Reservation period starting");
  setStarted(tx, resv, true);
  triggerScheds(tx, resv, SCHED_COMMAND.JOBRESV);
}

/** Called when the remaining time of an occurrence is for cleaning up (resv_post_processing_time): its jobs are ended. */
export function cleanUp(tx: Transaction, resv: Resv): void {
  tx.apply({ kind: "changed", object: "resv", name: resv.id, set: { cleaning: true }, unset: [] });
  setStarted(tx, resv, false);
  deleteJobs(tx, resv, "running");
}

function setStarted(tx: Transaction, { attrs: { queue } }: Resv, started: boolean): void {
  if (tx.state.queues.has(queue)) tx.apply({ kind: "changed", object: "queue", name: queue, set: { started }, unset: [] });
}

/** Triggers the schedulers of the reservation's vnodes: the scheduler of its partition, or several schedulers for a maintenance reservation. */
function triggerScheds(tx: Transaction, resv: Resv, command: SchedCommand): void {
  const { partition } = resv.attrs;
  const vnodes = [...resv.vnodes].flatMap((name) => tx.state.vnodes.get(name) ?? []);
  const partitions = partition !== undefined ? [partition] : vnodes.map(partitionOf);
  const names = new Set(partitions.flatMap((name) => schedOfPartition(tx.state, name)?.name ?? []));
  for (const sched of names) tx.act({ kind: "trigger-sched", sched, command });
}

/** Called when an occurrence ends: a standing reservation goes on to its next occurrence; any other reservation ends. */
export function endPeriod(tx: Transaction, resv: Resv): void {
  if (isBegun(resv)) mail(tx, resv, "e", "Reservation period ended");
  const { standing, reserve_index = 1 } = resv.attrs;
  const start_s = resv.starts[reserve_index];
  if (standing === undefined || start_s === undefined) return end(tx, resv);
  nextOccurrence(tx, resv, standing, start_s);
}

/** Goes on to the next occurrence. Only running jobs are deleted. Alterations of the finished occurrence have no further effect. */
function nextOccurrence(tx: Transaction, resv: Resv, standing: NonNullable<Resv["attrs"]["standing"]>, start_s: number): void {
  const { attrs } = resv;
  const promised = { occurrences: attrs.promised?.occurrences.slice(1) ?? [], places: attrs.promised?.places ?? [] };
  const nodes = promised.places[promised.occurrences[0]?.place ?? NO_PLACE];
  const set: Attrs = {
    reserve_index: (attrs.reserve_index ?? 1) + 1,
    reserve_start: start_s,
    reserve_end: start_s + standing.duration,
    reserve_duration: standing.duration,
    Resource_List: standing.list,
    schedselect: standing.schedselect,
    promised,
    ...(nodes === undefined ? {} : { resv_nodes: nodes }),
  };
  const sound = attrs.reserve_substate === RUNNING || attrs.reserve_substate === CONFIRMED;
  set["reserve_state"] = sound ? CONFIRMED : DEGRADED;
  if (sound) set["reserve_substate"] = CONFIRMED;
  const waited = attrs.reserve_state === BEING_ALTERED;
  const unset = ["begun", "cleaning", "alteration", ...(nodes === undefined ? ["resv_nodes"] : [])].filter(
    (name) => attrs[name] !== undefined,
  );
  tx.apply({ kind: "changed", object: "resv", name: resv.id, set, unset });
  setStarted(tx, resv, false);
  followQueue(tx, resv);
  deleteJobs(tx, resv, "running");
  triggerScheds(tx, resv, SCHED_COMMAND.TERM);
  if (waited) tx.act({ kind: "answer-resv", resv: resv.id, word: "DENIED" });
}

/** Ends a reservation for good, because of its time or of a request: deletes its jobs; the reservation is deleted when the last job is gone. */
export function end(tx: Transaction, resv: Resv): void {
  if (resv.attrs.reserve_state !== BEING_DELETED) {
    accountRemoved(tx, resv);
    triggerScheds(tx, resv, SCHED_COMMAND.TERM);
    const set = { reserve_state: BEING_DELETED, reserve_substate: DELETING_JOBS };
    tx.apply({ kind: "changed", object: "resv", name: resv.id, set, unset: [] });
    if (tx.state.queues.has(resv.attrs.queue))
      tx.apply({ kind: "changed", object: "queue", name: resv.attrs.queue, set: { enabled: false, started: false }, unset: [] });
  }
  deleteJobs(tx, resv, "all");
  removeWhenEmpty(tx, resv);
}

/** Deletes a reservation that has ended, with its queue, if the queue has no job. */
export function removeWhenEmpty(tx: Transaction, resv: Resv): void {
  const { queue, reserve_state } = resv.attrs;
  if (reserve_state !== BEING_DELETED || !tx.state.resvs.has(resv.id) || (tx.state.queues.get(queue)?.jobs.size ?? 0) > 0) return;
  tx.apply({ kind: "deleted", object: "resv", name: resv.id });
  removeQueue(tx, queue);
}

function mail(tx: Transaction, resv: Resv, point: string, text: string): void {
  tx.act({ kind: "mail-resv", resv: resv.id, point, text });
}
