// The rows of a live job. The whole row holds the job as it was submitted or altered. A small second row holds the attributes that a run changes repeatedly.
// A start,
// its confirmation, a comment and usage each write only the second row, which has a fifth of the size.
//
// J1. The whole row holds every attribute. If there is a second row, it alone counts for the attributes in RUN_ATTRS: an attribute that the second row lacks is
//     unset, whatever the whole row says.
// J2. RUN_ATTRS belongs to the format of the store. A change of the list needs a step in store/schema.ts that joins the two rows.

import type { Data } from "#store/store.ts";
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

/** Whether a change of a job leaves its whole row unchanged. */
export function isOfRun(set: Attrs, unset: readonly string[]): boolean {
  for (const name in set) if (!RUN_ATTRS.has(name)) return false;
  return unset.length === 0 || unset.every((name) => RUN_ATTRS.has(name));
}

/** The whole row: the attributes of the job and the states of an array's subjobs. */
export function jobData({ attrs, subjobs }: Job): JobAttrs {
  return subjobs === undefined ? { ...attrs } : { ...attrs, [SUBJOBS]: subjobsText(subjobs) };
}

/** The second row. */
export function runData({ attrs, subjobs }: Job): Data {
  const data: { [name: string]: unknown } = {};
  for (const name in attrs) if (RUN_ATTRS.has(name) && attrs[name] !== undefined) data[name] = attrs[name];
  if (subjobs !== undefined) data[SUBJOBS] = subjobsText(subjobs);
  return data;
}

/** The attributes that the rows of a job give (J1). */
export function attrsOfRows(whole: Data, run: Data | undefined): JobAttrs {
  if (run === undefined) return whole as JobAttrs;
  const attrs: Attrs = { ...whole, ...run };
  const gone = Object.keys(whole).filter((name) => RUN_ATTRS.has(name) && run[name] === undefined);
  for (const name of gone) delete attrs[name];
  // V8 keeps a record slow and large after a property was deleted; a copy is fast and small.
  return (gone.length === 0 ? attrs : { ...attrs }) as JobAttrs;
}
