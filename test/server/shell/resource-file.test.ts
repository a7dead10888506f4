import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { builtinResources, customResource } from "#model/resource-table.ts";
import { keepResourceFile } from "#server/shell/resource-file.ts";

test("resourcedef has a line for each custom resource, type and flags as qmgr has them", () => {
  const directory = mkdtempSync(join(tmpdir(), "partita-resourcedef-"));
  const path = join(directory, "resourcedef");
  try {
    const resources = builtinResources();
    assert.equal(keepResourceFile(directory, resources.values()), null);
    assert.equal(readFileSync(path, "utf8"), "");
    for (const custom of [customResource("licences", "long", "q"), customResource("colour"), customResource("gpus", "long", "hn")])
      resources.set(custom.name, custom);
    assert.equal(keepResourceFile(directory, resources.values()), null);
    assert.equal(readFileSync(path, "utf8"), "licences type=long flag=q\ncolour type=string\ngpus type=long flag=hn\n");
    assert.equal(statSync(path).mode & 0o7777, 0o644);
    resources.delete("colour");
    keepResourceFile(directory, resources.values());
    assert.equal(readFileSync(path, "utf8"), "licences type=long flag=q\ngpus type=long flag=hn\n");
    assert.deepEqual(readdirSync(directory), ["resourcedef"]);
    assert.match(keepResourceFile(join(directory, "none"), resources.values()) ?? "", /^resourcedef cannot be kept: ENOENT/);
  } finally {
    rmSync(directory, { recursive: true });
  }
});
