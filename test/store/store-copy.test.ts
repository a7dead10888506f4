// Copies of stores, and the comparison that proves them.

import assert from "node:assert/strict";
import { test } from "node:test";
import { memoryStore } from "#store/memory-store.ts";
import { openSqliteStore } from "#store/sqlite/sqlite-store.ts";
import type { Batch, Store } from "#store/store.ts";
import { compareStores, copyStore } from "#store/store-copy.ts";
import { finished, inDirectory, isFault, job } from "./bed.ts";

const ROWS: Batch = {
  put: [
    { table: "server", name: "svr", data: { b: 1, a: [null, true, "x"] } },
    { table: "queues", name: "workq", data: {} },
    { table: "queues", name: "before", data: {} },
  ],
  jobs: Array.from({ length: 1300 }, (_, at) => job(at + 1)),
  runs: [{ id: "7.svr", data: { substate: 42 } }],
  scripts: [
    { id: "1.svr", text: "#!/bin/sh\n" },
    { id: "1300.svr", text: "" },
  ],
  history: [...Array.from({ length: 1200 }, (_, at) => finished(at + 2000)), finished(9, { id: "9[1].svr", idx: 1 })],
  counters: { next_seq: 4000, probed: 1_795_457_471_000 },
};

async function filled(): Promise<Store> {
  const store = memoryStore();
  await store.commit(ROWS);
  return store;
}

test("copy of a store: all rows, into a store of another kind and back", async () => {
  const from = await filled();
  await inDirectory(async (file) => {
    const middle = await openSqliteStore(file);
    await copyStore(from, middle);
    const back = memoryStore();
    await copyStore(middle, back);
    for (const copy of [middle, back])
      assert.deepEqual(await compareStores(from, copy), { objects: 3, jobs: 1300, scripts: 2, finished: 1201 });
    await middle.close();
  });
});

test("comparison of stores: every difference is found and named", async () => {
  const table: readonly (readonly [change: Batch, named: RegExp])[] = [
    [{ counters: { next_seq: 4001 } }, /counters differs/],
    [{ counters: { more: 1 } }, /counters differs/],
    [{ put: [{ table: "server", name: "svr", data: { b: 1, a: [null, true, "y"] } }] }, /server: svr differs/],
    [{ put: [{ table: "server", name: "svr", data: { a: [null, true, "x"], b: 1 } }] }, /server: svr differs/],
    [{ drop: [{ table: "queues", name: "before" }] }, /queues: before is in one store only/],
    [{ put: [{ table: "hooks", name: "h", data: {} }] }, /hooks: h is in one store only/],
    [{ jobs: [job(600, { Priority: 1 })] }, /jobs: 600.svr differs/],
    [{ runs: [{ id: "7.svr", data: { substate: 41 } }] }, /jobs: 7.svr differs/],
    [{ runs: [{ id: "8.svr", data: {} }] }, /jobs: 8.svr differs/],
    [{ jobs_gone: ["1299.svr"] }, /jobs: (1299.svr or 1300.svr|1300.svr or 1299.svr) is in one store only/],
    [{ scripts: [{ id: "1.svr", text: "#!/bin/bash\n" }] }, /the script of 1.svr differs/],
    [{ scripts: [{ id: "2.svr", text: "" }] }, /the script of 2.svr differs/],
    [{ history_gone: ["3199.svr"] }, /history: 3199.svr is in one store only/],
    [{ history: [finished(3200)] }, /history: 3200.svr is in one store only/],
    [{ history: [finished(2100, { queue: "other" })] }, /history: 2100.svr differs/],
  ];
  for (const [change, named] of table) {
    const other = await filled();
    await other.commit(change);
    for (const pair of [
      [await filled(), other],
      [other, await filled()],
    ] as const)
      await assert.rejects(compareStores(...pair), isFault("corrupt", named), JSON.stringify(change));
  }
});
