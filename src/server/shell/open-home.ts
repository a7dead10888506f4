// Opens PBS_HOME for the only server that may use it: makes directories, takes the lock, opens the store. This file is in a
// bundle of its own that is loaded before the service. While V8 loads the service, SQLite's threads already check the store
// and read the first jobs.

import { chmodSync, existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { beginSqliteStore } from "#store/sqlite/sqlite-store.ts";
import type { Store } from "#store/store.ts";
import { messageOf } from "#support/caught.ts";
import type { Conf } from "#support/conf.ts";
import { returnLargeBlocks } from "#support/libc/large-blocks.ts";
import { type HeldLock, takeLock } from "#support/libc/lock-file.ts";
import { storeFile } from "./daemon-start.ts";

/** A PBS_HOME that is open. opened: the store; may reject with a StoreError. notices: log lines about slow or unusual steps. */
export type OpenHome = { readonly lock: HeldLock; readonly opened: Promise<Store>; readonly notices: readonly string[] };

/**
 * Resolves when SQLite's threads have begun to work, or with the reason why this process may not serve. create: the store
 * begins anew, so it does not matter if the old store has lost data.
 */
export async function openHome(conf: Conf, create: boolean): Promise<OpenHome | string> {
  // The process title is set because `ps` shows it and site tools look for the name (docs/reference/files.md 9).
  process.title = ["pbs_server", ...process.argv.slice(2)].join(" ");
  process.umask(0o022);
  // Must be called before SQLite's threads allocate memory.
  returnLargeBlocks();
  makeHome(conf);
  const lock = holdLock(conf);
  if (typeof lock === "string") return lock;
  const notices: string[] = [];
  const onNotice = (text: string): void => void notices.push(text);
  const opened = await beginSqliteStore(storeFile(conf), { accept_loss: create, onNotice }).catch((error: unknown) => {
    const none = Promise.reject(error);
    none.catch(() => undefined);
    return { opened: none };
  });
  return { lock, opened: opened.opened, notices };
}

/** Makes the directories of the server that are missing (docs/reference/files.md 1). */
function makeHome(conf: Conf): void {
  const directories: readonly (readonly [path: string, mode: number])[] = [
    ["server_logs", 0o755],
    ["server_priv", 0o750],
    ["server_priv/accounting", 0o755],
    ["server_priv/jobs", 0o750],
    ["server_priv/users", 0o750],
  ];
  for (const [name, mode] of directories) {
    const path = join(conf.home, name);
    if (existsSync(path)) continue;
    mkdirSync(path, { mode });
    chmodSync(path, mode);
  }
}

function holdLock(conf: Conf): HeldLock | string {
  try {
    const outcome = takeLock(join(conf.home, "server_priv/server.lock"));
    return "held" in outcome ? outcome.held : `another server is running (pid ${outcome.owner_pid ?? "unknown"})`;
  } catch (error) {
    return `cannot lock ${join(conf.home, "server_priv/server.lock")}: ${messageOf(error)}`;
  }
}
