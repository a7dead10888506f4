// Faults of the stores in memory and on disk. contract.ts has the properties of every store.

import assert from "node:assert/strict";
import { closeSync, openSync, readdirSync, readFileSync, statSync, truncateSync, writeFileSync, writeSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { memoryStore } from "#store/memory-store.ts";
import { SCHEMA_STEPS } from "#store/sqlite/schema.ts";
import { openConnection, storeError } from "#store/sqlite/sqlite.ts";
import { openSqliteStore } from "#store/sqlite/sqlite-store.ts";
import { StoreError, type StoreFault } from "#store/store.ts";
import { inDirectory, isFault, job, withMemory, withSqlite } from "./bed.ts";
import { STORE_CONTRACT } from "./contract.ts";

for (const [name, check] of STORE_CONTRACT) {
  test(`memory store: ${name}`, () => check(withMemory));
  test(`sqlite store: ${name}`, () => check(withSqlite));
}

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
