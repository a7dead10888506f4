// `partita backup FILE`: makes a consistent copy of the store. If the server runs, the server makes the copy; otherwise this
// program does.

import { existsSync } from "node:fs";
import { connectServer } from "#protocol/client.ts";
import type { Conf } from "#support/conf.ts";
import { AdminError } from "../complex/complex-home.ts";
import { daemonPid } from "../complex/daemons.ts";
import { storePath } from "./store-check.ts";

/** Makes the copy. file: its absolute path. */
export async function backup(conf: Conf, file: string): Promise<void> {
  if (daemonPid(conf, "server") === null) return backupStopped(conf, file);
  const link = await connectServer(conf);
  const reply = await link.request({ kind: "backup", file });
  link.close();
  if (!reply.ok) throw new AdminError(`backup refused: ${reply.text ?? `error ${reply.code}`}`);
}

async function backupStopped(conf: Conf, file: string): Promise<void> {
  const path = storePath(conf);
  if (!existsSync(path)) throw new AdminError(`there is nothing to save: ${path} does not exist`);
  const { openSqliteStore } = await import("#store/sqlite/sqlite-store.ts");
  const store = await openSqliteStore(path);
  try {
    await store.backup(file);
  } finally {
    await store.close();
  }
}
