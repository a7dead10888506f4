// Top jobs, shrink-to-fit, prime and dedicated time in cycles: starts, plans and comments (docs/reference/scheduler.md 5 and
// 7).

import assert from "node:assert/strict";
import { test } from "node:test";
import type { SchedJob } from "#protocol/sched-link.ts";
import { SCHED_COMMAND } from "#protocol/sched-link.ts";
import { cycle } from "#sched/cycle/cycle.ts";
import type { CycleInput, CycleResult } from "#sched/cycle/result.ts";
import { createUniverse } from "#sched/mirror/mirror.ts";
import { mirrorOptions } from "#sched/modules/index.ts";
import type { Holidays } from "#sched/shapes/holidays.ts";
import type { Policy } from "#sched/shapes/policy.ts";
import type { PolicyBook } from "#sched/shapes/policy-book.ts";
import { describeUniverse } from "../describe.ts";
import type { World } from "../world.ts";
import { book, logTexts, queue, run, snapshotOf } from "../world.ts";

const NOW_S = 1_000_000;

type Case = World & {
  policy?: Partial<Policy>;
  book?: Partial<PolicyBook>;
  input?: Partial<CycleInput>;
  /** further attributes of jobs, by id */
  more?: Readonly<Record<string, Partial<SchedJob>>>;
};

function cycleOf({ policy, book: policies, input, more = {}, sched, ...world }: Case): CycleResult {
  const all = book({ strict_ordering: true, ...policy }, policies);
  const snapshot = snapshotOf({ ...world, sched: { opt_backfill_fuzzy: "off", ...sched } });
  const jobs = snapshot.jobs.map((job) => ({ ...job, stime_s: NOW_S, ...more[job.id] }));
  const universe = createUniverse({ ...snapshot, jobs }, mirrorOptions(all));
  const before = describeUniverse(universe);
  const result = cycle(universe, all, { now_s: NOW_S, command: SCHED_COMMAND.TIME, ...input });
  assert.deepEqual(describeUniverse(universe), before);
  assert.equal(universe.calendar.on.size, 0);
  return result;
}

/** `1 +60 (a:ncpus=1)` for an estimate, `2 runs (..)`, `2 runs 600 (..)` with a walltime, `3 gone`, `3: comment`. */
function told(result: CycleResult): string[] {
  return result.decisions.flatMap((decision) => {
    switch (decision.kind) {
      case "run":
        return [`${decision.job} runs ${decision.walltime_s === undefined ? "" : `${decision.walltime_s} `}${decision.exec_vnode}`];
      case "estimate":
        return [
          decision.start_s === null
            ? `${decision.job} gone`
            : `${decision.job} +${decision.start_s - NOW_S} ${decision.exec_vnode}${decision.topjob ? "" : " no more"}`,
        ];
      case "comment":
        return [`${decision.job}: ${decision.comment.replace(/^Not Running: /, "")}`];
      case "extend":
        return [`${decision.job} takes ${decision.soft_walltime_s}`];
      default:
        return [decision.kind];
    }
  });
}

const CONFLICT = "Job would conflict with reservation or top job";

