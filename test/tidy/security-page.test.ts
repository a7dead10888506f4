// docs/security.md: each line of the threat model names an existing test.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

test("every line of docs/security.md names a test that exists", () => {
  const rows = readFileSync("docs/security.md", "utf8")
    .split("\n")
    .filter((line) => line.startsWith("|") && !/^\|[-|]+\|$/.test(line) && !line.endsWith("| test |"));
  assert.ok(rows.length > 30);
  const problems = rows.flatMap((row) => {
    const [, file = "", name = ""] = /`(test\/[\w./-]+\.test\.ts)`: ([^|]+) \|$/.exec(row) ?? [];
    if (file === "") return [`no test: ${row}`];
    return readFileSync(file, "utf8").includes(name) ? [] : [`${file} has no test with the words: ${name}`];
  });
  assert.deepEqual(problems, []);
});
