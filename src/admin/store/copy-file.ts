// Copies stores to and from files of SQLite. `partita backup` makes such files for every kind of store.

import { closeSync, existsSync, fsyncSync, linkSync, openSync, rmSync } from "node:fs";
import { dirname } from "node:path";
import { markFile } from "#store/mark.ts";
import type { Store } from "#store/store.ts";
import { compareStores, copyStore, type RowCounts } from "#store/store-copy.ts";
import { codeOf } from "#support/caught.ts";
import { syncDirectory } from "#support/whole-file.ts";
import { AdminError } from "../complex/complex-home.ts";

/** Removes a store in a file with everything beside it. */
export function removeStoreFiles(file: string): void {
  for (const path of [file, `${file}-wal`, `${file}-shm`, `${file}.lock`, markFile(file)]) rmSync(path, { force: true });
}

/** Copies a store into a new file of SQLite, compares both row by row, and flushes the file. If this fails, the file is removed. */
export async function copyToFile(from: Store, file: string): Promise<RowCounts> {
  const { openSqliteStore } = await import("#store/sqlite/sqlite-store.ts");
  try {
    const to = await openSqliteStore(file);
    let counts: RowCounts;
    try {
      await copyStore(from, to);
      counts = await compareStores(from, to);
    } finally {
      await to.close();
    }
    rmSync(markFile(file), { force: true });
    const fd = openSync(file, "r");
    fsyncSync(fd);
    closeSync(fd);
    return counts;
  } catch (error) {
    removeStoreFiles(file);
    throw error;
  }
}

/** Does the same as copyToFile, but refuses to overwrite a file. The new file gets its name only when it is complete. */
export async function copyToNewFile(from: Store, file: string): Promise<RowCounts> {
  if (existsSync(file)) throw new AdminError(`${file}: a backup does not overwrite a file`);
  if (!existsSync(dirname(file))) throw new AdminError(`${file}: the directory does not exist`);
  const partial = `${file}.partial-${process.pid}`;
  try {
    const counts = await copyToFile(from, partial);
    linkSync(partial, file);
    syncDirectory(dirname(file));
    return counts;
  } catch (error) {
    throw codeOf(error) === "EEXIST" ? new AdminError(`${file}: a backup does not overwrite a file`) : error;
  } finally {
    removeStoreFiles(partial);
  }
}
