// Named policies and the order of the jobs behind the top job: settings | jobs => order of starts, top job.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { SchedJob } from "#protocol/sched-link.ts";
import { SCHED_COMMAND } from "#protocol/sched-link.ts";
import { cycle } from "#sched/cycle/cycle.ts";
import { createUniverse } from "#sched/mirror/mirror.ts";
import { mirrorOptions } from "#sched/modules/index.ts";
import { notObeyed } from "#sched/policy/not-obeyed.ts";
import { parseSchedConfig } from "#sched/policy/sched-config.ts";
import { describeUniverse } from "../describe.ts";
import { book, queue, snapshotOf, type World } from "../world.ts";

const NOW_S = 1_000_000;

type Case = Partial<World> & {
  readonly config?: string;
  readonly sched?: Record<string, unknown>;
  readonly submits?: Readonly<Record<string, number>>;
};

/** The starts and top jobs of a cycle, as `1 >2 4`: job 1 starts, job 2 becomes a top job, job 4 starts. */
function orderOf({ config = "", sched = {}, submits = {}, ...world }: Case): string {
  const { prime } = parseSchedConfig(config).config;
  const all = book(prime);
  const snapshot = snapshotOf({ nodes: "a ncpus=10", jobs: "", ...world, sched: { opt_backfill_fuzzy: "off", ...sched } });
  const jobs = snapshot.jobs.map((job): SchedJob => ({ ...job, stime_s: NOW_S, ctime_s: NOW_S - (submits[job.id] ?? 0) }));
  const universe = createUniverse({ ...snapshot, jobs }, mirrorOptions(all));
  const input = { now_s: NOW_S, command: SCHED_COMMAND.TIME };
  cycle(universe, all, input);
  const before = describeUniverse(universe);
  const { decisions } = cycle(universe, all, input);
  assert.deepEqual(describeUniverse(universe), before, "a cycle leaves the universe as it was");
  return decisions
    .flatMap((decision) => (decision.kind === "run" ? [decision.job] : decision.kind === "estimate" ? [`>${decision.job}`] : []))
    .join(" ");
}

// Job 1 occupies 4 of 10 cpus for 1000 s, so job 2 is the top job; jobs 3 to 6 fit behind it, in pairs.
const JOBS =
  "1 R (a:ncpus=4) walltime=1000; 2 ncpus=8 walltime=500; 3 ncpus=2 walltime=900; 4 ncpus=4 walltime=300; 5 ncpus=1 walltime=800; 6 ncpus=1 walltime=400";
const STRICT = "strict_ordering: True ALL";

