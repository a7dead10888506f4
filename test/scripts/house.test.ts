// The figures of `npm run house`, over small trees.

import assert from "node:assert/strict";
import { test } from "node:test";
import { floorsOf } from "../../scripts/house/folders.mjs";
import { arrowsUp, cyclesOf, foldersByFiles, mutualPairs } from "../../scripts/house/imports.mjs";

/** Each line: `file: imported imported~`; `~` marks an import of types alone. */
function tree(text: string) {
  return text
    .trim()
    .split("\n")
    .map((line) => {
      const [path = "", rest = ""] = line.trim().split(":");
      const words = rest.split(" ").filter(Boolean);
      return { path, imports: words.map((word) => ({ path: word.replace("~", ""), typeOnly: word.endsWith("~") })) };
    });
}

const HOUSE = tree(`
  src/a/main.ts: src/a/top/x.ts
  src/a/top/x.ts: src/a/low/y.ts
  src/a/top/z.ts:
  src/a/low/y.ts: src/a/top/z.ts~ src/a/main.ts
`);

test("arrows run up when a lower floor imports a higher one, or the folder's own files above all floors", () => {
  const floors = new Map([["src/a", ["top", "low"]]]);
  assert.deepEqual(arrowsUp(HOUSE, "src/a", floors), ["src/a/low/y.ts -> src/a/top/z.ts", "src/a/low/y.ts -> src/a/main.ts"]);
  assert.equal(arrowsUp(HOUSE, "src/b", floors), undefined);
});

test("folders: the fullest first; pairs that import each other", () => {
  assert.deepEqual(foldersByFiles(HOUSE)[0], { folder: "src/a/top", files: 2 });
  assert.deepEqual(mutualPairs(HOUSE), ["src/a/low <-> src/a/top"]);
});

test("cycles: with types and without, two that share no file are two", () => {
  assert.deepEqual(cyclesOf(HOUSE, { withTypes: true }), [["src/a/low/y.ts", "src/a/main.ts", "src/a/top/x.ts"]]);
  const two = tree("a.ts: b.ts\nb.ts: a.ts~\nc.ts: d.ts a.ts\nd.ts: c.ts");
  assert.deepEqual(
    cyclesOf(two, { withTypes: true }),
    [
      ["c.ts", "d.ts"],
      ["a.ts", "b.ts"],
    ].sort(),
  );
  assert.deepEqual(cyclesOf(two, { withTypes: false }), [["c.ts", "d.ts"]]);
});

test("the floors of a README are the first words of its block, the highest first", () => {
  assert.deepEqual(floorsOf("# x\n\n```floors\nshell/    sockets\nstate     objects\n```\n"), ["shell", "state"]);
  assert.equal(floorsOf("# x\n```\nshell\n```\n"), undefined);
});