const TABLE: readonly (Case & { name: string; expected: readonly string[] })[] = [
  {
    name: "unset depth is 1; the log says what is estimated",
    nodes: "a ncpus=2",
    jobs: "1 R (a:ncpus=2) walltime=60; 2 ncpus=2 walltime=60; 3 ncpus=2 walltime=30",
    expected: ["2 +60 (a:ncpus=2)", "2: Not enough free nodes available", "3: Not enough free nodes available"],
  },
  {
    name: "equal jobs are planned one by one",
    nodes: "a ncpus=2",
    jobs: "1 R (a:ncpus=2) walltime=60; 2 ncpus=2 walltime=10; 3 ncpus=2 walltime=10; 4 ncpus=2 walltime=10",
    server: { backfill_depth: 2 },
    expected: [
      "2 +60 (a:ncpus=2)",
      "2: Not enough free nodes available",
      "3 +70 (a:ncpus=2)",
      "3: Not enough free nodes available",
      "4: Not enough free nodes available",
    ],
  },
  {
    name: "a longer job waits, a shorter one starts",
    nodes: "a ncpus=4",
    jobs: "1 R (a:ncpus=2) walltime=60; 2 ncpus=4 walltime=60; 3 ncpus=1 walltime=61; 4 ncpus=1 walltime=60; 5 ncpus=1",
    expected: [
      "2 +60 (a:ncpus=4)",
      "2: Insufficient amount of resource: ncpus (R: 4 A: 2 T: 4)",
      `3: ${CONFLICT}`,
      "4 runs (a:ncpus=1)",
      `5: ${CONFLICT}`,
    ],
  },
  {
    name: "what runs until a plan begins is not in its way, nor in the way of what runs beside it",
    nodes: "a ncpus=4",
    jobs: "1 R (a:ncpus=3) walltime=60; 2 ncpus=3 walltime=60; 3 ncpus=1 walltime=999; 4 ncpus=1 walltime=999",
    expected: [
      "2 +60 (a:ncpus=3)",
      "2: Insufficient amount of resource: ncpus (R: 3 A: 1 T: 4)",
      "3 runs (a:ncpus=1)",
      "4: Not enough free nodes available",
    ],
  },
  {
    name: "a queue with its own depth counts for itself, 0 holds back all that is behind",
    nodes: "a ncpus=2",
    jobs: "1 R (a:ncpus=1) walltime=60; 2 ncpus=2 walltime=9 @two; 3 ncpus=2 walltime=9 @two; 4 ncpus=2 walltime=9 @two; 5 ncpus=2 walltime=9 @one; 6 ncpus=2 @none; 7 ncpus=1 walltime=1 @last",
    queues: [
      queue("two", { backfill_depth: 2, Priority: 9 }),
      queue("one", { Priority: 8 }),
      queue("none", { backfill_depth: 0, Priority: 7 }),
      queue("last"),
    ],
    expected: [
      "2 +60 (a:ncpus=2)",
      "2: Insufficient amount of resource: ncpus (R: 2 A: 1 T: 2)",
      "3 +69 (a:ncpus=2)",
      "3: Insufficient amount of resource: ncpus (R: 2 A: 1 T: 2)",
      "4: Insufficient amount of resource: ncpus (R: 2 A: 1 T: 2)",
      "5 +78 (a:ncpus=2)",
      "5: Insufficient amount of resource: ncpus (R: 2 A: 1 T: 2)",
      "6: Insufficient amount of resource: ncpus (R: 2 A: 1 T: 2)",
      "7: Job would break strict sorted order",
    ],
  },
  {
    name: "backfill_depth 0 of the server",
    nodes: "a ncpus=2",
    jobs: "1 R (a:ncpus=1) walltime=60; 2 ncpus=2 walltime=60; 3 ncpus=1 walltime=30",
    server: { backfill_depth: 0 },
    expected: ["2: Insufficient amount of resource: ncpus (R: 2 A: 1 T: 2)", "3: Job would break strict sorted order"],
  },
  {
    name: "topjob_ineligible jobs, jobs that never run and jobs with an aoe are passed by",
    nodes: "a ncpus=2 aoe=x :current_aoe=x",
    jobs: "1 R (a:ncpus=1) walltime=60; 2 ncpus=2 walltime=9; 3 ncpus=3; 4 ncpus=2:aoe=x; 5 ncpus=2 walltime=60",
    more: { "2": { topjob_ineligible: true } },
    expected: [
      "2: Insufficient amount of resource: ncpus (R: 2 A: 1 T: 2)",
      "3: Can Never Run: Insufficient amount of resource: ncpus (R: 3 A: 2 T: 2)",
      "4: Insufficient amount of resource: ncpus (R: 2 A: 1 T: 2)",
      "5 +60 (a:ncpus=2)",
      "5: Insufficient amount of resource: ncpus (R: 2 A: 1 T: 2)",
    ],
  },
  {
    name: "allow_aoe_calendar",
    nodes: "a ncpus=2 aoe=x :current_aoe=x",
    jobs: "1 R (a:ncpus=1) walltime=60; 4 ncpus=2:aoe=x; 5 ncpus=2 walltime=60",
    policy: { allow_aoe_calendar: true },
    expected: [
      "4 +60 (a:ncpus=2)",
      "4: Insufficient amount of resource: ncpus (R: 2 A: 1 T: 2)",
      "5: Insufficient amount of resource: ncpus (R: 2 A: 1 T: 2)",
    ],
  },
  {
    name: "time in which a job stood still is no part of its walltime",
    nodes: "a ncpus=2",
    jobs: "1 R (a:ncpus=2) walltime=100; 2 ncpus=2",
    more: { 1: { paused_s: 30 } },
    expected: ["2 +130 (a:ncpus=2)", "2: Not enough free nodes available"],
  },
  {
    name: "a job that runs without end is taken to end after 5 years",
    nodes: "a ncpus=2",
    jobs: "1 R (a:ncpus=2); 2 ncpus=2",
    expected: [`2 +${5 * 365 * 86_400} (a:ncpus=2)`, "2: Not enough free nodes available"],
  },
  {
    name: "no start centuries away: behind two endless jobs there is no estimate, and depth is left for others",
    nodes: "a ncpus=2; b ncpus=1",
    jobs: "1 R (a:ncpus=2); 2 ncpus=2; 3 ncpus=2; 4 R (b:ncpus=1) walltime=9; 5 ncpus=1:host=b",
    server: { backfill_depth: 2 },
    expected: [
      `2 +${5 * 365 * 86_400} (a:ncpus=2)`,
      "2: Not enough free nodes available",
      "3: Not enough free nodes available",
      "5 +9 (b:ncpus=1)",
      "5: Not enough free nodes available",
    ],
  },
  {
    name: "a limit that a running job of the owner reaches: the start is when that job ends",
    nodes: "a ncpus=9",
    jobs: "1 R (a:ncpus=1) walltime=60 u=bob; 2 ncpus=1 walltime=30 u=bob; 3 ncpus=1 walltime=61",
    server: { max_run: { "u:PBS_GENERIC": 1 } },
    expected: ["2 +60 (a:ncpus=1)", "2: User has reached server running job limit.", "3 runs (a:ncpus=1)"],
  },
  {
    name: "a limit of nothing: no estimate at all",
    nodes: "a ncpus=9",
    jobs: "1 R (a:ncpus=1) walltime=60; 2 ncpus=1 u=bob; 3 ncpus=1",
    server: { max_run: { "u:bob": 0 } },
    expected: ["2: Server job limit reached for user bob", "3 runs (a:ncpus=1)"],
  },
  {
    name: "no lower job takes the limit that a plan needs",
    nodes: "a ncpus=4",
    jobs: "1 R (a:ncpus=2) walltime=60 u=bob; 2 ncpus=4 walltime=30 u=bob; 3 ncpus=1 walltime=10 u=bob; 4 ncpus=1 walltime=10 u=eve",
    server: { max_run: { "u:PBS_GENERIC": 2 }, max_run_res: { ncpus: { "u:bob": 4 } } },
    expected: [
      "2 +60 (a:ncpus=4)",
      "2: Insufficient amount of resource: ncpus (R: 4 A: 2 T: 4)",
      "3 runs (a:ncpus=1)",
      "4 runs (a:ncpus=1)",
    ],
  },
  {
    name: "nor what the server has of a resource",
    nodes: "a ncpus=4; b ncpus=4",
    jobs: "1 R (a:ncpus=4) walltime=60; 2 ncpus=4:host=a walltime=30 lic=2; 3 ncpus=1:host=b walltime=61 lic=1; 4 ncpus=1:host=b walltime=60 lic=1",
    resources: [{ name: "lic", type: "long", flags: "q" }],
    server: { resources_available: { lic: 2 } },
    policy: { resources: new Set(["ncpus", "host", "vnode", "lic"]) },
    expected: [
      "2 +60 (a:ncpus=4)",
      "2: Insufficient amount of resource: host ",
      "3: Insufficient amount of server resource: lic (R: 1 A: 0 T: 2)",
      "4 runs (b:ncpus=1)",
    ],
  },
  {
    name: "what was published and still holds is not decided again, and keeps its place",
    nodes: "a ncpus=1; b ncpus=1",
    jobs: "1 R (a:ncpus=1) walltime=60; 2 R (b:ncpus=1) walltime=60; 3 ncpus=1 walltime=9",
    more: { "3": { topjob: true, estimated: { start_time: NOW_S + 60, exec_vnode: "(b:ncpus=1)" } } },
    expected: ["3: Not enough free nodes available"],
  },
  {
    name: "a place on a vnode that is gone is given up",
    nodes: "a ncpus=1; b ncpus=1 :offline",
    jobs: "1 R (a:ncpus=1) walltime=60; 2 R (b:ncpus=1) walltime=60; 3 ncpus=1 walltime=9",
    more: { "3": { topjob: true, estimated: { start_time: NOW_S + 60, exec_vnode: "(b:ncpus=1)" } } },
    expected: ["3 +60 (a:ncpus=1)", "3: Not enough free nodes available"],
  },
  {
    name: "an earlier start is published",
    nodes: "a ncpus=1",
    jobs: "1 R (a:ncpus=1) walltime=50; 3 ncpus=1 walltime=9",
    more: { "3": { topjob: true, estimated: { start_time: NOW_S + 60, exec_vnode: "(a:ncpus=1)" } } },
    expected: ["3 +50 (a:ncpus=1)", "3: Not enough free nodes available"],
  },
  {
    name: "a job that is no top job any more keeps its estimate, but not the mark",
    nodes: "a ncpus=1",
    jobs: "1 R (a:ncpus=1) walltime=50; 3 ncpus=1 walltime=9",
    server: { backfill_depth: 1 },
    more: { "3": { topjob_ineligible: true, topjob: true, estimated: { start_time: NOW_S + 50, exec_vnode: "(a:ncpus=1)" } } },
    expected: ["3: Not enough free nodes available", "3 +50 (a:ncpus=1) no more"],
  },
  {
    name: "clear_topjob_estimates_enable takes it away",
    nodes: "a ncpus=1",
    jobs: "1 R (a:ncpus=1) walltime=50; 3 ncpus=1 walltime=9",
    server: { clear_topjob_estimates_enable: true },
    more: { "3": { topjob_ineligible: true, topjob: true, estimated: { start_time: NOW_S + 50, exec_vnode: "(a:ncpus=1)" } } },
    expected: ["3: Not enough free nodes available", "3 gone"],
  },
  {
    name: "soft_walltime: of what runs the expected end counts, of what would start beside a plan the walltime",
    nodes: "a ncpus=4",
    jobs: "1 R (a:ncpus=2) walltime=999 %soft_walltime=60; 2 ncpus=4 walltime=60; 3 ncpus=1 walltime=999 %soft_walltime=60; 4 ncpus=1 walltime=60",
    expected: ["2 +60 (a:ncpus=4)", "2: Insufficient amount of resource: ncpus (R: 4 A: 2 T: 4)", `3: ${CONFLICT}`, "4 runs (a:ncpus=1)"],
  },
  {
    name: "soft_walltime: past it a job takes as much again each time, up to its walltime, and that is published once",
    nodes: "a ncpus=6",
    jobs: "1 R (a:ncpus=1) walltime=999 %soft_walltime=60; 2 R (a:ncpus=1) walltime=999 %soft_walltime=60; 3 R (a:ncpus=1) walltime=100 %soft_walltime=60; 4 R (a:ncpus=1) walltime=999 %soft_walltime=60; 5 R (a:ncpus=1) walltime=50 %soft_walltime=60; 6 R (a:ncpus=1) walltime=999",
    more: {
      "1": { stime_s: NOW_S - 60 },
      "2": { stime_s: NOW_S - 179, estimated: { soft_walltime: 120 } },
      "3": { stime_s: NOW_S - 61 },
      "4": { stime_s: NOW_S - 60, estimated: { soft_walltime: 120 } },
      "5": { stime_s: NOW_S - 70 },
      "6": { stime_s: NOW_S - 70 },
    },
    expected: ["1 takes 120", "2 takes 180", "3 takes 100"],
  },
  {
    name: "shrink-to-fit: the whole time where nothing is in the way, else up to the plan",
    nodes: "a ncpus=4",
    jobs: "1 R (a:ncpus=2) walltime=60; 2 ncpus=4 walltime=60; 3 ncpus=1 %min_walltime=10 %max_walltime=60; 4 ncpus=1 %min_walltime=10 %max_walltime=300; 5 ncpus=1 %min_walltime=61",
    expected: [
      "2 +60 (a:ncpus=4)",
      "2: Insufficient amount of resource: ncpus (R: 4 A: 2 T: 4)",
      "3 runs 60 (a:ncpus=1)",
      "4 runs 60 (a:ncpus=1)",
      "5: Not enough free nodes available",
    ],
  },
  {
    name: "shrink-to-fit: planned for the shortest time",
    nodes: "a ncpus=4",
    jobs: "1 R (a:ncpus=4) walltime=60; 2 ncpus=4 %min_walltime=10 %max_walltime=1000; 3 ncpus=4 walltime=5",
    server: { backfill_depth: 2 },
    expected: ["2 +60 (a:ncpus=4)", "2: Not enough free nodes available", "3 +70 (a:ncpus=4)", "3: Not enough free nodes available"],
  },
  {
    name: "dedicated time: jobs end before it, its own jobs are planned inside",
    nodes: "a ncpus=4",
    jobs: "1 ncpus=1 walltime=101; 2 ncpus=1 walltime=100; 3 ncpus=1 walltime=60 @ded; 4 ncpus=1 %min_walltime=50 %max_walltime=400",
    queues: [queue("workq", { Priority: 1 }), queue("ded", {})],
    server: { backfill_depth: 2 },
    book: { dedicated: [{ from_s: NOW_S + 100, to_s: NOW_S + 200 }] },
    expected: [
      "1 +200 (a:ncpus=1)",
      "1: Job would cross dedicated time boundary",
      "2 runs (a:ncpus=1)",
      "4 runs 100 (a:ncpus=1)",
      "3 +100 (a:ncpus=1)",
      "3: Dedicated time conflict",
    ],
  },
];

