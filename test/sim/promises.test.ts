// The simulator's check of promises: it reports a start that has moved back without a cause, and no other.

import assert from "node:assert/strict";
import { test } from "node:test";
import { POLICY_DEFAULT } from "#sched/shapes/policy.ts";
import type { Core } from "#server/core/core.ts";
import { createPromiseCheck } from "#sim/checks/promises.ts";
import type { Scenario } from "#sim/drawn/scenario.ts";
import { runSeed } from "#sim/run.ts";
import type { TraceLine } from "#sim/world.ts";
import { OPTIONS } from "./seed-groups.ts";

type Attrs = Record<string, unknown>;
const scenario = {
  policy: { ...POLICY_DEFAULT, strict_ordering: true, preemptive_sched: false },
  ops: [],
  faults: [],
  setup: [],
} as unknown as Scenario;

const waits = (rank: number, start_s: number): Attrs => ({
  job_state: "Q",
  queue: "workq",
  queue_rank: rank,
  Resource_List: { walltime: 10 },
  topjob: true,
  estimated: { start_time: start_s, exec_vnode: "(a:ncpus=1)" },
});
const runs = (rank: number, stime: number): Attrs => ({
  ...{ job_state: "R", queue: "workq", queue_rank: rank, stime, run_count: 1, exec_vnode: "(a:ncpus=1)" },
  Resource_List: { walltime: 60 },
});

/** The beginning of a cycle. mom: link of the mom of vnode a; other: the cycle is one of another scheduler, which has no jobs and vnodes */
type Step = {
  readonly at_s: number;
  readonly jobs: Record<string, Attrs>;
  readonly state?: string;
  readonly qrun?: string;
  readonly mom?: number;
  readonly other?: boolean;
};

/**
 * The result of the check after three cycles; jobs and a vnode's state are given for the beginning of each cycle and for the
 * end.
 */
function says(...steps: readonly Step[]): string | null {
  let now_ms = 0;
  const check = createPromiseCheck(scenario, () => now_ms);
  const runtime = { name: "default", link: 1, cycle: 0, running: null as string | null };
  const second = { ...runtime, name: "s2", link: 2 };
  let said: string | null = null;
  for (const { at_s, jobs, state = "", qrun = null, mom = 1, other = false } of steps) {
    now_ms = at_s * 1000;
    runtime.running = qrun;
    (other ? second : runtime).cycle++;
    const named = <T extends object>(name: string, value: T): [string, T & { name: string }] => [name, { name, ...value }];
    const core = {
      kernel: {
        scheds: { by_name: new Map([runtime, second].map((each) => [each.name, each])) },
        moms: { by_host: new Map([["a", { host: "a", link: mom }]]) },
      },
      state: {
        server: {},
        scheds: new Map([
          ["default", { name: "default", attrs: { partition: ["pbs-default"] } }],
          ["s2", { name: "s2", attrs: { partition: ["p2"] } }],
        ]),
        resvs: new Map([["R1", { id: "R1", attrs: { reserve_end: 30, reserve_state: 5, reserve_substate: 5 } }]]),
        resv_queues: new Map([["R1", "R1"]]),
        queues: new Map([named("workq", { order: 0, attrs: { kill_delay: 5 } })]),
        vnodes: new Map([named("a", { attrs: { state: state === "" ? [] : [state] } })]),
        jobs: new Map(Object.entries(jobs).map(([id, { own = {}, ...attrs }]) => [id, { id, attrs, own }])),
      },
    };
    said ??= check.look(core as unknown as Core);
  }
  return said;
}

const RUNNING = { "1": runs(1, 0) };

test("a start that has moved back for nothing is told", () => {
  const jobs = { ...RUNNING, "2": waits(2, 65) };
  assert.match(
    says({ at_s: 0, jobs }, { at_s: 1, jobs }, { at_s: 2, jobs: { ...RUNNING, "2": waits(2, 70) } }) ?? "",
    /^K10 2 of default was to start at 65/,
  );
  assert.match(
    says({ at_s: 0, jobs }, { at_s: 1, jobs }, { at_s: 2, jobs: { ...jobs, "2": waits(2, 70), "3": runs(3, 2) } }) ?? "",
    /^K10 2 /,
  );
  assert.equal(says({ at_s: 0, jobs }, { at_s: 1, jobs }, { at_s: 2, jobs: { ...RUNNING, "2": waits(2, 60) } }), null);
});

test("higher work, a vnode that went, a job past its walltime and kill_delay, a job placed by hand may move it", () => {
  const jobs = { ...RUNNING, "2": waits(2, 65) };
  const moved = { ...RUNNING, "2": waits(2, 70) };
  const after = (at_s: number, more: Record<string, Attrs>, state = ""): string | null =>
    says({ at_s: 0, jobs }, { at_s: at_s - 1, jobs }, { at_s, jobs: { ...moved, ...more }, state });
  assert.equal(after(2, { "1.5": waits(1.5, 65) }), null);
  assert.equal(after(2, { "1.5": runs(1.5, 2) }), null);
  assert.match(after(2, { "3": runs(3, 2) }) ?? "", /^K10/);
  assert.equal(after(2, { "3": { ...runs(3, 2), own: { placed_by_hand: true } } }), null);
  assert.equal(after(2, {}, "down"), null);
  assert.match(after(60, {}) ?? "", /^K10/);
  assert.equal(after(66, {}), null);
});

