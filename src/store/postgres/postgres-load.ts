// Loads all live rows of a PostgreSQL store, and the dialect of its history (../sql-history.ts).

import { isFresh, PAGED_BYTES_MAX, type Page, type PagedTable, type PageSource, readJobs, SEPARATOR_CODE } from "../row-pages.ts";
import { parseData } from "../row-text.ts";
import type { HistoryDialect, Reader } from "../sql-history.ts";
import { type Keep, type Loaded, OBJECT_TABLES, type ObjectRow, type ObjectTable } from "../store.ts";

export const POSTGRES_HISTORY: HistoryDialect = {
  texts: "SELECT json_array_elements_text(?::json)",
  numbers: "SELECT json_array_elements_text(?::json)::bigint",
  // Only the few texts in which the name occurs at all are parsed, without the escapes that PostgreSQL refuses (U+0000, lone surrogates).
  uses_resource: String.raw`(SELECT CASE WHEN position(wanted IN data) > 0
    THEN (regexp_replace(data, '(\\\\)|\\u(0000|[dD][89a-fA-F]..)', '\1', 'g')::json -> 'Resource_List' -> wanted) IS NOT NULL ELSE false END
    FROM (SELECT ?::text AS wanted) AS used)`,
};

/** Loads all live rows. keep: see Store.load. */
export async function loadRows(reader: Reader, keep: Keep): Promise<Loaded> {
  const objects = {} as { [T in ObjectTable]: readonly ObjectRow[] };
  const counters: { [name: string]: number } = {};
  for (const table of OBJECT_TABLES) objects[table] = await loadTable(reader, table);
  for (const { name, value } of await reader.all<{ name: string; value: number }>("SELECT name, value FROM counters"))
    counters[name] = value;
  const jobs = await readJobs(pagesOf(reader), keep);
  return { objects, jobs, counters, fresh: isFresh({ objects, jobs, counters }) };
}

async function loadTable(reader: Reader, table: ObjectTable): Promise<ObjectRow[]> {
  const rows = await reader.all<{ name: string; data: string }>(`SELECT name, data FROM ${table} ORDER BY place`);
  return rows.map(({ name, data }) => ({ name, data: parseData(reader.name, table, name, data) }));
}

const pagesOf =
  (reader: Reader) =>
  (table: PagedTable): PageSource => ({
    store: reader.name,
    table,
    page: async (after, rows) =>
      (
        await reader.all<Page>(
          `SELECT json_agg(id)::text AS ids, json_agg(seq)::text AS seqs, max(id) AS last,
             string_agg(CASE WHEN octet_length(data) > ${PAGED_BYTES_MAX} THEN '' ELSE data END, chr(${SEPARATOR_CODE})) AS texts
           FROM (SELECT id, ${table === "jobs" ? "seq" : "0"} AS seq, data FROM ${table} WHERE id > ? ORDER BY id LIMIT ?) AS page`,
          String(after ?? ""),
          rows,
        )
      )[0],
    async long(id) {
      const [row] = await reader.all<{ data: string }>(`SELECT data FROM ${table} WHERE id = ?`, id);
      return row?.data ?? "";
    },
  });

/** Reads the scripts of jobs. */
export async function readScripts(reader: Reader, ids: readonly string[]): Promise<Map<string, string>> {
  const rows = await reader.all<{ id: string; data: string }>(
    "SELECT id, data FROM scripts WHERE id = ANY (ARRAY (SELECT json_array_elements_text(?::json)))",
    JSON.stringify(ids),
  );
  return new Map(rows.map(({ id, data }) => [id, String(JSON.parse(data))]));
}
