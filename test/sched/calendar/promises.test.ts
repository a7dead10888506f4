// A published start holds: the promised place of a top job is tried first when the start is due, and no job of lower priority
// starts in its way.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { SchedJob } from "#protocol/sched-link.ts";
import { SCHED_COMMAND } from "#protocol/sched-link.ts";
import { cycle } from "#sched/cycle/cycle.ts";
import type { CycleResult } from "#sched/cycle/result.ts";
import { applyDelta, createUniverse } from "#sched/mirror/mirror.ts";
import { mirrorOptions } from "#sched/modules/index.ts";
import { JOB_INFINITY_S } from "#sched/shapes/durations.ts";
import type { Policy } from "#sched/shapes/policy.ts";
import { book, queue, snapshotOf, type World } from "../world.ts";

const NOW_S = 1_000_000;
/** The largest number of plans that one cycle books again (kept-plans.ts). */
const REBOOKED_PLANS = 500;
const STRICT = { strict_ordering: true };

type Case = World & {
  readonly more?: Readonly<Record<string, Partial<SchedJob>>>;
  readonly kill_delay?: number;
  readonly cons?: boolean;
  readonly policy?: Partial<Policy>;
};

function cycleOf({ more = {}, kill_delay = 0, cons = false, policy = {}, ...world }: Case): CycleResult {
  const sched = { opt_backfill_fuzzy: "off", ...world.sched };
  const snapshot = snapshotOf({ queues: [queue("workq", { kill_delay })], ...world, sched });
  const jobs = snapshot.jobs.map((job) => ({ ...job, stime_s: NOW_S, ...more[job.id] }));
  const module_options = new Map([["backfill", new Map([["policy", "cons"]])]]);
  const policies = book({ ...STRICT, ...policy }, cons ? { module_options } : {});
  return cycle(createUniverse({ ...snapshot, jobs }, mirrorOptions(policies)), policies, { now_s: NOW_S, command: SCHED_COMMAND.TIME });
}

/** `1 runs (a:ncpus=1)`, `2 +60 (a:ncpus=1)` */
const told = ({ decisions }: CycleResult): string[] =>
  decisions.flatMap((decision) => {
    if (decision.kind === "run") return [`${decision.job} runs ${decision.exec_vnode}`];
    if (decision.kind !== "estimate" || decision.start_s === null) return [];
    return [`${decision.job} +${decision.start_s - NOW_S} ${decision.exec_vnode}`];
  });

const promise = (delay_s: number, exec_vnode: string): Partial<SchedJob> => ({
  topjob: true,
  estimated: { start_time: NOW_S + delay_s, exec_vnode },
});

test("a top job starts on its published place when that is due, though the search would not find it", () => {
  const place = "(n2:ncpus=3)+(n2:ncpus=3)+(n1:ncpus=4)";
  const world = {
    nodes: "n1 ncpus=7; n2 ncpus=6; n3 ncpus=3",
    jobs: "7 R (n1:ncpus=3) walltime=40; 12 R (n3:ncpus=2) walltime=100; 9 2:ncpus=3+1:ncpus=4 walltime=50",
  };
  assert.deepEqual(told(cycleOf({ ...world, more: { "9": promise(0, place) } })), [`9 runs ${place}`]);
});

test("equal jobs: the second starts where it was promised to, though the first cannot", () => {
  const world = { nodes: "a ncpus=2; b ncpus=2", jobs: "1 R (a:ncpus=2) walltime=50; 2 ncpus=2 walltime=10; 3 ncpus=2 walltime=10" };
  const more = { "2": promise(50, "(a:ncpus=2)"), "3": promise(0, "(b:ncpus=2)") };
  assert.deepEqual(told(cycleOf({ ...world, server: { backfill_depth: 2 }, more }))[0], "2 runs (b:ncpus=2)");
});

