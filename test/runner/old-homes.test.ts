// Which directories of runners are removed (src/runner/old-homes.ts).

import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { HOME_PREFIX, holdHome, removeOldHomes } from "#runner/old-homes.ts";
import { takeLock } from "#support/libc/lock-file.ts";

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

test("a directory is removed when neither its runner nor its starter lives", (t) => {
  const parent = mkdtempSync(join(tmpdir(), "partita-homes-"));
  t.after(() => rmSync(parent, { recursive: true, force: true }));
  const make = (name: string): string => {
    const home = join(parent, `${HOME_PREFIX}${name}`);
    mkdirSync(join(home, "mom_priv"), { recursive: true });
    return home;
  };
  const [own, dead, living, ending] = [make("own"), make("dead"), make("living"), make("ending")];
  make("starting");
  mkdirSync(join(parent, "other"));
  const held = [holdHome(own), holdHome(living), takeLock(join(ending, "mom_priv", "starter.lock"))];
  for (const home of [dead, ending]) writeFileSync(join(home, "runner.lock"), "1\n");
  assert.deepEqual(removeOldHomes(parent, own, Date.now()), [], "a young directory may belong to a runner that is just taking its lock");
  assert.deepEqual(removeOldHomes(parent, own, Date.now() + 2 * MINUTE_MS), [`${HOME_PREFIX}dead`]);
  for (const lock of held) if ("held" in lock) lock.held.release();
  assert.deepEqual(removeOldHomes(parent, own, Date.now() + 2 * HOUR_MS).toSorted(), [
    `${HOME_PREFIX}ending`,
    `${HOME_PREFIX}living`,
    `${HOME_PREFIX}starting`,
  ]);
  assert.deepEqual(readdirSync(parent).sort(), ["other", `${HOME_PREFIX}own`]);
});
