// `partita backup FILE`: makes a consistent copy of the store as one file of SQLite. If the server runs with SQLite, the
// server makes the copy; otherwise this program does. A store in PostgreSQL is read as it is at one moment; the server may
// continue to work.

import { existsSync } from "node:fs";
import { connectServer } from "#protocol/client.ts";
import { storeFile, storeKind } from "#store/store-choice.ts";
import type { Conf } from "#support/conf.ts";
import { AdminError } from "../complex/complex-home.ts";
import { daemonPid } from "../complex/daemons.ts";
import { copyToNewFile } from "./copy-file.ts";
import { databaseSettings, postgres } from "./kinds.ts";

/** Makes the copy. file: its absolute path. */
export async function backup(conf: Conf, file: string): Promise<void> {
  if (storeKind(conf) === "postgres") return backupDatabase(conf, file);
  if (daemonPid(conf, "server") === null) return backupStopped(conf, file);
  const link = await connectServer(conf);
  const reply = await link.request({ kind: "backup", file });
  link.close();
  if (!reply.ok) throw new AdminError(`backup refused: ${reply.text ?? `error ${reply.code}`}`);
}

async function backupDatabase(conf: Conf, file: string): Promise<void> {
  const { openSnapshot } = await postgres();
  const moment = await openSnapshot(await databaseSettings(conf));
  try {
    await copyToNewFile(moment, file);
  } finally {
    await moment.close();
  }
}

async function backupStopped(conf: Conf, file: string): Promise<void> {
  const path = storeFile(conf);
  if (!existsSync(path)) throw new AdminError(`there is nothing to save: ${path} does not exist`);
  const { openSqliteStore } = await import("#store/sqlite/sqlite-store.ts");
  const store = await openSqliteStore(path);
  try {
    await store.backup(file);
  } finally {
    await store.close();
  }
}