for (const { name, expected, ...world } of TABLE)
  test(`backfill: ${name}`, () => assert.deepEqual(told(cycleOf(world)).sort(), expected.toSorted()));

test("backfill: the log of a top job", () => {
  const result = cycleOf({ nodes: "a ncpus=1", jobs: "1 R (a:ncpus=1) walltime=50; 3 ncpus=1 walltime=9" });
  assert.deepEqual(
    logTexts(result).filter((line) => line.includes(";3;")),
    [
      "0080;Job;3;Considering job to run",
      "0100;Job;3;Estimating the start time for a top job.",
      "0080;Job;3;Job is a top job and will run at Mon Jan 12 13:47:30 1970",
      "0040;Job;3;Not enough free nodes available",
    ],
  );
});

test("backfill: the log of shrinking", () => {
  const result = cycleOf({
    nodes: "a ncpus=4",
    jobs: "1 R (a:ncpus=2) walltime=60; 2 ncpus=4 walltime=60; 4 ncpus=1 %min_walltime=10 %max_walltime=300",
  });
  assert.deepEqual(
    logTexts(result, 0x40).filter((line) => line.includes(";4;") || line === "run 4"),
    [
      "0040;Job;4;Considering shrinking job to it's minimum walltime",
      "0040;Job;4;Considering shrinking job to duration=00:01:00, due to a reservation/top job conflict",
      "run 4",
      "0040;Job;4;Job will run for duration=00:01:00",
    ],
  );
});