test("what is gone when the next cycle begins, refused starts and jobs past the end of their reservation are causes, too", () => {
  const jobs = { ...RUNNING, "2": waits(2, 65) };
  const moved = { ...RUNNING, "2": waits(2, 70) };
  // A preceding job that waited has run and ended.
  const brief = { ...jobs, "1.5": { ...waits(1.5, 0), topjob: false } };
  assert.equal(says({ at_s: 0, jobs: brief }, { at_s: 1, jobs: brief }, { at_s: 2, jobs: moved }), null);
  // A following job has taken nothing from it.
  const behind = { ...jobs, "3": { ...waits(3, 0), topjob: false } };
  assert.match(says({ at_s: 0, jobs: behind }, { at_s: 1, jobs: behind }, { at_s: 2, jobs: moved }) ?? "", /^K10 2 /);
  const refused = { ...waits(1.5, 0), topjob: false, comment: "Not Running: PBS Error: Resource temporarily unavailable" };
  const before = { ...jobs, "1.5": refused };
  assert.equal(says({ at_s: 0, jobs: before }, { at_s: 1, jobs: before }, { at_s: 2, jobs: { ...moved, "1.5": refused } }), null);
  const inside = { ...runs(3, 0), queue: "R1" };
  const reserved = (at_s: number): string | null =>
    says(
      { at_s: 0, jobs: { ...jobs, "3": inside } },
      { at_s, jobs: { ...jobs, "3": inside } },
      { at_s: at_s + 1, jobs: { ...moved, "3": inside } },
    );
  assert.match(reserved(20) ?? "", /^K10 2 /);
  assert.equal(reserved(30), null);
});

test("what has happened entirely between the beginnings of two cycles is a cause, too", () => {
  const jobs = { ...RUNNING, "2": waits(2, 65) };
  const moved = { ...RUNNING, "2": waits(2, 70) };
  // A preceding job was started and has come back.
  const ran = (run_count: number): Attrs => ({ ...waits(1.5, 0), topjob: false, run_count });
  const steps = (...counts: number[]): string | null =>
    says(
      { at_s: 0, jobs: { ...jobs, "1.5": ran(counts[0] ?? 0) } },
      { at_s: 1, jobs: { ...jobs, "1.5": ran(counts[1] ?? 0) } },
      { at_s: 2, jobs: { ...moved, "1.5": ran(counts[2] ?? 0) } },
    );
  assert.match(steps(1, 1, 1) ?? "", /^K10 2 /);
  assert.equal(steps(1, 2, 2), null);
  assert.equal(steps(1, 1, 2), null);
  // The mom was lost and is back.
  assert.equal(says({ at_s: 0, jobs }, { at_s: 1, jobs }, { at_s: 2, jobs: moved, mom: 7 }), null);
  // The start of a subjob was refused.
  const comment = "Not Running: PBS Error: Server could not connect to MOM";
  assert.equal(says({ at_s: 0, jobs }, { at_s: 1, jobs }, { at_s: 2, jobs: { ...RUNNING, "2": { ...waits(2, 70), comment } } }), null);
});

test("a job that started a second after its cycle may move starts by a second, whatever other schedulers do", () => {
  const first = { ...RUNNING, "1.5": { ...waits(1.5, 0), topjob: false }, "2": waits(2, 65) };
  const begun = { ...RUNNING, "1.5": runs(1.5, 1), "2": waits(2, 65) };
  const over = { ...RUNNING, "2": waits(2, 65) };
  const steps = (start_s: number): string | null =>
    says(
      { at_s: 0, jobs: first },
      { at_s: 0, jobs: first, other: true },
      { at_s: 0, jobs: first },
      { at_s: 1, jobs: begun },
      { at_s: 1, jobs: over, other: true },
      { at_s: 2, jobs: { ...RUNNING, "2": waits(2, start_s) } },
    );
  assert.equal(steps(66), null);
  assert.match(steps(67) ?? "", /^K10 2 /);
});

test("what an administrator has run may move a start, and the cycle that runs it is none that publishes", () => {
  const jobs = { ...RUNNING, "2": waits(2, 65) };
  const moved = { ...jobs, "2": waits(2, 70), "3": runs(3, 2) };
  const steps = (qrun: string): string | null =>
    says({ at_s: 0, jobs }, { at_s: 1, jobs }, { at_s: 2, jobs: { ...jobs, "3": runs(3, 2) }, qrun }, { at_s: 3, jobs: moved });
  assert.equal(steps("3"), null);
  assert.match(steps("2") ?? "", /^K10 2 /, "it has run nothing else");
});

test("a job before it that is started as planned, or an end that is due later, is no cause", () => {
  const planned = { ...waits(1.5, 1) };
  const jobs = { ...RUNNING, "1.5": planned, "2": waits(2, 65) };
  const after = { ...RUNNING, "1.5": { ...runs(1.5, 1), Resource_List: { walltime: 10 } }, "2": waits(2, 70) };
  assert.match(says({ at_s: 0, jobs }, { at_s: 1, jobs }, { at_s: 2, jobs: after }) ?? "", /^K10 2 /);
  // 1 is overdue when the next cycle begins, but was not when the start was moved.
  const late = { ...RUNNING, "2": waits(2, 65) };
  assert.match(
    says({ at_s: 0, jobs: late }, { at_s: 50, jobs: late }, { at_s: 70, jobs: { ...RUNNING, "2": waits(2, 70) } }) ?? "",
    /^K10 2 /,
  );
});

test("schedulers of judged worlds promise starts, and ask to be woken for them", async () => {
  let [promises, wakes] = [0, 0];
  for (let seed = 1; seed <= 64; seed++) {
    const onLine = ({ what }: TraceLine): void => void (wakes += what === "sched-wake" ? 1 : 0);
    const result = await runSeed(seed, { ...OPTIONS, promises: true, onLine });
    assert.ok(result.ok, result.text);
    promises += result.counts.promises;
  }
  assert.ok(promises > 50 && wakes > 5, `${promises} promises, ${wakes} wakes`);
});
