// How job arrays end (docs/reference/commands.md 1.4): with their last subjob, however that ended. Exit_status of an array that has begun: 1 when a subjob failed, else 0.
//
// I1. An array lives as long as one of its subjobs waits, or is a job of its own.

import type { Transaction } from "../engine/transaction.ts";
import type { Attrs, Job } from "../state/state.ts";
import { indicesIn, isOver, SUBJOB, type Subjobs, subjobsText } from "../state/subjobs.ts";
import { accountDeleted, accountEnded } from "./accounting-record.ts";
import { endWaiting, leave } from "./end.ts";

/** A subjob is over. Of an array's output all has been delivered (Stageout_status 1) or something has not (0). */
export function subjobEnded(tx: Transaction, array: Job, { attrs }: Job): void {
  const before = array.attrs["Stageout_status"];
  const delivered = attrs["Stageout_status"];
  if (delivered !== undefined && before !== 0 && before !== delivered)
    tx.apply({ kind: "job-changed", id: array.id, set: { Stageout_status: delivered }, unset: [] });
  endArrayIfOver(tx, array);
}

/** Ends an array whose last subjob is over; any other is left alone. */
export function endArrayIfOver(tx: Transaction, array: Job): void {
  const { subjobs, attrs } = array;
  if (subjobs === undefined || !isOver(subjobs)) return;
  const keep = array.own.termination?.history !== false;
  if (!keep && tx.state.history_count > 0) tx.apply({ kind: "history-purged", ids: [], arrays: [array.seq] });
  if (attrs.stime === undefined) {
    // Its subjobs were deleted one by one: so is the array.
    if (array.own.termination === undefined) accountDeleted(tx, array.id);
    endWaiting(tx, array, keep, unstartedAttrs(subjobs));
    return;
  }
  const deleted = subjobs.counts[SUBJOB.DELETED] > 0;
  const Exit_status = subjobs.counts[SUBJOB.FAILED] > 0 ? 1 : 0;
  tx.apply({ kind: "job-changed", id: array.id, set: { Exit_status }, unset: [] });
  accountEnded(tx, "E", array, tx.now_s);
  tx.act({ kind: "mail", job: array.id, point: "e", text: `Execution terminated\nExit_status=${Exit_status}` });
  const how = deleted ? "deleted" : "finished";
  const word = deleted ? "terminated" : "finished";
  const comment = attrs.comment === undefined ? `Job Array ${word}` : `${attrs.comment} and ${word}`;
  const over = { subjobs: subjobsText(subjobs), array_indices_remaining: "-", array_state_count: NONE_LEFT };
  leave(tx, array, how, { ...over, obittime: tx.now_s, comment }, keep);
}

/** What the record of an array says that goes before it has begun: all its subjobs have expired. */
export function unstartedAttrs({ states }: Subjobs): Attrs {
  return {
    subjobs: `D${states.length}`,
    array_indices_remaining: "-",
    array_state_count: `Queued:0 Running:0 Exiting:0 Expired:${states.length}`,
  };
}

/** Of an array that has begun nothing is left to count: its subjobs have gone into the history with it. */
const NONE_LEFT = "Queued:0 Running:0 Exiting:0 Expired:0";

/** Subjobs that wait are deleted: all, or those of these indices. The array ends if they were the last (core/consequences.ts). */
export function deleteWaitingSubjobs(tx: Transaction, array: Job, indices?: readonly number[]): void {
  if (array.subjobs === undefined) return;
  const gone = indices ?? [...indicesIn(array.subjobs, SUBJOB.QUEUED)];
  if (gone.length > 0) tx.apply({ kind: "subjobs-deleted", id: array.id, indices: gone });
}