/** Prime time from 06:00 to 18:00 UTC; NOW_S is 13:46:40. */
const OFFICE: Holidays = {
  year: 1970,
  hours: Array.from({ length: 7 }, () => ({ prime_s: 6 * 3600, non_prime_s: 18 * 3600 })),
  days: new Set(),
};
const LEFT_S = 18 * 3600 - (NOW_S % 86_400);

const PRIME: readonly (Case & { name: string; expected: readonly string[] })[] = [
  {
    name: "jobs do not cross into non-prime time",
    jobs: `1 ncpus=1 walltime=${LEFT_S}; 2 ncpus=1 walltime=${LEFT_S + 1}; 3 ncpus=1`,
    nodes: "a ncpus=9",
    expected: [
      "1 runs (a:ncpus=1)",
      `2 +${LEFT_S} (a:ncpus=1)`,
      "2: Job will cross into non-primetime",
      "3: Job will cross into non-primetime",
    ],
  },
  {
    name: "prime_spill lets them a little",
    jobs: `1 ncpus=1 walltime=${LEFT_S + 60}; 2 ncpus=1 walltime=${LEFT_S + 61}`,
    nodes: "a ncpus=9",
    policy: { prime_spill_s: 60 },
    expected: ["1 runs (a:ncpus=1)", `2 +${LEFT_S} (a:ncpus=1)`, "2: Job will cross into non-primetime"],
  },
  {
    name: "prime_exempt_anytime_queues",
    jobs: "1 ncpus=1; 2 ncpus=1 @p_day",
    queues: [queue("workq"), queue("p_day")],
    nodes: "a ncpus=9",
    policy: { prime_exempt_anytime_queues: true },
    expected: ["1 runs (a:ncpus=1)", "2: Job will cross into non-primetime"],
  },
  {
    name: "a shrink-to-fit job takes what is left of the day",
    jobs: "1 ncpus=1 %min_walltime=60",
    nodes: "a ncpus=9",
    expected: [`1 runs ${LEFT_S} (a:ncpus=1)`],
  },
  {
    name: "a job of a non-prime-time queue is planned for the evening",
    jobs: "1 ncpus=1 walltime=60 @np_night",
    queues: [queue("np_night")],
    nodes: "a ncpus=9",
    policy: { backfill_prime: false },
    expected: [`1 +${LEFT_S} (a:ncpus=1)`, "1: Job will run in nonprimetime only"],
  },
];

