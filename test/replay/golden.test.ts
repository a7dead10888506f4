// Golden schedules: the start second of every job, on which two independent reference simulators agree. They are in the shared
// folder.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { gunzipSync } from "node:zlib";
import type { Algorithm } from "#replay/algorithm.ts";
import { algorithmNamed } from "#replay/algorithm.ts";
import { createCyclePool } from "#replay/cycle-pool.ts";
import { metricsOf } from "#replay/metrics.ts";
import { replay } from "#replay/replay.ts";
import type { TraceJob, TraceReservation } from "#replay/trace.ts";
import { parseTrace } from "#replay/trace.ts";
import { bestOf, tryAll } from "#replay/tune.ts";
import { SHARED, whyNoShared } from "../live/shared.ts";

const skip = whyNoShared();
const read = (path: string): string => gunzipSync(readFileSync(join(SHARED ?? "", "workloads", path))).toString("utf8");

const WEEKLY: readonly TraceReservation[] = Array.from({ length: 47 }, (_, week) => ({
  start_s: 300_000 + week * 604_800,
  duration_s: 14_400,
  procs: 100,
}));

// biome-ignore format: a table
const CASES: readonly { trace: string; procs: number; golden: string; columns: string; reservations?: readonly TraceReservation[] }[] = [
  { trace: "KTH-SP2-1996-2.1-cln", procs: 100, golden: "KTH-SP2.batch",              columns: "fcfs easy sjbf depth2 depth4 depth8 cons depthinf" },
  { trace: "HPC2N10k",             procs: 240, golden: "HPC2N10k.batch",             columns: "fcfs easy sjbf depth2 cons depthinf" },
  { trace: "KTH-SP2-1996-2.1-cln", procs: 100, golden: "KTH-SP2.maint-weekly.batch", columns: "easy depth4 depthinf", reservations: WEEKLY },
];

/** A cycle does the work of a whole scheduler, so only some jobs are replayed. */
const CYCLE_JOBS = 1000;

const traces = new Map<string, readonly TraceJob[]>();
function traceOf(name: string, procs: number): readonly TraceJob[] {
  const known = traces.get(name) ?? parseTrace(read(`traces/${name}.swf.gz`), procs);
  traces.set(name, known);
  return known;
}

for (const { trace, procs, golden, columns, reservations = [] } of CASES) {
  test(`golden schedule ${golden}: every job in every column`, { skip }, () => {
    const [heading = "", ...rows] = read(`golden/${golden}.csv.gz`).trimEnd().split("\n");
    const names = heading.split(",");
    assert.deepEqual(names, ["job", "submit", "procs", "est", "run", ...columns.split(" ")]);
    const jobs = traceOf(trace, procs);
    const expected = rows.map((row) => row.split(",").map(Number));
    assert.deepEqual(
      jobs.map(({ id, submit_s, procs: width, est_s, run_s }) => [id, submit_s, width, est_s, run_s].join()),
      expected.map((row) => row.slice(0, 5).join()),
    );
    for (const [at, name] of names.entries()) {
      if (at < 5) continue;
      const { starts_s } = replay({ jobs, pools: [{ procs, reservations }], algorithm: algorithmNamed(name) as Algorithm });
      const wrong = expected.findIndex((row, job) => row[at] !== starts_s[job]);
      assert.equal(wrong, -1, `${name}: job ${expected[wrong]?.[0]} started at ${starts_s[wrong]}, not at ${expected[wrong]?.[at]}`);
    }
  });
}

test("golden schedule KTH-SP2.batch by the scheduler's own cycles: its first jobs, every one", { skip }, () => {
  const jobs = traceOf("KTH-SP2-1996-2.1-cln", 100).slice(0, CYCLE_JOBS);
  const [heading = "", ...rows] = read("golden/KTH-SP2.batch.csv.gz").trimEnd().split("\n");
  const names = heading.split(",");
  for (const name of ["fcfs", "easy", "depth2"]) {
    const { starts_s } = replay({ jobs, pools: [{ procs: 100 }], algorithm: algorithmNamed(name) as Algorithm, engine: createCyclePool });
    // The remaining jobs of the trace are left out; they could have started before these jobs only if they had been queued
    // before.
    const expected = rows.slice(0, CYCLE_JOBS).map((row) => Number(row.split(",")[names.indexOf(name)]));
    const last_s = rows[CYCLE_JOBS] === undefined ? Number.POSITIVE_INFINITY : Number(rows[CYCLE_JOBS].split(",")[1]);
    const wrong = expected.findIndex((start_s, at) => start_s < last_s && start_s !== starts_s[at]);
    assert.equal(wrong, -1, `${name}: job ${jobs[wrong]?.id} started at ${starts_s[wrong]}, not at ${expected[wrong]}`);
    assert.ok(expected.filter((start_s) => start_s < last_s).length > CYCLE_JOBS * 0.9, "nearly all can be compared");
  }
});

// The figures of easy and sjbf are those of the golden schedules; those of log come from a third simulator.
for (const [trace, procs, rows] of [
  ["KTH-SP2-1996-2.1-cln", 100, "easy 86.40 248239; sjbf 65.24 270415; log 50.67 269528"],
  ["HPC2N10k", 240, "easy 55.91 125494; sjbf 50.51 125537; log 42.51 126114"],
] as const) {
  test(`policies on ${trace}: mean bounded slowdown and longest wait`, { skip }, () => {
    const jobs = traceOf(trace, procs);
    const found = ["easy", "sjbf", "log"].map((name) => {
      const { starts_s } = replay({ jobs, pools: [{ procs }], algorithm: algorithmNamed(name) as Algorithm });
      const { bounded_slowdown, wait_s } = metricsOf(jobs, starts_s, procs);
      return `${name} ${bounded_slowdown.mean.toFixed(2)} ${wait_s.max}`;
    });
    assert.equal(found.join("; "), rows);
  });
}

test("tune recommends more seconds per doubling than log on both traces", { skip }, () => {
  for (const [trace, procs, name] of [
    ["KTH-SP2-1996-2.1-cln", 100, "log 4600 s, shortest"],
    ["HPC2N10k", 240, "log 7200 s, shortest"],
  ] as const) {
    const goal = { figure: "slowdown", longest_percent: 110 } as const;
    assert.equal(
      bestOf(
        tryAll(traceOf(trace, procs), [{ procs }], goal, () => undefined),
        goal,
      ).name,
      name,
    );
  }
});

test("policy log on HPC2N10k by the scheduler's own cycles: every job as in the pool", { skip }, () => {
  const jobs = traceOf("HPC2N10k", 240);
  const input = { jobs, pools: [{ procs: 240 }], algorithm: algorithmNamed("log") as Algorithm };
  assert.deepEqual(replay({ ...input, engine: createCyclePool }).starts_s, replay(input).starts_s);
});

test("KTH easy and cons have the published means", { skip }, () => {
  const jobs = traceOf("KTH-SP2-1996-2.1-cln", 100);
  for (const [name, wait_s, slowdown] of [
    ["easy", 6419.0279, 86.3977],
    ["cons", 7040.5188, 89.8727],
  ] as const) {
    const { starts_s } = replay({ jobs, pools: [{ procs: 100 }], algorithm: algorithmNamed(name) as Algorithm });
    const metrics = metricsOf(jobs, starts_s, 100);
    assert.equal(metrics.wait_s.mean.toFixed(4), wait_s.toFixed(4));
    assert.equal(metrics.bounded_slowdown.mean.toFixed(4), slowdown.toFixed(4));
  }
});
