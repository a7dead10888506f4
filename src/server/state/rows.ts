// Makes the rows that a batch of changes writes into the store. load.ts makes the state from the rows again.
//
// I1. Values of attributes are not copied, because they are never changed in place (state.ts I3). Only the record of a job's
//     attributes is copied for its row.
// I2. A row may contain values that the server finds out again after a restart, for example states of schedulers. After the
//     restart these values are not used (scheds/session.ts startAll).
//
// A live job has two rows. The whole row has the job as it was submitted or altered. A small second row has the attributes
// that a run changes repeatedly. A start, its confirmation, a comment and usage each write only the second row, which has a
// fifth of the size.
//
// J1. The whole row has every attribute, and among them the server's own data (job-own.ts). If there is a second row, the
//     attributes in RUN_ATTRS are read only from it: such an attribute is unset if the second row does not have it, whatever
//     the whole row says.
// J2. RUN_ATTRS belongs to the format of the store. A change of the list needs a step in store/sqlite/schema.ts that joins the two
//     rows.

import { type Batch, type Data, type HistoryRow, type JobRow, type Loaded, type ObjectTable, WHOLE_JOB } from "#store/store.ts";
import { type Changes, hasRows } from "./changes.ts";
import { type JobOwn, splitRow } from "./job-own.ts";
import type { Attrs, Job, JobAttrs, ServerState } from "./state.ts";
import { subjobsText } from "./subjobs.ts";

/** An accounting record of a batch, with its time. After a crash it is written again if the accounting file does not have it. */
export type DueRecord = { readonly at_s: number; readonly type: string; readonly id: string; readonly text: string };

/** A row of table `server` with the accounting records of the last batch. If the server is killed, they may be missing in the accounting file. */
const ACCOUNTING_ROW = ".accounting";
/** The beginning of the names of rows of table `server` that have the clocks of eligible time, one each. */
export const CLOCK_ROW = ".clock ";

/** The rows of a batch; null: there is nothing to write. due: its accounting records, which are stored until the next batch that has accounting records. */
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
  write("run_times", changes.run_times, state.run_times, (value) => ({ ...value }));
  write("backends", changes.backends, state.backends, ({ order, attrs }) => ({ order, attrs }));
  write("runners", changes.runners, state.runners, ({ order, attrs }) => ({ order, attrs }));
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

/** The accounting records of the last batch that had any. */
export function dueRecords(loaded: Loaded): readonly DueRecord[] {
  const row = loaded.objects.server.find(({ name }) => name === ACCOUNTING_ROW);
  return (row?.data["due"] as readonly DueRecord[] | undefined) ?? [];
}

/** A finished job in the form that the store returns. */
export const jobOfHistory = (row: HistoryRow): Job => ({ id: row.id, seq: row.seq, ...splitRow(row.data) });

// --- jobs
//
// For the two rows of a job see J1 and J2 above.

/** The name under which the row of an array has the states of its subjobs. It is not an attribute. */
const SUBJOBS = "subjobs";

/** The attributes that change while a job waits, runs and ends, even if no user alters the job. */
// biome-ignore format: a list
const RUN_ATTRS: ReadonlySet<string> = new Set([
  "job_state", "substate", "mtime", "comment", "etime", "eligible_time", "accrue_type", "accrual_clock", "sample_starttime", "estimated", "topjob",
  "exec_vnode", "exec_host", "run_count", "stime", "placed_by_hand", "session_id", "jobdir", "resources_used", "idled", "preempting", "paused", "ptime",
  "resources_released", "resource_released_list", "releasing", "termination", "Exit_status", "Stageout_status", "obittime", "checkpointed", SUBJOBS,
]);

/** Whether a change of a job concerns only its second row. set: attributes that are set; others: names that are unset, and names of changed own data. */
export function isOfRun(set: Attrs, others: readonly string[]): boolean {
  for (const name in set) if (!RUN_ATTRS.has(name)) return false;
  return others.length === 0 || others.every((name) => RUN_ATTRS.has(name));
}

/** The whole row of a job: its attributes, the server's own data, and for an array the states of its subjobs. */
export function jobData({ attrs, own, subjobs }: Job): Attrs {
  return subjobs === undefined ? { ...attrs, ...own } : { ...attrs, ...own, [SUBJOBS]: subjobsText(subjobs) };
}

/** The second row of a job: the attributes in RUN_ATTRS (J1). */
function runData({ attrs, own, subjobs }: Job): Data {
  const data: { [name: string]: unknown } = {};
  for (const [name, value] of Object.entries(own)) if (RUN_ATTRS.has(name)) data[name] = value;
  for (const name in attrs) if (RUN_ATTRS.has(name) && attrs[name] !== undefined) data[name] = attrs[name];
  if (subjobs !== undefined) data[SUBJOBS] = subjobsText(subjobs);
  return data;
}

/** The attributes and the server's own data from the rows of a job (J1). */
export function jobOfRows(whole: Data, run: Data | undefined): { readonly attrs: JobAttrs; readonly own: JobOwn } {
  return splitRow(rowOf(whole, run));
}

function rowOf(whole: Data, run: Data | undefined): Attrs {
  if (run === undefined) return whole;
  const attrs: Attrs = { ...whole, ...run };
  const gone = Object.keys(whole).filter((name) => RUN_ATTRS.has(name) && run[name] === undefined);
  for (const name of gone) delete attrs[name];
  // In V8, a record from which a property was deleted stays slow and large; its copy is fast and small.
  return gone.length === 0 ? attrs : { ...attrs };
}
