// Replays of small and random traces: properties that hold for any trace.

import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { Algorithm } from "#replay/algorithm.ts";
import { ARRIVAL, algorithmNamed } from "#replay/algorithm.ts";
import { createConfiguredPool, createCyclePool } from "#replay/cycle-pool.ts";
import { metricsOf, startsCsv } from "#replay/metrics.ts";
import { replay } from "#replay/replay.ts";
import type { TraceJob } from "#replay/trace.ts";
import { parseReservations, parseTrace, TraceError } from "#replay/trace.ts";

const PROCS = 8;
const named = (name: string): Algorithm => algorithmNamed(name) as Algorithm;
const startsOf = (jobs: readonly TraceJob[], name: string, procs = PROCS): readonly number[] =>
  replay({ jobs, pools: [{ procs }], algorithm: named(name) }).starts_s;

const trace = fc
  .array(
    fc.record({
      gap: fc.nat(6),
      procs: fc.integer({ min: 1, max: PROCS }),
      est: fc.integer({ min: 1, max: 20 }),
      part: fc.integer({ min: 1, max: 100 }),
    }),
    { maxLength: 30 },
  )
  .map((rows) => {
    let submit_s = 0;
    return rows.map(({ gap, procs, est, part }, at): TraceJob => {
      submit_s += gap;
      return { id: at + 1, submit_s, procs, est_s: est, run_s: Math.max(1, Math.floor((est * part) / 100)), partition: 1 + (part % 2) };
    });
  });

const ALGORITHMS = ["fcfs", "easy", "sjbf", "log", "depth3", "depthinf", "cons"];

test("no slot is ever used twice, no job starts before it is there, and every job starts", () => {
  fc.assert(
    fc.property(trace, fc.constantFrom(...ALGORITHMS), (jobs, name) => {
      const starts = startsOf(jobs, name);
      for (const [at, job] of jobs.entries()) {
        const now_s = starts[at] as number;
        assert.ok(now_s >= job.submit_s, `${name}: job ${job.id} at ${now_s}`);
        let used = 0;
        for (const [other, { procs, run_s }] of jobs.entries()) {
          const start_s = starts[other] as number;
          if (start_s <= now_s && now_s < start_s + run_s) used += procs;
        }
        assert.ok(used <= PROCS, `${name}: ${used} slots at ${now_s}`);
      }
    }),
  );
});

test("easy equals depth1", () => {
  fc.assert(fc.property(trace, (jobs) => assert.deepEqual(startsOf(jobs, "easy"), startsOf(jobs, "depth1"))));
});

test("with perfect estimates cons equals depthinf", () => {
  fc.assert(
    fc.property(trace, (jobs) => {
      const perfect = jobs.map((job) => ({ ...job, run_s: job.est_s }));
      assert.deepEqual(startsOf(perfect, "cons"), startsOf(perfect, "depthinf"));
    }),
  );
});

test("with cons and perfect estimates later jobs change nothing for those before them", () => {
  fc.assert(
    fc.property(trace, (jobs) => {
      const perfect = jobs.map((job) => ({ ...job, run_s: job.est_s }));
      const half = perfect.slice(0, Math.ceil(perfect.length / 2));
      assert.deepEqual(startsOf(perfect, "cons").slice(0, half.length), startsOf(half, "cons"));
    }),
  );
});

test("two partitions on one clock equal two separate runs", () => {
  fc.assert(
    fc.property(trace, fc.constantFrom(...ALGORITHMS), (jobs, name) => {
      const pools = [
        { partition: 1, procs: PROCS },
        { partition: 2, procs: PROCS + 3 },
      ];
      const together = replay({ jobs, pools, algorithm: named(name) }).starts_s;
      for (const { partition, procs } of pools) {
        const own = jobs.filter((job) => job.partition === partition);
        assert.deepEqual(
          together.filter((_, at) => jobs[at]?.partition === partition),
          startsOf(own, name, procs),
        );
      }
    }),
  );
});

test("the scheduler's own cycles give the schedules of the pool", () => {
  fc.assert(
    fc.property(trace, fc.constantFrom("fcfs", "easy", "sjbf", "log", "depth3", "depthinf"), (jobs, name) => {
      const algorithm = named(name);
      const { starts_s } = replay({ jobs, pools: [{ procs: PROCS }], algorithm, engine: createCyclePool });
      assert.deepEqual(starts_s, startsOf(jobs, name));
    }),
    { numRuns: 40 },
  );
  assert.throws(() => replay({ jobs: [], pools: [{ procs: 1 }], algorithm: named("cons"), engine: createCyclePool }), RangeError);
});

