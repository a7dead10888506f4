// The longest wait that docs/policy.md promises for the named policies, in random traces.

import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { Algorithm } from "#replay/algorithm.ts";
import { algorithmNamed } from "#replay/algorithm.ts";
import { createCyclePool } from "#replay/cycle-pool.ts";
import { replay } from "#replay/replay.ts";
import type { TraceJob } from "#replay/trace.ts";
import { logKey } from "#sched/order/job-measures.ts";

const PROCS = 8;
/** Many short narrow jobs, which like to overtake, and some long wide ones. */
const trace = fc
  .array(
    fc.record({
      gap_s: fc.integer({ min: 0, max: 900 }),
      procs: fc.oneof(fc.constant(1), fc.integer({ min: 1, max: PROCS })),
      est_s: fc.oneof(fc.constantFrom(60, 120, 600), fc.constantFrom(3600, 7200)),
      part: fc.integer({ min: 1, max: 100 }),
    }),
    { minLength: 20, maxLength: 120 },
  )
  .map((rows) => {
    let submit_s = 0;
    return rows.map(({ gap_s, procs, est_s, part }, at): TraceJob => {
      submit_s += gap_s;
      return { id: at + 1, submit_s, procs, est_s, run_s: Math.max(1, Math.floor((est_s * part) / 100)), partition: -1 };
    });
  });

/** Checks that every job starts by its bound. doubling_s: seconds of waiting for each doubling of the walltime in the order of jobs. */
function checkBound(jobs: readonly TraceJob[], starts_s: readonly number[], doubling_s: number): void {
  const times = jobs.map(({ est_s }) => est_s);
  const [shortest_s, longest_s] = [Math.min(...times), Math.max(...times)];
  const keys = jobs.map(({ submit_s, est_s }) => logKey(submit_s, est_s, doubling_s));
  jobs.forEach(({ id, submit_s, est_s }, at) => {
    const settled_s = submit_s + doubling_s * Math.log2(est_s / shortest_s);
    const before = jobs.filter((_, other) => {
      const [key, own] = [keys[other] as number, keys[at] as number];
      return (key < own || (key === own && other < at)) && (starts_s[other] as number) > settled_s;
    });
    for (const job of before) assert.ok(job.submit_s <= settled_s, `job ${job.id} came before job ${id} after ${settled_s}`);
    const latest_s = settled_s + (before.length + 1) * longest_s;
    assert.ok((starts_s[at] as number) <= latest_s, `job ${id} started at ${starts_s[at]}, after ${latest_s}`);
  });
}

for (const [name, doubling_s] of [
  ["easy", 0],
  ["sjbf", 0],
  ["log", 3600],
] as const) {
  test(`${name}: every job starts by its bound, in the pool and in the scheduler's own cycles`, () => {
    const algorithm = algorithmNamed(name) as Algorithm;
    const bounded = (engine: object, numRuns: number): void =>
      fc.assert(
        fc.property(trace, (jobs) =>
          checkBound(jobs, replay({ jobs, pools: [{ procs: PROCS }], algorithm, ...engine }).starts_s, doubling_s),
        ),
        { numRuns },
      );
    bounded({}, 200);
    bounded({ engine: createCyclePool }, 15);
  });
}
