// Loads all live rows of the store's file as fast as possible. A query returns a whole page of jobs as one result row,
// because every single value that SQLite returns costs more than its text. This takes a third of the time that single rows
// take.

import { nth } from "#support/assert.ts";
import { alikeReader } from "../alike-rows.ts";
import type { Data, JobRow, Keep, Loaded, ObjectRow, ObjectTable } from "../store.ts";
import type { Connection } from "./sqlite.ts";
import { damagedRow, parseData } from "./sqlite.ts";
import { OBJECT_TABLES } from "./sqlite-commit.ts";
import { OWN_COUNTERS } from "./sqlite-mark.ts";

const PAGE_ROWS = 2000;
/** Rows of the first page of jobs, which is read while the program is still loading. */
const FIRST_PAGE_ROWS = 6000;
/** The longest row that is read as a part of a page. Longer rows are read one by one, because a page must fit into a string. */
const PAGED_BYTES_MAX = 16 * 1024;
/** The character between the texts of a page. JSON never contains it. */
const SEPARATOR = "\x1e";

/** The first page of jobs while it is being read. */
export type Ahead = { readonly page: Promise<Page | undefined> };

export async function readAhead(connection: Connection): Promise<Ahead> {
  await connection.prepare(pageQuery("jobs"));
  const page = readPage(connection, "jobs", ORDER.jobs.first, FIRST_PAGE_ROWS);
  page.catch(() => undefined);
  return { page };
}

/** Loads all live rows. keep: see Store.load. ahead: the first page, if its reading was begun already and no commit has followed; null: it was not. */
export async function loadRows(connection: Connection, keep: Keep, ahead: Ahead | null): Promise<Loaded> {
  const objects = {} as { [T in ObjectTable]: readonly ObjectRow[] };
  const counters: { [name: string]: number } = {};
  const loadTables = OBJECT_TABLES.map(async (table) => {
    objects[table] = await loadTable(connection, table);
  });
  const loadCounters = async (): Promise<void> => {
    const rows = await connection.all<{ name: string; value: number }>("SELECT name, value FROM counters");
    for (const { name, value } of rows) if (!OWN_COUNTERS.has(name)) counters[name] = value;
  };
  const parts = [loadJobs(connection, keep, ahead), loadCounters(), ...loadTables] as const;
  // All calls must end before a fault is reported, because a connection may be closed only when no call on it is in progress.
  await Promise.allSettled(parts);
  const [jobs] = await Promise.all(parts);
  const fresh = jobs.length === 0 && Object.keys(counters).length === 0 && OBJECT_TABLES.every((table) => objects[table].length === 0);
  return { objects, jobs, counters, fresh };
}

async function loadTable(connection: Connection, table: ObjectTable): Promise<ObjectRow[]> {
  const rows = await connection.all<{ name: string; data: string }>(`SELECT name, data FROM ${table} ORDER BY rowid`);
  return rows.map(({ name, data }) => ({ name, data: parseData(connection.file, table, name, data) }));
}

/** Loads the jobs page by page. While this thread makes records from one page, SQLite's thread reads the next page. */
async function loadJobs(connection: Connection, keep: Keep, ahead: Ahead | null): Promise<Loaded["jobs"]> {
  const runs = new Map<string, Data>();
  for await (const rows of pages(connection, "runs", keep)) for (const { id, data } of rows) runs.set(id, data);
  const jobs: (JobRow & { run?: Data })[] = [];
  for await (const rows of pages(connection, "jobs", keep, ahead?.page))
    for (const row of rows) {
      const run = runs.get(row.id);
      jobs.push(run === undefined ? row : { ...row, run });
    }
  return jobs.sort((a, b) => a.seq - b.seq);
}

/**
 * A page of rows. ids, seqs: JSON lists. texts: the texts of the rows; "" for a row that is too long for a page. last: the
 * key after which the next page begins; null: this page is empty.
 */
type Page = { readonly ids: string; readonly seqs: string; readonly texts: string | null; readonly last: string | number | null };

/** The order of rows. first: a value that is smaller than every value of the column `by`. */
const ORDER = { jobs: { by: "rowid", seq: "seq", first: 0 }, runs: { by: "id", seq: "0", first: "" } } as const;

const pageQuery = (table: keyof typeof ORDER): string =>
  `SELECT json_group_array(id) AS ids, json_group_array(seq) AS seqs, max(place) AS last,
     group_concat(CASE WHEN octet_length(data) > ${PAGED_BYTES_MAX} THEN '' ELSE data END, char(${SEPARATOR.charCodeAt(0)})) AS texts
   FROM (SELECT ${ORDER[table].by} AS place, id, ${ORDER[table].seq} AS seq, data FROM ${table} WHERE place > ? ORDER BY place LIMIT ?)`;

const readPage = async (
  connection: Connection,
  table: keyof typeof ORDER,
  after: string | number,
  rows: number,
): Promise<Page | undefined> => (await connection.all<Page>(pageQuery(table), after, rows))[0];

async function* pages(
  connection: Connection,
  table: keyof typeof ORDER,
  keep: Keep,
  first = readPage(connection, table, ORDER[table].first, PAGE_ROWS),
): AsyncGenerator<readonly JobRow[], void, void> {
  const { file } = connection;
  const read = alikeReader(keep);
  let next = first;
  try {
    for (let page = await next; page !== undefined && page.last !== null; page = await next) {
      next = readPage(connection, table, page.last, PAGE_ROWS);
      // The next page may fail while this page waits for a long row. The fault is reported when the next page is used.
      next.catch(() => undefined);
      yield await rowsOf(page);
    }
  } finally {
    await next.catch(() => undefined);
  }

  async function rowsOf(page: Page): Promise<JobRow[]> {
    const ids = JSON.parse(page.ids) as readonly string[];
    const seqs = JSON.parse(page.seqs) as readonly number[];
    const texts = (page.texts ?? "").split(SEPARATOR);
    if (texts.length !== ids.length) throw damagedRow(file, table, `one of ${ids[0]} to ${ids.at(-1)}`);
    const rows: JobRow[] = [];
    for (const [at, id] of ids.entries()) {
      const text = texts[at] || (await readLong(connection, table, id));
      rows.push({ id, seq: nth(seqs, at), data: parseData(file, table, id, text, read) });
    }
    return rows;
  }
}

async function readLong(connection: Connection, table: keyof typeof ORDER, id: string): Promise<string> {
  const [row] = await connection.all<{ data: string }>(`SELECT data FROM ${table} WHERE id = ?`, id);
  return row?.data ?? "";
}
