// The simulator's look at promises: a start that has moved back without a cause is told, one with a cause is not.

import assert from "node:assert/strict";
import { test } from "node:test";
import { POLICY_DEFAULT } from "#sched/policy.ts";
import type { Core } from "#server/core/core.ts";
import { createPromiseCheck } from "#sim/promise-check.ts";
import type { Scenario } from "#sim/scenario.ts";

type Attrs = Record<string, unknown>;
const scenario = { policy: { ...POLICY_DEFAULT, strict_ordering: true }, ops: [], faults: [], setup: [] } as unknown as Scenario;

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

/** What the check says after three cycles; jobs, a vnode's state and the jobs placed by hand as they are when each begins, and after the last. */
function says(
  ...steps: readonly {
    readonly at_s: number;
    readonly jobs: Record<string, Attrs>;
    readonly state?: string;
    readonly by_hand?: ReadonlySet<string>;
  }[]
): string | null {
  let now_ms = 0;
  const check = createPromiseCheck(scenario, () => now_ms);
  const runtime = { name: "default", link: 1, cycle: 0 };
  let said: string | null = null;
  for (const { at_s, jobs, state = "", by_hand = new Set<string>() } of steps) {
    now_ms = at_s * 1000;
    runtime.cycle++;
    const named = <T extends object>(name: string, value: T): [string, T & { name: string }] => [name, { name, ...value }];
    const core = {
      kernel: { scheds: new Map([["default", runtime]]) },
      state: {
        server: {},
        scheds: new Map(),
        resvs: new Map(),
        queues: new Map([named("workq", { order: 0, attrs: { kill_delay: 5 } })]),
        vnodes: new Map([named("a", { attrs: { state: state === "" ? [] : [state] } })]),
        jobs: new Map(Object.entries(jobs).map(([id, attrs]) => [id, { id, attrs, own: by_hand.has(id) ? { placed_by_hand: true } : {} }])),
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
  const after = (at_s: number, more: Record<string, Attrs>, state = "", by_hand = new Set<string>()): string | null =>
    says({ at_s: 0, jobs }, { at_s: at_s - 1, jobs }, { at_s, jobs: { ...moved, ...more }, state, by_hand });
  assert.equal(after(2, { "1.5": waits(1.5, 65) }), null);
  assert.equal(after(2, { "1.5": runs(1.5, 2) }), null);
  assert.match(after(2, { "3": runs(3, 2) }) ?? "", /^K10/);
  assert.equal(after(2, { "3": runs(3, 2) }, "", new Set(["3"])), null);
  assert.equal(after(2, {}, "down"), null);
  assert.match(after(64, {}) ?? "", /^K10/);
  assert.equal(after(65, {}), null);
});