test("lines of sched_config are obeyed in a replay, or refused", () => {
  fc.assert(
    fc.property(trace, fc.constantFrom("easy", "sjbf", "log"), (jobs, name) => {
      const engine = (procs: number) => createConfiguredPool(procs, `policy: ${name}\n`);
      assert.deepEqual(replay({ jobs, pools: [{ procs: PROCS }], algorithm: named("easy"), engine }).starts_s, startsOf(jobs, name));
    }),
    { numRuns: 20 },
  );
  for (const [line, fault] of [
    ["policy: best", /Invalid policy best/],
    ["nonsense: 1", /Unknown config parameter/],
    ["fair_share: True", /a replay counts no usage/],
    ["modules: own.ts, backfill", /modules of a site do not run/],
  ] as const)
    assert.throws(() => createConfiguredPool(4, line), fault);
});

test("the slots of a reservation are kept free", () => {
  const jobs: TraceJob[] = [1, 2, 3].map((id) => ({ id, submit_s: 0, procs: 4, est_s: 10, run_s: 10, partition: -1 }));
  const reservations = [{ start_s: 12, duration_s: 8, procs: 8 }];
  // two at the same time; the third would reach into the reservation
  assert.deepEqual(replay({ jobs, pools: [{ procs: 8, reservations }], algorithm: named("easy") }).starts_s, [0, 0, 20]);
  assert.throws(() => replay({ jobs, pools: [{ procs: 4, reservations }], algorithm: named("easy") }), RangeError);
});

test("a trace's fields are read as its format and our conventions say", () => {
  const line = (fields: Record<number, number>): string => Array.from({ length: 18 }, (_, at) => fields[at + 1] ?? -1).join(" ");
  const text = [
    "; Version: 2.2",
    line({ 1: 1, 2: 5, 4: 30, 5: 2, 8: 4, 9: 20 }), // killed at its limit
    line({ 1: 2, 2: 5, 4: 30, 5: 0, 8: 4, 9: 0, 16: 3 }), // requested processors, no estimate
    line({ 1: 3, 2: 0, 4: 0, 5: 2, 9: 20 }), // did not run
    line({ 1: 4, 2: 0, 4: 1, 5: 9, 9: 20 }), // too wide
    line({ 1: 5, 2: 4, 4: 1, 5: 1, 9: 20 }),
  ].join("\n");
  assert.deepEqual(
    parseTrace(text, 8).map(({ id, submit_s, procs, est_s, run_s, partition }) => [id, submit_s, procs, est_s, run_s, partition]),
    [
      [5, 4, 1, 20, 1, -1],
      [1, 5, 2, 20, 20, -1],
      [2, 5, 4, 30, 30, 3],
    ],
  );
  const left_out = { nothing: 0, too_wide: 0 };
  parseTrace(text, ({ partition }) => (partition === 3 ? 3 : 9), left_out);
  assert.deepEqual(left_out, { nothing: 1, too_wide: 1 });
  assert.throws(() => parseTrace("1 2 3", 8), TraceError);
  assert.throws(() => parseTrace(line({ 1: 1 }).replace("1", "x"), 8), TraceError);
  assert.deepEqual(parseReservations("start_s,duration_s,procs\n10,5,2 # weekly\n\n"), [{ start_s: 10, duration_s: 5, procs: 2 }]);
  assert.throws(() => parseReservations("10,5"), TraceError);
});

test("metrics and starts of a small schedule", () => {
  const jobs: TraceJob[] = [
    { id: 2, submit_s: 0, procs: 4, est_s: 20, run_s: 20, partition: -1 },
    { id: 1, submit_s: 0, procs: 4, est_s: 5, run_s: 5, partition: -1 },
  ];
  const { jobs: count, wait_s, bounded_slowdown, utilisation, makespan_s } = metricsOf(jobs, [0, 20], 8);
  assert.deepEqual([count, wait_s.mean, wait_s.max, makespan_s, utilisation], [2, 10, 20, 25, 0.5]);
  assert.equal(bounded_slowdown.mean, (1 + 2.5) / 2);
  assert.equal(startsCsv(jobs, [0, 20]), "job,start\n1,20\n2,0\n");
});

test("names of algorithms", () => {
  assert.deepEqual(["depth0", "depth", "EASY", "depth1x"].map(algorithmNamed), [null, null, null, null]);
  assert.deepEqual(algorithmNamed("depthinf"), { kind: "depth", depth: Number.POSITIVE_INFINITY, order: ARRIVAL, behind: "queue" });
});
