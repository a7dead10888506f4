// Checks the server's store for `partita doctor`. The check opens the store only for reading.

import { statSync } from "node:fs";
import { lack, markFile, readMark } from "#store/mark.ts";
import { openConnection } from "#store/sqlite/sqlite.ts";
import { absence, lost, readStanding } from "#store/sqlite/sqlite-mark.ts";
import { quickCheck } from "#store/sqlite/sqlite-open.ts";
import { storeFile, storeKind } from "#store/store-choice.ts";
import type { Conf } from "#support/conf.ts";
import { openInodes } from "../complex/processes.ts";
import { databaseSettings, postgres } from "./kinds.ts";

/** The result of the check. fault: why the store cannot be used. sound: a description of a store without faults. */
export type StoreFinding = { readonly fault: string } | { readonly sound: string };

/** Checks the store. server: pid of the server that has the store open; null: no server runs. Rejects with the error of the file system or of SQLite. */
export async function examineStore(conf: Conf, server: number | null): Promise<StoreFinding> {
  if (storeKind(conf) === "postgres") return examineDatabase(conf, server);
  const file = storeFile(conf);
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

async function examineDatabase(conf: Conf, server: number | null): Promise<StoreFinding> {
  const settings = await databaseSettings(conf);
  const { lookAtDatabase, nameOfDatabase } = await postgres();
  const mark = server === null ? readMark(markFile(storeFile(conf))) : null;
  const sight = await lookAtDatabase(settings);
  const name = nameOfDatabase(settings);
  if (sight === null)
    return mark === null
      ? { sound: `${name} has no store yet: the server has never run` }
      : { fault: `${name} has no store, and this PBS_HOME had one` };
  const lacking = mark === null ? null : lack({ store: sight.leader.store, commit: sight.leader.last_commit }, mark);
  if (lacking !== null) return { fault: `${name}: ${lacking}` };
  const [weakness] = sight.weaknesses;
  return weakness === undefined ? { sound: `the store ${name} can be reached and accepts writes` } : { fault: weakness };
}

/** Whether the path no longer leads to the file that the server has open. */
function isReplaced(file: string, server: number): boolean {
  const open = openInodes(server);
  const stat = statSync(file, { throwIfNoEntry: false });
  return open !== null && (stat === undefined || !open.has(stat.ino));
}
