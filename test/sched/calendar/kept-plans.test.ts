// Kept plans (backfill.policy: cons) over several cycles: when a plan moves up although nothing has ended early.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { SchedCommand, SchedJob } from "#protocol/sched-link.ts";
import { SCHED_COMMAND } from "#protocol/sched-link.ts";
import { cycle } from "#sched/cycle/cycle.ts";
import { NO_MEMORY } from "#sched/cycle/result.ts";
import { explainJob } from "#sched/explain/explain.ts";
import { applyDelta, createUniverse } from "#sched/mirror/mirror.ts";
import { mirrorOptions } from "#sched/modules/index.ts";
import { book, decisionTexts, snapshotOf } from "../world.ts";

const NOW_S = 1_000_000;
const CONS = { module_options: new Map([["backfill", new Map([["policy", "cons"]])]]) };
const { NEW, TERM, TIME } = SCHED_COMMAND;

/**
 * Job 2 was planned at a time when job 1, which precedes it, could not be considered. Returns the starts of cycles, and accepts
 * deltas between them.
 */
function createStory() {
  const policies = book({ strict_ordering: true }, CONS);
  const world = { nodes: "H ncpus=4", jobs: "1 ncpus=4 walltime=5000 rank=1; 2 ncpus=1 walltime=10 rank=2" };
  const snapshot = snapshotOf({ ...world, server: { backfill_depth: 1 }, sched: { opt_backfill_fuzzy: "off" } });
  const planned = { topjob: true, estimated: { start_time: NOW_S + 1000, exec_vnode: "(H:ncpus=1)" } };
  const jobs = snapshot.jobs.map((job) => (job.id === "2" ? { ...job, ...planned } : job));
  const universe = createUniverse({ ...snapshot, jobs }, mirrorOptions(policies));
  let revision = 1;
  return {
    starts: (now_s: number, command: SchedCommand): string[] =>
      decisionTexts(cycle(universe, policies, { now_s, command })).filter((text) => text.includes("=")),
    explain: (job: string, now_s: number): unknown =>
      explainJob(universe, policies, { now_s, job, sees_others: true, memory: NO_MEMORY, history: new Map() }),
    put(id: string, more: Partial<SchedJob>): void {
      const { topjob: _topjob, estimated: _estimated, ...job } = universe.jobs.get(id) as SchedJob;
      applyDelta(universe, { revision: ++revision, changes: [{ put: "job", value: { ...job, ...more } }] });
    },
    drop(id: string): void {
      applyDelta(universe, { revision: ++revision, changes: [{ drop: "job", id }] });
    },
  };
}
const PLAN_OF_1 = { topjob: true, estimated: { start_time: NOW_S + 1010, exec_vnode: "(H:ncpus=4)" } };

test("kept plans: a job whose plan stood behind one that has moved up starts in the next periodic cycle", () => {
  const { starts, put, drop } = createStory();
  assert.deepEqual(starts(NOW_S, NEW), ["2=(H:ncpus=1)"], "job 1 does not fit before the plan of job 2");
  put("1", PLAN_OF_1);
  put("2", { state: "R", stime_s: NOW_S, exec_vnode: "(H:ncpus=1)" });
  drop("2");
  assert.deepEqual(starts(NOW_S + 20, TERM), [], "it ended when it was expected to end");
  assert.deepEqual(starts(NOW_S + 30, TIME), ["1=(H:ncpus=4)"]);
});

test("kept plans: a job that asks for less than its plan was made for starts in the next periodic cycle", () => {
  const { starts, put } = createStory();
  starts(NOW_S, NEW);
  put("1", { ...PLAN_OF_1, resources: { ncpus: 4, walltime: 50 } });
  assert.deepEqual(starts(NOW_S + 20, TIME), ["1=(H:ncpus=4)"]);
});

test("kept plans: a question about a job takes nothing from the next cycle", () => {
  const { starts, put, drop, explain } = createStory();
  starts(NOW_S, NEW);
  put("1", PLAN_OF_1);
  drop("2");
  explain("1", NOW_S + 10);
  assert.deepEqual(starts(NOW_S + 20, TERM), ["1=(H:ncpus=4)"], "the plan of job 2 is gone");
});
