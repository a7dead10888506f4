// Secrets of runs on several hosts: the same after a restart of the server, different for each run, from a key that nobody else can read.

import assert from "node:assert/strict";
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { runSecrets } from "#server/shell/run-secrets.ts";

test("the secret of a run is the same after a restart; each run has its own; the key is closed to others", () => {
  const home = mkdtempSync(join(tmpdir(), "secrets-"));
  mkdirSync(join(home, "server_priv"));
  const key = join(home, "server_priv/run.key");
  const notes: string[] = [];
  const secrets = () => runSecrets(home, (text) => void notes.push(text));
  try {
    const first = secrets();
    assert.equal(statSync(key, { throwIfNoEntry: false }), undefined, "a complex on one host has no key");
    const secret = first("1.s", 1);
    assert.match(secret, /^[0-9a-f]{64}$/);
    assert.equal(statSync(key).mode & 0o777, 0o600);
    assert.ok(!readFileSync(key, "utf8").includes(secret));
    assert.deepEqual([first("1.s", 1), secrets()("1.s", 1)], [secret, secret]);
    assert.equal(new Set([secret, first("1.s", 2), first("2.s", 1), first("1.s 1", 1)]).size, 4);
    assert.equal(notes.length, 0);

    chmodSync(key, 0o640);
    const open = secrets();
    assert.notEqual(open("1.s", 1), secret);
    assert.equal(open("1.s", 1), open("1.s", 1));
    chmodSync(key, 0o600);
    writeFileSync(key, "short");
    assert.notEqual(secrets()("1.s", 1), secret);
    assert.deepEqual(
      notes.map((text) => text.slice(key.length)),
      [
        ": it can be read by group or others: another key is used until the server ends",
        ": it holds no key: another key is used until the server ends",
      ],
    );
  } finally {
    rmSync(home, { recursive: true });
  }
});
