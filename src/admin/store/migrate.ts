// `partita store migrate`: moves the store of a stopped complex from SQLite to PostgreSQL, or back.
//
// M1. The server must not run, and it cannot start during the migration.
// M2. The new store is made under another name, and compared with the present one row by row. Only then it takes the place
//     of the present one.
// M3. The present store is not changed. If this program is killed at any moment, the complex has the present store or the new
//     one, and both are whole.

import { chownSync, existsSync, renameSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { markFile } from "#store/mark.ts";
import type { Store } from "#store/store.ts";
import { type StoreKind, storeFile, storeKind } from "#store/store-choice.ts";
import { compareStores, copyStore, type RowCounts } from "#store/store-copy.ts";
import type { Conf } from "#support/conf.ts";
import { syncDirectory } from "#support/whole-file.ts";
import { AdminError } from "../complex/complex-home.ts";
import { copyToFile, removeStoreFiles } from "./copy-file.ts";
import { chooseStore, databaseSettings, openDatabase, postgres, removeMark, stampNow, whileStopped } from "./kinds.ts";

/** Moves the store. say: gets a line about each step. */
export async function migrateStore(conf: Conf, to: StoreKind, say: (text: string) => void): Promise<void> {
  if (storeKind(conf) === to) throw new AdminError(`the store is in ${NAMES[to]} already (${conf.file})`);
  await whileStopped(conf, () => (to === "postgres" ? toPostgres(conf, say) : toSqlite(conf, say)));
}

const NAMES = { sqlite: "SQLite", postgres: "PostgreSQL" } as const;

async function toPostgres(conf: Conf, say: (text: string) => void): Promise<void> {
  const file = storeFile(conf);
  if (!existsSync(file))
    throw new AdminError(`${file} does not exist: there is nothing to move. Write PARTITA_STORE=postgres into ${conf.file}`);
  const settings = await databaseSettings(conf);
  const { lookAtDatabase, nameOfDatabase, exchangeSchemas } = await postgres();
  const name = nameOfDatabase(settings);
  const there = await lookAtDatabase(settings);
  if (there !== null && there.leader.last_commit > 0)
    throw new AdminError(
      `${name} has a store already, with ${there.jobs} jobs and ${there.finished} finished ones: choose another schema in database.conf, or remove it (DROP SCHEMA ${settings.schema} CASCADE)`,
    );
  const { openSqliteStore } = await import("#store/sqlite/sqlite-store.ts");
  const from = await openSqliteStore(file, { onNotice: say });
  try {
    const counts = await fillDatabase(conf, from, say);
    await exchangeSchemas(settings, stampNow());
    say(`Copied and compared: ${text(counts)}.`);
  } finally {
    await from.close();
  }
  removeMark(conf);
  chooseStore(conf, "postgres");
  const kept = `${file}.before-${stampNow()}`;
  renameSync(file, kept);
  syncDirectory(dirname(file));
  say(`The store is in ${name}. The former one: ${kept}`);
}

/** Copies a store into a new schema beside the store in the database, and compares both. The schema waits for exchangeSchemas. */
export async function fillDatabase(conf: Conf, from: Store, say: (text: string) => void): Promise<RowCounts> {
  const settings = await databaseSettings(conf);
  const { dropIncoming, incoming } = await postgres();
  await dropIncoming(settings);
  const to = await openDatabase(conf, incoming(settings), null, say);
  try {
    await copyStore(from, to);
    return await compareStores(from, to);
  } finally {
    await to.close();
  }
}

async function toSqlite(conf: Conf, say: (text: string) => void): Promise<void> {
  const file = storeFile(conf);
  const settings = await databaseSettings(conf);
  const { lookAtDatabase, nameOfDatabase } = await postgres();
  if ((await lookAtDatabase(settings)) === null)
    throw new AdminError(
      `${nameOfDatabase(settings)} has no store: there is nothing to move. Write PARTITA_STORE=sqlite into ${conf.file}`,
    );
  const arriving = `${file}.incoming-${process.pid}`;
  const from = await openDatabase(conf, settings, markFile(file), say);
  try {
    say(`Copied and compared: ${text(await copyToFile(from, arriving))}.`);
  } finally {
    await from.close();
  }
  const { uid, gid } = statSync(dirname(file));
  chownSync(arriving, uid, gid);
  const kept = `${file}.before-${stampNow()}`;
  for (const suffix of ["", "-wal"]) if (existsSync(`${file}${suffix}`)) renameSync(`${file}${suffix}`, `${kept}${suffix}`);
  removeStoreFiles(file);
  renameSync(arriving, file);
  syncDirectory(dirname(file));
  chooseStore(conf, "sqlite");
  say(`The store is in ${file}. The former one is still in ${nameOfDatabase(settings)}, and nothing uses it.`);
  if (existsSync(kept)) say(`The file that was there before: ${kept}`);
}

export const text = ({ objects, jobs, scripts, finished }: RowCounts): string =>
  `${jobs} jobs with ${scripts} scripts, ${finished} finished jobs, ${objects} other objects`;
