import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { isLocked, readPid, takeLock } from "#support/libc/lock-file.ts";

test("lock: one holder, named by pid in text; free again after release; a link is not followed", () => {
  const dir = mkdtempSync(join(tmpdir(), "partita-lock-"));
  try {
    const path = join(dir, "server.lock");
    assert.equal(isLocked(path), false);
    const first = takeLock(path);
    assert.ok("held" in first);
    assert.equal(readFileSync(path, "utf8"), `${process.pid}\n`);
    assert.deepEqual(takeLock(path), { owner_pid: process.pid });
    assert.equal(isLocked(path), true);
    first.held.release();
    assert.equal(isLocked(path), false);
    assert.equal(readPid(path), null);
    const second = takeLock(path);
    assert.ok("held" in second);
    second.held.release();
    symlinkSync("/etc/hostname", join(dir, "link"));
    assert.throws(() => takeLock(join(dir, "link")), { code: "ELOOP" });
    assert.throws(() => takeLock(join(dir, "nodir", "x")), { code: "ENOENT" });
  } finally {
    rmSync(dir, { recursive: true });
  }
});

test("lock: it goes with the process that held it", () => {
  const dir = mkdtempSync(join(tmpdir(), "partita-lock-"));
  try {
    const path = join(dir, "x.lock");
    const script = `import { takeLock } from "${new URL("../../../src/support/libc/lock-file.ts", import.meta.url).href}"; console.log("held" in takeLock(${JSON.stringify(path)})); process.kill(process.pid, "SIGKILL");`;
    const child = spawnSync(process.execPath, ["--input-type=module", "-e", script], { encoding: "utf8" });
    assert.equal(child.stdout, "true\n");
    assert.equal(child.signal, "SIGKILL");
    assert.notEqual(readPid(path), null);
    assert.equal(isLocked(path), false);
  } finally {
    rmSync(dir, { recursive: true });
  }
});
