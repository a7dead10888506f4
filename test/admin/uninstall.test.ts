// Which files `partita uninstall --purge` removes, and which it keeps.

import assert from "node:assert/strict";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { confOf } from "#admin/complex/complex-home.ts";
import { uninstall } from "#admin/installation/uninstall.ts";

const OF_MOM = ["aux", "checkpoint", "mom_logs", "mom_priv", "spool", "undelivered"];

for (const [what, made, left] of [
  ["that a mom shares with others", [...OF_MOM, "data"], ["data"]],
  ["that only a mom has used", OF_MOM, null],
  ["that no mom has used", ["data", "spool"], ["data", "spool"]],
] as const)
  test(`uninstall --purge: of a PBS_MOM_HOME ${what}, only what the mom made goes`, () => {
    const dir = mkdtempSync(join(tmpdir(), "uninstall-"));
    try {
      const [file, home, disk] = [join(dir, "pbs.conf"), join(dir, "pbs"), join(dir, "disk")];
      writeFileSync(file, `PBS_HOME=${home}\nPBS_MOM_HOME=${disk}\nPBS_EXEC=/none\nPBS_SERVER=x\nPARTITA_MODE=user\n`);
      mkdirSync(join(home, "server_priv"), { recursive: true });
      writeFileSync(join(home, "pbs_version"), "");
      for (const name of made) {
        mkdirSync(join(disk, name), { recursive: true });
        writeFileSync(join(disk, name, "file"), "");
      }
      uninstall(confOf(file), true);
      assert.equal(existsSync(home), false);
      assert.deepEqual(existsSync(disk) ? readdirSync(disk).sort() : null, left);
    } finally {
      rmSync(dir, { recursive: true, force: true });
    }
  });