test("a vnode that a plan makes job-busy is no place for a later plan, one that a plan needs idle is not made job-busy", () => {
  const nodes = "v1 host=h ncpus=6 mem=2mb; v2 host=h ncpus=7 mem=0mb";
  const depth = { server: { backfill_depth: 3 } };
  const first = cycleOf({
    nodes,
    ...depth,
    jobs: "1 R (v1:ncpus=1)+(v2:ncpus=7) walltime=10; 2 1:ncpus=6:vnode=v1 walltime=50; 3 ncpus=0:mem=1mb walltime=50",
  });
  assert.deepEqual(told(first), ["2 +10 (v1:ncpus=6)", "3 runs (v1:ncpus=0:mem=1024kb)"]);
  for (const cons of [false, true]) {
    const jobs = "1 R (v1:mem=2mb)+(v2:ncpus=7) walltime=10; 3 ncpus=0:mem=1mb walltime=50; 4 ncpus=6 walltime=20; 5 ncpus=5 walltime=20";
    const second = told(cycleOf({ nodes, ...depth, server: { backfill_depth: 1 }, cons, jobs }));
    assert.equal(second[0], "3 +10 (v1:ncpus=0:mem=1024kb)");
    assert.deepEqual(
      second.filter((text) => text.includes("runs")),
      ["5 runs (v1:ncpus=5)"],
    );
  }
});

test("what starts beside a plan ends before it with its whole walltime and its kill_delay", () => {
  const world = {
    nodes: "a ncpus=4",
    jobs: "1 R (a:ncpus=2) walltime=100; 2 ncpus=4 walltime=60; 3 ncpus=1 walltime=1000 %soft_walltime=50; 4 ncpus=1 walltime=101; 5 ncpus=1 walltime=100",
  };
  assert.deepEqual(told(cycleOf(world)), ["2 +100 (a:ncpus=4)", "5 runs (a:ncpus=1)"]);
  // The job for which the plan waits may take as long to end.
  assert.deepEqual(told(cycleOf({ ...world, kill_delay: 30 })), ["2 +130 (a:ncpus=4)", "5 runs (a:ncpus=1)"]);
});

test("what starts beside a plan leaves room for the reservation that begins in the plan's walltime", () => {
  const world = {
    nodes: "a ncpus=4",
    resvs: "R1 ncpus=1 1000180-1000300=(a:ncpus=1)",
    jobs: "1 R (a:ncpus=2) walltime=100; 2 ncpus=3 walltime=60; 3 ncpus=1 walltime=151; 4 ncpus=1 walltime=150",
    kill_delay: 30,
  };
  // The walltime of 3 ends before the reservation, but its kill_delay does not, and 2 needs its cpus until +190.
  assert.deepEqual(told(cycleOf(world)), ["2 +130 (a:ncpus=3)", "4 runs (a:ncpus=1)"]);
  // A reservation that begins within the plan's kill_delay does not affect the plan.
  const later = { ...world, resvs: "R1 ncpus=1 1000190-1000300=(a:ncpus=1)" };
  assert.deepEqual(told(cycleOf(later)), ["2 +130 (a:ncpus=3)", "3 runs (a:ncpus=1)"]);
});

test("a job that has overtaken another is not expected to end at its soft_walltime", () => {
  const jobs = "1 R (a:ncpus=1) walltime=100 %soft_walltime=20; 2 ncpus=4 walltime=60";
  assert.deepEqual(told(cycleOf({ nodes: "a ncpus=4", jobs })), ["2 +20 (a:ncpus=4)"]);
  const more = { "2": { rank: 0.5 } };
  assert.deepEqual(told(cycleOf({ nodes: "a ncpus=4", jobs, more })), ["2 +100 (a:ncpus=4)"]);
});

test("the scheduler is woken when a promise is due, and more and more seldom while something is overdue", () => {
  const wake = (stime_s: number): number =>
    (cycleOf({ nodes: "a ncpus=4", jobs: "1 R (a:ncpus=4) walltime=60; 2 ncpus=4 walltime=60", more: { "1": { stime_s } } }).bound_s ?? 0) -
    NOW_S;
  assert.deepEqual(
    [0, 50, 60, 80, 100, 1000].map((ago_s) => wake(NOW_S - ago_s)),
    [60, 10, 1, 5, 10, 60],
  );
});

