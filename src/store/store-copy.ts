// Copies all rows of a store into another one, whatever their kinds are, and compares the rows of two stores.
//
// C1. Nothing else may be committed to either store during the copy.
// C2. Rows are compared as JSON texts, so that names in another order, or numbers in another form, count as a difference.

import { asItIs, type Data, type HistoryRow, type Loaded, OBJECT_TABLES, type Store, StoreError } from "./store.ts";

/** Number of jobs in one commit, and of history rows in one page. Their scripts must fit into memory. */
const PART_ROWS = 500;

/** The number of rows: objects of all tables, unfinished jobs, their scripts, finished jobs. */
export type RowCounts = { readonly objects: number; readonly jobs: number; readonly scripts: number; readonly finished: number };

/** Copies all rows into an empty store. Rejects with StoreError. */
export async function copyStore(from: Store, to: Store): Promise<void> {
  const { objects, jobs, counters } = await from.load();
  await to.commit({ put: OBJECT_TABLES.flatMap((table) => objects[table].map(({ name, data }) => ({ table, name, data }))) });
  for (let at = 0; at < jobs.length; at += PART_ROWS) {
    const part = jobs.slice(at, at + PART_ROWS);
    const scripts = await from.scripts(part.map(({ id }) => id));
    await to.commit({
      jobs: part.map(({ id, seq, data }) => ({ id, seq, data })),
      runs: part.flatMap(({ id, run }) => (run === undefined ? [] : [{ id, data: run }])),
      scripts: [...scripts].map(([id, text]) => ({ id, text })),
    });
  }
  for await (const history of from.history.pages({}, PART_ROWS)) await to.commit({ history });
  // The counters are written last, so that an incomplete copy can be recognized: it has no number for the next job.
  await to.commit({ counters });
}

/** Compares all rows. Rejects with StoreError (corrupt), which names the first row that differs. */
export async function compareStores(a: Store, b: Store): Promise<RowCounts> {
  const [one, other] = [await a.load(asItIs), await b.load(asItIs)];
  mustEqual("counters", sorted(one.counters), sorted(other.counters));
  for (const table of OBJECT_TABLES) mustHaveEqualRows(table, one.objects[table], other.objects[table], ({ name }) => name);
  mustHaveEqualRows("jobs", one.jobs, other.jobs, ({ id }) => id);
  const scripts = await compareScripts(a, b, one.jobs);
  const finished = await compareHistories(a, b);
  const objects = OBJECT_TABLES.reduce((sum, table) => sum + one.objects[table].length, 0);
  return { objects, jobs: one.jobs.length, scripts, finished };
}

async function compareScripts(a: Store, b: Store, jobs: Loaded["jobs"]): Promise<number> {
  let count = 0;
  for (let at = 0; at < jobs.length; at += PART_ROWS) {
    const ids = jobs.slice(at, at + PART_ROWS).map(({ id }) => id);
    const [one, other] = [await a.scripts(ids), await b.scripts(ids)];
    for (const id of ids) mustEqual(`the script of ${id}`, one.get(id) ?? null, other.get(id) ?? null);
    count += one.size;
  }
  return count;
}

async function compareHistories(a: Store, b: Store): Promise<number> {
  let count = 0;
  const others = b.history.pages({}, PART_ROWS);
  for await (const page of a.history.pages({}, PART_ROWS)) {
    const next = await others.next();
    const other: readonly HistoryRow[] = next.done === true ? [] : next.value;
    mustHaveEqualRows("history", page.map(inOrder), other.map(inOrder), ({ id }) => id);
    count += page.length;
  }
  const rest = await others.next();
  if (rest.done !== true) throw differs(`history: ${rest.value[0]?.id ?? "a row"} is in one store only`);
  return count;
}

/** Returns the row with its fields in a fixed order. The order of names in its data stays. */
const inOrder = ({ id, seq, idx, owner, queue, state, ended_s, data }: HistoryRow): HistoryRow => ({
  id,
  seq,
  idx,
  owner,
  queue,
  state,
  ended_s,
  data,
});

function mustHaveEqualRows<T>(table: string, one: readonly T[], other: readonly T[], nameOf: (row: T) => string): void {
  for (let at = 0; at < Math.max(one.length, other.length); at++) {
    const [row, twin] = [one[at], other[at]];
    if (row === undefined || twin === undefined) throw differs(`${table}: ${nameOf((row ?? twin) as T)} is in one store only`);
    if (nameOf(row) !== nameOf(twin)) throw differs(`${table}: ${nameOf(row)} or ${nameOf(twin)} is in one store only`);
    mustEqual(`${table}: ${nameOf(row)}`, row, twin);
  }
}

function mustEqual(what: string, one: unknown, other: unknown): void {
  if (JSON.stringify(one) !== JSON.stringify(other)) throw differs(`${what} differs`);
}

const differs = (what: string): StoreError => new StoreError("corrupt", `the two stores are not equal: ${what}`);
const sorted = (record: Data): readonly unknown[] => Object.entries(record).sort(([a], [b]) => (a < b ? -1 : 1));
