// Log lines about the order of jobs: values, the threshold, errors of a formula. ranking-properties.test.ts tests the order
// itself.

import assert from "node:assert/strict";
import { test } from "node:test";
import { SCHED_COMMAND } from "#protocol/sched-link.ts";
import { cycle } from "#sched/cycle/cycle.ts";
import { createUniverse } from "#sched/mirror/mirror.ts";
import { mirrorOptions } from "#sched/modules/index.ts";
import { book, logTexts, run, snapshotOf } from "../world.ts";

test("values and the threshold in the log (sched-order-formula)", () => {
  const result = run({
    nodes: "n ncpus=16",
    jobs: "1 ncpus=1; 2 ncpus=2; 3 ncpus=1 prio=50",
    server: { job_sort_formula: "ncpus*10+job_priority" },
    sched: { job_sort_formula_threshold: 15 },
  });
  assert.deepEqual(
    logTexts(result).filter((line) => /^run|;Job;/.test(line)),
    [
      "0100;Job;1;Formula Evaluation = 10",
      "0100;Job;1;Job's formula value 10 is under threshold 15",
      "0040;Job;1;Job is under job_sort_formula threshold value",
      "0100;Job;2;Formula Evaluation = 20",
      "0100;Job;3;Formula Evaluation = 60",
      "0080;Job;3;Considering job to run",
      "run 3",
      "0080;Job;2;Considering job to run",
      "run 2",
    ],
  );
});

test("an error of the formula is worth 0 and told: with the values each time, else once", () => {
  const world = { nodes: "n ncpus=16", jobs: "1 ncpus=1; 2 ncpus=2", sched: { log_events: 767, job_sort_formula: "1/(ncpus-1)" } };
  const policies = book();
  const universe = createUniverse(snapshotOf(world), mirrorOptions(policies));
  const text = "0040;Job;1;Formula evaluation for job had an error.  Zero value will be used: division by zero";
  const lines = (): string[] =>
    logTexts(cycle(universe, policies, { now_s: 1, command: SCHED_COMMAND.TIME })).filter((line) => line.includes("error"));
  assert.deepEqual(lines(), [text]);
  assert.deepEqual(lines(), []);
  const all = run({ ...world, sched: { log_events: 2047, job_sort_formula: "1/(ncpus-1)" } });
  assert.ok(logTexts(all).includes(text.replace("0040", "0100")));
  assert.deepEqual(
    all.decisions.map((decision) => decision.kind === "run" && decision.job),
    ["2", "1"],
  );
});

test("a formula that cannot be used (its resource is gone) orders nothing", () => {
  const universe = createUniverse(
    snapshotOf({ nodes: "n ncpus=1", jobs: "1; 2", sched: { job_sort_formula: "cost" } }),
    mirrorOptions(book()),
  );
  assert.equal(universe.ranking.fault, "job_sort_formula cannot be used: cost");
  assert.equal(universe.ranking.formula, null);
});

test("without its module neither formula nor keys nor shares order jobs", () => {
  const policies = book({ job_sort_key: [{ key: "ncpus", high: true }], fair_share: true }, { modules: ["limits", "resources"] });
  const world = { nodes: "n ncpus=16", jobs: "1 ncpus=1; 2 ncpus=2", sched: { job_sort_formula: "ncpus" } };
  const result = cycle(createUniverse(snapshotOf(world), mirrorOptions(policies)), policies, { now_s: 1, command: SCHED_COMMAND.TIME });
  assert.deepEqual(
    result.decisions.map((decision) => decision.kind === "run" && decision.job),
    ["1", "2"],
  );
});
