// The default store: one SQLite file (WAL, synchronous=FULL), one writing connection, and one connection for long reads.
//
// Q1. A commit is one statement (sqlite-commit.ts), which is one transaction.
// Q2. Writes are done one after the other: a purge never runs inside a commit's transaction.
// Q3. Only one process can have a store open for writing: it has a lock on PATH.lock during that time.
// Q4. Before anything is written, the store is compared with its mark (mark.ts) over a read-only connection. A store that is
//     refused is not changed.

import { chmodSync, closeSync, existsSync, fsyncSync, linkSync, openSync, rmSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { codeOf, messageOf } from "#support/caught.ts";
import type { HeldLock } from "#support/libc/lock-file.ts";
import { takeLock } from "#support/libc/lock-file.ts";
import { lack, type Mark, markFile, type OpenMark, openMark, readMark } from "../mark.ts";
import { sqlHistory } from "../sql-history.ts";
import type { Store } from "../store.ts";
import { asItIs, StoreError } from "../store.ts";
import type { SchemaStep } from "./schema.ts";
import { SCHEMA_STEPS } from "./schema.ts";
import type { Connection } from "./sqlite.ts";
import { openConnection, storeError } from "./sqlite.ts";
import { commit, prepareCommits } from "./sqlite-commit.ts";
import { SQLITE_HISTORY } from "./sqlite-history.ts";
import { type Ahead, loadRows, readAhead } from "./sqlite-load.ts";
import { absence, lost, readStanding, takeStanding } from "./sqlite-mark.ts";
import { beginCheck, prepareSchema, quickCheck } from "./sqlite-open.ts";

export type SqliteStoreOptions = {
  /** the schema steps to use; set by tests of migration */
  readonly steps?: readonly SchemaStep[];
  /**
   * files up to this size are checked completely when they are opened (default 64 MiB). Of a larger file only the live rows
   * are checked then, because they are read; all of it is checked later by check()
   */
  readonly check_bytes_max?: number;
  /** uses a store that is missing or older than its mark (default: such a store is refused as `lost`) */
  readonly accept_loss?: boolean;
  /** called with texts for the log about what takes time: a migration, its backup */
  readonly onNotice?: (text: string) => void;
};

const CHECK_BYTES_MAX = 64 * 1024 * 1024;

/**
 * Opens or creates the store at an absolute path. Rejects with StoreError: locked, lost, newer, corrupt, permission, disk-full,
 * io.
 */
export async function openSqliteStore(file: string, options: SqliteStoreOptions = {}): Promise<Store> {
  return (await beginSqliteStore(file, options)).opened;
}

/** Does the same as openSqliteStore, but resolves while SQLite's threads still check the file and read the first jobs. */
export async function beginSqliteStore(file: string, options: SqliteStoreOptions = {}): Promise<{ readonly opened: Promise<Store> }> {
  const lock = lockStore(file);
  const connections: Connection[] = [];
  const marks: OpenMark[] = [];
  const connect = async (access: "create" | "read"): Promise<Connection> => {
    const connection = await openConnection(file, access);
    connections.push(connection);
    return connection;
  };
  const giveUp = async (error: unknown): Promise<never> => {
    for (const connection of connections) await connection.close().catch(() => undefined);
    for (const mark of marks) mark.close();
    lock.release();
    throw error instanceof StoreError ? error : storeError(file, error as Error);
  };
  /** Opens a reading connection and compares the store with its mark (Q4). */
  const marked = async (mark: Mark, notice: (text: string) => void): Promise<Connection> => {
    const absent = absence(file);
    if (absent !== null) throw lost(file, absent, mark);
    const reader = await connect("read");
    const lacking = lack(await readStanding(reader), mark);
    if (lacking !== null) throw lost(file, lacking, mark);
    if (mark.store === null || mark.commit === null)
      notice(`${markFile(file)} cannot be read: it is written anew, and nothing was compared with it`);
    return reader;
  };
  const open = async (): Promise<{ readonly opened: Promise<Store> }> => {
    const notice = options.onNotice ?? (() => undefined);
    const mark = options.accept_loss === true ? null : readMark(markFile(file));
    const early = mark === null ? null : await marked(mark, notice);
    const writer = await connect("create");
    chmodSync(file, 0o600);
    await prepareSchema(writer, options.steps ?? SCHEMA_STEPS, notice);
    await prepareCommits(writer);
    const commits = await beginCommits(file, writer);
    marks.push(commits.mark);
    const reader = early ?? (await connect("read"));
    const checking = statSync(file).size <= (options.check_bytes_max ?? CHECK_BYTES_MAX) ? await beginCheck(reader) : null;
    const ahead = await readAhead(writer);
    const check = async (): Promise<Store> => {
      // Connections may be closed only when no call on them is in progress. If the page that is read ahead fails, load() reports it.
      await Promise.allSettled([checking?.finding, ahead.page]);
      const damage = (await checking?.finding) ?? null;
      if (damage !== null) throw new StoreError("corrupt", `${file}: the store is damaged: put a backup in its place (${damage})`);
      return storeOf({ file, writer, reader, lock, commits, first: ahead });
    };
    const opened = check().catch(giveUp);
    opened.catch(() => undefined);
    return { opened };
  };
  return open().catch(giveUp);
}

function lockStore(file: string): HeldLock {
  let outcome: ReturnType<typeof takeLock>;
  try {
    outcome = takeLock(`${file}.lock`);
  } catch (error) {
    throw new StoreError("permission", `${file}: the store cannot be locked: ${messageOf(error)}`, error);
  }
  if ("held" in outcome) return outcome.held;
  throw new StoreError("locked", `${file}: another server uses this store (pid ${outcome.owner_pid ?? "unknown"})`);
}

/** The mark, and the number of the next commit. */
type Commits = { readonly mark: OpenMark; next: number };

async function beginCommits(file: string, writer: Connection): Promise<Commits> {
  const { store, commit: last } = await takeStanding(writer);
  return { mark: openMark(markFile(file), store, last), next: last + 1 };
}

type OpenParts = {
  readonly file: string;
  readonly writer: Connection;
  readonly reader: Connection;
  readonly lock: HeldLock;
  readonly commits: Commits;
  readonly first: Ahead;
};

function storeOf({ file, writer, reader, lock, commits, first }: OpenParts): Store {
  let ahead: Ahead | null = first;
  let tail: Promise<unknown> = Promise.resolve();
  /** Runs one write after the other (Q2). A failed write does not block the next. */
  const inTurn = <T>(work: () => Promise<T>): Promise<T> => {
    const result = tail.then(work, work);
    tail = result.catch(() => undefined);
    return result;
  };
  return {
    load: (keep = asItIs) =>
      inTurn(() => {
        const rows = loadRows(writer, keep, ahead);
        ahead = null;
        return rows;
      }),
    commit: (batch) =>
      inTurn(async () => {
        ahead = null;
        // The number of a failed commit is used again for the next one.
        if (await commit(writer, batch, commits.next)) commits.mark.set(commits.next++);
      }),
    scripts: (ids) => readScripts(reader, ids),
    history: sqlHistory(reader, SQLITE_HISTORY, (work) => inTurn(() => transaction(writer, work))),
    backup: (to) => backup(reader, to),
    check: () => quickCheck(reader),
    close: () =>
      inTurn(async () => {
        await reader.close();
        await writer.run("PRAGMA wal_checkpoint(TRUNCATE)").catch(() => undefined);
        await writer.close();
        commits.mark.close();
        // The file is removed before the lock is released, because afterwards it may belong to another server.
        rmSync(`${file}.lock`, { force: true });
        lock.release();
      }),
  };
}

async function transaction<T>(writer: Connection, work: (writer: Connection) => Promise<T>): Promise<T> {
  await writer.run("BEGIN IMMEDIATE");
  try {
    const result = await work(writer);
    await writer.run("COMMIT");
    return result;
  } catch (error) {
    // SQLite may have rolled back by itself (disk full). Then ROLLBACK fails, which does not matter.
    await writer.run("ROLLBACK").catch(() => undefined);
    throw error;
  }
}

async function readScripts(reader: Connection, ids: readonly string[]): Promise<Map<string, string>> {
  const rows = await reader.all<{ id: string; text: string }>(
    "SELECT id, text FROM scripts WHERE id IN (SELECT value FROM json_each(?))",
    JSON.stringify(ids),
  );
  return new Map(rows.map(({ id, text }) => [id, text]));
}

/** Makes a copy of the store. VACUUM INTO reads one snapshot while commits continue. The copy gets its name only when it is complete and on the disk. */
async function backup(reader: Connection, to: string): Promise<void> {
  if (existsSync(to)) throw new StoreError("exists", `${to}: a backup does not overwrite a file`);
  const partial = `${to}.partial-${process.pid}`;
  try {
    const fd = openSync(partial, "wx", 0o600);
    closeSync(fd);
    await reader.run("VACUUM INTO ?", partial);
    syncPath(partial);
    linkSync(partial, to);
    syncPath(dirname(to));
  } catch (error) {
    if (codeOf(error) === "EEXIST") throw new StoreError("exists", `${to}: a backup does not overwrite a file`, error);
    if (codeOf(error) === "ENOENT") throw new StoreError("io", `${to}: the directory does not exist`, error);
    throw error instanceof StoreError ? error : new StoreError("io", `${to}: ${messageOf(error)}`, error);
  } finally {
    rmSync(partial, { force: true });
  }
}

function syncPath(path: string): void {
  const fd = openSync(path, "r");
  fsyncSync(fd);
  closeSync(fd);
}
