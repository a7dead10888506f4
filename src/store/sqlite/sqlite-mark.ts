// Compares a store's file with its mark (mark.ts). The number of the store and the number of its last commit are two rows of
// the table `counters`. The server does not see these rows.

import { randomInt } from "node:crypto";
import { statSync } from "node:fs";
import { type Mark, markFile, type Standing } from "../mark.ts";
import { StoreError } from "../store.ts";
import type { Connection } from "./sqlite.ts";

/** The names of the rows with the number of the store and the number of its last commit. */
const STORE_NUMBER = "store_number";
export const LAST_COMMIT = "store_commit";
export const OWN_COUNTERS: ReadonlySet<string> = new Set([STORE_NUMBER, LAST_COMMIT]);

/** The size of a store's file in bytes, or null if there is no file. */
export const storeBytes = (file: string): number | null => statSync(file, { throwIfNoEntry: false })?.size ?? null;

export async function readStanding(connection: Connection): Promise<Standing> {
  const tables = await connection.all<{ readonly name: string }>("SELECT name FROM sqlite_schema WHERE name = 'counters'");
  if (tables.length === 0) return null;
  const rows = await connection.all<{ readonly name: string; readonly value: number }>(
    "SELECT name, value FROM counters WHERE name IN (?, ?)",
    STORE_NUMBER,
    LAST_COMMIT,
  );
  const values = new Map(rows.map(({ name, value }) => [name, value]));
  const store = values.get(STORE_NUMBER);
  return store === undefined ? null : { store, commit: values.get(LAST_COMMIT) ?? 0 };
}

/**
 * Reads the number of a store that is open for writing, and the number of its last commit. A store without a number gets
 * one. That number is written into the store's file itself, so that it is known even if the WAL is lost.
 */
export async function takeStanding(writer: Connection): Promise<NonNullable<Standing>> {
  const found = await readStanding(writer);
  if (found !== null) return found;
  const store = randomInt(1, 2 ** 48 - 1);
  await writer.run("INSERT INTO counters (name, value) VALUES (?, ?), (?, 0)", STORE_NUMBER, store, LAST_COMMIT);
  await writer.run("PRAGMA wal_checkpoint(TRUNCATE)");
  return { store, commit: 0 };
}

/** One sentence about what is lost without the store's file, or null if the file exists and is not empty. */
export function absence(file: string): string | null {
  const bytes = storeBytes(file);
  if (bytes === null) return "the store is missing, and this PBS_HOME had one";
  return bytes === 0 ? "the store has no bytes, and this PBS_HOME had one" : null;
}

/** The error for a store that does not match its mark. It says what is missing, since when, and what the administrator can do. */
export function lost(file: string, what: string, mark: Mark): StoreError {
  const wal = what.includes("commits") ? ` (is ${file}-wal missing or cut, or was an older copy put here?)` : "";
  return new StoreError(
    "lost",
    `${file}: ${what}${wal}. The last commit was made at ${new Date(mark.at_ms).toISOString()}. Nothing has been changed. Put the missing file back and start` +
      ` again, or put a backup in its place: partita restore FILE. To go on without what is missing, remove ${markFile(file)} and start again.`,
  );
}
