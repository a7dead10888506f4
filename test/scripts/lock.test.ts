// The lock of installation and build: it has one holder, and never a dead one.

import assert from "node:assert/strict";
import { existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { withLock } from "../../scripts/lib/lock.mjs";

async function inFolder(body: (path: string, folder: string) => Promise<void>): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "partita-lock-"));
  try {
    await body(join(folder, "lock"), folder);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

test("lock: work under it is done one after the other, and nothing is left behind", () =>
  inFolder(async (path, folder) => {
    let inside = 0;
    const seen: number[] = [];
    const work = async (): Promise<void> => {
      inside += 1;
      seen.push(inside);
      await new Promise((done) => setTimeout(done, 5));
      inside -= 1;
    };
    await Promise.all([withLock(path, "testing", work), withLock(path, "testing", work), withLock(path, "testing", work)]);
    assert.deepEqual(seen, [1, 1, 1]);
    assert.deepEqual(readdirSync(folder), []);
  }));

test("lock: it is given back when the work fails, and the failure is passed on", () =>
  inFolder(async (path) => {
    await assert.rejects(
      withLock(path, "testing", () => Promise.reject(new Error("no space"))),
      /no space/,
    );
    assert.equal(existsSync(path), false);
  }));

test("lock: a holder that died, or whose number another process has now, is passed over", () =>
  inFolder(async (path) => {
    for (const holder of [`999999999 ${hostname()} 5`, `${process.pid} ${hostname()} 1`]) {
      writeFileSync(path, `${holder}\n`);
      assert.equal(await withLock(path, "testing", () => Promise.resolve("done")), "done", holder);
    }
  }));
