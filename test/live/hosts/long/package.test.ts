// The Debian package, in a root made by debootstrap: installed, upgraded while 50 jobs run, removed, purged. Takes three minutes, and a minute more for the first root.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { buildPackage } from "../../../../scripts/deb/main.mjs";
import { ROOT } from "../../shared.ts";

const has = (program: string): boolean => spawnSync("sh", ["-c", `command -v ${program}`]).status === 0;
const skip =
  process.geteuid?.() !== 0
    ? "needs root"
    : ["dpkg-deb", "debootstrap", "unshare"].every(has)
      ? false
      : "needs dpkg-deb, debootstrap and unshare (scripts/test-host.sh)";

/** The exit status of try.sh when debootstrap made no root. */
const NO_ROOT = 3;

test("the Debian package is installed, upgraded under 50 running jobs, removed and purged", { skip }, async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "partita-package-"));
  try {
    const old = await buildPackage(folder);
    const tree = join(folder, "tree");
    const newer = join(folder, "newer.deb");
    // The same programs with a higher version: what is tested is the way from one package to the next.
    assert.equal(spawnSync("dpkg-deb", ["-R", old, tree]).status, 0);
    const control = join(tree, "DEBIAN/control");
    writeFileSync(control, readFileSync(control, "utf8").replace(/^Version: .*$/m, "$&+newer"));
    assert.equal(spawnSync("dpkg-deb", ["-Znone", "--build", tree, newer]).status, 0);
    const { status, stdout, stderr } = spawnSync(join(ROOT, "scripts/deb/try.sh"), [join(folder, "debian"), old, newer], {
      encoding: "utf8",
    });
    if (status === NO_ROOT) return t.skip(`debootstrap made no Debian root, which needs a mirror: ${stderr.slice(-200)}`);
    assert.equal(status, 0, `${stdout}${stderr}`);
    assert.match(stdout, /all steps passed\n$/);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
