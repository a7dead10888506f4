import assert from "node:assert/strict";
import { closeSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { makeSchedDirectories } from "#server/shell/sched-directories.ts";
import { openSchedOut } from "#support/sched-directory.ts";

test("links that a scheduler's user plants in its sched_priv are not written through", () => {
  const home = mkdtempSync(join(tmpdir(), "sched-directories-"));
  try {
    const defaults = join(home, "etc");
    mkdirSync(defaults);
    writeFileSync(join(defaults, "pbs_sched_config"), "config");
    writeFileSync(join(defaults, "pbs_holidays"), "holidays");
    const sched_priv = join(home, "sched_priv_two");
    mkdirSync(sched_priv);
    symlinkSync(join(home, "victim"), join(sched_priv, "sched_config"));
    symlinkSync(join(home, "victim"), join(sched_priv, "sched_out"));
    makeSchedDirectories({ name: "two", home, sched_priv, sched_log: join(home, "sched_logs_two"), defaults, owner: null });
    assert.equal(existsSync(join(home, "victim")), false);
    assert.equal(readFileSync(join(sched_priv, "holidays"), "utf8"), "holidays");
    assert.equal(openSchedOut(sched_priv), null);
    assert.equal(existsSync(join(home, "victim")), false);
    rmSync(join(sched_priv, "sched_out"));
    const out = openSchedOut(sched_priv);
    assert.notEqual(out, null);
    if (out !== null) closeSync(out);
  } finally {
    rmSync(home, { recursive: true });
  }
});
