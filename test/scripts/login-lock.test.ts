// The lock that a login shell leaves when a test ends it.

import assert from "node:assert/strict";
import { existsSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { loginLock, removeStaleLock } from "../../scripts/lib/login-lock.mjs";

test("login lock: it lies where pyenv is", () => {
  assert.equal(loginLock({ PYENV_ROOT: "/opt/pyenv" }), "/opt/pyenv/shims/.pyenv-shim");
});

test("login lock: a lock that a shell may still hold stays, an older one goes, a missing one is no error", (t) => {
  const dir = mkdtempSync(join(tmpdir(), "partita-lock-"));
  t.after(() => rmSync(dir, { recursive: true }));
  const path = join(dir, ".pyenv-shim");
  assert.equal(removeStaleLock(path), false);
  writeFileSync(path, "");
  const made_ms = statSync(path).mtimeMs;
  assert.equal(removeStaleLock(path, made_ms + 10_000), false);
  assert.equal(existsSync(path), true);
  assert.equal(removeStaleLock(path, made_ms + 20_000), true);
  assert.equal(existsSync(path), false);
});
