// Whole runs of `partita sim --grid`: nothing is lost or done twice, local users are served as without campaigns, and a scenario
// gives the same result each time.

import assert from "node:assert/strict";
import { test } from "node:test";
import { POLICY_DEFAULT } from "#grid/cycle/grid-cycle.ts";
import { STRATEGIES } from "#grid/plan/offers.ts";
import { PREDICTORS } from "#grid/plan/prediction.ts";
import { TaskBag } from "#grid/plan/task-bag.ts";
import { EASY } from "#replay/algorithm.ts";
import { replay } from "#replay/replay.ts";
import type { TraceJob } from "#replay/trace.ts";
import { ClusterModel } from "#sim/grid/cluster-model.ts";
import { gridPicture } from "#sim/grid/grid-picture.ts";
import { parseScenario, ScenarioError } from "#sim/grid/grid-scenario.ts";
import { type GridReport, GridSim } from "#sim/grid/grid-sim.ts";
import { figuresOf, gridTable } from "#sim/grid/grid-table.ts";
import { nth } from "#support/assert.ts";
import { prng } from "#support/prng.ts";

/** Draws jobs of local users for a day. */
function localJobs(seed: number, procs_max: number): TraceJob[] {
  const random = prng(seed);
  let submit_s = 0;
  return Array.from({ length: 60 }, (_, at) => {
    submit_s += random.int(0, 2400);
    const run_s = random.int(10, 3000);
    return { id: at + 1, submit_s, procs: random.int(1, procs_max), run_s, est_s: run_s + random.int(0, 2000), partition: -1 };
  });
}

const SCENARIO = parseScenario(
  JSON.stringify({
    days: 4,
    cycle_s: 60,
    clusters: [
      { name: "near", resources: 32, users: ["ann"] },
      { name: "far", resources: 16, speed: 2, grid_jobs: "normal" },
    ],
    campaigns: [
      { name: "big", user: "bob", jobs: 3000, run_s: [10, 400] },
      { name: "wide", user: "ann", jobs: 200, run_s: [60, 300], resources: 4, submit_s: 3600, max_jobs: 3 },
      { name: "probe", user: "bob", jobs: 10, type: "test", run_s: 60, submit_s: 7200 },
    ],
  }),
);
const WORKLOADS = new Map([
  ["near", localJobs(1, 32)],
  ["far", localJobs(2, 12)],
]);
const run = (policy: Partial<typeof POLICY_DEFAULT> = {}): GridReport =>
  new GridSim(SCENARIO, { ...POLICY_DEFAULT, ...policy }, WORKLOADS).run();

test("every task is done exactly once under every predictor and strategy", () => {
  for (const predictor of PREDICTORS) {
    for (const strategy of STRATEGIES) {
      const { campaigns } = run({ predictor, strategy });
      assert.deepEqual(
        campaigns.map(({ name, done, tasks }) => [name, done, tasks]),
        [
          ["big", 3000, 3000],
          ["wide", 200, 200],
          ["probe", 2, 2],
        ],
        `${predictor}, ${strategy}`,
      );
    }
  }
});

test("under best-effort, local jobs start when they start without campaigns", () => {
  const jobs = nth([...WORKLOADS.values()], 0);
  const { starts_s } = replay({ jobs, pools: [{ procs: 32 }], algorithm: EASY });
  const alone_s = jobs.reduce((sum, { submit_s }, at) => sum + nth(starts_s, at) - submit_s, 0) / jobs.length;
  const near = nth(run().clusters, 0);
  assert.ok(near.kills > 0, "local jobs had to make room");
  assert.ok(Math.abs(near.local_wait_mean_s - alone_s) < 1e-6, `${near.local_wait_mean_s} and ${alone_s}`);
});

test("the same scenario gives the same report", () => {
  assert.deepEqual(run(), run());
});

test("a test campaign behind a large one starts in the next cycle that finds a free slot", () => {
  const probe = nth(run({ strategy: "fifo" }).campaigns, 2);
  assert.ok(probe.first_result_s !== null && probe.first_result_s < 3600, `${probe.first_result_s}`);
});

