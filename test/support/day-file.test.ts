import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { dayFile } from "#support/day-file.ts";

test("a line that a kill tore is not gone on with", () => {
  const dir = mkdtempSync(join(tmpdir(), "day-file-"));
  try {
    writeFileSync(join(dir, "20261120"), "whole\nto");
    writeFileSync(join(dir, "20261121"), "whole\n");
    const file = dayFile({ dir, delay_ms: 0 });
    file.write("next\n", "20261120", 0);
    file.write("next\n", "20261121", 0);
    file.close(0);
    assert.equal(readFileSync(join(dir, "20261120"), "utf8"), "whole\nto\nnext\n");
    assert.equal(readFileSync(join(dir, "20261121"), "utf8"), "whole\nnext\n");
  } finally {
    rmSync(dir, { recursive: true });
  }
});
