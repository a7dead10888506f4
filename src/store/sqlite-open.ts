// What happens to a store's file before it is used: is it ours, is it of this version, is it whole.

import { existsSync } from "node:fs";
import type { SchemaStep } from "./schema.ts";
import { APPLICATION_ID } from "./schema.ts";
import type { Connection } from "./sqlite.ts";
import { StoreError } from "./store.ts";

/** Settings of the connection, then the schema: made, migrated (after a backup beside the file), or refused when it is newer than this program. */
export async function prepareSchema(writer: Connection, steps: readonly SchemaStep[], onNotice: (text: string) => void): Promise<void> {
  const version = await number(writer, "PRAGMA user_version");
  const tables = await number(writer, "SELECT count(*) FROM sqlite_schema");
  const fresh = version === 0 && tables === 0;
  if (!fresh) await refuseForeign(writer, version, steps.length);
  // Only an empty file takes another page size.
  if (fresh) await writer.run("PRAGMA page_size = 8192");
  await writer.all("PRAGMA journal_mode = WAL");
  await writer.run("PRAGMA synchronous = FULL");
  await writer.run("PRAGMA cache_size = -32000");
  await writer.run("PRAGMA wal_autocheckpoint = 2000");
  await writer.run("PRAGMA journal_size_limit = 67108864");
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

async function refuseForeign(writer: Connection, version: number, known: number): Promise<void> {
  const application = await number(writer, "PRAGMA application_id");
  if (application !== APPLICATION_ID) throw new StoreError("corrupt", `${writer.file}: a database of another program`);
  if (version > known) {
    throw new StoreError(
      "newer",
      `${writer.file}: the store is of version ${version}, this program knows versions up to ${known}: use the newer program, or a backup made before it`,
    );
  }
}

async function number(connection: Connection, sql: string): Promise<number> {
  const [row] = await connection.all<{ readonly [column: string]: number }>(sql);
  return Number(Object.values(row ?? {})[0] ?? 0);
}

function freeName(name: string): string {
  for (let at = 0; ; at++) {
    const candidate = at === 0 ? name : `${name}.${at}`;
    if (!existsSync(candidate)) return candidate;
  }
}

/** SQLite's own check of pages and rows (not of indexes against rows): null, or the first findings. */
export async function quickCheck(connection: Connection): Promise<string | null> {
  const rows = await connection.all<{ readonly quick_check: string }>("PRAGMA quick_check(3)");
  const findings = rows.map((row) => row.quick_check).filter((text) => text !== "ok");
  return findings.length === 0 ? null : findings.join("; ");
}
