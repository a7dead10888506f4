// Writes a batch as one statement: the call of a function in the database, which gets the rows as JSON. One call is one round
// trip and one transaction.
//
// B1. The function first checks the term and the number of the commit, and locks the row about the leader until the end of the
//     transaction (leadership.ts E1). A call whose connection was lost can therefore never take effect after its server
//     has connected again.
// B2. All rows of one table are written by one statement, whose parameters are one JSON list for each column. Texts of rows are
//     strings in these lists, so that PostgreSQL need not understand what is in them (\u0000, lone surrogates).

import { type Batch, OBJECT_TABLES } from "../store.ts";
import { DEPOSED, WRONG_NUMBER } from "./faults.ts";

/** A list of values that the function gets. of: returns these values from a batch. */
type Column = { readonly name: string; readonly of: (batch: Batch) => readonly unknown[] | undefined };
/** A statement for some rows of a batch. It runs if the column `when` has values. Statements run in the order of PARTS. */
type Part = { readonly when: string; readonly columns: readonly Column[]; readonly statement: string };

const elements = (column: string): string => `json_array_elements_text(a_${column})`;
/** The SQL for the rows whose values are in these columns. names: the names of the columns in the statement. */
const rows = (columns: readonly Column[], names: string): string =>
  `ROWS FROM (${columns.map(({ name }) => elements(name)).join(", ")}) AS r (${names})`;

/** A name without U+0000 and lone surrogates, which PostgreSQL refuses. Legal names have neither, but no name may make a whole batch fail. */
const name = (text: string): string => text.toWellFormed().replaceAll("\0", "\ufffd");

function drop(table: string, key: string, column: string, of: Column["of"]): Part {
  return {
    when: column,
    columns: [{ name: column, of }],
    statement: `DELETE FROM ${table} WHERE ${key} = ANY (ARRAY (SELECT ${elements(column)}))`,
  };
}

/**
 * Writes rows of a table; a row that exists already gets the new values. fields: the columns, the first of which is the key.
 * type: given for a column that is not text.
 */
function upsert<T>(
  table: string,
  all: (batch: Batch) => readonly T[] | undefined,
  fields: readonly (readonly [field: string, value: (row: T) => unknown, type?: string])[],
): Part {
  const [[key, keyOf] = ["", () => ""]] = fields;
  const columns = fields.map(([field, value]) => ({
    name: `${table}_${field}`,
    of: (batch: Batch) => onePerKey(all(batch), keyOf)?.map(value),
  }));
  const values = fields.map(([field, , type]) => (type === undefined ? field : `${field}::${type}`));
  const names = fields.map(([field]) => field);
  return {
    when: `${table}_${key}`,
    columns,
    statement: `INSERT INTO ${table} (${names.join(", ")}) SELECT ${values.join(", ")} FROM ${rows(columns, names.join(", "))}
      ON CONFLICT (${key}) DO UPDATE SET ${names
        .slice(1)
        .map((field) => `${field} = excluded.${field}`)
        .join(", ")}`,
  };
}

/** One INSERT cannot write a row twice. The last of several rows with one key counts. */
function onePerKey<T>(list: readonly T[] | undefined, keyOf: (row: T) => unknown): readonly T[] | undefined {
  if (list === undefined || list.length < 2) return list;
  const keys = new Map(list.map((row) => [keyOf(row), row]));
  return keys.size === list.length ? list : [...keys.values()];
}

const text = (data: unknown): string => JSON.stringify(data);
const BIGINT = "bigint";

const PARTS: readonly Part[] = [
  ...OBJECT_TABLES.flatMap((table) => [
    drop(table, "name", `${table}_gone`, (batch) => batch.drop?.filter((row) => row.table === table).map((row) => name(row.name))),
    upsert(table, (batch) => batch.put?.filter((row) => row.table === table), [
      ["name", (row) => name(row.name)],
      ["data", (row) => text(row.data)],
    ]),
  ]),
  drop("jobs", "id", "jobs_gone", (batch) => batch.jobs_gone?.map(name)),
  { ...drop("runs", "id", "jobs_gone", () => undefined), columns: [] },
  { ...drop("scripts", "id", "jobs_gone", () => undefined), columns: [] },
  upsert("jobs", (batch) => batch.jobs, [
    ["id", (row) => name(row.id)],
    ["seq", (row) => row.seq, BIGINT],
    ["data", (row) => text(row.data)],
  ]),
  drop("runs", "id", "runs_gone", (batch) => batch.runs_gone?.map(name)),
  upsert("runs", (batch) => batch.runs, [
    ["id", (row) => name(row.id)],
    ["data", (row) => text(row.data)],
  ]),
  upsert("scripts", (batch) => batch.scripts, [
    ["id", (row) => name(row.id)],
    ["data", (row) => text(row.text)],
  ]),
  drop("history", "id", "history_gone", (batch) => batch.history_gone?.map(name)),
  {
    when: "history_gone_arrays",
    columns: [{ name: "history_gone_arrays", of: (batch) => batch.history_gone_arrays }],
    statement: `DELETE FROM history WHERE idx >= 0 AND seq = ANY (ARRAY (SELECT ${elements("history_gone_arrays")}::bigint))`,
  },
  upsert("history", (batch) => batch.history, [
    ["id", (row) => name(row.id)],
    ["seq", (row) => row.seq, BIGINT],
    ["idx", (row) => row.idx, BIGINT],
    ["owner", (row) => name(row.owner)],
    ["queue", (row) => name(row.queue)],
    ["state", (row) => name(row.state)],
    ["ended_s", (row) => row.ended_s, BIGINT],
    ["data", (row) => text(row.data)],
  ]),
  upsert("counters", (batch) => (batch.counters === undefined ? undefined : Object.entries(batch.counters)), [
    ["name", ([counter]) => name(counter)],
    ["value", ([, value]) => value, BIGINT],
  ]),
];

const COLUMNS = PARTS.flatMap(({ columns }) => columns);

/** The statement that makes the function in the schema of the session. */
export const BATCH_FUNCTION = `CREATE OR REPLACE FUNCTION write_batch(a_term bigint, a_number bigint, ${COLUMNS.map((column) => `a_${column.name} json`).join(", ")})
  RETURNS void LANGUAGE plpgsql AS $batch$
  BEGIN
    UPDATE leader SET last_commit = a_number WHERE term = a_term AND last_commit = a_number - 1;
    IF NOT FOUND THEN
      IF EXISTS (SELECT 1 FROM leader WHERE term = a_term) THEN
        RAISE EXCEPTION 'commit % does not follow the last one', a_number USING ERRCODE = '${WRONG_NUMBER}';
      END IF;
      RAISE EXCEPTION 'term % has ended', a_term USING ERRCODE = '${DEPOSED}';
    END IF;
    ${PARTS.map(({ when, statement }) => `IF a_${when} IS NOT NULL THEN ${statement}; END IF;`).join("\n    ")}
  END $batch$`;

/** The call: term, number of the commit, and the texts of textsOf. */
export const WRITE_BATCH = `SELECT write_batch(?, ?, ${COLUMNS.map(() => "?").join(", ")})`;

/** The parameters of the call for a batch; null: the batch has no rows. */
export function textsOf(batch: Batch): readonly (string | null)[] | null {
  const texts = COLUMNS.map(({ of }) => {
    const values = of(batch);
    return values === undefined || values.length === 0 ? null : JSON.stringify(values);
  });
  return texts.every((list) => list === null) ? null : texts;
}