// biome-ignore format: a table
const ROWS: readonly (readonly [title: string, given: Case, order: string])[] = [
  ["queue",                          { config: STRICT },                                                 "3 4 >2"],
  ["shortest by sched_config",       { config: `${STRICT}\nbackfill.order: shortest` },                  ">2 4 6 5"],
  ["shortest by attribute",          { config: STRICT, sched: { "backfill.order": "shortest" } },        ">2 4 6 5"],
  ["the attribute wins",             { config: `${STRICT}\nbackfill.order: shortest`, sched: { "backfill.order": "queue" } }, "3 4 >2"],
  ["smallest_area",                  { config: `${STRICT}\nbackfill.order: smallest_area` },             ">2 6 5 4"],
  ["formula",                        { config: `${STRICT}\nbackfill.order: formula\nbackfill.formula: walltime * ncpus` }, ">2 3 4"],
  ["formula by attribute",           { config: STRICT, sched: { "backfill.order": "formula", "backfill.formula": "-ncpus" } }, ">2 5 6 3"],
  ["expansion",                      { config: `${STRICT}\nbackfill.order: expansion`, submits: { 3: 90, 4: 10, 5: 800, 6: 200 } }, ">2 5 6 3"],
  ["policy sjbf",                    { config: "policy: sjbf" },                                         ">2 4 6 5"],
  ["policy easy by attribute",       { config: "policy: sjbf", sched: { policy: "easy" } },              "3 4 >2"],
  ["policy with another order",      { sched: { policy: "sjbf", "backfill.order": "queue" } },           "3 4 >2"],
  ["policy sets no job_sort_key",    { config: 'policy: sjbf\njob_sort_key: "walltime LOW"' },           ">2 4 6 5"],
  ["without top jobs, no reordering", { config: `${STRICT}\nbackfill.order: shortest`, server: { backfill_depth: 0 } }, ""],
  ["log: the short job comes first although it is younger",
    { sched: { policy: "log" }, jobs: "1 R (a:ncpus=4) walltime=1000; 2 ncpus=8 walltime=36000; 3 ncpus=8 walltime=600", submits: { 2: 3600, 3: 0 } }, ">3"],
  ["log: but not if it is more hours younger than the doublings between them",
    { sched: { policy: "log" }, jobs: "1 R (a:ncpus=4) walltime=1000; 2 ncpus=8 walltime=1200; 3 ncpus=8 walltime=600", submits: { 2: 3601, 3: 0 } }, ">2"],
  ["log: equal keys by arrival",
    { sched: { policy: "log" }, jobs: "1 R (a:ncpus=4) walltime=1000; 2 ncpus=8 walltime=1200; 3 ncpus=8 walltime=600", submits: { 2: 3600, 3: 0 } }, ">2"],
  ["log: no walltime is five years",
    { sched: { policy: "log" }, jobs: "1 R (a:ncpus=4) walltime=1000; 2 ncpus=8; 3 ncpus=8 walltime=600", submits: { 2: 60_000, 3: 0 } }, ">3"],
  ["log: backfill by walltime, then key, then arrival",
    { sched: { policy: "log" }, jobs: "1 R (a:ncpus=4) walltime=1000; 2 ncpus=8 walltime=60; 3 ncpus=4 walltime=500; 4 ncpus=2 walltime=500; 5 ncpus=2 walltime=500 rank=3",
      submits: { 2: 9000, 3: 0, 4: 10, 5: 10 } }, ">2 5 4"],
  ["queues of their own depth: each is reordered when its top jobs are complete",
    { config: `${STRICT}\nby_queue: False\nbackfill.order: shortest`, queues: [queue("workq"), queue("own", { backfill_depth: 2 })],
      jobs: `${JOBS}; 7 @own ncpus=1 walltime=50; 8 @own ncpus=9 walltime=60` }, "7 >2 >8 4 6"],
];

for (const [title, given, order] of ROWS) {
  test(`order behind the top job: ${title}`, () => {
    const result = orderOf({ jobs: JOBS, ...given });
    // The place of an estimate among the starts is that of its planning.
    const starts = (text: string): string =>
      text
        .split(" ")
        .filter((word) => !word.startsWith(">"))
        .join(" ");
    const tops = (text: string): string =>
      text
        .split(" ")
        .filter((word) => word.startsWith(">"))
        .sort()
        .join(" ");
    assert.deepEqual([starts(result), tops(result)], [starts(order), tops(order)]);
  });
}

test("settings that have no effect are told", () => {
  const told = (config: string, sched: Record<string, unknown> = {}): string[] => {
    const { prime } = parseSchedConfig(config).config;
    const all = book(prime);
    return notObeyed(createUniverse(snapshotOf({ nodes: "a ncpus=1", jobs: "", sched }), mirrorOptions(all)), prime);
  };
  assert.deepEqual(told("policy: log"), []);
  assert.deepEqual(told("policy: log", { policy: "sjbf" }), [
    "policy log of sched_config has no effect: the scheduler's attribute policy is sjbf",
  ]);
  assert.deepEqual(told(`${STRICT}\nbackfill.order: shortest`, { "backfill.order": "queue" }), [
    "backfill.order shortest of sched_config has no effect: the scheduler's attribute backfill.order is queue",
  ]);
  assert.deepEqual(told("", { "backfill.order": "shortest" }), [
    "backfill.order shortest has no effect: there are no top jobs without strict_ordering and backfill",
  ]);
  assert.deepEqual(told('policy: log\njob_sort_key: "ncpus LOW"\nbackfill: False'), [
    "job_sort_key has no effect: the policy is log",
    "backfill: False has no effect: the policy is log",
  ]);
  assert.deepEqual(told("policy: log", { job_sort_formula: "ncpus" }), ["job_sort_formula has no effect: the policy is log"]);
  assert.deepEqual(told(`${STRICT}\nbackfill.order: formula`), ["backfill.order formula has no effect: there is no backfill.formula"]);
  assert.deepEqual(
    parseSchedConfig("policy: best\nbackfill.order: longest\nbackfill.formula: 1 +").messages.map(({ text }) => text.replace(/:.*/, "")),
    ["Invalid policy best", "Invalid backfill.order longest", "Invalid backfill.formula 1 +"],
  );
});
