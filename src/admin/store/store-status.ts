// `partita store status`: the kind of the store, its place, and what is in it.

import { statSync } from "node:fs";
import { openConnection } from "#store/sqlite/sqlite.ts";
import { readStanding } from "#store/sqlite/sqlite-mark.ts";
import { storeFile, storeKind } from "#store/store-choice.ts";
import type { Conf } from "#support/conf.ts";
import { databaseSettings, postgres } from "./kinds.ts";

/** leader: the server that uses the database; null: no server uses it, or the store is a file. */
type Status = {
  readonly kind: "sqlite" | "postgres";
  readonly place: string;
  readonly bytes: number;
  readonly commits: number;
  readonly jobs: number;
  readonly finished: number;
  readonly leader: { readonly host: string; readonly pid: number; readonly term: number } | null;
};

/** Returns the status as text or JSON. Rejects with StoreError if the store cannot be read. */
export async function storeStatus(conf: Conf, as_json: boolean): Promise<string> {
  const status = storeKind(conf) === "sqlite" ? await fileStatus(conf) : await databaseStatus(conf);
  if (as_json) return JSON.stringify(status, null, 2);
  if (typeof status === "string") return status;
  const { kind, place, bytes, commits, jobs, finished, leader } = status;
  return [
    `store     ${kind === "sqlite" ? "SQLite" : "PostgreSQL"}: ${place}`,
    `size      ${(bytes / 2 ** 20).toFixed(1)} MiB, ${commits} commits`,
    `jobs      ${jobs} not finished, ${finished} finished`,
    ...(kind === "sqlite" ? [] : [`used by   ${leader === null ? "no server" : `${leader.host}, pid ${leader.pid}, term ${leader.term}`}`]),
  ].join("\n");
}

async function fileStatus(conf: Conf): Promise<Status | string> {
  const place = storeFile(conf);
  const stat = statSync(place, { throwIfNoEntry: false });
  if (stat === undefined) return `${place} does not exist yet: the server has never run`;
  const connection = await openConnection(place, "read");
  try {
    const [counts] = await connection.all<{ readonly jobs: number; readonly finished: number }>(
      "SELECT (SELECT count(*) FROM jobs) AS jobs, (SELECT count(*) FROM history) AS finished",
    );
    const commits = (await readStanding(connection))?.commit ?? 0;
    return { kind: "sqlite", place, bytes: stat.size, commits, jobs: counts?.jobs ?? 0, finished: counts?.finished ?? 0, leader: null };
  } finally {
    await connection.close();
  }
}

async function databaseStatus(conf: Conf): Promise<Status | string> {
  const settings = await databaseSettings(conf);
  const { lookAtDatabase, nameOfDatabase } = await postgres();
  const sight = await lookAtDatabase(settings);
  if (sight === null) return `${nameOfDatabase(settings)} has no store yet: the server has never run`;
  const { leader, bytes, jobs, finished, name } = sight;
  const used = leader.holder === null ? null : { host: leader.host ?? "", pid: leader.pid ?? 0, term: leader.term };
  return { kind: "postgres", place: name, bytes, commits: leader.last_commit, jobs, finished, leader: used };
}
