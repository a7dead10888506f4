// `partita restore` of a backup file that is read-only, as backups usually are.

import assert from "node:assert/strict";
import { chmodSync, copyFileSync, mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { confOf } from "#admin/complex/complex-home.ts";
import { restore } from "#admin/store/restore.ts";
import { openSqliteStore } from "#store/sqlite/sqlite-store.ts";

test("restore: a backup that nobody may write becomes a store that the server alone reads and writes", async () => {
  const dir = mkdtempSync(join(tmpdir(), "restore-"));
  try {
    const [file, home, backup] = [join(dir, "pbs.conf"), join(dir, "pbs"), join(dir, "backup.db")];
    writeFileSync(file, `PBS_HOME=${home}\nPBS_EXEC=/none\nPBS_SERVER=x\nPARTITA_MODE=user\n`);
    mkdirSync(join(home, "server_priv"), { recursive: true });
    const path = join(home, "server_priv/partita.db");
    await (await openSqliteStore(path)).close();
    copyFileSync(path, backup);
    chmodSync(backup, 0o444);
    const { jobs, kept } = await restore(confOf(file), backup);
    assert.equal(jobs, 0);
    assert.ok(kept !== null);
    assert.equal(statSync(path).mode & 0o777, 0o600);
    await (await openSqliteStore(path)).close();
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
});
