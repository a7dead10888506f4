// References in comments and pages lead to documents of the repository, and only one file of the tests knows the path of the
// shared folder.

import assert from "node:assert/strict";
import { test } from "node:test";
import { lostIn, lostReferences } from "../../scripts/house/references.mjs";
import { allFiles } from "./tree.ts";

/** The file that determines the path of the shared folder, its page, and this test. */
const KNOW_THE_FOLDER = ["test/live/shared.ts", "test/README.md", "test/tidy/references.test.ts"];

test("every document, section and source file that src and docs refer to is in the repository", () => {
  assert.deepEqual(lostReferences(), [], "cite a page of docs/reference (its sections are numbered), another page, or say the fact itself");
});

test("a reference to an unknown document, section or source file is found", () => {
  const text =
    "// a (docs/reference/commands.md 1.2, 3)\n// b (pbs/files.md 1)\n// c (docs/reference/errors.md 1 and 77)\n// d (src/model/gone.ts, src/KIND.ts)";
  assert.deepEqual(lostIn("src/model/x.ts", text), [
    "src/model/x.ts:2 pbs/files.md",
    "src/model/x.ts:3 docs/reference/errors.md 77",
    "src/model/x.ts:4 src/model/gone.ts",
  ]);
});

test("tests and benchmarks name the shared folder in one place", () => {
  const files = allFiles().filter(({ path }) => /^(test|bench)\//.test(path) && !KNOW_THE_FOLDER.includes(path));
  const others = files.filter(({ text }) => /PARTITA_SHARED|\.\.\/shared\b(?!\.ts)/.test(text));
  assert.deepEqual(
    others.map(({ path }) => path),
    [],
    "import SHARED of test/live/shared.ts",
  );
});
