// What an administrator does with whole stores in PostgreSQL: reads one moment of a store while its server works, puts a new
// schema in the place of the store, and describes a store.

import { sqlHistory } from "../sql-history.ts";
import { asItIs, isStoreError, type Store, StoreError } from "../store.ts";
import { type Connection, connectDatabase, weaknesses } from "./connection.ts";
import type { LeaderRow } from "./leadership.ts";
import { loadRows, POSTGRES_HISTORY, readScripts } from "./postgres-load.ts";
import { readLeader, readVersion } from "./postgres-schema.ts";
import type { DatabaseSettings } from "./settings.ts";

/**
 * What is in the schema that the settings name. bytes: size of the tables. weaknesses: the guarantees that the database does
 * not give because of its settings.
 */
export type DatabaseSight = {
  readonly name: string;
  readonly version: number;
  readonly leader: LeaderRow;
  readonly jobs: number;
  readonly finished: number;
  readonly next_seq: number;
  readonly bytes: number;
  readonly weaknesses: readonly string[];
};

async function connected<T>(settings: DatabaseSettings, work: (connection: Connection) => Promise<T>): Promise<T> {
  const connection = await connectDatabase(settings, "reader");
  try {
    return await work(connection);
  } finally {
    await connection.close();
  }
}

/** Describes the store. null: there is none yet. Rejects with StoreError. */
export function lookAtDatabase(settings: DatabaseSettings): Promise<DatabaseSight | null> {
  return connected(settings, async (connection) => {
    const version = await readVersion(connection, settings.schema);
    if (version === null || version === 0) return null;
    const leader = await readLeader(connection);
    const [counts] = await connection.all<{ jobs: number; finished: number; next_seq: number | null; bytes: number }>(
      `SELECT (SELECT count(*) FROM jobs) AS jobs, (SELECT count(*) FROM history) AS finished,
         (SELECT value FROM counters WHERE name = 'next_seq') AS next_seq,
         (SELECT coalesce(sum(pg_total_relation_size(quote_ident(schemaname) || '.' || quote_ident(tablename))), 0)::bigint
           FROM pg_tables WHERE schemaname = ?) AS bytes`,
      settings.schema,
    );
    const { jobs = 0, finished = 0, next_seq = null, bytes = 0 } = counts ?? {};
    return {
      name: connection.name,
      version,
      leader,
      jobs,
      finished,
      next_seq: next_seq ?? 0,
      bytes,
      weaknesses: await weaknesses(connection),
    };
  });
}

/** Opens the store as it is at one moment, for reading only. The server may continue to commit. */
export async function openSnapshot(settings: DatabaseSettings): Promise<Store> {
  const connection = await connectDatabase(settings, "reader");
  const readOnly = (): Promise<never> => Promise.reject(new StoreError("io", `${connection.name}: a moment of a store cannot be changed`));
  try {
    if (((await readVersion(connection, settings.schema)) ?? 0) === 0)
      throw new StoreError("io", `${connection.name}: there is no store yet`);
    await connection.exec("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY");
  } catch (error) {
    await connection.close();
    throw error;
  }
  return {
    load: (keep = asItIs) => loadRows(connection, keep),
    commit: readOnly,
    scripts: (ids) => readScripts(connection, ids),
    history: sqlHistory(connection, POSTGRES_HISTORY, readOnly),
    backup: readOnly,
    check: async () => null,
    close: () => connection.close(),
  };
}

/** The settings for the schema in which a new store is made before it takes the place of the present one. */
export const incoming = (settings: DatabaseSettings): DatabaseSettings => ({ ...settings, schema: `${settings.schema}_incoming` });

/** Removes what an interrupted call has left of a new store. */
export function dropIncoming(settings: DatabaseSettings): Promise<void> {
  return connected(settings, (connection) => connection.exec(`DROP SCHEMA IF EXISTS ${incoming(settings).schema} CASCADE`));
}

/**
 * Puts the new store in its place, in one transaction. stamp: part of the name that the present store gets. Returns this name; null: there was no store. Rejects
 * with `locked` if a server uses the present store.
 */
export function exchangeSchemas(settings: DatabaseSettings, stamp: string): Promise<string | null> {
  const { schema } = settings;
  return connected(settings, async (connection) => {
    const has_store = (await readVersion(connection, schema)) !== null;
    const [there] = await connection.all<{ readonly found: boolean }>(
      "SELECT count(*) > 0 AS found FROM pg_namespace WHERE nspname = ?",
      schema,
    );
    const kept = has_store ? `${schema}_before_${stamp}` : null;
    const former = !has_store && there?.found === true ? [`DROP SCHEMA ${schema}`] : [];
    const aside =
      kept === null
        ? former
        : [
            `DO $free$ BEGIN PERFORM 1 FROM ${schema}.leader WHERE holder IS NULL FOR UPDATE;
               IF NOT FOUND THEN RAISE EXCEPTION 'a server uses the store'; END IF; END $free$`,
            `ALTER SCHEMA ${schema} RENAME TO ${kept}`,
          ];
    try {
      await connection.exec([...aside, `ALTER SCHEMA ${incoming(settings).schema} RENAME TO ${schema}`].join(";"));
    } catch (error) {
      if (isStoreError(error) && error.message.includes("a server uses the store")) throw new StoreError("locked", error.message, error);
      throw error;
    }
    return kept;
  });
}
