// `partita restore FILE`: replaces the store by a saved one. The present store is kept beside it.
//
// R1. The server does not run. It cannot start meanwhile, because this program has the lock of the store.
// R2. FILE is copied and the copy is checked before it replaces the store. FILE itself is not changed.
// R3. If this program is killed at any moment, the store is the old one, or the new one, or one with which the server
//     refuses to start, because it is missing or older than its mark.

import { chmodSync, chownSync, copyFileSync, existsSync, lstatSync, renameSync, rmSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { markFile } from "#store/mark.ts";
import { APPLICATION_ID, SCHEMA_STEPS } from "#store/sqlite/schema.ts";
import { type Connection, openConnection } from "#store/sqlite/sqlite.ts";
import { storeBytes } from "#store/sqlite/sqlite-mark.ts";
import { quickCheck } from "#store/sqlite/sqlite-open.ts";
import { isStoreError } from "#store/store.ts";
import { storeFile, storeKind } from "#store/store-choice.ts";
import type { Conf } from "#support/conf.ts";
import { takeLock } from "#support/libc/lock-file.ts";
import { syncDirectory } from "#support/whole-file.ts";
import { AdminError } from "../complex/complex-home.ts";
import { daemonPid } from "../complex/daemons.ts";
import { removeStoreFiles } from "./copy-file.ts";
import { databaseSettings, openDatabase, postgres, removeMark, stampNow, whileStopped } from "./kinds.ts";
import { fillDatabase } from "./migrate.ts";

/** The result. jobs: number of unfinished jobs. finished: number of finished jobs. kept: path of the former store; null: there was none. */
export type Restored = { readonly jobs: number; readonly finished: number; readonly kept: string | null };

/**
 * Replaces the store. file: absolute path of a copy made by `partita backup`, or of the store of a server that was stopped or killed; its -wal file must be
 * beside it.
 */
export async function restore(conf: Conf, file: string): Promise<Restored> {
  const server = daemonPid(conf, "server");
  if (server !== null) throw new AdminError(`the server runs (pid ${server}): stop it first: partita stop`);
  if (lstatSync(file, { throwIfNoEntry: false })?.isFile() !== true) throw new AdminError(`${file} is not a file`);
  if (storeKind(conf) === "postgres") return whileStopped(conf, () => restoreDatabase(conf, file));
  const store = storeFile(conf);
  if (!existsSync(dirname(store))) throw new AdminError(`${dirname(store)} does not exist: partita init makes it`);
  const outcome = takeLock(`${store}.lock`);
  if (!("held" in outcome)) throw new AdminError(`another process uses the store (pid ${outcome.owner_pid ?? "unknown"})`);
  const copy = `${store}.restored-${process.pid}`;
  try {
    const { jobs, finished } = await takeCopy(file, copy, await nextNumber(store));
    const { uid, gid } = statSync(dirname(store));
    chownSync(copy, uid, gid);
    return { jobs, finished, kept: exchange(store, copy) };
  } catch (error) {
    if (!isStoreError(error)) throw error;
    const why = error.fault === "corrupt" ? "the file is damaged or not a store" : error.message.replaceAll(copy, file);
    throw new AdminError(`${file} cannot be restored, nothing was changed: ${why}`);
  } finally {
    for (const suffix of SUFFIXES) rmSync(`${copy}${suffix}`, { force: true });
    rmSync(`${store}.lock`, { force: true });
    outcome.held.release();
  }
}

/** Fills a new schema from a copy of the file, and puts it in the place of the store. The former store is kept as a schema with another name. */
async function restoreDatabase(conf: Conf, file: string): Promise<Restored> {
  const settings = await databaseSettings(conf);
  const { exchangeSchemas, lookAtDatabase } = await postgres();
  const present = await lookAtDatabase(settings);
  const say = (text: string): void => void process.stderr.write(`partita: ${text}\n`);
  // If a server on another host uses the store, this call fails.
  if (present !== null) await (await openDatabase(conf, settings, null, say)).close();
  const copy = `${storeFile(conf)}.restored-${process.pid}`;
  try {
    const { jobs, finished } = await takeCopy(file, copy, present?.next_seq ?? 0);
    const { openSqliteStore } = await import("#store/sqlite/sqlite-store.ts");
    const from = await openSqliteStore(copy);
    try {
      await fillDatabase(conf, from, say);
    } finally {
      await from.close();
    }
    const kept = await exchangeSchemas(settings, stampNow());
    removeMark(conf);
    return { jobs, finished, kept: kept === null ? null : `schema ${kept} of the database` };
  } finally {
    removeStoreFiles(copy);
  }
}

const SUFFIXES = ["", "-wal", "-shm"] as const;
const NEXT_NUMBER = "next_seq";

/**
 * Makes a copy that consists of one file, checks it and its version, and counts its jobs. next: the next job number, so that no number of the former store is
 * used again.
 */
async function takeCopy(file: string, copy: string, next: number): Promise<{ readonly jobs: number; readonly finished: number }> {
  for (const suffix of ["", "-wal"]) {
    if (!existsSync(`${file}${suffix}`)) continue;
    copyFileSync(`${file}${suffix}`, `${copy}${suffix}`);
    // A backup may be read-only, or readable by others; the store must be neither.
    chmodSync(`${copy}${suffix}`, 0o600);
  }
  const connection = await openConnection(copy, "write");
  try {
    await mustBeStore(file, connection);
    const damage = await quickCheck(connection);
    if (damage !== null) throw new AdminError(`${file} is damaged and was not restored (${damage})`);
    await connection.run("UPDATE counters SET value = max(value, ?) WHERE name = ?", next, NEXT_NUMBER);
    const [count] = await connection.all<{ readonly jobs: number; readonly finished: number }>(
      "SELECT (SELECT count(*) FROM jobs) AS jobs, (SELECT count(*) FROM history) AS finished",
    );
    await connection.run("PRAGMA journal_mode = DELETE");
    return count ?? { jobs: 0, finished: 0 };
  } finally {
    await connection.close();
  }
}

async function mustBeStore(file: string, connection: Connection): Promise<void> {
  const [header] = await connection.all<{ readonly version: number; readonly application: number }>(
    "SELECT user_version AS version, application_id AS application FROM pragma_user_version, pragma_application_id",
  );
  if (header?.application !== APPLICATION_ID) throw new AdminError(`${file} is not a store of Partita`);
  if (header.version > SCHEMA_STEPS.length)
    throw new AdminError(
      `${file} was made by a newer program (version ${header.version}, this one knows ${SCHEMA_STEPS.length}): use that one`,
    );
}

/** Returns the next job number of the former store, or 0 if there is no store or it cannot be read. */
async function nextNumber(store: string): Promise<number> {
  if ((storeBytes(store) ?? 0) === 0) return 0;
  let connection: Connection | null = null;
  try {
    connection = await openConnection(store, "read");
    const [row] = await connection.all<{ readonly value: number }>("SELECT value FROM counters WHERE name = ?", NEXT_NUMBER);
    return row?.value ?? 0;
  } catch {
    return 0;
  } finally {
    await connection?.close().catch(() => undefined);
  }
}

/**
 * Puts the copy in the place of the store. The former store is renamed; its new name contains the time. The mark of the former store is removed last (R3).
 * Returns the new path of the former store; null: there was none.
 */
function exchange(store: string, copy: string): string | null {
  const stamp = new Date().toISOString().replace(/[-:]|\.\d+/g, "");
  const kept = existsSync(store) || existsSync(`${store}-wal`) ? `${store}.before-${stamp}` : null;
  for (const suffix of ["", "-wal"])
    if (kept !== null && existsSync(`${store}${suffix}`)) renameSync(`${store}${suffix}`, `${kept}${suffix}`);
  rmSync(`${store}-shm`, { force: true });
  renameSync(copy, store);
  syncDirectory(dirname(store));
  rmSync(markFile(store), { force: true });
  syncDirectory(dirname(store));
  return kept;
}
