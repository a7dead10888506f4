// Checks the server's store for `partita doctor`. The check opens the store only for reading.

import { statSync } from "node:fs";
import { join } from "node:path";
import { lack, markFile, readMark } from "#store/mark.ts";
import { openConnection } from "#store/sqlite/sqlite.ts";
import { absence, lost, readStanding } from "#store/sqlite/sqlite-mark.ts";
import { quickCheck } from "#store/sqlite/sqlite-open.ts";
import type { Conf } from "#support/conf.ts";
import { openInodes } from "../complex/processes.ts";

export const storePath = (conf: Conf): string => join(conf.home, "server_priv", "partita.db");

/** The result of the check. fault: why the store cannot be used. sound: a description of a store without faults. */
export type StoreFinding = { readonly fault: string } | { readonly sound: string };

/** Checks the store. server: pid of the server that has the store open; null: no server runs. Rejects with the error of the file system or of SQLite. */
export async function examineStore(conf: Conf, server: number | null): Promise<StoreFinding> {
  const file = storePath(conf);
  const mark = readMark(markFile(file));
  if (server !== null && isReplaced(file, server))
    return {
      fault: `${file} was removed or replaced while the server has it open: save what the server has with partita backup FILE before you stop it`,
    };
  const absent = absence(file);
  if (absent !== null)
    return mark === null ? { sound: `${file} does not exist yet: the server has never run` } : { fault: lost(file, absent, mark).message };
  const connection = await openConnection(file, "read");
  try {
    // If the server runs, store and mark are not compared: the server did so at its start, and may have committed something since the mark was read.
    const lacking = mark === null || server !== null ? null : lack(await readStanding(connection), mark);
    if (lacking !== null && mark !== null) return { fault: lost(file, lacking, mark).message };
    const damage = await quickCheck(connection);
    return damage === null
      ? { sound: `the store ${file} is whole` }
      : { fault: `${file} is damaged: put a backup in its place: partita restore FILE (${damage})` };
  } finally {
    await connection.close();
  }
}

/** Whether the path no longer leads to the file that the server has open. */
function isReplaced(file: string, server: number): boolean {
  const open = openInodes(server);
  const stat = statSync(file, { throwIfNoEntry: false });
  return open !== null && (stat === undefined || !open.has(stat.ino));
}
