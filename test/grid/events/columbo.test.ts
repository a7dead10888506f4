// What follows from the end of a job: a row an event.

import assert from "node:assert/strict";
import { test } from "node:test";
import { type Ending, type Fate, fateOf, type PairEnds, pauseOf } from "#grid/events/columbo.ts";
import { periodOf } from "#grid/plan/checkpoints.ts";
import { TaskBag } from "#grid/plan/task-bag.ts";

const END: Ending = {
  ...{ ending: "exit", exit_code: 0, reason: "", run_s: 100, kill: null, cluster: "c1", checkpoint: null },
  ...{ resubmissions: 0, resubmissions_max: 3 },
};
const again = (priority: number, more: object = {}): Fate => ({ kind: "again", priority, is_error: false, place: null, ...more });
const event = (code: string, message: string): Fate => ({ kind: "event", code, message });
const limit = (last: string): Fate =>
  event("RESUBMISSIONS", `its task has run again 3 times on its own, which is the limit; the last job ${last}`);
const here = { period_s: 60, data: "cluster" } as const;

const FATES: readonly [what: string, end: Partial<Ending>, fate: Fate][] = [
  ["it ended well", {}, { kind: "result" }],
  ["it ended well before it was taken back", { kill: "excess" }, { kind: "result" }],
  ["it ended well although its campaign was deleted", { kill: "deleted" }, { kind: "result" }],
  ["a copy of it ended well first", { kill: "copy" }, { kind: "moot" }],
  ["its campaign was deleted", { kill: "deleted", ending: "killed", exit_code: null }, { kind: "moot" }],
  ["it was taken back", { kill: "excess", ending: "killed", exit_code: null }, again(20)],
  ["the cluster ended it", { ending: "killed", exit_code: null }, again(20)],
  ["it reached its walltime", { ending: "walltime", exit_code: null }, again(20, { is_error: true, place: { avoid: "c1" } })],
  ["it exited with 66", { exit_code: 66 }, again(10)],
  ["it exited with 67", { exit_code: 67 }, again(0)],
  ["it exited with 66 before the limit", { exit_code: 66, resubmissions: 2 }, again(10)],
  ["it exited with 66 at the limit", { exit_code: 66, resubmissions: 3 }, limit("exited with 66")],
  ["it was ended at the limit", { ending: "killed", exit_code: null, resubmissions: 3 }, limit("was ended by the cluster")],
  ["it reached its walltime at the limit", { ending: "walltime", exit_code: null, resubmissions: 3 }, limit("exceeded its walltime")],
  ["it was taken back at the limit", { kill: "excess", ending: "killed", exit_code: null, resubmissions: 3 }, again(20)],
  ["it ended well at the limit", { resubmissions: 3 }, { kind: "result" }],
  ["it failed", { exit_code: 1 }, event("EXIT_ERROR", "the job has ended with exit code 1")],
  ["it died of a signal of its own", { exit_code: 139 }, event("EXIT_ERROR", "the job has ended with exit code 139")],
  [
    "nobody knows how it ended",
    { ending: "lost", exit_code: null, reason: "gone" },
    event("UNKNOWN_ERROR", "how the job has ended is not known: gone"),
  ],
  ["it was ended after a checkpoint", { ending: "killed", exit_code: null, checkpoint: here }, again(30, { place: { only: "c1" } })],
  [
    "it reached its walltime after a checkpoint",
    { ending: "walltime", exit_code: null, checkpoint: here },
    again(30, { place: { only: "c1" } }),
  ],
  [
    "it was ended after a checkpoint that all clusters can read",
    { ending: "killed", exit_code: null, checkpoint: { period_s: 60, data: "everywhere" } },
    again(30),
  ],
  ["it was ended before its first checkpoint", { ending: "killed", exit_code: null, run_s: 59, checkpoint: here }, again(20)],
  ["it failed after a checkpoint", { exit_code: 2, checkpoint: here }, event("EXIT_ERROR", "the job has ended with exit code 2")],
];
for (const [what, end, fate] of FATES) test(`a job: ${what}`, () => assert.deepEqual(fateOf({ ...END, ...end }), fate));

const runs = (count: number, run_s: number): number[] => Array.from({ length: count }, () => run_s);
const PAUSES: readonly [
  what: string,
  pair: Partial<PairEnds>,
  elsewhere: readonly number[],
  budget: { count: number; percent: number },
  code: string | null,
][] = [
  ["no failure", { results: 3 }, [], { count: 5, percent: 0 }, null],
  ["failures within the budget", { errors: 4 }, [], { count: 5, percent: 0 }, null],
  ["the last failure of the budget", { errors: 5 }, [], { count: 5, percent: 0 }, "ERROR_BUDGET"],
  ["many failures, but a small share", { errors: 50, results: 950 }, [], { count: 5, percent: 10 }, null],
  ["many failures, and a large share", { errors: 50, results: 250 }, [], { count: 5, percent: 10 }, "ERROR_BUDGET"],
  ["jobs that end in no time", { results: 10, runs_s: runs(10, 1) }, runs(10, 100), { count: 5, percent: 0 }, "SINK"],
  ["too few results to tell", { results: 9, runs_s: runs(9, 1) }, runs(10, 100), { count: 5, percent: 0 }, null],
  ["too few results elsewhere to compare", { results: 10, runs_s: runs(10, 1) }, runs(9, 100), { count: 5, percent: 0 }, null],
  ["a faster cluster", { results: 10, runs_s: runs(10, 20) }, runs(10, 100), { count: 5, percent: 0 }, null],
  ["short jobs everywhere: 0 s may be half a second", { results: 10, runs_s: runs(10, 0) }, runs(10, 2), { count: 5, percent: 0 }, null],
  [
    "some long jobs among those that end in no time",
    { results: 10, runs_s: [...runs(4, 500), ...runs(6, 0)] },
    runs(10, 100),
    { count: 5, percent: 0 },
    "SINK",
  ],
];
for (const [what, pair, elsewhere, budget, code] of PAUSES)
  test(`a campaign on a cluster: ${what}`, () => {
    assert.equal(pauseOf({ results: 0, errors: 0, runs_s: [], ...pair }, elsewhere, budget)?.code ?? null, code);
  });

test("the interval of checkpoints is the root of twice the cost times the time between failures", () => {
  assert.equal(periodOf({ cost_s: 50, mtbf_s: 10_000 }), 1000);
  assert.equal(periodOf({ cost_s: 100, mtbf_s: 10 }), 100);
  assert.equal(periodOf({ period_s: 7 }), 7);
});

test("B1, B2: tasks run again where they must, and elsewhere where they should", () => {
  const bag = new TaskBag(2);
  assert.deepEqual([bag.take("a"), bag.take("a")], [0, 1]);
  bag.giveBack(0, 30, { only: "a" });
  bag.giveBack(1, 20, { avoid: "a" });
  const stored = new TaskBag(2, bag.rest);
  assert.deepEqual([stored.size, stored.sizeFor("b")], [2, 1]);
  assert.deepEqual([bag.take("b"), bag.take("b"), bag.take("a"), bag.take("a")], [1, null, 0, null]);
  assert.deepEqual([stored.take("a"), stored.take("a"), stored.size], [0, 1, 0], "what is left runs where it should not");
  bag.giveBack(0, 30, { only: "a" });
  assert.equal(bag.take("b"), null);
  bag.giveUp("a");
  assert.equal(bag.take("b"), 0);
});
