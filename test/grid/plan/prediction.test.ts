// The predictors against worked tables: a cluster with 64 resources, jobs that take 4, and cycles in which four jobs end.

import assert from "node:assert/strict";
import { test } from "node:test";
import { allowedWaiting, excessOf, firstRatio, jobsFor, nextRatio, type PredictorName } from "#grid/plan/prediction.ts";
import { newTap, TAP_MAX, tapAfterBatch, tapAfterLook, tapFlow } from "#grid/plan/tap.ts";
import type { Tap } from "#grid/shapes/universe.ts";
import { nth } from "#support/assert.ts";

type Toy = {
  readonly predictor: PredictorName;
  readonly first?: number;
  readonly allowed?: number;
  readonly need?: number;
  /** how long a job runs, in cycles; null: four of the jobs older than the last batch end in each cycle from the second on */
  readonly cycles?: number | null;
  /** resources that local users hold in a cycle. Users take them after the submission of the cycle before, and before waiting jobs start */
  readonly local?: (cycle: number) => number;
};
type Row = { free: number; ratio: number; reap: number; n: number; running: number };

const MAX = 64;
const TICKS = 2; // half cycles

/** Plays cycles. Within a cycle: poll, predict, take back the excess, submit; jobs start when resources are free. */
function play({ predictor, allowed = 0, need = 4, cycles = null, local = () => 0, ...toy }: Toy, count: number): Row[] {
  type Job = { batch: number; start: number | null };
  let jobs: Job[] = [];
  let ratio = toy.first ?? firstRatio(predictor, MAX, null);
  let batch: { submitted: number; free: number } | null = null;
  let started = 0; // jobs of the last batch
  const rows: Row[] = [];
  const held = (): number => need * jobs.filter(({ start }) => start !== null).length;
  const begin = (tick: number, taken: number): void => {
    for (const job of jobs) {
      if (job.start !== null || held() + taken + need > MAX) continue;
      job.start = tick;
      if (job.batch === rows.length) started++;
    }
  };
  const endUntil = (tick: number, taken: number): void => {
    jobs = jobs.filter(({ start }) => start === null || start + (cycles ?? 0) * TICKS > tick);
    begin(tick, taken);
  };
  for (let k = 0; k < count; k++) {
    const tick = k * TICKS;
    // A job that ends at the moment of a look is still seen by it.
    if (cycles !== null) endUntil(tick - 1, local(k));
    else {
      const old = jobs.filter((job) => job.start !== null && job.batch !== k);
      const ended = new Set(k >= 2 ? old.slice(0, 4) : []);
      jobs = jobs.filter((job) => !ended.has(job));
      begin(tick, local(k));
    }
    const running = jobs.filter((job) => job.start !== null);
    const waiting = jobs.filter((job) => job.start === null);
    const free = Math.max(0, MAX - local(k) - held());
    const seen = {
      ...{ resources: MAX, free, waiting: waiting.length, allowed, resources_per_job: null },
      ...{ running: running.filter((job) => job.batch === k).length, used: need * started },
    };
    ratio = nextRatio(predictor, ratio, batch, seen);
    const reap = excessOf(seen);
    const taken = new Set(waiting.slice(waiting.length - reap));
    jobs = jobs.filter((job) => !taken.has(job));
    const n = free === 0 ? 0 : jobsFor(ratio, free);
    rows.push({ free, ratio, reap, n, running: running.length });
    batch = { submitted: n, free };
    started = 0;
    for (let job = 0; job < n; job++) jobs.push({ batch: rows.length, start: null });
    begin(tick, local(k + 1));
    if (cycles !== null) endUntil(tick, local(k + 1));
  }
  return rows;
}

const near = (value: number, wanted: number, what: string): void =>
  assert.ok(Math.abs(value - wanted) < 0.0006, `${what}: ${value}, wanted ${wanted}`);

