// Writes a batch as one statement. Every statement needs a round trip to SQLite's thread, and in small commits these trips
// cost more than the rows. Therefore there is a view whose columns are the parts of a batch. One INSERT into the view makes
// its triggers write all the tables.
//
// W1. The INSERT is a transaction by itself: if a trigger fails, all of it is undone.
// W2. All rows of one table are written by one statement with one JSON parameter (one statement for each row takes ten times
//     the CPU).
// W3. The view and its triggers belong to the connection (TEMP). The file does not contain them.

import { type Batch, OBJECT_TABLES, type ObjectTable, type RunRow } from "../store.ts";
import type { Connection } from "./sqlite.ts";
import { LAST_COMMIT } from "./sqlite-mark.ts";

/**
 * Statements of the triggers that belong together and must be run in this order. The order of parts does not matter.
 * columns: the columns of the view that the statements read.
 */
type Part = { readonly name: string; readonly columns: readonly string[]; readonly statements: readonly string[] };

const rowsOf = (column: string): string => `json_each(NEW.${column})`;
const drop = (table: string, key: string, column: string): string =>
  `DELETE FROM ${table} WHERE ${key} IN (SELECT value FROM ${rowsOf(column)})`;

const objectPart = (table: ObjectTable): Part => ({
  name: table,
  columns: [`${table}_gone`, table],
  statements: [
    drop(table, "name", `${table}_gone`),
    `INSERT INTO ${table} (name, data) SELECT value ->> 0, value -> 1 FROM ${rowsOf(table)} WHERE true
      ON CONFLICT (name) DO UPDATE SET data = excluded.data`,
  ],
});

const PARTS: readonly Part[] = [
  ...OBJECT_TABLES.map(objectPart),
  {
    name: "jobs",
    columns: ["jobs_gone", "jobs", "runs_gone", "runs", "scripts"],
    statements: [
      drop("jobs", "id", "jobs_gone"),
      drop("runs", "id", "jobs_gone"),
      drop("scripts", "id", "jobs_gone"),
      `INSERT INTO jobs (id, seq, data) SELECT value ->> 0, value ->> 1, value -> 2 FROM ${rowsOf("jobs")} WHERE true
        ON CONFLICT (id) DO UPDATE SET seq = excluded.seq, data = excluded.data`,
      drop("runs", "id", "runs_gone"),
      `INSERT INTO runs (id, data) SELECT key, value FROM ${rowsOf("runs")} WHERE true
        ON CONFLICT (id) DO UPDATE SET data = excluded.data`,
      `INSERT INTO scripts (id, text) SELECT value ->> 0, value ->> 1 FROM ${rowsOf("scripts")} WHERE true
        ON CONFLICT (id) DO UPDATE SET text = excluded.text`,
    ],
  },
  {
    name: "history",
    columns: ["history_gone", "history_gone_arrays", "history"],
    statements: [
      drop("history", "id", "history_gone"),
      `${drop("history", "seq", "history_gone_arrays")} AND idx >= 0`,
      `INSERT INTO history (id, seq, idx, owner, queue, state, ended_s, data)
        SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5, value ->> 6, value -> 7
        FROM ${rowsOf("history")} WHERE true
        ON CONFLICT (id) DO UPDATE SET seq = excluded.seq, idx = excluded.idx, owner = excluded.owner, queue = excluded.queue,
        state = excluded.state, ended_s = excluded.ended_s, data = excluded.data`,
    ],
  },
  {
    name: "counters",
    columns: ["counters"],
    statements: [
      `INSERT INTO counters (name, value) SELECT key, value FROM ${rowsOf("counters")} WHERE true
        ON CONFLICT (name) DO UPDATE SET value = excluded.value`,
    ],
  },
];

const COLUMNS = PARTS.flatMap(({ columns }) => columns);
const COMMIT = `INSERT INTO batch (${COLUMNS.join(", ")}) VALUES (${COLUMNS.map(() => "?").join(", ")})`;

/** Must be called once for a connection that writes batches, after its tables exist. */
export async function prepareCommits(writer: Connection): Promise<void> {
  await writer.exec(
    `CREATE TEMP VIEW batch AS SELECT ${COLUMNS.map((column) => `NULL AS ${column}`).join(", ")}`,
    ...PARTS.map(
      ({ name, columns, statements }) =>
        `CREATE TEMP TRIGGER batch_${name} INSTEAD OF INSERT ON batch WHEN coalesce(${columns.map((column) => `NEW.${column}`).join(", ")}, NULL) IS NOT NULL
         BEGIN ${statements.map((statement) => `${statement};`).join(" ")} END`,
    ),
  );
}

/** Writes a batch, with the number of the commit, completely or not at all. Returns false if there was nothing to write. */
export async function commit(writer: Connection, batch: Batch, number: number): Promise<boolean> {
  const rows = columnsOf(batch);
  if (rows.size === 0) return false;
  rows.set("counters", JSON.stringify({ ...batch.counters, [LAST_COMMIT]: number }));
  await writer.run(COMMIT, ...COLUMNS.map((column) => rows.get(column) ?? null));
  return true;
}

/** The JSON texts of the columns that are not empty. */
function columnsOf(batch: Batch): Map<string, string> {
  const texts = new Map<string, string>();
  const set = (column: string, rows: readonly unknown[] | undefined): void => {
    if (rows !== undefined && rows.length > 0) texts.set(column, JSON.stringify(rows));
  };
  for (const table of OBJECT_TABLES) {
    set(
      `${table}_gone`,
      batch.drop?.filter((row) => row.table === table).map(({ name }) => name),
    );
    set(
      table,
      batch.put?.filter((row) => row.table === table).map(({ name, data }) => [name, data]),
    );
  }
  set("jobs_gone", batch.jobs_gone);
  set(
    "jobs",
    batch.jobs?.map(({ id, seq, data }) => [id, seq, data]),
  );
  set("runs_gone", batch.runs_gone);
  if (batch.runs !== undefined && batch.runs.length > 0) texts.set("runs", recordText(batch.runs));
  set(
    "scripts",
    batch.scripts?.map(({ id, text }) => [id, text]),
  );
  set("history_gone", batch.history_gone);
  set("history_gone_arrays", batch.history_gone_arrays);
  set(
    "history",
    batch.history?.map(({ id, seq, idx, owner, queue, state, ended_s, data }) => [id, seq, idx, owner, queue, state, ended_s, data]),
  );
  if (batch.counters !== undefined && Object.keys(batch.counters).length > 0) texts.set("counters", JSON.stringify(batch.counters));
  return texts;
}

/** The JSON text of rows, as a record by key. SQLite needs half the time to split it that it needs for a list of pairs. */
const recordText = (rows: readonly RunRow[]): string =>
  `{${rows.map(({ id, data }) => `${JSON.stringify(id)}:${JSON.stringify(data)}`).join(",")}}`;
