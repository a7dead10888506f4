// Objects as rows: the rows that a batch of changes writes into the store, and the values in such rows. load.ts makes the state from them.
//
// I1. Values are not copied deeply, because they are never changed in place (state.ts I3). Records of jobs are copied, so each row has its own.
// I2. A row may hold values that a restart finds out again (states of schedulers); load ignores them (scheds/session.ts startAll).
//
// A live job has two rows. The whole row holds the job as it was submitted or altered. A small second row holds the attributes that a run changes repeatedly.
// A start, its confirmation, a comment and usage each write only the second row, which has a fifth of the size.
//
// J1. The whole row holds every attribute, and the server's own flags among them (job-own.ts). If there is a second row, it alone counts for the names in
//     RUN_ATTRS: a name that the second row lacks is unset, whatever the whole row says.
// J2. RUN_ATTRS belongs to the format of the store. A change of the list needs a step in store/schema.ts that joins the two rows.

import { type Batch, type Data, type HistoryRow, type JobRow, type Loaded, type ObjectTable, WHOLE_JOB } from "#store/store.ts";
import { type Changes, hasRows } from "./changes.ts";
import { type JobOwn, splitRow } from "./job-own.ts";
import type { Attrs, Job, JobAttrs, ServerState } from "./state.ts";
import { subjobsText } from "./subjobs.ts";

/** An accounting record when it was due. After a crash it is written again if the file lacks it. */
export type DueRecord = { readonly at_s: number; readonly type: string; readonly id: string; readonly text: string };

/** Row of table `server` besides the server's own: the accounting records of the last batch, which may not have reached the file before a kill. */
const ACCOUNTING_ROW = ".accounting";
/** Rows of table `server`, one for each clock of eligible time. */
export const CLOCK_ROW = ".clock ";

/** The rows of a batch; null: nothing to write. due: its accounting records, which are stored until the next batch that has some. */
export function rowsOf(state: ServerState, changes: Changes, due: readonly DueRecord[] = []): Batch | null {
  if (!hasRows(changes)) return null;
  const put: { table: ObjectTable; name: string; data: Data }[] = [];
  const drop: { table: ObjectTable; name: string }[] = [];
  const write = <T>(table: ObjectTable, names: ReadonlySet<string>, objects: ReadonlyMap<string, T>, data: (object: T) => Data): void => {
    for (const name of names) {
      const object = objects.get(name);
      if (object === undefined) drop.push({ table, name });
      else put.push({ table, name, data: data(object) });
    }
  };
  if (due.length > 0) put.push({ table: "server", name: ACCOUNTING_ROW, data: { due } });
  if (changes.server) put.push({ table: "server", name: state.name, data: state.server });
  write("queues", changes.queues, state.queues, ({ order, attrs }) => ({ order, attrs }));
  write("vnodes", changes.vnodes, state.vnodes, ({ order, attrs, set_by_admin }) => ({ order, attrs, set_by_admin }));
  write("scheds", changes.scheds, state.scheds, ({ order, attrs }) => ({ order, attrs }));
  write("resvs", changes.resvs, state.resvs, ({ attrs }) => ({ attrs }));
  write("resources", changes.resources, state.resources, (def) => ({ ...def }));
  write("hooks", changes.hooks, state.hooks, ({ order, attrs, script, config }) => ({ order, attrs, script, config }));
  for (const id of changes.clocks) {
    const clock = state.clocks.get(id);
    const name = `${CLOCK_ROW}${id}`;
    if (clock === undefined) drop.push({ table: "server", name });
    else put.push({ table: "server", name, data: { ...clock } });
  }
  write("run_times", changes.run_times, state.run_times, (seconds) => ({ seconds }));
  const jobs: JobRow[] = [];
  const jobs_gone: string[] = [];
  const runs: { id: string; data: Data }[] = [];
  const runs_gone: string[] = [];
  for (const id of changes.jobs) {
    const job = state.jobs.get(id);
    if (job === undefined) jobs_gone.push(id);
    else if (changes.jobs_new.has(id)) jobs.push({ id, seq: job.seq, data: jobData(job) });
    else if (changes.jobs_whole.has(id)) {
      jobs.push({ id, seq: job.seq, data: jobData(job) });
      runs_gone.push(id);
    } else runs.push({ id, data: runData(job) });
  }
  const scripts = [...changes.scripts].filter(([id]) => state.jobs.has(id)).map(([id, text]) => ({ id, text }));
  return {
    put,
    drop,
    jobs,
    jobs_gone,
    runs,
    runs_gone,
    scripts,
    history: [...changes.ended.values()].map(historyRow),
    history_gone: [...changes.purged],
    history_gone_arrays: [...changes.purged_arrays],
    ...(changes.server ? { counters: { next_seq: state.next_seq, next_order: state.next_order, next_rank: state.next_rank } } : {}),
  };
}

function historyRow(job: Job): HistoryRow {
  const { attrs } = job;
  return {
    id: job.id,
    seq: job.seq,
    idx: attrs["array_id"] === undefined ? WHOLE_JOB : Number(attrs["array_index"]),
    owner: attrs.Job_Owner.split("@", 1)[0] ?? "",
    queue: attrs.queue,
    state: attrs.job_state,
    ended_s: attrs.history_timestamp ?? 0,
    data: attrs,
  };
}

/** Accounting records of the last batch that had any. */
export function dueRecords(loaded: Loaded): readonly DueRecord[] {
  const row = loaded.objects.server.find(({ name }) => name === ACCOUNTING_ROW);
  return (row?.data["due"] as readonly DueRecord[] | undefined) ?? [];
}

/** A finished job in the form that the store returns. */
export const jobOfHistory = (row: HistoryRow): Job => ({ id: row.id, seq: row.seq, ...splitRow(row.data) });

// --- jobs
//
// J1. The whole row holds every attribute, and the server's own flags among them (job-own.ts). If there is a second row, it alone counts for the names in
//     RUN_ATTRS: a name that the second row lacks is unset, whatever the whole row says.
// J2. RUN_ATTRS belongs to the format of the store. A change of the list needs a step in store/schema.ts that joins the two rows.

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
function runData({ attrs, own, subjobs }: Job): Data {
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
