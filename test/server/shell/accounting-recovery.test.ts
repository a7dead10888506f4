import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { recoverAccounting } from "#server/shell/accounting-recovery.ts";
import { openAccounting } from "#support/accounting-log.ts";

const AT_S = 1795166788;
const due = [
  { at_s: AT_S, type: "Q", id: "1.svr", text: "user=alice " },
  { at_s: AT_S, type: "S", id: "1.svr", text: "user=alice start=1 " },
  { at_s: AT_S + 1, type: "E", id: "1.svr", text: "user=alice end=2" },
];

for (const kept of [0, 1, 2, 3]) {
  test(`after a kill with ${kept} of 3 records in the file the others are written, and nothing twice`, (t) => {
    const dir = mkdtempSync(join(tmpdir(), "partita-acct-"));
    t.after(() => rmSync(dir, { recursive: true }));
    const before = openAccounting({ dir });
    before.record("Q", "0.svr", "an earlier one", AT_S - 5);
    for (const { type, id, text, at_s } of due.slice(0, kept)) before.record(type, id, text, at_s);
    before.close();
    const after = openAccounting({ dir });
    assert.equal(recoverAccounting(due, after, dir, true), 3 - kept);
    assert.equal(recoverAccounting(due, after, dir, true), 0);
    after.close();
    const [file = ""] = readdirSync(dir);
    const lines = readFileSync(join(dir, file), "utf8").trimEnd().split("\n");
    assert.deepEqual(
      lines.map((line) => line.split(";")[1]),
      ["Q", "Q", "S", "E"],
    );
  });
}
