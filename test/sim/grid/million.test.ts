// A campaign of 1,000,000 jobs over four clusters of 500 cpus: the daemon's cycles take little time, and tasks that wait take little memory.

import assert from "node:assert/strict";
import { test } from "node:test";
import { POLICY_DEFAULT } from "#grid/cycle/grid-cycle.ts";
import { campaignOf, JDL_LIMITS, parseJdl } from "#grid/jdl/jdl.ts";
import { parametersOf } from "#grid/jdl/parameters.ts";
import { apply, type Changing, type GridEvent, nothingDirty } from "#grid/state/event.ts";
import { emptyState, type GridState } from "#grid/state/grid-state.ts";
import { planCycle } from "#grid/work/planning.ts";
import { present } from "#support/assert.ts";

const CLUSTERS = ["a", "b", "c", "d"];
const CPUS = 500;
const TASKS = 1_000_000;
const ROUNDS = 60;

test("a cycle over a campaign of 1,000,000 jobs takes at most 100 ms (median)", () => {
  const state = emptyState();
  const to: Changing = { state, dirty: nothingDirty(), predictor: "two-way" };
  const change = (event: GridEvent): number => apply(to, event);
  for (const name of CLUSTERS) {
    const facts = { name, type: "partita", default_resources: null, resource_unit: "core" } as const;
    change({ kind: "cluster-set", cluster: { ...facts, options: {}, users: [], mapping: {}, is_enabled: true } });
    show(state, name, CPUS);
  }
  const id = submit(state, change);
  const times: number[] = [];
  for (let now_s = 2; now_s < 2 + ROUNDS; now_s++)
    for (const cluster of CLUSTERS) {
      const begin_ms = performance.now();
      planCycle(state, [cluster], now_s, {
        apply: change,
        policy: POLICY_DEFAULT,
        tag: (name, serial) => `${name}.${serial}`,
        remoteUser: (user) => user,
        jobsMax: () => 10_000,
      });
      times.push(performance.now() - begin_ms);
      work(state, cluster, now_s, change);
      to.dirty.ended.length = 0;
    }
  times.sort((a, b) => a - b);
  assert.ok(present(times[times.length >> 1], "median") <= 100, `median ${times[times.length >> 1]} ms`);
  const { done, bag, lives } = present(state.campaigns.get(id), "campaign");
  assert.ok(done > 20_000, `${done} jobs done`);
  assert.equal(done + bag.size + lives.size, TASKS);
  // Nothing but the live jobs is an object: the rest of the bag is two numbers.
  assert.deepEqual(bag.rest.returned, []);
});

function submit(state: GridState, change: (event: GridEvent) => number): number {
  const clusters = Object.fromEntries(CLUSTERS.map((name) => [name, {}]));
  const jdl_text = JSON.stringify({ name: "million", exec_file: "/bin/true", param_file: "parameters", canary: false, clusters });
  const read = parseJdl(jdl_text, state.clusters);
  assert.ok("jdl" in read);
  const { jdl } = read;
  const parameters = parametersOf(Array.from({ length: TASKS }, (_, at) => `parameter-${at} ${at * 7}`).join("\n"), JDL_LIMITS);
  assert.ok("count" in parameters);
  assert.equal(parameters.starts.byteLength, 4 * TASKS);
  const plan = (id: number) => campaignOf(id, "anna", jdl);
  return change({
    kind: "campaign-submitted",
    campaign: { user: "anna", jdl, jdl_text, kind_given: null, facts: [], parameters, plan, at_s: 1 },
  });
}

/** Acknowledges and starts what was ordered, and ends half of what runs. */
function work(state: GridState, cluster: string, at_s: number, change: (event: GridEvent) => number): void {
  let live = 0;
  for (const order of [...state.orders.values()]) {
    if (order.cluster !== cluster) continue;
    const { serial } = order;
    if (order.state === "recorded") {
      change({ kind: "acknowledged", serial, ids: new Map([...order.jobs.keys()].map((index) => [index, `${serial}.${index}`])) });
      change({ kind: "released", serial });
    }
    for (const job of [...order.jobs.values()])
      if (job.started_s === null) change({ kind: "job-started", job, at_s });
      else if (live++ % 2 === 1)
        change({ kind: "job-ended", end: { job, at_s, exit_code: 0, run_s: 5, mem_kb: null, reason: "", fate: { kind: "result" } } });
    live += order.jobs.size;
  }
  const taken = [...state.orders.values()].reduce((sum, order) => sum + (order.cluster === cluster ? order.jobs.size : 0), 0);
  show(state, cluster, Math.max(0, CPUS - taken));
}

function show(state: GridState, name: string, free: number): void {
  state.sights.set(name, { seen_s: 1, total: CPUS, free, text: "", fault: null });
}