test("another kill_delay of the queue changes when running jobs are gone", () => {
  const options = mirrorOptions(book(STRICT));
  const universe = createUniverse(
    snapshotOf({ nodes: "a ncpus=4", jobs: "1 R (a:ncpus=4) walltime=60 stime=0; 2 ncpus=4 walltime=60" }),
    options,
  );
  const ends = (): unknown => universe.calendar.running.get("1")?.to_s;
  assert.equal(ends(), 60);
  applyDelta(universe, { revision: 2, changes: [{ put: "queue", value: queue("workq", { kill_delay: 30 }) }] });
  assert.equal(ends(), 90);
});

test("a running job whose queue another scheduler has may take that queue's kill_delay to go", () => {
  const world = { nodes: "a ncpus=4", jobs: "1 R (a:ncpus=4) walltime=60; 2 ncpus=4 walltime=60", kill_delay: 5 };
  assert.deepEqual(told(cycleOf({ ...world, more: { "1": { queue: "elsewhere", kill_delay_s: 30 } } })), ["2 +90 (a:ncpus=4)"]);
});

test("jobs in a reservation may take kill_delay to go, after their walltime and after its end", () => {
  const queues = [queue("workq"), queue("R1", { kill_delay: 30 })];
  const within = (end_s: number): Case => ({
    nodes: "a ncpus=4 mem=8gb",
    queues,
    resvs: `R1 RN ncpus=2 0-${end_s}=(a:ncpus=2)`,
    jobs: "1 R in=R1 (a:ncpus=2:mem=6gb) walltime=60; 2 ncpus=2:mem=4gb walltime=10",
  });
  assert.deepEqual(told(cycleOf(within(NOW_S + 100))), ["2 +90 (a:ncpus=2:mem=4194304kb)"]);
  // A job that follows a reservation is planned for the end of the reservation, whose jobs may have gone by then.
  assert.deepEqual(told(cycleOf(within(NOW_S + 80))), ["2 +80 (a:ncpus=2:mem=4194304kb)"]);
  assert.deepEqual(told(cycleOf(within(NOW_S - 5))), ["2 +25 (a:ncpus=2:mem=4194304kb)"]);
  const whole = { ...within(NOW_S - 5), jobs: "1 R in=R1 (a:ncpus=2) walltime=600; 2 ncpus=4 walltime=10" };
  assert.deepEqual(told(cycleOf(whole)), ["2 +25 (a:ncpus=4)"]);
});

test("kept plans: a job for which a place is free a little later than promised is not put behind the plans of later jobs", () => {
  const world = {
    nodes: "a ncpus=2",
    jobs: "1 R (a:ncpus=2) walltime=11; 2 ncpus=2 walltime=10; 3 ncpus=1 walltime=100; 4 ncpus=1 walltime=50",
    more: { "2": promise(10, "(a:ncpus=2)"), "3": promise(20, "(a:ncpus=1)"), "4": promise(20, "(a:ncpus=1)") },
    cons: true,
  };
  const moved = ["2 +11 (a:ncpus=2)", "3 +21 (a:ncpus=1)", "4 +21 (a:ncpus=1)"];
  assert.deepEqual(told(cycleOf(world)), moved);
  const soft = { server: { max_run_soft: { "u:PBS_GENERIC": 1 } }, policy: { preemptive_sched: false } };
  assert.deepEqual(told(cycleOf({ ...world, ...soft })), moved, "without preemption, soft limits do not change the order");
});

test("kept plans: nor behind plans on other vnodes that run limits would let start first", () => {
  const world = {
    nodes: "a ncpus=2; b ncpus=2",
    server: { max_run: { "u:PBS_GENERIC": 1 } },
    jobs: "1 R (a:ncpus=2) walltime=11; 2 ncpus=2 walltime=10; 3 ncpus=2 walltime=100",
    more: { "2": promise(10, "(a:ncpus=2)"), "3": promise(20, "(b:ncpus=2)") },
    cons: true,
  };
  assert.deepEqual(told(cycleOf(world)), ["2 +11 (a:ncpus=2)", "3 +21 (a:ncpus=2)"]);
});

