// When a simulated complex must have come to rest.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Checks } from "#sim/checks/checks.ts";
import { createComplex } from "#sim/complex.ts";
import { set } from "#sim/drawn/manager-request.ts";
import { drawScenario, type Scenario } from "#sim/drawn/scenario.ts";
import { HORIZON_MS } from "#sim/rest.ts";
import { type Counts, Script } from "#sim/script.ts";
import { createWorld, START_MS } from "#sim/world.ts";
import { prng } from "#support/prng.ts";

test("jobs of which a limit lets only one run at a time have time for all their runs", async () => {
  const world = createWorld(prng(1), 10, null);
  const drawn = drawScenario(prng(1), { jobs_max: 200, faults: false, ops: false, scale: 1 });
  const scenario: Scenario = {
    ...drawn,
    hosts: [{ name: "n1", is_far: false, vnodes: [{ name: "n1", ncpus: 4, sharing: "default_shared", partition: null }] }],
    scheds: [],
    queues: [{ name: "workq", partition: null }],
    setup: [set("server", "", ["default_queue", "workq"], ["max_run", "[o:PBS_ALL=1]"])],
    plans: false,
    jobs: 200,
    run_ms_max: 600_000,
    busy_ms: 20_000,
  };
  const checks = new Checks(1);
  const counts: Counts = { jobs: 0, runs: 0, requests: 0, refused: 0, faults: 0, virtual_s: 0, waiting: 0, promises: 0, takeovers: 0 };
  const script = new Script(createComplex(world, scenario, checks), checks, counts);
  await script.setUp();
  await script.disturb();
  await script.settle();
  assert.ok(world.now_ms - START_MS > HORIZON_MS, `at rest after ${(world.now_ms - START_MS) / 3_600_000} h`);
  assert.ok(counts.runs > 100, `${counts.runs} runs`);
});
