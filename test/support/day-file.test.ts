import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { mock, test } from "node:test";
import { DayFile } from "#support/day-file.ts";

test("a line that a kill tore is not gone on with", () => {
  const dir = mkdtempSync(join(tmpdir(), "day-file-"));
  try {
    writeFileSync(join(dir, "20261120"), "whole\nto");
    writeFileSync(join(dir, "20261121"), "whole\n");
    const file = new DayFile({ dir, delay_ms: 0 });
    file.write("next\n", "20261120", 0);
    file.write("next\n", "20261121", 0);
    file.close(0);
    assert.equal(readFileSync(join(dir, "20261120"), "utf8"), "whole\nto\nnext\n");
    assert.equal(readFileSync(join(dir, "20261121"), "utf8"), "whole\nnext\n");
  } finally {
    rmSync(dir, { recursive: true });
  }
});

test("a line after a pause is in the file at the end of its turn; those that follow closely gather", () => {
  const dir = mkdtempSync(join(tmpdir(), "day-file-"));
  mock.timers.enable({ apis: ["setTimeout", "setImmediate"] });
  try {
    const file = new DayFile({ dir, delay_ms: 5 });
    const text = (): string => readFileSync(join(dir, "20261120"), "utf8");
    const write = (line: string): void => file.write(`${line}\n`, "20261120", 0);
    write("a");
    write("b");
    assert.equal(text(), "");
    mock.timers.tick(0);
    assert.equal(text(), "a\nb\n");
    mock.timers.tick(4);
    write("c");
    mock.timers.tick(0);
    assert.equal(text(), "a\nb\n");
    mock.timers.tick(1);
    assert.equal(text(), "a\nb\nc\n");
    mock.timers.tick(5);
    write("d");
    mock.timers.tick(0);
    assert.equal(text(), "a\nb\nc\nd\n");
    write("e");
    file.close(0);
    assert.equal(text(), "a\nb\nc\nd\ne\n");
  } finally {
    mock.timers.reset();
    rmSync(dir, { recursive: true });
  }
});
