// Checks a store's file before it is used: whether the file is ours, has this version and is undamaged.

import { existsSync } from "node:fs";
import { present } from "#support/assert.ts";
import { StoreError } from "../store.ts";
import type { SchemaStep } from "./schema.ts";
import { APPLICATION_ID } from "./schema.ts";
import type { Connection } from "./sqlite.ts";

/**
 * Makes the settings of the connection. Then creates the tables of an empty file; migrates an older file, after it has made
 * a backup beside the file; or refuses a file that is newer than this program.
 */
export async function prepareSchema(writer: Connection, steps: readonly SchemaStep[], onNotice: (text: string) => void): Promise<void> {
  const { version, tables, application } = await headerOf(writer);
  const fresh = version === 0 && tables === 0;
  if (!fresh) refuseForeign(writer, version, application, steps.length);
  await writer.exec(
    // The page size can be set only for an empty file.
    ...(fresh ? ["PRAGMA page_size = 8192"] : []),
    "PRAGMA journal_mode = WAL",
    "PRAGMA synchronous = FULL",
    "PRAGMA cache_size = -32000",
    "PRAGMA wal_autocheckpoint = 2000",
    "PRAGMA journal_size_limit = 67108864",
  );
  if (version === steps.length) return;
  if (!fresh) {
    const copy = freeName(`${writer.file}.version-${version}`);
    await writer.run("VACUUM INTO ?", copy);
    onNotice(`store of version ${version} copied to ${copy} before its migration to version ${steps.length}`);
  }
  await writer.run("BEGIN IMMEDIATE");
  try {
    for (const step of steps.slice(version)) for (const sql of step) await writer.run(sql);
    await writer.run(`PRAGMA application_id = ${APPLICATION_ID}`);
    await writer.run(`PRAGMA user_version = ${steps.length}`);
    await writer.run("COMMIT");
  } catch (error) {
    await writer.run("ROLLBACK").catch(() => undefined);
    throw error;
  }
}

function refuseForeign(writer: Connection, version: number, application: number, known: number): void {
  if (application !== APPLICATION_ID) throw new StoreError("corrupt", `${writer.file}: a database of another program`);
  if (version > known) {
    throw new StoreError(
      "newer",
      `${writer.file}: the store is of version ${version}, this program knows versions up to ${known}: use the newer program, or a backup made before it`,
    );
  }
}

type Header = { readonly version: number; readonly tables: number; readonly application: number };

async function headerOf(connection: Connection): Promise<Header> {
  const [header] = await connection.all<Header>(
    `SELECT user_version AS version, application_id AS application, (SELECT count(*) FROM sqlite_schema) AS tables
      FROM pragma_user_version, pragma_application_id`,
  );
  return present(header, "the header of a store");
}

function freeName(name: string): string {
  for (let at = 0; ; at++) {
    const candidate = at === 0 ? name : `${name}.${at}`;
    if (!existsSync(candidate)) return candidate;
  }
}

const QUICK_CHECK = "PRAGMA quick_check(3)";

/** Runs SQLite's own check of pages and rows; it does not compare indexes with rows. Returns null, or the first faults. */
export async function quickCheck(connection: Connection): Promise<string | null> {
  const rows = await connection.all<{ readonly quick_check: string }>(QUICK_CHECK);
  const findings = rows.map((row) => row.quick_check).filter((text) => text !== "ok");
  return findings.length === 0 ? null : findings.join("; ");
}

/** Does the same as quickCheck, but resolves as soon as SQLite's thread has begun the check. */
export async function beginCheck(connection: Connection): Promise<{ readonly finding: Promise<string | null> }> {
  await connection.prepare(QUICK_CHECK);
  const finding = quickCheck(connection);
  finding.catch(() => undefined);
  return { finding };
}