/** Compares rows with a table of lines `free ratio reap n running`. */
function isTable(rows: readonly Row[], table: string): void {
  const lines = table.trim().split("\n");
  lines.forEach((line, k) => {
    const [free, ratio, reap, n, running] = line.trim().split(/\s+/).map(Number);
    const row = nth(rows, k);
    near(row.ratio, Number(ratio), `ratio in cycle ${k}`);
    assert.deepEqual([row.free, row.reap, row.n, row.running], [free, reap, n, running], `cycle ${k}`);
  });
  assert.equal(rows.length, lines.length);
}

const reaped = (rows: readonly Row[]): number => rows.reduce((sum, { reap }) => sum + reap, 0);

test("slow-start doubles until jobs wait, and then begins with one job again", () => {
  const rows = play({ predictor: "slow-start" }, 11);
  isTable(
    rows,
    `64 .0156 0  1  0
     60 .0312 0  1  1
     60 .0625 0  3  1
     52 .125  0  6  3
     40 .25   0 10  6
     16 .5    0  8 12
      0 1     0  0 16
     16 1     0 16 12
      0 .0156 8  0 16
     16 .0156 0  1 12
     28 .0312 0  1  9`,
  );
  assert.equal(reaped(rows), 8);
});

test("two-way finds the resources of a job after one batch and stays there", () => {
  const rows = play({ predictor: "two-way" }, 11);
  isTable(rows.slice(0, 4), "64 1 0 64 0\n 0 .25 48 0 16\n 16 .25 0 4 12\n 16 .25 0 4 12");
  for (const row of rows.slice(3)) assert.deepEqual(row, { free: 16, ratio: 0.25, reap: 0, n: 4, running: 12 });
  assert.equal(reaped(rows), 48);
  assert.equal(reaped(play({ predictor: "two-way", first: firstRatio("two-way", MAX, 4) }, 11)), 0);
});

test("two-way that began too low doubles up to the truth", () => {
  const rows = play({ predictor: "two-way", first: 0.0625 }, 11);
  [0.0625, 0.125, 0.25, 0.25, 0.25].forEach((ratio, k) => near(nth(rows, k).ratio, ratio, `cycle ${k}`));
  assert.equal(reaped(rows), 0);
});

test("two-way after local users took half of the cluster: down to one job within a cycle, and back in five", () => {
  const stay = play({ predictor: "two-way", local: (k) => (k >= 5 ? 32 : 0) }, 12);
  const after = (from: number, rows: readonly Row[]): Row[] => rows.slice(from);
  assert.equal(nth(stay, 5).reap, 4);
  [1 / 64, 0.0156, 0.0312, 0.0625, 0.125, 0.25].forEach((ratio, at) => near(nth(after(5, stay), at).ratio, ratio, `cycle ${5 + at}`));
  assert.deepEqual(
    after(6, stay)
      .slice(0, 5)
      .map(({ n }) => n),
    [1, 1, 1, 3, 5],
  );
  const leave = play({ predictor: "two-way", local: (k) => (k >= 5 && k < 9 ? 32 : 0) }, 12);
  assert.deepEqual(
    after(9, leave).map(({ n }) => n),
    [7, 9, 4],
  );
  const patient = play({ predictor: "two-way", allowed: 6, local: (k) => (k >= 5 ? 32 : 0) }, 12);
  assert.equal(reaped(patient.slice(2)), 0);
  for (const { ratio } of patient.slice(3)) near(ratio, 0.344, "ratio with allowance");
});

test("exponential-up keeps the queue one batch ahead", () => {
  const rows = play({ predictor: "exponential-up" }, 11);
  isTable(
    rows.slice(0, 7),
    `64 1   0 64  0
      0 .25 48 0 16
     16 .25 0  4 12
     16 .5  0  8 12
      0 .5  0  0 16
     16 .5  0  8 12
      0 .5  0  0 16`,
  );
  assert.equal(reaped(rows), 48);
});

