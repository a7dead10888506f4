// Properties of every store, and possible faults of the store on disk.

import assert from "node:assert/strict";
import { closeSync, openSync, readdirSync, readFileSync, statSync, truncateSync, writeFileSync, writeSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { memoryStore } from "#store/memory-store.ts";
import { SCHEMA_STEPS } from "#store/sqlite/schema.ts";
import { openConnection, storeError } from "#store/sqlite/sqlite.ts";
import { openSqliteStore } from "#store/sqlite/sqlite-store.ts";
import { type HistoryRow, StoreError, type StoreFault } from "#store/store.ts";
import { everyStore, finished, ids, inDirectory, isFault, job } from "./bed.ts";

test("store: a fresh one is empty and says so", async () => {
  await everyStore(async (store, reopen) => {
    const first = await store.load();
    assert.equal(first.fresh, true);
    assert.deepEqual([first.jobs, first.counters, first.objects.queues], [[], {}, []]);
    await store.commit({ counters: { next_seq: 1 } });
    assert.equal((await (await reopen(store)).load()).fresh, false);
  });
});

test("store: rows of every table come back as they were put, after change, deletion and restart", async () => {
  await everyStore(async (store, reopen) => {
    const data = {
      text: 'quote " backslash \\ newline \n nul-free ü \u{1f600}',
      list: ["a", "b"],
      nested: { ncpus: 1, mem: "2gb", flag: true },
      none: null,
    };
    await store.commit({
      put: [
        { table: "server", name: "svr", data },
        { table: "queues", name: "workq", data: { order: 1 } },
        { table: "queues", name: "it's; DROP TABLE jobs", data: { order: 2 } },
        { table: "vnodes", name: "n[0]", data },
        { table: "resources", name: "lic", data: {} },
        { table: "scheds", name: "default", data: {} },
        { table: "resvs", name: "R1.svr", data: {} },
      ],
      jobs: [job(2), job(1, data)],
      scripts: [
        { id: "1.svr", text: "#!/bin/sh\ntrue\n" },
        { id: "2.svr", text: "" },
      ],
      counters: { next_seq: 3, next_order: 9 },
    });
    await store.commit({
      put: [{ table: "queues", name: "workq", data: { order: 1, started: true } }],
      drop: [
        { table: "resources", name: "lic" },
        { table: "queues", name: "never was" },
      ],
      jobs: [job(2, { job_state: "R" })],
      counters: { next_seq: 4 },
    });
    const opened = await reopen(store);
    const { objects, jobs, counters } = await opened.load();
    assert.deepEqual(objects.server, [{ name: "svr", data }]);
    assert.deepEqual(objects.queues, [
      { name: "workq", data: { order: 1, started: true } },
      { name: "it's; DROP TABLE jobs", data: { order: 2 } },
    ]);
    assert.deepEqual(objects.vnodes, [{ name: "n[0]", data }]);
    assert.deepEqual([objects.resources, objects.scheds.length, objects.resvs.length], [[], 1, 1]);
    assert.deepEqual(jobs, [job(1, data), job(2, { job_state: "R" })]);
    assert.deepEqual(counters, { next_seq: 4, next_order: 9 });
    assert.deepEqual(Object.fromEntries(await opened.scripts(["1.svr", "2.svr", "3.svr"])), { "1.svr": "#!/bin/sh\ntrue\n", "2.svr": "" });
  });
});

test("store: a job that goes takes its script along; into the history in the same batch", async () => {
  await everyStore(async (store, reopen) => {
    await store.commit({
      jobs: [job(1), job(2)],
      scripts: [
        { id: "1.svr", text: "x" },
        { id: "2.svr", text: "y" },
      ],
    });
    await store.commit({ jobs_gone: ["1.svr"], history: [finished(1)] });
    const opened = await reopen(store);
    assert.deepEqual(
      (await opened.load()).jobs.map((row) => row.id),
      ["2.svr"],
    );
    assert.deepEqual([...(await opened.scripts(["1.svr", "2.svr"])).keys()], ["2.svr"]);
    assert.deepEqual(await opened.history.get("1.svr"), finished(1));
    assert.equal(await opened.history.get("2.svr"), null);
  });
});

test("store: a job's second row is told beside the first, changes alone, and goes with the job or before it", async () => {
  await everyStore(async (store, reopen) => {
    await store.commit({ jobs: [job(1), job(2), job(3), job(4)] });
    await store.commit({
      runs: [
        { id: "1.svr", data: { substate: 41, 'a name "with" more': "\n" } },
        { id: "2.svr", data: { substate: 41 } },
        { id: "3.svr", data: { substate: 41 } },
      ],
    });
    await store.commit({
      runs: [{ id: "1.svr", data: { substate: 42 } }],
      jobs: [job(2, { Priority: 1 })],
      runs_gone: ["2.svr", "4.svr"],
      jobs_gone: ["3.svr"],
    });
    const opened = await reopen(store);
    assert.deepEqual((await opened.load()).jobs, [{ ...job(1), run: { substate: 42 } }, job(2, { Priority: 1 }), job(4)]);
    await opened.commit({ jobs: [job(3)] });
    assert.deepEqual((await opened.load()).jobs.at(2), job(3), "a job of the same name has nothing of the one before");
  });
});

test("store: the history by id, owner, queue and time, in pages, in the order of submission", async () => {
  await everyStore(async (store) => {
    const rows = [5, 3, 1, 4, 2, 10].map((seq) =>
      finished(seq, {
        owner: seq % 2 === 0 ? "bob" : "alice",
        queue: seq > 3 ? "long" : "workq",
        ended_s: 100 - seq,
        state: seq === 4 ? "M" : "F",
      }),
    );
    await store.commit({ history: [...rows, finished(7, { id: "7[1].svr" }), finished(7, { id: "7[0].svr" })] });
    const table: [filter: Parameters<typeof ids>[1], found: string][] = [
      [{}, "1 2 3 4 5 7[0] 7[1] 10"],
      [{ owner: "bob" }, "2 4 10"],
      [{ owner: "nobody" }, ""],
      [{ queue: "long" }, "4 5 10"],
      [{ owner: "bob", queue: "long" }, "4 10"],
      [{ ids: ["3.svr", "10.svr", "99.svr"] }, "3 10"],
      [{ ids: [] }, ""],
      [{ since_s: 97 }, "1 2 3"],
      [{ before_s: 96, since_s: 90 }, "5 10"],
    ];
    for (const [filter, found] of table)
      for (const page of [1, 2, 3, 1000]) assert.equal(await ids(store, filter, page), found, JSON.stringify(filter));
    assert.equal(await store.history.count(), 8);
    assert.deepEqual([await store.history.usesResource("ncpus"), await store.history.usesResource("lic")], [true, false]);
    await store.commit({ history_gone: ["3.svr"] });
    assert.equal(await ids(store, { queue: "workq" }), "1 2 7[0] 7[1]");
  });
});

test("store: subjobs stand behind their array by index, can be left out, and go with it", async () => {
  const subjob = (seq: number, idx: number): HistoryRow => finished(seq, { id: `${seq}[${idx}].svr`, idx });
  await everyStore(async (store) => {
    await store.commit({ history: [subjob(2, 10), finished(3), subjob(2, 9), finished(1), subjob(4, 0), subjob(2, 100)] });
    await store.commit({ history: [finished(2, { id: "2[].svr" })] });
    assert.equal(await ids(store, {}, 2), "1 2[] 2[9] 2[10] 2[100] 3 4[0]");
    assert.equal(await ids(store, { subjobs: false }, 2), "1 2[] 3");
    assert.equal(await ids(store, { seqs: [2, 4], subjobs: true }, 2), "2[] 2[9] 2[10] 2[100] 4[0]");
    assert.equal(await ids(store, { ids: ["2[9].svr", "3.svr"] }), "2[9] 3");
    assert.deepEqual(await store.history.get("2[9].svr"), subjob(2, 9));
    await store.commit({ history_gone: ["2[].svr"], history_gone_arrays: [2] });
    assert.equal(await ids(store, {}), "1 3 4[0]");
  });
});

test("store: purging takes the oldest first, as many as asked for, and says what it took", async () => {
  await everyStore(async (store) => {
    await store.commit({ history: [1, 2, 3, 4, 5].map((seq) => finished(seq, { ended_s: 60 - seq, queue: `q${seq}` })) });
    const purged = (await store.history.purge(58, 2)).map(({ id, queue, state }) => `${id} ${queue} ${state}`);
    assert.deepEqual(purged.sort(), ["4.svr q4 F", "5.svr q5 F"]);
    assert.deepEqual(
      (await store.history.purge(58)).map(({ id }) => id),
      ["3.svr"],
    );
    assert.deepEqual(await store.history.purge(58), []);
    assert.equal(await ids(store, {}), "1 2");
  });
});

test("store: concurrent commits take effect in the order of their calls, with purges between them", async () => {
  await everyStore(async (store) => {
    const work: Promise<unknown>[] = [];
    for (let at = 1; at <= 200; at++) {
      work.push(store.commit({ jobs: [job(1, { at })], counters: { at }, history: [finished(at)] }));
      if (at % 50 === 0) work.push(store.history.purge(at - 10));
    }
    await Promise.all(work);
    const { jobs, counters } = await store.load();
    assert.deepEqual([jobs[0]?.data["at"], counters["at"]], [200, 200]);
    assert.equal(await ids(store, {}), Array.from({ length: 11 }, (_, at) => 190 + at).join(" "));
  });
});

test("memory store: faults on request, nothing of the batch kept; a clone is what a restart would see", async () => {
  const store = memoryStore();
  await store.commit({ jobs: [job(1)] });
  store.failCommits("disk-full", 2);
  for (let times = 0; times < 2; times++) await assert.rejects(store.commit({ jobs: [job(2)] }), isFault("disk-full", /./));
  const copy = store.clone();
  await store.commit({ jobs: [job(3)] });
  assert.deepEqual(
    (await store.load()).jobs.map(({ seq }) => seq),
    [1, 3],
  );
  assert.deepEqual(
    (await copy.load()).jobs.map(({ seq }) => seq),
    [1],
  );
  const data = { list: ["a"] };
  await store.commit({ put: [{ table: "queues", name: "q", data }] });
  data.list.push("b");
  assert.deepEqual((await store.load()).objects.queues[0]?.data, { list: ["a"] });
});

test("sqlite store: files for the owner alone; a second server is refused by name, and welcome afterwards", async () => {
  await inDirectory(async (file) => {
    const first = await openSqliteStore(file);
    await first.commit({ counters: { a: 1 } });
    for (const name of readdirSync(join(file, ".."))) assert.equal(statSync(join(file, "..", name)).mode & 0o077, 0, name);
    await assert.rejects(openSqliteStore(file), isFault("locked", new RegExp(`another server uses this store \\(pid ${process.pid}\\)`)));
    await first.close();
    assert.deepEqual(readdirSync(join(file, "..")).sort(), ["partita.db", "partita.mark"]);
    await (await openSqliteStore(file)).close();
  });
});

test("sqlite store: a backup is whole, made while commits go on, never overwrites, and can be opened as a store", async () => {
  await inDirectory(async (file, dir) => {
    const store = await openSqliteStore(file);
    await store.commit({ jobs: Array.from({ length: 3000 }, (_, at) => job(at + 1)), counters: { next_seq: 3001 } });
    const copy = join(dir, "copy.db");
    const going = store.backup(copy);
    const commits = Array.from({ length: 20 }, (_, at) => store.commit({ jobs: [job(4000 + at)], counters: { next_seq: 4001 + at } }));
    await going;
    await Promise.all(commits);
    await assert.rejects(store.backup(copy), isFault("exists", /does not overwrite/));
    await assert.rejects(store.backup(join(dir, "no", "where")), isFault("io", /where: the directory does not exist$/));
    assert.deepEqual(
      readdirSync(dir).filter((name) => name.includes("partial")),
      [],
    );
    await store.close();
    const opened = await openSqliteStore(copy);
    const { jobs, counters } = await opened.load();
    // A snapshot: the number of jobs agrees with its counter.
    assert.equal(jobs.at(-1)?.seq, (counters["next_seq"] ?? 0) - 1);
    assert.ok(jobs.length >= 3000);
    await opened.close();
  });
});

test("sqlite store: an older file is copied and migrated; a newer one is refused and left alone; another program's too", async () => {
  await inDirectory(async (file, dir) => {
    const old = await openSqliteStore(file);
    await old.commit({ jobs: [job(1)], counters: { next_seq: 2 } });
    await old.close();
    const newer = [...SCHEMA_STEPS, ["ALTER TABLE scripts ADD COLUMN lang TEXT", "UPDATE counters SET value = value * 10"]];
    const notices: string[] = [];
    const migrated = await openSqliteStore(file, { steps: newer, onNotice: (text) => notices.push(text) });
    assert.equal((await migrated.load()).counters["next_seq"], 20);
    await migrated.close();
    assert.match(
      notices.join(),
      new RegExp(`version ${SCHEMA_STEPS.length} copied to .*partita.db.version-${SCHEMA_STEPS.length} before its migration`),
    );
    const before = readFileSync(file);
    await assert.rejects(
      openSqliteStore(file),
      isFault("newer", new RegExp(`is of version ${newer.length}, this program knows versions up to ${SCHEMA_STEPS.length}`)),
    );
    assert.ok(readFileSync(file).equals(before));
    const copy = await openSqliteStore(join(dir, `partita.db.version-${SCHEMA_STEPS.length}`));
    assert.equal((await copy.load()).counters["next_seq"], 2);
    await copy.close();
    const foreign = await openConnection(join(dir, "other.db"), "create");
    await foreign.run("CREATE TABLE mine (x)");
    await foreign.close();
    await assert.rejects(openSqliteStore(join(dir, "other.db")), isFault("corrupt", /database of another program/));
  });
});

test("sqlite store: a migration that fails leaves the old file as it was", async () => {
  await inDirectory(async (file) => {
    const old = await openSqliteStore(file);
    await old.commit({ counters: { a: 1 } });
    await old.close();
    await assert.rejects(
      openSqliteStore(file, { steps: [...SCHEMA_STEPS, ["UPDATE counters SET value = 2", "UPDATE nothing SET x = 1"]] }),
      StoreError,
    );
    const again = await openSqliteStore(file);
    assert.equal((await again.load()).counters["a"], 1);
    await again.close();
  });
});

test("sqlite store: damage is found and named", async () => {
  const damage: [what: string, harm: (file: string) => void, fault: StoreFault][] = [
    ["not a database", (file) => writeFileSync(file, "x".repeat(100_000)), "corrupt"],
    ["a page of zeros", (file) => overwrite(file, 5 * 8192, Buffer.alloc(8192)), "corrupt"],
    ["pages of noise", (file) => overwrite(file, 8 * 8192, Buffer.alloc(8192 * 20, 0xa5)), "corrupt"],
    ["cut in the middle", (file) => truncateSync(file, Math.floor(statSync(file).size / 8192 / 2) * 8192), "corrupt"],
  ];
  for (const [what, harm, fault] of damage) {
    await inDirectory(async (file) => {
      const store = await openSqliteStore(file);
      await store.commit({ jobs: Array.from({ length: 1000 }, (_, at) => job(at + 1, { pad: "x".repeat(500) })) });
      await store.close();
      harm(file);
      // With and without the complete check at open.
      for (const check_bytes_max of [1 << 30, 0]) {
        const open = async (): Promise<void> => {
          const opened = await openSqliteStore(file, { check_bytes_max });
          try {
            await opened.load();
          } finally {
            await opened.close();
          }
        };
        await assert.rejects(open, isFault(fault, new RegExp(`${file}.*put a backup in its place`)), `${what}, ${check_bytes_max}`);
      }
    });
  }
});

test("sqlite store: a row that is not ours is named", async () => {
  for (const [damage, named] of [
    [`'{"job_state":'`, /the row of 2\.svr in jobs is damaged/],
    ["''", /the row of 2\.svr in jobs is damaged/],
    [`replace(hex(zeroblob(20000)), '00', 'x')`, /the row of 2\.svr in jobs is damaged/],
    ["replace(data, '\"Q\"', '\"Q')", /the row of 2\.svr in jobs is damaged/],
    ["data || char(30) || data", /the row of one of 1\.svr to 3\.svr in jobs is damaged/],
  ] as const) {
    await inDirectory(async (file) => {
      const store = await openSqliteStore(file);
      await store.commit({ jobs: [job(1), job(2), job(3)] });
      await store.close();
      const connection = await openConnection(file, "write");
      await connection.run(`UPDATE jobs SET data = ${damage} WHERE seq = 2`);
      await connection.close();
      const opened = await openSqliteStore(file);
      await assert.rejects(opened.load(), isFault("corrupt", named), damage);
      await opened.close();
    });
  }
});

test("sqlite store: a full disk refuses the batch as a whole and the store goes on when there is room", async () => {
  await inDirectory(async (file) => {
    const store = await openSqliteStore(file);
    await store.commit({ jobs: [job(1)] });
    await store.close();
    // The limit on pages makes SQLite report "disk full" at a chosen point.
    const connection = await openConnection(file, "write");
    const [{ page_count: pages } = { page_count: 0 }] = await connection.all<{ page_count: number }>("PRAGMA page_count");
    await connection.all(`PRAGMA max_page_count = ${pages + 2}`);
    const fill = connection.run("INSERT INTO scripts (id, text) VALUES ('x', printf('%.*c', 200000, 'x'))");
    await assert.rejects(fill, isFault("disk-full", /the disk is full: make room/));
    await connection.close();
  });
  const sample = Object.assign(new Error("SQLITE_FULL: database or disk is full"), { code: "SQLITE_FULL" });
  assert.equal(storeError("/x", sample).fault, "disk-full");
});

test("sqlite store: a commit that fails half-way keeps nothing, and the next one works", async () => {
  await inDirectory(async (file) => {
    const store = await openSqliteStore(file);
    await store.commit({ jobs: [job(1)] });
    const bad = { id: "3.svr", seq: null as unknown as number, data: {} };
    await assert.rejects(store.commit({ put: [{ table: "queues", name: "q", data: {} }], jobs: [job(2), bad] }), StoreError);
    await store.commit({ jobs: [job(4)] });
    const { jobs, objects } = await store.load();
    assert.deepEqual([jobs.map(({ seq }) => seq), objects.queues], [[1, 4], []]);
    await store.close();
  });
});

function overwrite(file: string, at: number, bytes: Buffer): void {
  const fd = openSync(file, "r+");
  writeSync(fd, bytes, 0, bytes.length, at);
  closeSync(fd);
}
