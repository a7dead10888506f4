// The store in PostgreSQL beside the one in SQLite, in one run on one machine: stores alone, and complexes that use them. The
// PostgreSQL is one of our own, on the same disk, with its usual settings.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { jobData } from "#server/state/rows.ts";
import { openSqliteStore } from "#store/sqlite/sqlite-store.ts";
import type { JobRow, Store } from "#store/store.ts";
import { startComplex } from "../test/live/complex.ts";
import { LACK_OF_POSTGRES, openStore, type Postgres, startPostgres } from "../test/live/store/postgres-bed.ts";
import { addJob, harness } from "../test/server/harness.ts";
import { batch, type LiveOptions, restartRow, submissionRow } from "./live.ts";
import type { Row } from "./row.ts";

const MANY = 100_000;
/** jobs in one commit, and the number of such commits */
const COMMITS = [
  [1, 300],
  [10, 200],
  [100, 100],
  [1000, 20],
] as const;

export async function storeRows({ jobs_large, say }: LiveOptions): Promise<Row[]> {
  if (LACK_OF_POSTGRES !== false)
    return [{ work: "PostgreSQL beside SQLite: not measured, PostgreSQL is not installed", value: Number.NaN, unit: "/s", limit: null }];
  const postgres = startPostgres({ durable: true });
  const directory = mkdtempSync(join(tmpdir(), "partita-bench-"));
  try {
    const rows: Row[] = [];
    const kinds: readonly (readonly [kind: string, open: () => Promise<Store>])[] = [
      ["SQLite", () => openSqliteStore(join(directory, "partita.db"))],
      ["PostgreSQL", () => openStore(postgres, { settings: postgres.settings("schema = alone") })],
    ];
    for (const [kind, open] of kinds) {
      say(`the store in ${kind}`);
      rows.push(...(await aloneRows(kind, open)));
    }
    for (const kind of ["SQLite", "PostgreSQL"] as const) {
      say(`a complex with its store in ${kind}`);
      rows.push(...(await complexRows(kind, postgres, jobs_large)));
    }
    return rows;
  } finally {
    postgres.remove();
    rmSync(directory, { recursive: true, force: true });
  }
}

async function aloneRows(kind: string, open: () => Promise<Store>): Promise<Row[]> {
  const rows: Row[] = [];
  const data = usualJob();
  let seq = 0;
  const jobs = (count: number): JobRow[] =>
    Array.from({ length: count }, () => ({ id: `${++seq}.svr`, seq, data: { ...data, Output_Path: `svr:/home/alice/STDIN.o${seq}` } }));
  const store = await open();
  for (const [count, commits] of COMMITS) {
    const begun = performance.now();
    for (let at = 0; at < commits; at++) {
      const some = jobs(count);
      await store.commit({ jobs: some, scripts: some.map(({ id }) => ({ id, text: "#!/bin/sh\ntrue\n" })), counters: { next_seq: seq } });
    }
    const value = (count * commits * 1000) / (performance.now() - begun);
    rows.push({ work: `store in ${kind}: jobs with scripts, ${count} in a commit`, value, unit: "/s", limit: null });
  }
  while (seq < MANY) await store.commit({ jobs: jobs(Math.min(1000, MANY - seq)), counters: { next_seq: seq } });
  await store.close();
  const again = await open();
  const begun = performance.now();
  const loaded = await again.load();
  const value = (performance.now() - begun) / 1000;
  await again.close();
  if (loaded.jobs.length !== MANY) throw new Error(`${loaded.jobs.length} jobs instead of ${MANY}`);
  return [...rows, { work: `store in ${kind}: load of 100,000 jobs`, value, unit: "s", limit: null }];
}

/** The row of a waiting job with an environment, about 1 kB. */
function usualJob(): JobRow["data"] {
  const h = harness();
  const variables = ["HOME", "LANG", "LOGNAME", "PATH", "MAIL", "SHELL", "WORKDIR", "SYSTEM", "QUEUE", "HOST"];
  const id = addJob(h, { Variable_List: variables.map((name) => `PBS_O_${name}=/home/alice/of/${name.toLowerCase()}`) });
  const made = h.core.state.jobs.get(id);
  if (made === undefined) throw new Error("the job is not there");
  return jobData(made);
}

async function complexRows(kind: "SQLite" | "PostgreSQL", postgres: Postgres, jobs_large: boolean): Promise<Row[]> {
  const complex = await startComplex({
    mode: "user",
    ...(kind === "SQLite"
      ? {}
      : { conf: { PARTITA_STORE: "postgres" }, files: { "server_priv/database.conf": postgres.conf("schema = complex") } }),
  });
  const named = (row: Row): Row => ({ ...row, work: `${row.work}, store in ${kind}`, limit: null });
  try {
    const rows = [named(submissionRow(complex)), named(await restartRow(complex, 10_000, 0))];
    if (!jobs_large) return rows;
    for (let part = 0; part < 9; part++) batch(complex, 10_000);
    return [...rows, named(await restartRow(complex, MANY, 0))];
  } finally {
    await complex.stop();
  }
}
