// The rows of a live job. The whole row holds the job as it was submitted or altered. A small second row holds the attributes that a run changes repeatedly.
// A start, its confirmation, a comment and usage each write only the second row, which has a fifth of the size.
//
// J1. The whole row holds every attribute, and the server's own flags among them (job-own.ts). If there is a second row, it alone counts for the names in
//     RUN_ATTRS: a name that the second row lacks is unset, whatever the whole row says.
// J2. RUN_ATTRS belongs to the format of the store. A change of the list needs a step in store/schema.ts that joins the two rows.

import type { Data } from "#store/store.ts";
import { type JobOwn, splitRow } from "./job-own.ts";
import type { Attrs, Job, JobAttrs } from "./state.ts";
import { subjobsText } from "./subjobs.ts";

/** The name under which the states of an array's subjobs are kept in its row. It is no attribute. */
const SUBJOBS = "subjobs";

/** Attributes that change while a job waits, runs and ends, without an alteration by a user. */
// biome-ignore format: a list
const RUN_ATTRS: ReadonlySet<string> = new Set([
  "job_state", "substate", "mtime", "comment", "etime", "eligible_time", "accrue_type", "accrual_clock", "sample_starttime", "estimated", "topjob",
  "exec_vnode", "exec_host", "run_count", "stime", "placed_by_hand", "session_id", "jobdir", "resources_used", "idled", "preempting", "paused", "ptime",
  "resources_released", "resource_released_list", "releasing", "termination", "Exit_status", "Stageout_status", "obittime", "checkpointed", SUBJOBS,
]);

/** Whether a change of a job leaves its whole row unchanged. others: names that are unset, and names of changed flags. */
export function isOfRun(set: Attrs, others: readonly string[]): boolean {
  for (const name in set) if (!RUN_ATTRS.has(name)) return false;
  return others.length === 0 || others.every((name) => RUN_ATTRS.has(name));
}

/** The whole row: the attributes and flags of the job, and the states of an array's subjobs. */
export function jobData({ attrs, own, subjobs }: Job): Attrs {
  return subjobs === undefined ? { ...attrs, ...own } : { ...attrs, ...own, [SUBJOBS]: subjobsText(subjobs) };
}

/** The second row. */
export function runData({ attrs, own, subjobs }: Job): Data {
  const data: { [name: string]: unknown } = {};
  for (const [name, value] of Object.entries(own)) if (RUN_ATTRS.has(name)) data[name] = value;
  for (const name in attrs) if (RUN_ATTRS.has(name) && attrs[name] !== undefined) data[name] = attrs[name];
  if (subjobs !== undefined) data[SUBJOBS] = subjobsText(subjobs);
  return data;
}

/** The attributes and flags that the rows of a job give (J1). */
export function jobOfRows(whole: Data, run: Data | undefined): { readonly attrs: JobAttrs; readonly own: JobOwn } {
  return splitRow(rowOf(whole, run));
}

function rowOf(whole: Data, run: Data | undefined): Attrs {
  if (run === undefined) return whole;
  const attrs: Attrs = { ...whole, ...run };
  const gone = Object.keys(whole).filter((name) => RUN_ATTRS.has(name) && run[name] === undefined);
  for (const name of gone) delete attrs[name];
  // V8 keeps a record slow and large after a property was deleted; a copy is fast and small.
  return gone.length === 0 ? attrs : { ...attrs };
}
