// The history: finished jobs, which are never kept in memory. They are read by id, owner, queue and time (qstat -x, -H), one
// page at a time and over a separate connection, so that a long listing delays no commit.

import { parseData } from "./row-text.ts";
import type { History, HistoryFilter, HistoryRow } from "./store.ts";

type Stored = Omit<HistoryRow, "data"> & { readonly data: string };
const COLUMNS = "id, seq, idx, owner, queue, state, ended_s, data";

export type Parameter = string | number | null;
/** A connection to a database. name: the name of the store, for messages. all: `?` in the statement stands for a parameter. */
export type Reader = { readonly name: string; all<T>(sql: string, ...parameters: readonly Parameter[]): Promise<T[]> };

/** The parts of SQL statements in which databases differ. */
export type HistoryDialect = {
  /** queries for the elements of a JSON list, of texts and of numbers; the list is the only parameter */
  readonly texts: string;
  readonly numbers: string;
  /** a condition that holds for a row of history if its Resource_List has a resource; the resource is the only parameter */
  readonly uses_resource: string;
};

/** Makes the history of a store. write: does work as one transaction on the writing connection. */
export function sqlHistory(
  reader: Reader,
  dialect: HistoryDialect,
  write: <T>(work: (writer: Reader) => Promise<T>) => Promise<T>,
): History {
  const row = (stored: Stored): HistoryRow => ({ ...stored, data: parseData(reader.name, "history", stored.id, stored.data) });
  return {
    async get(id) {
      const [found] = await reader.all<Stored>(`SELECT ${COLUMNS} FROM history WHERE id = ?`, id);
      return found === undefined ? null : row(found);
    },
    async *pages(filter, page_rows = 1000) {
      let last: Stored | undefined;
      for (;;) {
        const { where, parameters } = condition(dialect, filter, last);
        const rows = await reader.all<Stored>(
          `SELECT ${COLUMNS} FROM history ${where} ORDER BY seq, idx, id LIMIT ?`,
          ...parameters,
          page_rows,
        );
        if (rows.length > 0) yield rows.map(row);
        if (rows.length < page_rows) return;
        last = rows.at(-1);
      }
    },
    async count() {
      const [row] = await reader.all<{ count: number }>("SELECT count(*) AS count FROM history");
      return row?.count ?? 0;
    },
    async usesResource(resource) {
      const found = await reader.all<{ id: string }>(`SELECT id FROM history WHERE ${dialect.uses_resource} LIMIT 1`, resource);
      return found.length > 0;
    },
    purge: (before_s, rows = 10_000) =>
      write((writer) =>
        writer.all<{ id: string; queue: string; state: string }>(
          "DELETE FROM history WHERE id IN (SELECT id FROM history WHERE ended_s < ? ORDER BY ended_s LIMIT ?) RETURNING id, queue, state",
          before_s,
          rows,
        ),
      ),
  };
}

/** The condition of a query. Its text depends only on which fields a filter has, so that only few statements must be prepared. */
function condition(
  dialect: HistoryDialect,
  filter: HistoryFilter,
  after: Stored | undefined,
): { readonly where: string; readonly parameters: readonly Parameter[] } {
  const parts: string[] = [];
  const parameters: Parameter[] = [];
  const add = (part: string, ...values: readonly Parameter[]): void => {
    parts.push(part);
    parameters.push(...values);
  };
  if (filter.ids !== undefined) add(`id IN (${dialect.texts})`, JSON.stringify(filter.ids));
  if (filter.owner !== undefined) add("owner = ?", filter.owner);
  if (filter.queue !== undefined) add("queue = ?", filter.queue);
  if (filter.since_s !== undefined) add("ended_s >= ?", filter.since_s);
  if (filter.before_s !== undefined) add("ended_s < ?", filter.before_s);
  if (filter.seqs !== undefined) add(`seq IN (${dialect.numbers})`, JSON.stringify(filter.seqs));
  if (filter.subjobs === false) add("idx < 0");
  if (after !== undefined) add("(seq, idx, id) > (?, ?, ?)", after.seq, after.idx, after.id);
  return { where: parts.length === 0 ? "" : `WHERE ${parts.join(" AND ")}`, parameters };
}
