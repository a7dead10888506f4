// Common code of tests of the store: stores in separate directories, rows, and faults by name.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { memoryStore } from "#store/memory-store.ts";
import { openSqliteStore } from "#store/sqlite/sqlite-store.ts";
import { type HistoryRow, type Store, StoreError, type StoreFault } from "#store/store.ts";

export async function inDirectory(work: (file: string, dir: string) => Promise<void>): Promise<void> {
  const dir = mkdtempSync(join(tmpdir(), "partita-store-"));
  try {
    await work(join(dir, "partita.db"), dir);
  } finally {
    rmSync(dir, { recursive: true });
  }
}

type Work = (store: Store, reopen: (old: Store) => Promise<Store>) => Promise<void>;

export async function withMemory(work: Work): Promise<void> {
  const memory = memoryStore();
  await work(memory, async () => memory);
}

export async function withSqlite(work: Work): Promise<void> {
  await inDirectory(async (file) => {
    let last: Store = await openSqliteStore(file);
    await work(last, async (old) => {
      await old.close();
      last = await openSqliteStore(file);
      return last;
    });
    await last.close();
  });
}

export const isFault = (fault: StoreFault, text: RegExp) => (error: unknown) =>
  error instanceof StoreError && error.fault === fault && text.test(error.message);
export const job = (seq: number, data: { readonly [name: string]: unknown } = {}) => ({
  id: `${seq}.svr`,
  seq,
  data: { job_state: "Q", ...data },
});
export const finished = (seq: number, more: Partial<HistoryRow> = {}): HistoryRow => ({
  id: `${seq}.svr`,
  seq,
  idx: -1,
  owner: "alice",
  queue: "workq",
  state: "F",
  ended_s: seq,
  data: { Exit_status: 0, Resource_List: { ncpus: 1 } },
  ...more,
});
export async function ids(store: Store, filter: Parameters<Store["history"]["pages"]>[0], page_rows?: number): Promise<string> {
  const found: string[] = [];
  for await (const page of store.history.pages(filter, page_rows)) found.push(...page.map((row) => row.id.replace(".svr", "")));
  return found.join(" ");
}
