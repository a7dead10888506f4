// Output of tasks on a sister that could not be sent: what has no place is put aside, and what is empty is not.

import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { finishJob } from "#mom/agent/file-work.ts";
import type { FilePlan, OutputPlan } from "#mom/job/agent-link.ts";

test("a sister's output that has no place is put aside; an empty file is removed", () => {
  const home = mkdtempSync(join(tmpdir(), "aside-"));
  for (const name of ["spool", "undelivered", "mom_priv"]) mkdirSync(join(home, name));
  const output = (letter: "o" | "e", name: string): OutputPlan => ({
    letter,
    how: "spool",
    path: join(home, "spool", name),
    target: null,
    name,
    remove: false,
  });
  const plan: FilePlan = {
    job: "1.s",
    run_count: 1,
    owner: null,
    umask: 0o077,
    script: null,
    nodefile: join(home, "nodes"),
    tmpdir: join(home, "tmp"),
    sandbox: null,
    stdout: output("o", "1.s.OU"),
    stderr: output("e", "1.s.ER"),
    undelivered: join(home, "undelivered"),
    stagein: [],
    stageout: [],
    staged: join(home, "mom_priv/1.s.SI"),
    user: "me",
    home,
    scp: [],
  };
  try {
    writeFileSync(plan.stdout.path, "words");
    writeFileSync(plan.stderr.path, "");
    const { failures } = finishJob({ plan, success: true, output: "deliver" });
    assert.equal(failures.length, 1);
    assert.match(failures[0] ?? "", /1\.s\.OU to its destination: there is no place for it; it is in .*undelivered\/1\.s\.OU$/);
    assert.deepEqual([readdirSync(join(home, "spool")), readdirSync(plan.undelivered)], [[], ["1.s.OU"]]);
    assert.equal(readFileSync(join(plan.undelivered, "1.s.OU"), "utf8"), "words");
  } finally {
    rmSync(home, { recursive: true });
  }
});
