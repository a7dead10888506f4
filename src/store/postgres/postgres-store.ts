// The store in PostgreSQL. It has the same rows as the SQLite store. One connection writes (writer.ts), and one reads the
// history and scripts, so that a long listing delays no commit.
//
// P1. A store in PostgreSQL also has a mark (../mark.ts), a file in PBS_HOME that names the store and its last commit. A
//     database of another complex, or one that lacks acknowledged commits, is refused, and nothing is changed in it.

import { randomUUID } from "node:crypto";
import type { PairRole } from "#protocol/failover/pair-role.ts";
import { lack, type Mark, openMark, readMark } from "../mark.ts";
import type { Parameter, Reader } from "../sql-history.ts";
import { sqlHistory } from "../sql-history.ts";
import { asItIs, isStoreError, type SharedStore, type Store, StoreError } from "../store.ts";
import { type Connection, connectDatabase } from "./connection.ts";
import { dropIncoming, exchangeSchemas, incoming, lookAtDatabase, openSnapshot } from "./copies.ts";
import { loadRows, POSTGRES_HISTORY, readScripts } from "./postgres-load.ts";
import { POSTGRES_STEPS, type SchemaStep } from "./postgres-schema.ts";
import type { ReachPort, WaitingSight } from "./servers.ts";
import { type DatabaseSettings, nameOfDatabase } from "./settings.ts";
import { readFiles, writeFiles } from "./shared-files.ts";
import { Writer } from "./writer.ts";

export * from "./settings.ts";
// Other programs import only this file, which is a bundle of its own.
export const copies = { dropIncoming, exchangeSchemas, incoming, lookAtDatabase, openSnapshot };

export type PostgresStoreOptions = {
  readonly settings: DatabaseSettings;
  /** names the PBS_HOME whose server this is: host and path */
  readonly holder: string;
  readonly host: string;
  /** path of the mark; null: without a mark, for copies of stores */
  readonly mark: string | null;
  /** uses a store that is missing or older than its mark */
  readonly accept_loss?: boolean;
  /** waits for a database that cannot be reached, and for the silence of another leader (default: refuses) */
  readonly waits?: boolean;
  /** waits while another server leads, and takes over when that server ends or becomes silent (default: refuses with `locked`) */
  readonly stands_by?: boolean;
  /** the role of the server in a complex with two servers; null: the complex has one server (default) */
  readonly role?: PairRole | null;
  /** called from time to time while this server leads: the servers that wait */
  readonly onServers?: (sights: readonly WaitingSight[]) => void;
  /** how a server of a complex with two servers finds out which hosts of moms it reaches; null: it does not (default) */
  readonly reach?: ReachPort | null;
  readonly steps?: readonly SchemaStep[];
  readonly onNotice?: (text: string) => void;
  /** called when the store can write nothing more: another server leads, or commits are missing. The server must end at once */
  readonly onEnd?: (error: StoreError) => void;
  /** a signal that ends the waiting */
  readonly stop?: AbortSignal;
};

/** A store in PostgreSQL, with the present term of its leader. */
export type PostgresStore = Store & { readonly term: number; readonly shared: SharedStore };

/** Opens or creates the store. Rejects with StoreError: away, locked, lost, newer, corrupt, permission, io. */
export async function openPostgresStore(options: PostgresStoreOptions): Promise<PostgresStore> {
  const { settings, holder, host, onNotice = () => undefined, onEnd = () => undefined } = options;
  const mark = options.mark === null || options.accept_loss === true ? null : readMark(options.mark);
  const writer = await Writer.open(
    {
      settings,
      me: { holder, host, pid: process.pid, instance: randomUUID() },
      steps: options.steps ?? POSTGRES_STEPS,
      waits: options.waits ?? false,
      stands_by: options.stands_by ?? false,
      role: options.role ?? null,
      onServers: options.onServers ?? (() => undefined),
      reach: options.reach ?? null,
      examine: (row, name) => {
        const lacking =
          mark === null
            ? null
            : row === null
              ? "there is no store, and this PBS_HOME had one"
              : lack({ store: row.store, commit: row.last_commit }, mark);
        if (lacking !== null && mark !== null) throw lost(name, lacking, mark, options.mark ?? "");
      },
      onNotice,
      onEnd,
    },
    options.stop ?? new AbortController().signal,
  );
  return storeOf(writer, options);
}

/** The error for a store that does not match its mark. */
function lost(name: string, what: string, mark: Mark, file: string): StoreError {
  return new StoreError(
    "lost",
    `${name}: ${what}. The last commit was made at ${new Date(mark.at_ms).toISOString()}. Nothing has been changed. Is this the right database, and its primary?` +
      ` A store in a file is brought here by partita store migrate. To go on without what is missing, remove ${file} and start again.`,
  );
}

function storeOf(writer: Writer, { settings, mark: mark_file }: PostgresStoreOptions): PostgresStore {
  const { store, commit } = writer.standing;
  const mark = mark_file === null ? null : openMark(mark_file, store, commit);
  const reader = lastingReader(settings);
  return {
    get term() {
      return writer.term;
    },
    shared: {
      leader: () => ({ store: writer.standing.store, term: writer.term }),
      isConfirmed: () => writer.isConfirmed,
      confirm: () => writer.confirm(),
      order: (order, role) => writer.order(order, role),
      files: () => writer.read(readFiles),
      putFiles: (files) => writer.transaction((connection) => writeFiles(connection, files)),
    },
    async load(keep = asItIs) {
      const loaded = await writer.read((connection) => loadRows(connection, keep));
      // A commit whose outcome was unknown may have turned out to be in the database.
      mark?.set(writer.standing.commit);
      return loaded;
    },
    async commit(batch) {
      const number = await writer.commit(batch);
      if (number !== null) mark?.set(number);
    },
    scripts: (ids) => readScripts(reader, ids),
    history: sqlHistory(reader, POSTGRES_HISTORY, (work) => writer.transaction(work)),
    backup: () => Promise.reject(new StoreError("io", `${nameOfDatabase(settings)}: partita backup copies this store itself`)),
    // PostgreSQL checks its pages itself where data checksums are on, and pg_amcheck examines the rest.
    check: async () => null,
    hurry() {
      writer.hurry();
    },
    async close() {
      await Promise.all([reader.close(), writer.close()]);
      mark?.close();
    },
  };
}

/** A connection for reading that is made when it is needed, and made again when it was lost. */
function lastingReader(settings: DatabaseSettings): Reader & { close(): Promise<void> } {
  let current: Promise<Connection | null> = Promise.resolve(null);
  let is_closed = false;
  const connected = async (): Promise<Connection> => {
    const next = current
      .catch(() => null)
      .then((connection) => {
        if (connection?.isLost() === false) return connection;
        if (is_closed) throw new StoreError("away", `${nameOfDatabase(settings)}: the store is closed`);
        return connectDatabase(settings, "reader");
      });
    current = next;
    return next;
  };
  return {
    name: nameOfDatabase(settings),
    async all<T>(sql: string, ...parameters: readonly Parameter[]): Promise<T[]> {
      const connection = await connected();
      try {
        return await connection.all<T>(sql, ...parameters);
      } catch (error) {
        // A connection that was idle may have been closed long ago.
        if (!isStoreError(error) || !connection.isLost()) throw error;
        return (await connected()).all<T>(sql, ...parameters);
      }
    },
    async close() {
      is_closed = true;
      await (await current.catch(() => null))?.close();
    },
  };
}
