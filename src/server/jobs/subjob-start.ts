// Starts of subjobs: a subjob becomes a job of its own when it starts, and its array begins with the first one.
//
//   array:  Q 10 --first start--> B 70 --last subjob over (array-end.ts)--> F 92, F 91 when one was deleted         H: held, before or after its begin
//
// I1. A subjob gets the attributes that the array has when the subjob first starts; later alterations of the array affect
//     only subjobs that start later.
// I2. Holds and dependencies belong to the array; a subjob has none.

import { arrayIdOf, subjobIndex } from "#model/job-id.ts";
import { SUBSTATE } from "#model/job-state.ts";
import type { Transaction } from "../engine/transaction.ts";
import { NOTHING_OWN } from "../state/job-own.ts";
import type { Job, JobAttrs, ServerState } from "../state/state.ts";
import { SUBJOB, subjobState } from "../state/subjobs.ts";
import { accountStarted } from "./accounting-record.ts";
import { commentDate, settleJob } from "./life.ts";

/** Returns the job that a waiting subjob would become at its start; undefined: no waiting subjob has that id. */
export function queuedSubjob(state: ServerState, id: string): Job | undefined {
  const array_id = arrayIdOf(id);
  const array = array_id === null ? undefined : state.jobs.get(array_id);
  if (array?.subjobs === undefined) return undefined;
  const index = subjobIndex(id);
  if (subjobState(array.subjobs, index) !== SUBJOB.QUEUED) return undefined;
  const attrs: JobAttrs = { ...subjobAttrs(array.attrs), array_id: array.id, array_index: String(index) };
  for (const name of WITH_INDEX) {
    const value = attrs[name];
    if (typeof value === "string") attrs[name] = value.replaceAll("^array_index^", String(index));
    else if (Array.isArray(value)) attrs[name] = value.map((item) => String(item).replaceAll("^array_index^", String(index)));
  }
  return { id, seq: array.seq, attrs, own: NOTHING_OWN };
}

/** Attributes in which `^array_index^` is replaced by the index of the subjob. */
const WITH_INDEX = ["Output_Path", "Error_Path", "stagein", "stageout"] as const;

/** The attributes that subjobs take from their array. */
export function subjobAttrs(array: JobAttrs): JobAttrs {
  const attrs: JobAttrs = { ...array, job_state: "Q", substate: SUBSTATE.QUEUED, Hold_Types: "n" };
  for (const name of ARRAYS_OWN) if (attrs[name] !== undefined) delete attrs[name];
  return { ...attrs };
}

const ARRAYS_OWN: readonly (keyof JobAttrs & string)[] = [
  "array",
  "array_indices_submitted",
  "array_indices_remaining",
  "array_state_count",
  "max_run_subjobs",
  "block",
  "comment",
  "depend",
  "estimated",
  "Stageout_status",
  "stime",
  "subjobs",
  "topjob",
];

/**
 * Called when a subjob has started: removes the array's estimate, which was for this subjob. The first start begins the
 * array: record S, comment, and state B unless the array is held.
 */
export function noteStart(tx: Transaction, array: Job): void {
  const unset = ["estimated", "topjob"].filter((name) => array.attrs[name] !== undefined);
  if (array.attrs.stime !== undefined) {
    if (unset.length > 0) tx.apply({ kind: "job-changed", id: array.id, set: {}, unset });
    return;
  }
  settleJob(tx, array, { stime: tx.now_s, comment: `Job Array Began at ${commentDate(tx)}` }, unset);
  accountStarted(tx, array);
  tx.act({ kind: "mail", job: array.id, point: "b", text: "" });
}