test("a cluster never runs more than it has, and a removed job leaves its slots", () => {
  const cluster = new ClusterModel({ name: "c", resources: 4, from_day: 0, speed: 1, grid_jobs: "normal", users: [] }, [
    { id: 1, submit_s: 10, procs: 4, run_s: 5, est_s: 5, partition: -1 },
  ]);
  const job = (id: number) => ({
    id,
    campaign: 1,
    task: id,
    cluster: "c",
    width: 2,
    run_s: 100,
    walltime_s: 100,
    submitted_s: 0,
    started_s: null,
  });
  const [one, two, three] = [job(1), job(2), job(3)];
  for (const each of [one, two, three]) cluster.submit(each);
  assert.deepEqual(cluster.advance(0), []);
  assert.deepEqual([cluster.free, one.started_s, three.started_s], [0, 0, null]);
  assert.equal(cluster.remove(one, 50), true);
  cluster.advance(50);
  assert.deepEqual([cluster.free, three.started_s], [2, null], "a local job waits, so no further job of a campaign starts");
  assert.deepEqual(
    cluster.advance(200).map((end) => [end.job.id, end.at_s]),
    [
      [2, 100],
      [3, 205],
    ].filter(([, at_s]) => (at_s ?? 0) <= 200),
  );
  assert.equal(cluster.remove(one, 200), false);
});

test("returned tasks come before new ones, those with the higher priority first, and those with the lowest priority last of all", () => {
  const bag = new TaskBag(5);
  assert.deepEqual([bag.take(), bag.take(), bag.take()], [0, 1, 2]);
  bag.giveBack(0, 10);
  bag.giveBack(1, 20);
  bag.giveBack(2, 0);
  assert.equal(bag.size, 5);
  const copy = new TaskBag(5, bag.rest);
  for (const each of [bag, copy])
    assert.deepEqual(
      [1, 2, 3, 4, 5, 6].map(() => each.take()),
      [1, 0, 3, 4, 2, null],
    );
});

test("the table has a line for each run, the picture a row", () => {
  const reports = [run({ predictor: "tap" }), run()];
  const table = gridTable(reports.map(figuresOf)).split("\n");
  assert.equal(table.length, 3);
  assert.match(nth(table, 1), /^tap +fairshare +3202 /);
  const picture = gridPicture(reports, 48, "two <runs>");
  assert.equal(picture.match(/<polygon/g)?.length, 4);
  assert.match(picture, /two &lt;runs&gt;/);
});

test("faults of a scenario are told with their place", () => {
  const fault = (text: string): string => {
    try {
      parseScenario(text);
    } catch (error) {
      assert.ok(error instanceof ScenarioError);
      return error.message;
    }
    return "";
  };
  const clusters = [{ name: "c", resources: 4 }];
  const campaigns = [{ name: "k", user: "u", jobs: 1, run_s: 1 }];
  const scenario = (more: object): string => JSON.stringify({ clusters, campaigns, ...more });
  assert.equal(fault(scenario({})), "");
  assert.match(fault("{"), /^not JSON: /);
  assert.match(fault(scenario({ campaigns: [{ ...campaigns[0], jobs: 0 }] })), /^campaigns\.0\.jobs: /);
  assert.match(fault(scenario({ campaigns: [{ ...campaigns[0], run_s: [5, 1] }] })), /^campaigns\.0\.run_s: /);
  assert.match(fault(scenario({ campaign: 1 })), /campaign/);
  assert.equal(fault(scenario({ campaigns: [{ ...campaigns[0], clusters: ["x"] }] })), "campaigns.0.clusters: there is no cluster x");
  assert.equal(
    fault(scenario({ campaigns: [{ ...campaigns[0], resources: 5 }] })),
    "campaigns.0.resources: a job of 5 does not fit c, which has 4",
  );
  assert.equal(fault(scenario({ campaigns: [...campaigns, ...campaigns] })), "campaigns.1.name: k is there twice");
});
