// Resources of the site in mom_priv/config: static ones, and those that a program prints, or fails to print in time.

import assert from "node:assert/strict";
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { siteReader } from "#mom/shell/site-resources.ts";

test("values of lines and of programs, which no shell reads; what gives none is told when it begins to", async () => {
  const directory = mkdtempSync(join(tmpdir(), "partita-site-"));
  const told: string[] = [];
  const script = (name: string, text: string, mode = 0o755): string => {
    const path = join(directory, name);
    writeFileSync(path, `#!/bin/sh\n${text}\n`);
    chmodSync(path, mode);
    return path;
  };
  try {
    const site = {
      color: "blue",
      free: `!${script("free", 'echo "$# $1"; echo second')} a;b`,
      empty: `! ${script("empty", "echo")}`,
      failed: `!${script("failed", "echo 5; exit 3")}`,
      open: `!${script("open", "echo 5", 0o777)}`,
      bare: "!free",
      slow: `!${script("slow", "sleep 1000")}`,
    };
    const reader = siteReader((text) => told.push(text.replaceAll(directory, "D")));
    assert.deepEqual(await reader.read(site, 1), { color: "blue", free: "1 a;b" });
    assert.deepEqual(told.sort(), [
      "resource bare: free must be an absolute path",
      "resource empty: D/empty says nothing",
      "resource failed: D/failed ended with 3",
      "resource open: D/open can be written by group or others",
      "resource slow: D/slow takes longer than 1 s",
    ]);
    told.length = 0;
    const { slow: _, ...quick } = site;
    script("empty", "echo 7");
    assert.deepEqual(await reader.read(quick, 60), { color: "blue", free: "1 a;b", empty: "7" });
    assert.deepEqual(told, [], "told once");
  } finally {
    rmSync(directory, { recursive: true });
  }
});
