// The store of tests and of the simulator. Its rows are in maps, as JSON text, so that they share nothing with the server's
// objects. It can produce faults on request. It is deterministic: it uses no clock and no timers, and every promise settles
// in the turn of the event loop in which it was made.

import { mustGet } from "#support/assert.ts";
import { alikeReader } from "./alike-rows.ts";
import type { Batch, Data, History, HistoryFilter, HistoryRow, Keep, Loaded, ObjectRow, ObjectTable, Store, StoreFault } from "./store.ts";
import { asItIs, OBJECT_TABLES, StoreError } from "./store.ts";

export type MemoryStore = Store & {
  /** makes the next `times` commits fail */
  failCommits(fault: StoreFault, times?: number): void;
  /** returns a copy of everything that is on the "disk", which is what a restarted server would load */
  clone(): MemoryStore;
  readonly commits: number;
};

type Tables = {
  readonly objects: Map<string, string>;
  readonly jobs: Map<string, { readonly seq: number; readonly data: string }>;
  readonly runs: Map<string, string>;
  readonly scripts: Map<string, string>;
  readonly history: Map<string, Omit<HistoryRow, "data"> & { readonly data: string }>;
  readonly counters: Map<string, number>;
};

export function memoryStore(): MemoryStore {
  return storeOf({ objects: new Map(), jobs: new Map(), runs: new Map(), scripts: new Map(), history: new Map(), counters: new Map() });
}

function storeOf(tables: Tables): MemoryStore {
  let failing: { readonly fault: StoreFault; times: number } | null = null;
  let commits = 0;
  return {
    load: async (keep = asItIs) => load(tables, keep),
    async commit(batch) {
      if (failing !== null && failing.times > 0) {
        failing.times--;
        throw new StoreError(failing.fault, `memory store: ${failing.fault}`);
      }
      apply(tables, batch);
      commits++;
    },
    scripts: async (ids) => new Map(ids.flatMap((id) => (tables.scripts.has(id) ? [[id, mustGet(tables.scripts, id)]] : []))),
    history: history(tables),
    backup: async () => undefined,
    check: async () => null,
    close: async () => undefined,
    failCommits(fault, times = 1) {
      failing = { fault, times };
    },
    clone: () =>
      storeOf({
        objects: new Map(tables.objects),
        jobs: new Map(tables.jobs),
        runs: new Map(tables.runs),
        scripts: new Map(tables.scripts),
        history: new Map(tables.history),
        counters: new Map(tables.counters),
      }),
    get commits() {
      return commits;
    },
  };
}

const parse = (text: string): Data => JSON.parse(text) as Data;

function apply(tables: Tables, batch: Batch): void {
  for (const { table, name } of batch.drop ?? []) tables.objects.delete(`${table}\n${name}`);
  for (const { table, name, data } of batch.put ?? []) tables.objects.set(`${table}\n${name}`, JSON.stringify(data));
  for (const id of batch.jobs_gone ?? []) {
    tables.jobs.delete(id);
    tables.runs.delete(id);
    tables.scripts.delete(id);
  }
  for (const { id, seq, data } of batch.jobs ?? []) tables.jobs.set(id, { seq, data: JSON.stringify(data) });
  for (const id of batch.runs_gone ?? []) tables.runs.delete(id);
  for (const { id, data } of batch.runs ?? []) tables.runs.set(id, JSON.stringify(data));
  for (const { id, text } of batch.scripts ?? []) tables.scripts.set(id, text);
  for (const id of batch.history_gone ?? []) tables.history.delete(id);
  for (const seq of batch.history_gone_arrays ?? [])
    for (const row of [...tables.history.values()]) if (row.seq === seq && row.idx >= 0) tables.history.delete(row.id);
  for (const row of batch.history ?? []) tables.history.set(row.id, { ...row, data: JSON.stringify(row.data) });
  for (const [name, value] of Object.entries(batch.counters ?? {})) tables.counters.set(name, value);
}

function load(tables: Tables, keep: Keep): Loaded {
  const [read, readRun] = [alikeReader(keep), alikeReader(keep)];
  const objects = Object.fromEntries(OBJECT_TABLES.map((table) => [table, [] as ObjectRow[]])) as { [T in ObjectTable]: ObjectRow[] };
  for (const [key, data] of tables.objects) {
    const [table, name] = key.split("\n") as [ObjectTable, string];
    objects[table].push({ name, data: parse(data) });
  }
  const jobs = [...tables.jobs].map(([id, { seq, data }]) => {
    const run = tables.runs.get(id);
    return { id, seq, data: read(data), ...(run === undefined ? {} : { run: readRun(run) }) };
  });
  jobs.sort((a, b) => a.seq - b.seq);
  const fresh = tables.objects.size === 0 && jobs.length === 0 && tables.counters.size === 0;
  return { objects, jobs, counters: Object.fromEntries(tables.counters), fresh };
}

function history(tables: Tables): History {
  const row = (stored: Omit<HistoryRow, "data"> & { readonly data: string }): HistoryRow => ({ ...stored, data: parse(stored.data) });
  const find = (filter: HistoryFilter): HistoryRow[] =>
    [...tables.history.values()]
      .filter((item) => filter.ids === undefined || filter.ids.includes(item.id))
      .filter((item) => filter.seqs === undefined || filter.seqs.includes(item.seq))
      .filter((item) => filter.subjobs !== false || item.idx < 0)
      .filter((item) => filter.owner === undefined || filter.owner === item.owner)
      .filter((item) => filter.queue === undefined || filter.queue === item.queue)
      .filter(
        (item) =>
          item.ended_s >= (filter.since_s ?? Number.NEGATIVE_INFINITY) && item.ended_s < (filter.before_s ?? Number.POSITIVE_INFINITY),
      )
      .sort((a, b) => a.seq - b.seq || a.idx - b.idx || (a.id < b.id ? -1 : 1))
      .map(row);
  return {
    get: async (id) => find({ ids: [id] })[0] ?? null,
    async *pages(filter, page_rows = 1000) {
      const rows = find(filter);
      for (let at = 0; at < rows.length; at += page_rows) yield rows.slice(at, at + page_rows);
    },
    count: async () => tables.history.size,
    usesResource: async (resource) => find({}).some(({ data }) => Object.hasOwn((data["Resource_List"] ?? {}) as Data, resource)),
    async purge(before_s, rows = 10_000) {
      const gone = find({ before_s })
        .sort((a, b) => a.ended_s - b.ended_s)
        .slice(0, rows);
      for (const { id } of gone) tables.history.delete(id);
      return gone.map(({ id, queue, state }) => ({ id, queue, state }));
    },
  };
}