test("short jobs: a part of the batch has ended before the next look, so the ratio doubles", () => {
  for (const predictor of ["two-way", "exponential-up"] as const) {
    const rows = play({ predictor, need: 1, cycles: 0.5, allowed: 6 }, 12);
    near(nth(rows, 0).ratio, 1, "first");
    for (const { ratio } of rows.slice(1)) near(ratio, 2, predictor);
    assert.equal(reaped(rows), 0);
    assert.deepEqual(
      rows.slice(1).map(({ n }) => n),
      [128, 0, 128, 0, 128, 0, 128, 0, 128, 0, 128],
    );
  }
});

test("short jobs and slow-start: a flood in the tenth cycle is taken back", () => {
  const rows = play({ predictor: "slow-start", need: 1, cycles: 0.5, allowed: 6 }, 14);
  assert.equal(reaped(rows), 122);
  assert.equal(rows.reduce((sum, { n }) => sum + n, 0) - reaped(rows), 396);
});

test("jobs of three cycles with an allowance: the ratio of two-way contains the allowance", () => {
  const rows = play({ predictor: "two-way", cycles: 3, allowed: 6 }, 14);
  near(nth(rows, rows.length - 1).ratio, 0.344, "last");
  assert.equal(reaped(rows), 42);
  assert.equal(reaped(play({ predictor: "exponential-up", cycles: 3, allowed: 6 }, 14)), 63);
});

test("rules: an empty batch teaches nothing; all waiting means one job; the allowance counts whole jobs", () => {
  const seen = { resources: 64, free: 8, waiting: 0, allowed: 0, running: 0, used: 0, resources_per_job: null };
  for (const predictor of ["slow-start", "two-way", "exponential-up"] as const) {
    assert.equal(nextRatio(predictor, 0.3, { submitted: 0, free: 8 }, seen), 0.3);
    assert.equal(nextRatio(predictor, 0.3, null, seen), 0.3);
    assert.equal(nextRatio(predictor, 0.3, { submitted: 5, free: 8 }, { ...seen, waiting: 5 }), 1 / 64);
    assert.equal(nextRatio(predictor, 4, { submitted: 5, free: 8 }, seen), 4);
  }
  assert.equal(jobsFor(1 / 64, 8), 1);
  assert.equal(jobsFor(1 / 64, 0), 0);
  const allowed = allowedWaiting(64, 0.1);
  assert.deepEqual([allowed, excessOf({ waiting: 6, allowed }), excessOf({ waiting: 7, allowed })], [6, 0, 1]);
});

test("simple follows the measured mean", () => {
  const seen = { resources: 64, free: 8, waiting: 3, allowed: 0, running: 0, used: 0, resources_per_job: null };
  assert.equal(firstRatio("simple", 64, null), 0.5);
  assert.equal(nextRatio("simple", 0.5, null, seen), 0.5);
  assert.equal(nextRatio("simple", 0.5, null, { ...seen, resources_per_job: 8 }), 0.125);
});

test("the tap opens by half and closes by a third", () => {
  let tap: Tap = newTap();
  const up: number[] = [tap.rate];
  while (tap.rate < TAP_MAX) {
    tap = tapAfterBatch(tap, tapFlow(tap));
    up.push(tap.rate);
  }
  assert.deepEqual(up, [3, 4, 6, 9, 13, 19, 28, 42, 63, 94, 100]);
  const down: number[] = [];
  tap = tapAfterLook(tap, true, 0);
  assert.equal(tapFlow(tap), 0);
  assert.equal(tapAfterLook(tap, true, 59).rate, 100);
  for (let look = 0; look < 9; look++) {
    down.push(tap.rate);
    tap = tapAfterLook(tap, true, 60 + look);
  }
  assert.deepEqual(down, [100, 66, 44, 29, 19, 12, 8, 5, 3]);
  assert.equal(tapFlow(tapAfterLook(tap, false, 100)), 3);
  assert.equal(tapAfterBatch({ ...tap, rate: 100, closed_s: null }, 20).rate, 100, "a small batch does not raise the rate");
});
