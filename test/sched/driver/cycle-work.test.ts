// What follows the verdicts of a cycle: comments on refused starts.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { Decision, Verdict } from "#protocol/sched-link.ts";
import { begunWork, refusalComments } from "#sched/driver/cycle-work.ts";
import { universeOf } from "../world.ts";

const TEXT = "Server could not connect to MOM";
const REFUSED: Verdict = { ok: false, code: 15070, text: TEXT };

function commented(starts: readonly string[], verdicts: readonly Verdict[]): string[] {
  const universe = universeOf({ nodes: "a ncpus=4", jobs: "1 ncpus=1; 5[].svr ncpus=1 sub=1-3" });
  const decisions = starts.map((job): Decision => ({ kind: "run", job, exec_vnode: "(a:ncpus=1)" }));
  const work = { ...begunWork({ cycle: 1, command: 1 }, 0, 0), decisions, verdicts: [...verdicts] };
  return refusalComments(universe, work).map((decision) => (decision.kind === "comment" ? `${decision.job} ${decision.comment}` : ""));
}

test("a job whose start the server refused is told why; for subjobs, their array is told once", () => {
  assert.deepEqual(commented(["1"], [REFUSED]), [`1 Not Running: PBS Error: ${TEXT}`]);
  assert.deepEqual(commented(["5[1].svr", "5[2].svr", "1"], [REFUSED, REFUSED, { ok: true }]), [`5[].svr Not Running: PBS Error: ${TEXT}`]);
});
