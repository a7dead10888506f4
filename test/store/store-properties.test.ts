// Stores under many random rows.

import assert from "node:assert/strict";
import { test } from "node:test";
import { memoryStore } from "#store/memory-store.ts";
import { openSqliteStore } from "#store/sqlite/sqlite-store.ts";
import type { Batch, Store } from "#store/store.ts";
import { prng } from "#support/prng.ts";
import { everyStore, finished, ids, inDirectory, job } from "./bed.ts";

test("store: random batches: memory and disk agree, whenever the disk is opened again", async () => {
  await inDirectory(async (file) => {
    const memory = memoryStore();
    let disk: Store = await openSqliteStore(file);
    const random = prng("store");
    for (let round = 0; round < 150; round++) {
      const some = (): number[] => Array.from(new Set(Array.from({ length: random.int(0, 5) }, () => random.int(1, 30))));
      const batch: Batch = {
        put: some().map((at) => ({ table: random.pick(["queues", "vnodes", "server"] as const), name: `o${at}`, data: { round } })),
        drop: some().map((at) => ({ table: random.pick(["queues", "vnodes"] as const), name: `o${at}` })),
        jobs: some().map((at) => job(at, { round })),
        jobs_gone: some().map((at) => `${at}.svr`),
        scripts: some().map((at) => ({ id: `${at}.svr`, text: String(round) })),
        history: some().map((at) => finished(at, { ended_s: round })),
        history_gone: some().map((at) => `${at}.svr`),
        counters: { round },
      };
      await memory.commit(batch);
      await disk.commit(batch);
      if (round % 30 !== 0) continue;
      await disk.close();
      disk = await openSqliteStore(file);
      const byName = (rows: readonly { readonly name: string }[]) => [...rows].sort((a, b) => (a.name < b.name ? -1 : 1));
      const shape = async (store: Store) => {
        const { objects, jobs, counters } = await store.load();
        const scripts = await store.scripts(Array.from({ length: 30 }, (_, at) => `${at}.svr`));
        const tables = Object.entries(objects).map(([table, rows]) => [table, byName(rows)]);
        return { tables, jobs, counters, scripts: [...scripts].sort(), history: await ids(store, {}) };
      };
      assert.deepEqual(await shape(disk), await shape(memory));
    }
    await disk.close();
  });
});

test("store: thousands of jobs, alike and not, short and long, come back as they were put and in the order of seq", async () => {
  await everyStore(async (store, reopen) => {
    const random = prng(7);
    const rows = Array.from({ length: 4500 }, (_, at) =>
      job(5000 - at, {
        Job_Name: `j${at % 3}`,
        ...(at % 7 === 0 ? { comment: 'a "quoted" \\ one,\n{ü \u{1f600}' } : {}),
        ...(at % 1500 === 0 ? { long: "x,y{".repeat(5000 + random.int(0, 10_000)) } : {}),
        Variable_List: ["A=1", `B=${at % 2}`],
        Resource_List: { ncpus: 1, mem: `${at % 5}gb` },
        ctime: 1e9 + at,
      }),
    );
    const runs = rows
      .filter(({ seq }) => seq % 2 === 0)
      .map(({ id, seq }) => ({ id, data: { comment: `c${seq % 11}`, s: "s".repeat(seq % 3 === 0 ? 1 : 17_000) } }));
    await store.commit({ jobs: rows, runs });
    const opened = await reopen(store);
    const run = new Map(runs.map(({ id, data }) => [id, { run: data }]));
    assert.deepEqual(
      (await opened.load()).jobs,
      rows.toReversed().map((row) => ({ ...row, ...run.get(row.id) })),
    );
    const kept: unknown[] = [];
    const { jobs } = await opened.load((name, value) => {
      if (name === "Variable_List") kept.push(value);
      return name === "Job_Name" ? "kept" : value;
    });
    assert.equal(
      jobs.every(({ data }) => data["Job_Name"] === "kept" && kept.includes(data["Variable_List"])),
      true,
    );
  });
});
