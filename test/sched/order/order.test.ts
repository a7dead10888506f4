// The order in which jobs are considered and started: queues | jobs | policy => order.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { Policy } from "#sched/shapes/policy.ts";
import type { World } from "../world.ts";
import { queue, run } from "../world.ts";

const key = (text: string): Partial<Policy> => ({
  job_sort_key: text.split(",").map((part) => ({ key: part.split(" ")[0] ?? "", high: part.endsWith("HIGH") })),
});
const TWO = [queue("low", { Priority: 10 }), queue("high", { Priority: 90 })];
const EQUAL = [queue("a"), queue("b"), queue("c", { Priority: -5 })];

type Row = readonly [title: string, jobs: string, policy: Partial<Policy>, order: string, queues?: World["queues"]];

// biome-ignore format: a table
const ROWS: readonly Row[] = [
  ["by rank",                                  "1 ncpus=1; 2 ncpus=4; 3 ncpus=2",                               {},                                 "1 2 3"],
  ["rank changed by qorder",                   "1 ncpus=1 rank=9; 2 ncpus=4; 3 ncpus=2",                        {},                                 "2 3 1"],
  ["job_sort_key HIGH, then rank",             "1 ncpus=1; 2 ncpus=4; 3 ncpus=2; 4 ncpus=4",                    key("ncpus HIGH"),                  "2 4 3 1"],
  ["job_sort_key LOW",                         "1 ncpus=3; 2 ncpus=1; 3 ncpus=2",                               key("ncpus LOW"),                   "2 3 1"],
  ["job_priority",                             "1 prio=-10; 2 prio=100; 3",                                     key("job_priority HIGH"),           "2 3 1"],
  ["two keys and qorder (sched-order-multikey)", "1 ncpus=3 walltime=600 rank=5; 2 ncpus=2 walltime=1200; 3 ncpus=1 walltime=1200; 4 ncpus=3 walltime=600; 5 ncpus=3 walltime=600 rank=1", key("walltime HIGH,ncpus LOW"), "3 2 5 4 1"],
  ["a key that jobs do not ask counts as 0",   "1; 2 walltime=60; 3",                                           key("walltime HIGH"),               "2 1 3"],
  ["by_queue: queues by Priority",             "1 @low; 2 @high; 3 @low; 4 @high",                              {},                                 "2 4 1 3", TWO],
  ["by_queue before job_sort_key",             "1 @low ncpus=4; 2 @high ncpus=1; 3 @high ncpus=2",              key("ncpus HIGH"),                  "3 2 1",   TWO],
  ["neither: one list",                        "1 @low; 2 @high; 3 @low; 4 @high",                              { by_queue: false },                "1 2 3 4", TWO],
  ["one list with a key",                      "1 @low ncpus=1; 2 @high ncpus=2; 3 @low ncpus=3",               { by_queue: false, ...key("ncpus HIGH") }, "3 2 1", TWO],
  ["round_robin: queues of equal Priority take turns", "1 @a; 2 @a; 3 @a; 4 @b; 5 @b; 6 @c; 7 @a",              { round_robin: true },              "1 4 2 5 3 7 6", EQUAL],
  ["by_queue: equal Priority, order of creation", "1 @b; 2 @a; 3 @c; 4 @b",                                     {},                                 "2 1 4 3", EQUAL],
  ["a bucket's jobs and others alternate by rank", "1 ncpus=1; 2 ncpus=2; 3 ncpus=1; 4 ncpus=2; 5 ncpus=1",     {},                                 "1 2 3 4 5"],
];

for (const [title, jobs, policy, order, queues] of ROWS) {
  test(`order: ${title}`, () => {
    const result = run({ nodes: "big ncpus=1000", jobs, ...(queues === undefined ? {} : { queues }) }, policy);
    const started = result.decisions.map((decision) => (decision.kind === "run" ? decision.job : `?${decision.kind}`));
    assert.equal(started.join(" "), order);
  });
}

test("order: node_sort_key by unused, total and priority (sched-node-sort-key)", () => {
  const nodes = "H ncpus=0 host=H; v1 ncpus=2 host=H; v2 ncpus=6 host=H; v3 ncpus=4 host=H";
  const where = (jobs: string, amount: "unused" | "total" | "assigned", high: boolean, more = nodes, sort = "ncpus"): string[] =>
    run({ nodes: more, jobs }, { node_sort_key: [{ key: sort, high, amount }] }).decisions.map((decision) =>
      decision.kind === "run" ? decision.exec_vnode : decision.kind,
    );
  assert.deepEqual(where("1 ncpus=1; 2 ncpus=3; 3 ncpus=1", "unused", true), ["(v2:ncpus=1)", "(v2:ncpus=3)", "(v3:ncpus=1)"]);
  assert.deepEqual(where("4 ncpus=1", "total", false), ["(v1:ncpus=1)"]);
  assert.deepEqual(where("5 ncpus=1", "total", true, nodes.replace("v3 ncpus=4", "v3 ncpus=4 :Priority=50"), "sort_priority"), [
    "(v3:ncpus=1)",
  ]);
  const hosts = "a ncpus=2; b ncpus=6; c ncpus=4";
  assert.deepEqual(where("1 ncpus=1; 2 ncpus=3; 3 ncpus=1", "unused", true, hosts), ["(b:ncpus=1)", "(b:ncpus=3)", "(c:ncpus=1)"]);
  assert.deepEqual(where("1 ncpus=1; 2 ncpus=1; 3 ncpus=1", "assigned", false, hosts), ["(a:ncpus=1)", "(b:ncpus=1)", "(c:ncpus=1)"]);
  assert.deepEqual(
    where("1 3:ncpus=1", "assigned", false, hosts),
    ["(a:ncpus=1)+(a:ncpus=1)+(b:ncpus=1)"],
    "the order stays within one job",
  );
});

test("order: smp_cluster_dist round_robin goes on where the last cycle ended", () => {
  const world = { nodes: "a ncpus=4; b ncpus=4; c ncpus=4", jobs: "1; 2; 3; 4" };
  const first = run(world, { smp_cluster_dist: "round_robin" });
  assert.deepEqual(
    first.decisions.map((decision) => decision.kind === "run" && decision.exec_vnode),
    ["(a:ncpus=1)", "(b:ncpus=1)", "(c:ncpus=1)", "(a:ncpus=1)"],
  );
  const second = run({ ...world, jobs: "5" }, { smp_cluster_dist: "round_robin" }, { memory: first.memory });
  assert.deepEqual(
    second.decisions.map((decision) => decision.kind === "run" && decision.exec_vnode),
    ["(b:ncpus=1)"],
  );
});
