// The store on disk in processes that are killed, or to which the system refuses an operation.

import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { openSqliteStore } from "#store/sqlite/sqlite-store.ts";
import { inDirectory, isFault } from "../../store/bed.ts";

test("sqlite store: what a killed process committed is there, in whole batches", async () => {
  await inDirectory(async (file) => {
    const script = `
      import { openSqliteStore } from "${new URL("../../../src/store/sqlite/sqlite-store.ts", import.meta.url).href}";
      const store = await openSqliteStore(${JSON.stringify(file)});
      for (let at = 1; ; at++) {
        await store.commit({ jobs: [{ id: at + ".svr", seq: at, data: {} }], scripts: [{ id: at + ".svr", text: "x" }], counters: { at } });
        process.stdout.write(at + "\\n");
      }`;
    const child = spawn(process.execPath, ["--input-type=module", "-e", script], { stdio: ["ignore", "pipe", "inherit"] });
    let told = "";
    await new Promise<void>((resolve) => {
      child.stdout.on("data", (chunk: Buffer) => {
        told += chunk.toString();
        if (told.split("\n").length > 100) child.kill("SIGKILL");
      });
      child.once("close", () => resolve());
    });
    const acknowledged = Number(told.trimEnd().split("\n").at(-1));
    const store = await openSqliteStore(file);
    const { jobs, counters } = await store.load();
    assert.ok(acknowledged >= 100 && jobs.length >= acknowledged, `${jobs.length} of ${acknowledged}`);
    assert.equal(counters["at"], jobs.length);
    assert.equal((await store.scripts(jobs.map(({ id }) => id))).size, jobs.length);
    assert.equal(await store.check(), null);
    await store.close();
  });
});

test("sqlite store: places that cannot be used are refused with the reason", async () => {
  await inDirectory(async (file, dir) => {
    await assert.rejects(openSqliteStore(join(dir, "no", "such", "dir.db")), isFault("permission", /cannot be locked: ENOENT/));
    const limited = spawnSync(
      "sh",
      ["-c", `ulimit -f 2000; exec "$0" --input-type=module -e "$1"`, process.execPath, fullDiskScript(file)],
      { encoding: "utf8" },
    );
    assert.match(limited.stdout, /^(?:disk-full|io)\nkept \d+ of \d+\n$/, limited.stderr);
    assert.ok(existsSync(file));
  });
});

/** In a process that may write files of 1 MB only: commits until one fails, then compares. */
function fullDiskScript(file: string): string {
  return `
    import { openSqliteStore } from "${new URL("../../../src/store/sqlite/sqlite-store.ts", import.meta.url).href}";
    process.on("SIGXFSZ", () => {});
    const store = await openSqliteStore(${JSON.stringify(file)});
    let done = 0;
    for (;;) {
      try {
        await store.commit({ jobs: [{ id: done + 1 + ".svr", seq: done + 1, data: { pad: "x".repeat(3000) } }] });
        done++;
      } catch (error) {
        console.log(error.fault);
        break;
      }
    }
    const { jobs } = await store.load();
    console.log("kept " + jobs.length + " of " + done);
    if (jobs.length !== done) process.exitCode = 1;
    process.exit();`;
}
