// The mark of a store: missing acknowledged commits are detected, and nothing is changed before the administrator has decided.

import assert from "node:assert/strict";
import { copyFileSync, existsSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { markFile, openMark, readMark } from "#store/mark.ts";
import { openSqliteStore } from "#store/sqlite/sqlite-store.ts";
import { inDirectory, isFault, job } from "./bed.ts";

const COMMITS = 7;

/** A store as kill -9 leaves it: its commits are in the WAL. Copies of its files are in `to`. */
async function killedStore(file: string, to: string): Promise<void> {
  const store = await openSqliteStore(file);
  for (let seq = 1; seq <= COMMITS; seq++) await store.commit({ jobs: [job(seq)] });
  for (const suffix of ["", "-wal"]) copyFileSync(`${file}${suffix}`, `${to}${suffix}`);
  copyFileSync(markFile(file), markFile(to));
  await store.close();
}

async function count(file: string): Promise<number> {
  const store = await openSqliteStore(file);
  const { jobs, counters } = await store.load();
  await store.close();
  assert.deepEqual(counters, {}, "the store's own numbers are not the server's");
  return jobs.length;
}

const bytesOf = (file: string): string => (existsSync(file) ? readFileSync(file).toString("base64") : "");

/** Ways in which a store can lose commits, and the message for each. */
const LOSSES: readonly (readonly [what: string, harm: (file: string, spare: string) => Promise<void> | void, said: RegExp])[] = [
  ["missing", (file) => rmSync(file), /the store is missing, and this PBS_HOME had one\. The last commit was made at \d{4}-/],
  ["empty", (file) => truncateSync(file), /the store has no bytes/],
  ["WAL missing", (file) => rmSync(`${file}-wal`), /the last 7 of its commits are missing, .* \(is .*-wal missing or cut, /],
  [
    "WAL cut in half",
    (file) => truncateSync(`${file}-wal`, statSync(`${file}-wal`).size / 2),
    /the last [1-6] of its commits (?:is|are) missing/,
  ],
  ["WAL cut by a byte", (file) => truncateSync(`${file}-wal`, statSync(`${file}-wal`).size - 1), /the last 1 of its commits is missing/],
  [
    "WAL with a flipped byte",
    (file) => {
      const bytes = readFileSync(`${file}-wal`);
      bytes[bytes.length >> 1] = (bytes[bytes.length >> 1] ?? 0) ^ 1;
      writeFileSync(`${file}-wal`, bytes);
    },
    /the last [1-7] of its commits (?:is|are) missing/,
  ],
  [
    "another store",
    async (file, spare) => {
      rmSync(`${file}-wal`);
      const other = await openSqliteStore(spare);
      for (let seq = 1; seq <= 2 * COMMITS; seq++) await other.commit({ jobs: [job(seq)] });
      await other.close();
      copyFileSync(spare, file);
    },
    /the store of another complex/,
  ],
];

for (const [what, harm, said] of LOSSES)
  test(`store: ${what}: refused, left as it is, and gone on with without its mark`, async () => {
    await inDirectory(async (first, dir) => {
      const file = join(dir, "killed.db");
      await killedStore(first, file);
      await harm(file, join(dir, "spare.db"));
      const before = [file, `${file}-wal`, markFile(file)].map(bytesOf);
      for (let again = 0; again < 2; again++)
        await assert.rejects(
          openSqliteStore(file),
          (error) => isFault("lost", said)(error) && isFault("lost", /remove .*killed\.mark and start again\.$/)(error),
        );
      assert.deepEqual([file, `${file}-wal`, markFile(file)].map(bytesOf), before, "what may still help is untouched");
      rmSync(markFile(file));
      assert.ok((await count(file)) < COMMITS || what === "another store");
      assert.ok(existsSync(markFile(file)), "a new mark");
      await count(file);
    });
  });

test("store: whole after kill -9, with a mark that stayed behind, without a mark, or with a torn one", async () => {
  await inDirectory(async (first, dir) => {
    const file = join(dir, "killed.db");
    for (const spoil of [
      () => undefined,
      () => openMark(markFile(file), readMark(markFile(file))?.store ?? 0, COMMITS - 1).close(),
      () => rmSync(markFile(file)),
      () => writeFileSync(markFile(file), readFileSync(markFile(file), "latin1").replace(/ 0+7\n/, ` ${"9".repeat(16)}\n`)),
      () => writeFileSync(markFile(file), ""),
    ]) {
      for (const path of [first, markFile(first)]) rmSync(path, { force: true });
      await killedStore(first, file);
      spoil();
      assert.equal(await count(file), COMMITS);
      assert.equal(readMark(markFile(file))?.commit, COMMITS);
    }
  });
});

test("store: the loss is accepted when that is asked for; a failed commit gives its number to the next", async () => {
  await inDirectory(async (file) => {
    const store = await openSqliteStore(file);
    await store.commit({ jobs: [job(1)] });
    await store.commit({});
    await assert.rejects(store.commit({ jobs: [{ ...job(2), seq: null as unknown as number }] }));
    await store.commit({ jobs: [job(2)] });
    assert.equal(readMark(markFile(file))?.commit, 2);
    assert.equal(statSync(markFile(file)).mode & 0o777, 0o600);
    await store.close();
    rmSync(file);
    const fresh = await openSqliteStore(file, { accept_loss: true });
    assert.equal((await fresh.load()).fresh, true);
    await fresh.close();
    assert.equal(await count(file), 0);
  });
});
