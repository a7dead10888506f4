import assert from "node:assert/strict";
import { test } from "node:test";
import { decidedAmount, grownMemory, grownTime, learnedAmount, MEM_STEP_KB, walltimeFor } from "#model/request/estimates.ts";

const MB = 1024;

test("estimates: memory and time grow as in wr", () => {
  for (const [peak, next] of [
    [300, 1300],
    [1000, 2000],
    [5000, 10_000],
    [8192, 16_400],
    [8193, 10_700],
    [20_000, 26_000],
  ] as const)
    assert.equal(grownMemory(peak * MB), next * MB, `${peak} MB`);
  assert.equal(grownTime(59.5), 3660);
});

test("estimates: a learned amount covers 95 % of the jobs, or all if they are few or the largest is near", () => {
  const step = MEM_STEP_KB;
  assert.equal(learnedAmount([], step), undefined);
  assert.equal(learnedAmount([250 * MB], step), 300 * MB);
  assert.equal(learnedAmount([250 * MB, 5000 * MB], step), 5000 * MB);
  const many = [...Array(98).fill(500 * MB), 4000 * MB, 5000 * MB];
  assert.equal(learnedAmount(many, step), 500 * MB, "jobs are counted, not distinct values");
  assert.equal(learnedAmount([...Array(98).fill(410 * MB), 480 * MB, 490 * MB], step), 500 * MB);
  assert.equal(learnedAmount([0], 1), 1);
  assert.deepEqual([walltimeFor(10), walltimeFor(3600)], [70, 4500]);
});

test("estimates: override says whether the learned or the own amount counts", () => {
  const rows = [
    ["no", 5, 3, 3],
    ["no", 5, 9, 9],
    ["higher", 5, 3, 5],
    ["higher", 5, 9, 9],
    ["always", 5, 9, 5],
    ["always", undefined, 9, 9],
    ["no", 5, undefined, 5],
  ] as const;
  for (const [override, own, learned, decided] of rows) assert.equal(decidedAmount(override, own, learned), decided);
});
