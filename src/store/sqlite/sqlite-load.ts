// Loads all live rows of the store's file as fast as possible. Jobs are read in pages (../row-pages.ts), which takes a third
// of the time that single rows take.

import { isFresh, PAGED_BYTES_MAX, type Page, type PagedTable, type PageSource, readJobs, SEPARATOR_CODE } from "../row-pages.ts";
import { parseData } from "../row-text.ts";
import { type Keep, type Loaded, OBJECT_TABLES, type ObjectRow, type ObjectTable } from "../store.ts";
import type { Connection } from "./sqlite.ts";
import { OWN_COUNTERS } from "./sqlite-mark.ts";

/** Rows of the first page of jobs, which is read while the program is still loading. */
const FIRST_PAGE_ROWS = 6000;

/** The first page of jobs while it is being read. */
export type Ahead = { readonly page: Promise<Page | undefined> };

export async function readAhead(connection: Connection): Promise<Ahead> {
  await connection.prepare(pageQuery("jobs"));
  const page = pagesOf(connection)("jobs").page(null, FIRST_PAGE_ROWS);
  page.catch(() => undefined);
  return { page };
}

/** Loads all live rows. keep: see Store.load. ahead: the first page of jobs, if readAhead was called and nothing was committed since; null: the page is read now. */
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
  const parts = [readJobs(pagesOf(connection), keep, ahead?.page), loadCounters(), ...loadTables] as const;
  // All calls must end before a fault is reported, because a connection may be closed only when no call on it is in progress.
  await Promise.allSettled(parts);
  const [jobs] = await Promise.all(parts);
  return { objects, jobs, counters, fresh: isFresh({ objects, jobs, counters }) };
}

async function loadTable(connection: Connection, table: ObjectTable): Promise<ObjectRow[]> {
  const rows = await connection.all<{ name: string; data: string }>(`SELECT name, data FROM ${table} ORDER BY rowid`);
  return rows.map(({ name, data }) => ({ name, data: parseData(connection.file, table, name, data) }));
}

/** The order of rows. first: a value that is smaller than every value of the column `by`. */
const ORDER = { jobs: { by: "rowid", seq: "seq", first: 0 }, runs: { by: "id", seq: "0", first: "" } } as const;

const pageQuery = (table: PagedTable): string =>
  `SELECT json_group_array(id) AS ids, json_group_array(seq) AS seqs, max(place) AS last,
     group_concat(CASE WHEN octet_length(data) > ${PAGED_BYTES_MAX} THEN '' ELSE data END, char(${SEPARATOR_CODE})) AS texts
   FROM (SELECT ${ORDER[table].by} AS place, id, ${ORDER[table].seq} AS seq, data FROM ${table} WHERE place > ? ORDER BY place LIMIT ?)`;

const pagesOf =
  (connection: Connection) =>
  (table: PagedTable): PageSource => ({
    store: connection.file,
    table,
    page: async (after, rows) => (await connection.all<Page>(pageQuery(table), after ?? ORDER[table].first, rows))[0],
    async long(id) {
      const [row] = await connection.all<{ data: string }>(`SELECT data FROM ${table} WHERE id = ?`, id);
      return row?.data ?? "";
    },
  });
