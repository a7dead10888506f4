// The tables of the PostgreSQL store, and the migration of older ones: step N changes a schema of version N to version N+1. A
// step that was released is never changed; only new steps are added. The tables `about` and `leader` never change, so that
// every release can read them.

import { randomInt } from "node:crypto";
import { StoreError } from "../store.ts";
import type { Connection } from "./connection.ts";
import type { LeaderRow } from "./leadership.ts";

export type SchemaStep = readonly string[];

/** Column of texts that are compared byte by byte, as in SQLite, whatever the collation of the database is. */
const TEXT = 'text COLLATE "C"';
/** The statement that makes a table of objects. place: the order in which rows were added. */
const object = (table: string): string =>
  `CREATE TABLE ${table} (name ${TEXT} PRIMARY KEY, data text NOT NULL, place bigint GENERATED ALWAYS AS IDENTITY)`;

export const POSTGRES_STEPS: readonly SchemaStep[] = [
  [
    ...["server", "resources", "queues", "vnodes", "scheds", "resvs", "hooks", "run_times"].map(object),
    `CREATE TABLE jobs (id ${TEXT} PRIMARY KEY, seq bigint NOT NULL, data text NOT NULL)`,
    `CREATE TABLE runs (id ${TEXT} PRIMARY KEY, data text NOT NULL)`,
    // data: the script as a JSON string, because a text of PostgreSQL cannot contain the character U+0000.
    `CREATE TABLE scripts (id ${TEXT} PRIMARY KEY, data text NOT NULL)`,
    `CREATE TABLE history (id ${TEXT} PRIMARY KEY, seq bigint NOT NULL, idx bigint NOT NULL, owner ${TEXT} NOT NULL, queue ${TEXT} NOT NULL,
       state ${TEXT} NOT NULL, ended_s bigint NOT NULL, data text NOT NULL)`,
    "CREATE INDEX history_order ON history (seq, idx, id)",
    "CREATE INDEX history_owner ON history (owner, seq, idx, id)",
    "CREATE INDEX history_queue ON history (queue, seq, idx, id)",
    "CREATE INDEX history_ended ON history (ended_s)",
    `CREATE TABLE counters (name ${TEXT} PRIMARY KEY, value bigint NOT NULL)`,
  ],
  ["backends", "runners"].map(object),
  // What two servers of one complex share (servers.ts): the servers that wait, and sealed files.
  [
    `CREATE TABLE servers (holder ${TEXT} PRIMARY KEY, role text NOT NULL, host text NOT NULL, pid int NOT NULL, instance text NOT NULL,
       seen bigint NOT NULL, wants_lead boolean NOT NULL, orders text) WITH (fillfactor = 10)`,
    `CREATE TABLE files (name ${TEXT} PRIMARY KEY, data text NOT NULL)`,
  ],
  // Which hosts of moms the two servers reach (reach.ts).
  [
    "ALTER TABLE servers ADD COLUMN reach text",
    "CREATE TABLE mom_places (one boolean PRIMARY KEY DEFAULT true CHECK (one), places text NOT NULL)",
    "INSERT INTO mom_places (places) VALUES ('[]')",
  ],
];

/** The first version of the tables that has the table `servers`. */
export const VERSION_WITH_SERVERS = 3;
/** The first version of the tables that says which hosts of moms the servers reach. */
export const VERSION_WITH_REACH = 4;

const FIRST_TABLES = [
  "CREATE TABLE about (application text NOT NULL, version int NOT NULL)",
  "INSERT INTO about VALUES ('partita', 0)",
  `CREATE TABLE leader (one boolean PRIMARY KEY DEFAULT true CHECK (one), store bigint NOT NULL, term bigint NOT NULL, last_commit bigint NOT NULL,
     beat bigint NOT NULL, holder text, instance text, host text, pid int) WITH (fillfactor = 10)`,
];

/** Returns the version of the tables; null: the schema has no tables. Rejects with StoreError if the schema has tables of another program. */
export async function readVersion(connection: Connection, schema: string): Promise<number | null> {
  const tables = await connection.all<{ readonly name: string }>("SELECT tablename AS name FROM pg_tables WHERE schemaname = ?", schema);
  if (tables.length === 0) return null;
  if (!tables.some(({ name }) => name === "about")) throw foreign(connection);
  const [about] = await connection.all<{ readonly application: string; readonly version: number }>(
    "SELECT application, version FROM about",
  );
  if (about?.application !== "partita") throw foreign(connection);
  return about.version;
}

const foreign = ({ name }: Connection): StoreError => new StoreError("corrupt", `${name}: the schema has tables of another program`);

/** Makes the schema with its first tables, unless another process has made them meanwhile. */
export async function createSchema(connection: Connection, schema: string): Promise<void> {
  const store = randomInt(1, 2 ** 48 - 1);
  await connection.exec(
    [
      // One process at a time makes a schema. The lock is released at the end of the transaction.
      `SELECT pg_advisory_xact_lock(hashtext('partita ${schema}'))`,
      `CREATE SCHEMA IF NOT EXISTS ${schema}`,
      `DO $make$ BEGIN IF NOT EXISTS (SELECT 1 FROM pg_tables WHERE schemaname = '${schema}') THEN ${FIRST_TABLES.join("; ")};
         INSERT INTO leader (store, term, last_commit, beat) VALUES (${store}, 0, 0, 0); END IF; END $make$`,
    ].join(";"),
  );
}

/** Brings the tables to the present version, in one transaction of the leader. term: the term of the caller. */
export async function migrate(
  connection: Connection,
  version: number,
  steps: readonly SchemaStep[],
  term: number,
  onNotice: (text: string) => void,
): Promise<void> {
  if (version > steps.length) throw newer(connection, version, steps.length);
  if (version === steps.length) return;
  await connection.exec([fence(term), ...steps.slice(version).flat(), `UPDATE about SET version = ${steps.length}`].join(";"));
  if (version > 0) onNotice(`the tables of ${connection.name} were changed from version ${version} to version ${steps.length}`);
}

/** A statement that fails if the term has ended, and that keeps the term from ending before the transaction ends. */
export const fence = (term: number): string =>
  `DO $fence$ BEGIN PERFORM 1 FROM leader WHERE term = ${term} FOR UPDATE;
     IF NOT FOUND THEN RAISE EXCEPTION 'term ${term} has ended' USING ERRCODE = 'PT001'; END IF; END $fence$`;

/** The error for a schema that a newer program has migrated. */
export const newer = (connection: Connection, version: number, known: number): StoreError =>
  new StoreError(
    "newer",
    `${connection.name}: the store is of version ${version}, this program knows versions up to ${known}: use the newer program, or a backup made before it`,
  );

/** Reads the row about the leader. Rejects with StoreError if there is none. */
export async function readLeader(connection: Connection): Promise<LeaderRow> {
  const [row] = await connection.all<LeaderRow>("SELECT store, term, last_commit, beat, holder, instance, host, pid FROM leader");
  if (row === undefined)
    throw new StoreError("corrupt", `${connection.name}: the row about the leader is missing: put a backup in its place`);
  return row;
}
