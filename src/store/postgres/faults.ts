// What an error of PostgreSQL, or of the connection to it, means for the store. Pure.

import { codeOf, messageOf } from "#support/caught.ts";
import { StoreError, type StoreFault } from "../store.ts";

/** The codes of errors that our own statements raise: the term has ended; the number of the commit is not the next one. */
export const DEPOSED = "PT001";
export const WRONG_NUMBER = "PT002";

/** By SQLSTATE or its first two characters: the fault, and what the administrator can do. */
const FAULTS: { readonly [code: string]: readonly [StoreFault, string] } = {
  [DEPOSED]: ["deposed", "another server has taken this database"],
  [WRONG_NUMBER]: ["corrupt", "the number of the last commit is not the expected one: another program has written to the database"],
  "53100": ["disk-full", "the disk of the database is full: make room there"],
  "53300": ["away", "the database has no free connection: raise max_connections or reserve one for the server"],
  "57P01": ["away", "the database ends"],
  "57P02": ["away", "the database ends"],
  "57P03": ["away", "the database starts or ends, or is a standby that takes no connections"],
  "57P05": ["away", "the database has closed the connection because it was idle"],
  "57014": ["io", "the database has taken too long, or the statement was cancelled"],
  "55P03": ["io", "a lock of another session stands in the way"],
  "25006": ["permission", "the database accepts no writes: it is a standby, or default_transaction_read_only is set"],
  "28": ["permission", "the database refuses the login: check user, password and certificate in database.conf, and pg_hba.conf"],
  "3D": ["permission", "there is no such database: make it with createdb"],
  "3F": ["corrupt", "the schema of the store is not there"],
  "42501": ["permission", "the user of the database may not do this: it must be the owner of the database or of the schema"],
  "42P01": ["corrupt", "a table of the store is missing: put a backup in its place"],
  "08": ["away", "the connection to the database was lost"],
  XX001: ["corrupt", "the database reports damaged data: put a backup in its place"],
  XX002: ["corrupt", "the database reports a damaged index: REINDEX, or put a backup in its place"],
};

/** Whether the database has reported that it has undone a statement. Otherwise the connection was lost, and the outcome is not known. */
export function isUndone(error: unknown): boolean {
  return severityOf(error) === "ERROR";
}

/** Turns an error of the driver into a StoreError. store: its name in messages. */
export function databaseError(store: string, error: unknown): StoreError {
  if (error instanceof StoreError) return error;
  const code = codeOf(error) ?? "";
  const [fault, help] = FAULTS[code] ?? FAULTS[code.slice(0, 2)] ?? unnamed(error);
  return new StoreError(fault, `${store}: ${help} (${messageOf(error) || code})`, error);
}

const unnamed = (error: unknown): readonly [StoreFault, string] =>
  severityOf(error) === undefined ? ["away", "the database cannot be reached"] : ["io", "the database reports an error"];

/** The severity in a message of the database; undefined: the error does not come from the database. */
function severityOf(error: unknown): string | undefined {
  const severity = typeof error === "object" && error !== null ? Reflect.get(error, "severity") : undefined;
  return typeof severity === "string" ? severity : undefined;
}
