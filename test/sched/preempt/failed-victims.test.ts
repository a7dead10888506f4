// Verdicts on preempt decisions: which jobs are left alone, which get no refusal comment, and the work of a further pass of the
// cycle.

import assert from "node:assert/strict";
import { test } from "node:test";
import { PBSE } from "#model/pbse.ts";
import type { Decision, Verdict } from "#protocol/sched-link.ts";
import { NO_MEMORY } from "#sched/cycle/result.ts";
import { FAILED_VICTIM_WAIT_S, failedVictims, leftWithoutRoom, outcomeOf } from "#sched/preempt/failed-victims.ts";
import { decisionTexts, logTexts, queue, run as runCycle, type World } from "../world.ts";

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

// --- another pass

const run = (job: string): Decision => ({ kind: "run", job, exec_vnode: "(a:ncpus=1)" });
const ok = (method?: "S" | "R"): Verdict => ({ ok: true, ...(method === undefined ? {} : { method }) });
const refusedRun: Verdict = { ok: false, code: PBSE.RESCUNAV, text: "x" };
/** 1 and 2 must make room for 9. */
const FOR_9 = [preempt("1.s", "9.s"), preempt("2.s", "9.s"), run("9.s")];

// biome-ignore format: a table
const OUTCOMES: readonly (readonly [title: string, verdicts: readonly Verdict[], pass: number, again: string, rerun: string, log: readonly string[]])[] = [
  ["all made room, and it runs",             [ok("S"), ok("S"), ok()],         1, "",    "",    []],
  ["one did not: the room of the other is kept for another pass", [ok("S"), failed, refusedRun], 1, "9.s", "", []],
  ["the last pass: who made room goes on",   [ok("S"), failed, refusedRun],    5, "",    "1.s", ["9.s Maximum number of preemption tries exceeded - cannot run job", "1.s Preempted work didn't run job - rerun it"]],
  ["all made room, and it does not run",     [ok("S"), ok("R"), refusedRun],   1, "",    "1.s", ["1.s Preempted work didn't run job - rerun it", "2.s Preempted work didn't run job - rerun it"]],
  ["who ended by itself is not started",     [ok(), ok("S"), refusedRun],      1, "",    "2.s", ["2.s Preempted work didn't run job - rerun it"]],
  ["who was gone was not in the way",        [gone, ok("S"), ok()],            1, "",    "",    []],
];
for (const [title, verdicts, pass, again, rerun, log] of OUTCOMES) {
  test(`another pass: ${title}`, () => {
    const outcome = outcomeOf(FOR_9, verdicts, pass);
    assert.equal(outcome.again.join(), again);
    assert.equal(outcome.rerun.map((decision) => ("job" in decision ? decision.job : "")).join(), rerun);
    assert.deepEqual(
      outcome.log.map(({ object, text }) => `${object} ${text}`),
      log,
    );
  });
}

test("another pass looks at the jobs it is told only, finds other victims, and tells who finds none", () => {
  const world: World = {
    nodes: "a ncpus=4",
    jobs: "1 R (a:ncpus=2) stime=9; 2 R (a:ncpus=2) stime=1; 3 ncpus=2 @express; 4 ncpus=2 @express",
    queues: [queue("workq"), queue("express", { Priority: 150 })],
  };
  const memory = { ...NO_MEMORY, failed_victims: new Map([["1", 2_000_000]]) };
  const pass = (again: readonly string[]): string[] =>
    decisionTexts(runCycle(world, {}, { again, memory })).filter((text) => !text.startsWith("2:"));
  assert.deepEqual(pass(["4"]), ["2 SCR for 4", "4=(a:ncpus=2)"]);
  assert.deepEqual(pass(["3", "4"]), ["2 SCR for 3", "3=(a:ncpus=2)", "4: Not Running: Not enough free nodes available"]);
  assert.deepEqual(pass(["99"]), []);
  assert.deepEqual(logTexts(runCycle(world, {}, { again: ["99"], memory })), []);
});
