// The rows of a live job. One holds the job as it was submitted or altered; beside it a small second one holds what its run changes again and again. A start
// and its confirmation, a comment, usage: each writes the second row only, a fifth of the first.
//
// J1. The whole row holds every attribute. Where there is a second row, it alone says what the job has of RUN_ATTRS: what it lacks the job lacks, whatever
//     stands in the whole row.
// J2. RUN_ATTRS is part of the store's format: another list needs a step in store/schema.ts that makes one row of two.

import type { Data } from "#store/store.ts";
import type { Attrs, Job, JobAttrs } from "./state.ts";
import { subjobsText } from "./subjobs.ts";

/** How the subjobs of an array stand; no attribute, but kept with them in its row. */
const SUBJOBS = "subjobs";

/** What changes while a job waits for its start, runs and ends, without anybody's altering it. */
// biome-ignore format: a list
const RUN_ATTRS: ReadonlySet<string> = new Set([
  "job_state", "substate", "mtime", "comment", "etime", "eligible_time", "accrue_type", "accrual_clock", "sample_starttime", "estimated", "topjob",
  "exec_vnode", "exec_host", "run_count", "stime", "placed_by_hand", "session_id", "jobdir", "resources_used", "idled", "preempting", "paused", "ptime",
  "resources_released", "resource_released_list", "releasing", "termination", "Exit_status", "Stageout_status", "obittime", "checkpointed", SUBJOBS,
]);

/** Whether a change of a job leaves its whole row as it is. */
export function isOfRun(set: Attrs, unset: readonly string[]): boolean {
  for (const name in set) if (!RUN_ATTRS.has(name)) return false;
  return unset.length === 0 || unset.every((name) => RUN_ATTRS.has(name));
}

/** The whole row: its attributes, and how the subjobs of an array stand. */
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

/** The attributes that the rows of a job stand for (J1). */
export function attrsOfRows(whole: Data, run: Data | undefined): JobAttrs {
  if (run === undefined) return whole as JobAttrs;
  const attrs: Attrs = { ...whole, ...run };
  const gone = Object.keys(whole).filter((name) => RUN_ATTRS.has(name) && run[name] === undefined);
  for (const name of gone) delete attrs[name];
  // A record that lost a property is a slow and large one; its copy is not.
  return (gone.length === 0 ? attrs : { ...attrs }) as JobAttrs;
}
