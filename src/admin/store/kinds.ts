// The store of a complex as an administrator's calls need it, whatever its kind is. The driver of PostgreSQL is loaded only
// for a complex that uses it.

import { chownSync, existsSync, readFileSync, realpathSync, rmSync, statSync } from "node:fs";
import { hostname } from "node:os";
import { dirname, join } from "node:path";
import { markFile } from "#store/mark.ts";
import type { DatabaseSettings } from "#store/postgres/settings.ts";
import type { Store } from "#store/store.ts";
import { databaseFile, storeFile } from "#store/store-choice.ts";
import type { Conf } from "#support/conf.ts";
import { type HeldLock, takeLock } from "#support/libc/lock-file.ts";
import { systemUsers } from "#support/passwd.ts";
import { syncDirectory, writeWholeFile } from "#support/whole-file.ts";
import { AdminError } from "../complex/complex-home.ts";
import { daemonPid } from "../complex/daemons.ts";

/** Loads the functions with which an administrator's calls use a database. */
export async function postgres() {
  const { copies, nameOfDatabase } = await import("#store/postgres/postgres-store.ts");
  return { ...copies, nameOfDatabase };
}

/** Reads the settings of the database as the server does. Rejects with StoreError. */
export async function databaseSettings(conf: Conf): Promise<DatabaseSettings> {
  const { readSettings } = await import("#store/postgres/postgres-store.ts");
  return readSettings(databaseFile(conf), systemUsers().userByUid(process.geteuid?.() ?? 0)?.name ?? "root");
}

/** Opens the database as the server of this PBS_HOME does. Rejects with `locked` if a server on another host uses it. */
export async function openDatabase(
  conf: Conf,
  settings: DatabaseSettings,
  mark: string | null,
  onNotice: (text: string) => void,
): Promise<Store> {
  const { openPostgresStore } = await import("#store/postgres/postgres-store.ts");
  const host = hostname();
  return openPostgresStore({ settings, holder: `${host}:${conf.home}`, host, mark, waits: true, onNotice });
}

/** Prevents the server from starting while `work` changes its store. Throws AdminError if the server runs. */
export async function whileStopped<T>(conf: Conf, work: () => Promise<T>): Promise<T> {
  const server = daemonPid(conf, "server");
  if (server !== null) throw new AdminError(`the server runs (pid ${server}): stop it first: partita stop`);
  const directory = join(conf.home, "server_priv");
  if (!existsSync(directory)) throw new AdminError(`${directory} does not exist: partita init makes it`);
  const outcome = takeLock(join(directory, "server.lock"));
  if (!("held" in outcome)) throw new AdminError(`the server starts (pid ${outcome.owner_pid ?? "unknown"}): stop it first: partita stop`);
  const lock: HeldLock = outcome.held;
  try {
    return await work();
  } finally {
    lock.release();
  }
}

/** Returns the present time in the form that names of files and schemas have: 20261123t174500z. */
export const stampNow = (): string =>
  new Date()
    .toISOString()
    .replace(/[-:]|\.\d+/g, "")
    .toLowerCase();

/** Writes the kind of the store into pbs.conf. Its other lines, its mode and its owner stay. */
export function chooseStore(conf: Conf, kind: "sqlite" | "postgres"): void {
  const file = realpathSync(conf.file);
  const { mode, uid, gid } = statSync(file);
  const lines = readFileSync(file, "utf8").trimEnd().split("\n");
  const others = lines.filter((line) => !/^\s*(export\s+)?PARTITA_STORE\s*=/.test(line));
  writeWholeFile(file, `${[...others, `PARTITA_STORE=${kind}`].join("\n")}\n`, mode & 0o777);
  chownSync(file, uid, gid);
}

/** Removes the mark of a store that was replaced. The new store gets its own mark when the server starts. */
export function removeMark(conf: Conf): void {
  const mark = markFile(storeFile(conf));
  rmSync(mark, { force: true });
  syncDirectory(dirname(mark));
}
