// Verdicts on preempt decisions: who is left alone, and who is not told of a refusal.

import assert from "node:assert/strict";
import { test } from "node:test";
import { PBSE } from "#model/pbse.ts";
import type { Decision, Verdict } from "#protocol/sched-link.ts";
import { FAILED_VICTIM_WAIT_S, failedVictims, leftWithoutRoom } from "#sched/failed-victims.ts";

const preempt = (job: string, whose: string): Decision => ({ kind: "preempt", job, methods: "S", for: whose });
const DECISIONS: readonly Decision[] = [preempt("1.s", "9.s"), preempt("2.s", "9.s"), preempt("3.s", "8.s")];
const failed: Verdict = { ok: false, code: PBSE.BADSTATE, text: "Job failed to be preempted" };
const gone: Verdict = { ok: false, code: PBSE.UNKJOBID, text: "Unknown Job Id" };

test("failed victims: a job whose preemption failed is left alone for a while, one that was gone by then is not", () => {
  const until = failedVictims(new Map([["7.s", 50]]), DECISIONS, [{ ok: true, method: "S" }, failed, gone], 100);
  assert.deepEqual(
    [...until],
    [
      ["7.s", 50],
      ["2.s", 100 + FAILED_VICTIM_WAIT_S],
    ],
  );
  assert.deepEqual([...leftWithoutRoom(DECISIONS, [{ ok: true, method: "S" }, failed, gone])], ["9.s"]);
});

test("failed victims: where all preemptions worked nothing is noted", () => {
  const before = new Map([["7.s", 50]]);
  const worked: Verdict[] = DECISIONS.map(() => ({ ok: true, method: "R" }));
  assert.equal(failedVictims(before, DECISIONS, worked, 100), before);
  assert.equal(leftWithoutRoom(DECISIONS, worked).size, 0);
});