for (const { name, expected, policy, ...world } of PRIME) {
  test(`backfill_prime: ${name}`, () => {
    const result = cycleOf({ ...world, policy: { backfill_prime: true, ...policy }, book: { holidays: OFFICE } });
    assert.deepEqual(told(result).sort(), expected.toSorted());
  });
}

test("a cycle says when dedicated or prime time changes next, while something waits", () => {
  const nodes = "a ncpus=1";
  const bounds = (jobs: string, policies: Partial<PolicyBook>) => cycleOf({ nodes, jobs, book: policies }).bound_s;
  const dedicated = [{ from_s: NOW_S + 100, to_s: NOW_S + 200 }];
  assert.equal(bounds("1 ncpus=1", { dedicated }), NOW_S + 100);
  assert.equal(bounds("1 ncpus=1", { holidays: OFFICE }), NOW_S + LEFT_S);
  assert.equal(bounds("1 ncpus=1", {}), null);
  assert.equal(bounds("", { dedicated }), null);
});

test("sched_cycle_length ends a cycle between jobs, and a forecast; what was published stays", () => {
  const world: Case = {
    nodes: "a ncpus=1",
    jobs: "1 R (a:ncpus=1) walltime=50; 2 ncpus=1 walltime=9; 3 ncpus=1 walltime=8",
    sched: { sched_cycle_length: 10 },
    more: { "3": { topjob: true, estimated: { start_time: NOW_S + 99, exec_vnode: "(a:ncpus=1)" } } },
  };
  const ticking = (seconds: readonly number[]): (() => number) => {
    let at = 0;
    return () => seconds[Math.min(at++, seconds.length - 1)] as number;
  };
  const late = cycleOf({ ...world, input: { elapsed_s: ticking([11]) } });
  assert.deepEqual(told(late), []);
  assert.ok(
    logTexts(late).includes(
      "0040;Svr;toolong;Leaving the scheduling cycle: Cycle duration of 11 seconds has exceeded sched_cycle_length of 10 seconds",
    ),
  );
  const inForecast = cycleOf({ ...world, input: { elapsed_s: ticking([1, 1, 11]) } });
  assert.deepEqual(told(inForecast), ["2: Not enough free nodes available"]);
  assert.ok(logTexts(inForecast).some((line) => line.includes("Can't find start time estimate the cycle has taken too long")));
});

test("a vnode lowered below what is used there takes nothing from what is free elsewhere, in time to come either", () => {
  const many = Array.from({ length: 100 }, (_, at) => `${10 + at} R (c:ncpus=1) walltime=${100 + at}`).join("; ");
  const jobs = `1 R (a:ncpus=1:mem=3gb) walltime=9000; 2 R (b:ncpus=1:mem=2gb) walltime=1000; ${many}; 3 ncpus=1:mem=2gb walltime=100`;
  const planned = told(cycleOf({ nodes: "a ncpus=4 mem=1gb; b ncpus=2 mem=2gb; c ncpus=200 mem=0kb", jobs }));
  assert.match(planned.join(), /3 \+1000 \(b:ncpus=1:mem=2097152kb\)/);
});

test("a top job that no time is found for is told in the log", () => {
  const told = run({ nodes: "a ncpus=4 :offline; b ncpus=1", jobs: "1 ncpus=4" }, { strict_ordering: true });
  const lines = logTexts(told).filter((line) => /start time/.test(line));
  assert.deepEqual(lines, [
    "0100;Job;1;Estimating the start time for a top job.",
    "0080;Job;1;Can't find start time estimate it never fits",
    "0040;Job;1;Error in calculation of start time of top job",
  ]);
});