test("kept plans: behind more plans than one cycle books again, a late plan is made anew after them", () => {
  // With a run limit, plans on other vnodes count as well. Jobs 3 and 4 count, too.
  const starts = (fillers: number): string[] => {
    const ids = Array.from({ length: fillers }, (_, at) => String(100 + at));
    const world = {
      nodes: "a ncpus=2; b ncpus=1000",
      server: { max_run: { "o:PBS_ALL": 1000 } },
      jobs: [
        "1 R (a:ncpus=2) walltime=11; 5 R (b:ncpus=1000) walltime=20; 2 ncpus=2:vnode=a walltime=10",
        "3 ncpus=1:vnode=a walltime=100; 4 ncpus=1:vnode=a walltime=50",
        ...ids.map((id) => `${id} ncpus=1:vnode=b walltime=100`),
      ].join("; "),
      more: {
        "2": promise(10, "(a:ncpus=2)"),
        "3": promise(20, "(a:ncpus=1)"),
        "4": promise(20, "(a:ncpus=1)"),
        ...Object.fromEntries(ids.map((id) => [id, promise(20, "(b:ncpus=1)")])),
      },
      cons: true,
    };
    return told(cycleOf(world));
  };
  assert.deepEqual(starts(REBOOKED_PLANS - 2), ["2 +11 (a:ncpus=2)", "3 +21 (a:ncpus=1)", "4 +21 (a:ncpus=1)"]);
  assert.deepEqual(starts(REBOOKED_PLANS - 1), ["2 +120 (a:ncpus=2)", "3 +11 (a:ncpus=1)", "4 +11 (a:ncpus=1)"]);
});
test("a start whose place becomes free late follows that, and does not wait for other ends within opt_backfill_fuzzy", () => {
  const world = {
    nodes: "a ncpus=1; b ncpus=1",
    sched: { opt_backfill_fuzzy: "high" },
    jobs: "1 R (a:ncpus=1) walltime=11; 3 R (b:ncpus=1) walltime=80; 2 ncpus=1 walltime=10",
    more: { "2": promise(10, "(a:ncpus=1)") },
  };
  assert.deepEqual(told(cycleOf(world)), ["2 +11 (a:ncpus=1)"]);
});

test("a shrink-to-fit job without walltime has one once it runs, and its kill_delay", () => {
  const world = { nodes: "a ncpus=1", jobs: "1 ncpus=1 %min_walltime=60; 2 ncpus=1 walltime=10", kill_delay: 30 };
  // The start of 2 would be beyond the horizon of estimates.
  assert.deepEqual(told(cycleOf(world)), ["1 runs (a:ncpus=1)"]);
  assert.deepEqual(told(cycleOf({ ...world, kill_delay: 0 })), ["1 runs (a:ncpus=1)", `2 +${JOB_INFINITY_S} (a:ncpus=1)`]);
});

test("a vnode that is down stays down when an exclusive job of its host has ended", () => {
  const world = {
    nodes: "v1 host=h ncpus=2; v2 host=h ncpus=2 :down",
    jobs: "1 ncpus=1 exclhost walltime=30; 2 2:ncpus=2 vscatter walltime=10",
  };
  assert.deepEqual(told(cycleOf(world)), ["1 runs (v1:ncpus=1)"]);
});

test("subjobs that a cycle starts do not hold a limit for ever", () => {
  const world = {
    nodes: "a ncpus=4",
    jobs: "1[].svr ncpus=1 walltime=30 sub=1; 2 ncpus=1 walltime=10",
    server: { max_run: { "u:PBS_GENERIC": 1 } },
  };
  assert.deepEqual(told(cycleOf(world)), ["1[1].svr runs (a:ncpus=1)", "2 +30 (a:ncpus=1)"]);
});
