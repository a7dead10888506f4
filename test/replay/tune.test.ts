// partita tune: what is tried, which settings are best for a goal, the interval, and that the lines to apply mean the same schedule.

import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { tune } from "#admin/tune/tune.ts";
import { createCyclePool } from "#replay/cycle-pool.ts";
import { replay } from "#replay/replay.ts";
import { linesOf, settingsOf } from "#replay/sched-settings.ts";
import type { TraceJob } from "#replay/trace.ts";
import { bestOf, candidates, tryAll } from "#replay/tune.ts";
import { prng } from "#support/prng.ts";

const PROCS = 16;

/** A busy machine: short and long jobs of three users over some weeks. */
function jobsOf(seed: number, count: number): TraceJob[] {
  const random = prng(seed);
  let submit_s = 0;
  return Array.from({ length: count }, (_, at) => {
    submit_s += random.int(0, 6000);
    const est_s = random.pick([60, 600, 3600, 36_000]);
    return {
      id: at + 1,
      submit_s,
      procs: random.pick([1, 2, 4, 8, 16]),
      est_s,
      run_s: random.int(1, est_s),
      partition: -1,
      user: random.int(1, 3),
    };
  });
}

test("the best settings have the lowest figure of those whose longest wait is allowed", () => {
  const jobs = jobsOf(7, 800);
  const goal = { figure: "slowdown", longest_percent: 110 } as const;
  const tried = tryAll(jobs, [{ procs: PROCS }], goal, () => undefined);
  const [easy] = tried;
  assert.deepEqual([tried.length, easy?.name, easy?.change], [24, "arrival, queue", { mean: 0, low: 0, high: 0 }]);
  const best = bestOf(tried, goal);
  assert.ok(best.allowed && best.metrics.wait_s.max <= 1.1 * (easy?.metrics.wait_s.max ?? 0));
  for (const { metrics, allowed, change } of tried) {
    if (allowed) assert.ok(best.metrics.bounded_slowdown.mean <= metrics.bounded_slowdown.mean);
    assert.ok(change.low <= change.mean && change.mean <= change.high);
  }
  const shortest = bestOf(tried, { figure: "longest", longest_percent: 110 });
  assert.ok(tried.filter(({ allowed }) => allowed).every(({ metrics }) => metrics.wait_s.max >= shortest.metrics.wait_s.max));
});

test("the settings to apply give the same schedule in the scheduler's own cycles", () => {
  const jobs = jobsOf(3, 150);
  for (const { name, algorithm } of candidates()) {
    const input = { jobs, pools: [{ procs: PROCS }], algorithm };
    assert.deepEqual(replay({ ...input, engine: createCyclePool }).starts_s, replay(input).starts_s, name);
  }
});

test("the lines to apply", () => {
  const lines = candidates().map(({ name, algorithm }) => {
    const settings = settingsOf(algorithm);
    return `${name}: ${settings === null ? "" : linesOf(settings, "default").join("; ")}`;
  });
  const depth = "qmgr -c 'set server backfill_depth=1'";
  for (const line of [
    `arrival, queue: qmgr -c 'set sched default policy=easy'; ${depth}`,
    `log, shortest: qmgr -c 'set sched default policy=log'; ${depth}`,
    `log, queue: qmgr -c 'set sched default policy=log'; qmgr -c 'set sched default backfill.order=queue'; ${depth}`,
    `log 4600 s, shortest: qmgr -c 'set sched default job_sort_formula="-submit_time - 4600 * log2(max(1, requested_time) / 60)"'; qmgr -c 'set sched default backfill.order=shortest'; ${depth}; sched_config: strict_ordering: True ALL`,
  ])
    assert.ok(lines.includes(line), line);
});

test("accounting files are replayed; mistakes are named", () => {
  const dir = mkdtempSync(join(tmpdir(), "partita-tune-"));
  const options = { trace: undefined, procs: 4, accounting: dir, goal: "slowdown:110", picture: join(dir, "p.svg"), json: false };
  const tell: string[] = [];
  try {
    assert.throws(() => tune(options, () => undefined), /no accounting files/);
    const record = (id: number, user: string, ncpus: number, from: number, to: number): string =>
      `01/01/2026 00:00:00;E;${id}.svr;user=${user} group=g queue=workq ctime=${1000 + id} start=${from} end=${to} Resource_List.ncpus=${ncpus} Resource_List.walltime=01:00:00\n`;
    writeFileSync(
      join(dir, "20260101"),
      `${record(1, "alice", 4, 2000, 4000)}${record(2, "bob", 1, 4000, 4600)}${record(3, "bob", 9, 4000, 4600)}01/01/2026 00:00:00;Q;4.svr;queue=workq\n`,
    );
    const text = tune(options, (note) => tell.push(note));
    assert.match(text, /arrival, queue/);
    assert.match(text, /qmgr -c 'set sched default policy=/);
    assert.deepEqual(tell, ["1 jobs left out: wider than 4 processors"]);
    assert.match(readFileSync(join(dir, "p.svg"), "utf8"), /mean wait by size of job/);
    assert.throws(() => tune({ ...options, goal: "best" }, () => undefined), /--goal best/);
    assert.throws(() => tune({ ...options, procs: undefined }, () => undefined), /--procs/);
    assert.throws(() => tune({ ...options, trace: "x.swf" }, () => undefined), /either a trace or --accounting/);
  } finally {
    rmSync(dir, { recursive: true });
  }
});
