// What `partita doctor` says about the server's store. Reads only, and never opens a store that no server has open for writing.

import { statSync } from "node:fs";
import { join } from "node:path";
import { markFile, readMark } from "#store/mark.ts";
import { openConnection } from "#store/sqlite.ts";
import { absence, lack, lost, readStanding } from "#store/sqlite-mark.ts";
import { quickCheck } from "#store/sqlite-open.ts";
import type { Conf } from "#support/conf.ts";
import { openInodes } from "../complex/processes.ts";

export const storePath = (conf: Conf): string => join(conf.home, "server_priv", "partita.db");

/** fault: why the store cannot be used, or not any more. sound: what it is when nothing is wrong with it. */
export type StoreFinding = { readonly fault: string } | { readonly sound: string };

/** server: pid of the server that has it open; null: none runs. Rejects with what the file system or SQLite says. */
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
    // A running server is ahead of what was read of the mark; it has compared both when it started.
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

/** Whether the name leads to another file than the one that the server has open, or to none. */
function isReplaced(file: string, server: number): boolean {
  const open = openInodes(server);
  const stat = statSync(file, { throwIfNoEntry: false });
  return open !== null && (stat === undefined || !open.has(stat.ino));
}
