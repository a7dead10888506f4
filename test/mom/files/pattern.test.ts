// The files that patterns of stage lists mean.

import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { isAskedFor, matching } from "#mom/files/pattern.ts";

const root = mkdtempSync(join(tmpdir(), "partita-pattern-"));
after(() => rmSync(root, { recursive: true }));
for (const name of ["a.dat", "b.dat", "c.txt", ".hidden.dat", "x[1]", "deep/one/r", "deep/two/r", "deep/two/s"]) {
  mkdirSync(join(root, name, ".."), { recursive: true });
  writeFileSync(join(root, name), "");
}
const found = (pattern: string): readonly string[] => matching(join(root, pattern)).map((path) => path.slice(root.length + 1));

test("a pattern means the files whose names fit, in the order of their names", () => {
  assert.deepEqual(found("*.dat"), ["a.dat", "b.dat"]);
  assert.deepEqual(found(".*.dat"), [".hidden.dat"]);
  assert.deepEqual(found("?.txt"), ["c.txt"]);
  assert.deepEqual(found("deep/*/r"), ["deep/one/r", "deep/two/r"]);
  assert.deepEqual(found("x[1]"), ["x[1]"], "a file of this very name");
  assert.deepEqual(found("none"), ["none"], "a text without pattern");
  for (const nothing of ["*.none", "none/*", "a.dat/*", "deep/*/none"]) assert.throws(() => found(nothing), /no file matches/);
});

test("which names fit", () => {
  // biome-ignore format: a table
  const rows: readonly (readonly [pattern: string, fits: readonly string[], others: readonly string[]])[] = [
    ["*",        ["a", "a b", "é"],          [".a"]],
    ["a*b*c",    ["abc", "axbxbc"],          ["abcd", "acb"]],
    ["?",        ["a", "\u{1f600}"],          ["", "ab"]],
    ["[a-c]x",   ["ax", "cx"],               ["dx", "a-x"]],
    ["[!a-c]x",  ["dx"],                     ["ax", "x"]],
    ["[]x]",     ["]", "x"],                 ["[", "y"]],
    ["[a",       ["[a"],                     ["a"]],
    ["\\*",      ["*", "\\*"],               ["a"]],
    ["a**",      ["a", "ab"],                ["b"]],
    ["[.]x",     [],                         [".x"]],
  ];
  for (const [pattern, fits, others] of rows) {
    for (const name of fits) assert.equal(isAskedFor(`dir/${pattern}`, name), true, `${pattern} ${name}`);
    for (const name of others) assert.equal(isAskedFor(`dir/${pattern}`, name), false, `${pattern} ${name}`);
  }
  assert.equal(isAskedFor("dir/plain", "plain"), true);
  assert.equal(isAskedFor("dir/plain", ".bashrc"), false);
});

test("a pattern with many stars takes no long time", () => {
  assert.equal(isAskedFor(`${"*a".repeat(100)}*b`, "a".repeat(250)), false);
});

test("links to a directory above do not make a pattern mean endless files", () => {
  mkdirSync(join(root, "loop"));
  for (let at = 0; at < 10; at++) symlinkSync(".", join(root, "loop", String(at)));
  assert.throws(() => found(`loop${"/*".repeat(30)}`), /more than 100000 files match/);
});
