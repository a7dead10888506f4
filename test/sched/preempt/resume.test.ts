// Suspended jobs resume on their vnodes as soon as the resources that they released are free there (docs/reference/scheduler.md
// 8, restrict_res_to_release_on_suspend).

import assert from "node:assert/strict";
import { test } from "node:test";
import type { SchedJob, SchedNode } from "#protocol/sched-link.ts";
import { SCHED_COMMAND } from "#protocol/sched-link.ts";
import { cycle } from "#sched/cycle/cycle.ts";
import { createUniverse } from "#sched/mirror/mirror.ts";
import { mirrorOptions } from "#sched/modules/index.ts";
import { book, decisionTexts, snapshotOf } from "../world.ts";

/** Job 1 has all cpus of vnode a and is suspended; released: the part that is free meanwhile. */
function decided(released: string | undefined, assigned: SchedNode["assigned"], others = ""): string[] {
  const world = snapshotOf({ nodes: `a ncpus=4 mem=8gb${others}`, jobs: "1 ncpus=4:mem=6gb", sched: { log_events: 0 } });
  const [job] = world.jobs as readonly [SchedJob];
  const stands: SchedJob = {
    ...job,
    state: "S",
    substate: 45,
    run_count: 1,
    stime_s: 900_000,
    exec_vnode: "(a:ncpus=4:mem=6291456kb)",
    ...(released === undefined ? {} : { released }),
  };
  const nodes = world.nodes.map((node) => {
    if (node.name !== "a") return node;
    const full = (assigned["ncpus"] ?? 0) >= 4;
    return { ...node, assigned, attrs: { ...node.attrs, state: full ? ["job-busy"] : [] } };
  });
  const policies = book();
  const universe = createUniverse({ ...world, jobs: [stands], nodes }, mirrorOptions(policies));
  return decisionTexts(cycle(universe, policies, { now_s: 1_000_000, command: SCHED_COMMAND.TIME }));
}

const GOES_ON = ["1=(a:ncpus=4:mem=6291456kb)"];

test("resume: all is released and free", () => {
  assert.deepEqual(decided(undefined, {}), GOES_ON);
});

test("resume: a vnode that has no cpu left because the job keeps its own is no obstacle", () => {
  assert.deepEqual(decided("(a:mem=6291456kb)", { ncpus: 4 }), GOES_ON);
  assert.deepEqual(decided("(a:mem=6291456kb)", { ncpus: 4 }, "; b ncpus=4 mem=8gb"), GOES_ON);
});

test("resume: what it released has been taken by others", () => {
  assert.deepEqual(decided("(a:mem=6291456kb)", { ncpus: 4, mem: 4 * 1024 * 1024 }), [
    "1: Not Running: Insufficient amount of resource: mem (R: 6gb A: 4gb T: 8gb)",
  ]);
  assert.deepEqual(decided(undefined, { ncpus: 4 }), ["1: Not Running: Not enough free nodes available"]);
});
