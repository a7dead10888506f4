// The end of job arrays (docs/reference/commands.md 1.4). An array ends when its last subjob ends, in whatever way.
// Exit_status of an array that has begun is 1 if a subjob failed, else 0.
//
// I1. An array stays a live job as long as one of its subjobs waits or is a job of its own.

import type { Transaction } from "../engine/transaction.ts";
import type { Attrs, Job } from "../state/state.ts";
import { indicesIn, isOver, SUBJOB, type Subjobs, subjobsText } from "../state/subjobs.ts";
import { accountDeleted, accountEnded } from "./accounting-record.ts";
import { endWaiting, leave } from "./end.ts";

/** Called when a subjob has ended. Stageout_status of the array becomes 1 if all output has been delivered, else 0. */
export function subjobEnded(tx: Transaction, array: Job, { attrs }: Job): void {
  const before = array.attrs["Stageout_status"];
  const delivered = attrs["Stageout_status"];
  if (delivered !== undefined && before !== 0 && before !== delivered)
    tx.apply({ kind: "job-changed", id: array.id, set: { Stageout_status: delivered }, unset: [] });
  endArrayIfOver(tx, array);
}

/** Ends an array if its last subjob has ended; does nothing to other arrays. */
export function endArrayIfOver(tx: Transaction, array: Job): void {
  const { subjobs, attrs } = array;
  if (subjobs === undefined || !isOver(subjobs)) return;
  const keep = array.own.termination?.history !== false;
  if (!keep && tx.state.history_count > 0) tx.apply({ kind: "history-purged", ids: [], arrays: [array.seq] });
  if (attrs.stime === undefined) {
    // The subjobs were deleted one by one, so the array counts as deleted.
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

/** Returns the attributes that count the subjobs, for an array that is deleted before it has begun. All its subjobs count as expired. */
export function unstartedAttrs({ states }: Subjobs): Attrs {
  return {
    subjobs: `D${states.length}`,
    array_indices_remaining: "-",
    array_state_count: `Queued:0 Running:0 Exiting:0 Expired:${states.length}`,
  };
}

/** array_state_count of an array that has begun and has ended: no subjob is counted, because all have moved into the history. */
const NONE_LEFT = "Queued:0 Running:0 Exiting:0 Expired:0";

/** Deletes waiting subjobs: all, or those with these indices. If no subjob is left, the array ends (core/hearing.ts). */
export function deleteWaitingSubjobs(tx: Transaction, array: Job, indices?: readonly number[]): void {
  if (array.subjobs === undefined) return;
  const gone = indices ?? [...indicesIn(array.subjobs, SUBJOB.QUEUED)];
  if (gone.length > 0) tx.apply({ kind: "subjobs-deleted", id: array.id, indices: gone });
}
