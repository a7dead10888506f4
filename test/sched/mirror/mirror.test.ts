// The mirror: what it refuses, what it forgets, and which work it does not repeat.

import assert from "node:assert/strict";
import { test } from "node:test";
import { type Change, SCHED_COMMAND } from "#protocol/sched-link.ts";
import { cycle } from "#sched/cycle/cycle.ts";
import { applyDelta, createUniverse, takeComment } from "#sched/mirror/mirror.ts";
import { mirrorOptions } from "#sched/modules/index.ts";
import { describeUniverse } from "../describe.ts";
import { book, decisionTexts, jobOf, queue, universeOf } from "../world.ts";

const INPUT = { now_s: 1_000_000, command: SCHED_COMMAND.TIME } as const;

test("mirror: a delta that is not the next one is refused and changes nothing", () => {
  const universe = universeOf({ nodes: "a ncpus=1", jobs: "1" });
  assert.throws(() => applyDelta(universe, { revision: 3, changes: [{ drop: "job", id: "1" }] }), /delta 3 after revision 1/);
  assert.equal(universe.revision, 1);
  assert.ok(universe.jobs.has("1"));
});

test("mirror: texts of requests and kinds of vnodes that are gone are forgotten", () => {
  const universe = universeOf({ nodes: "a ncpus=1", jobs: "" });
  const node = universe.nodes.get("a");
  assert.ok(node !== undefined);
  for (let step = 1; step <= 12_000; step++) {
    const job = jobOf(`${step} ncpus=${step}`, step);
    const changes = [
      { put: "job" as const, value: job },
      { put: "node" as const, value: { ...node, attrs: { ...node.attrs, resources_available: { ncpus: 1, mem: `${step}kb` } } } },
      { drop: "job" as const, id: job.id },
    ];
    applyDelta(universe, { revision: universe.revision + 1, changes });
  }
  assert.ok(universe.requests.size <= 10_002, `${universe.requests.size} requests`);
  assert.ok(universe.specs.size <= 1003, `${universe.specs.size} specs`);
  assert.equal(universe.classes.size, 0);
  assert.equal(universe.lines.size, 0);
  const [set] = universe.sets.values();
  assert.ok((set?.buckets.size ?? 0) <= 260, `${set?.buckets.size} buckets`);
});

test("mirror: a vnode given to a queue takes the jobs' places with it", () => {
  const policies = book();
  const universe = universeOf(
    { nodes: "a ncpus=2; b ncpus=2", jobs: "1 @own ncpus=2; 2 ncpus=2; 3 ncpus=2", queues: [queue("workq"), queue("own")] },
    policies,
  );
  assert.deepEqual(decisionTexts(cycle(universe, policies, INPUT)).slice(0, 2), ["2=(a:ncpus=2)", "3=(b:ncpus=2)"]);
  const node = universe.nodes.get("a");
  assert.ok(node !== undefined);
  applyDelta(universe, { revision: 2, changes: [{ put: "node", value: { ...node, attrs: { ...node.attrs, queue: "own" } } }] });
  assert.deepEqual(decisionTexts(cycle(universe, policies, INPUT)).sort(), [
    "1=(a:ncpus=2)",
    "2=(b:ncpus=2)",
    "3: Not Running: Not enough free nodes available",
  ]);
});

test("mirror: who wants a host alone sees its vnodes in other sets, as their jobs, their queue and themselves come and go", () => {
  const policies = book();
  const nodes = "a0 ncpus=2 host=a; a1 ncpus=2 host=a :queue=own; a2 ncpus=2 host=a :queue=own";
  const jobs = "1 ncpus=1 exclhost; 9 R (a1:ncpus=1) @own";
  const universe = universeOf({ nodes, jobs, queues: [queue("workq"), queue("own")] }, policies);
  const busy = universe.nodes.get("a1");
  assert.ok(busy !== undefined);
  const told = (...changes: readonly Change[]): string => {
    applyDelta(universe, { revision: universe.revision + 1, changes });
    const { revision, queues, resources, sched, server } = universe;
    const anew = createUniverse(
      {
        ...{ revision, server, sched, resources: [...resources.values()], resvs: [] },
        queues: [...queues.values()].map(({ name, attrs }) => ({ name, attrs })),
        nodes: [...universe.nodes.values()],
        jobs: [...universe.jobs.values()],
      },
      mirrorOptions(policies),
    );
    assert.deepEqual(describeUniverse(universe), describeUniverse(anew));
    return decisionTexts(cycle(universe, policies, INPUT)).join();
  };
  const REFUSED = "1: Not Running: No available resources on nodes";
  const RUNS = "1=(a0:ncpus=1)";
  const put = (attrs: object, ...jobs: readonly string[]): Change => ({
    put: "node",
    value: { ...busy, jobs, assigned: jobs.length > 0 ? { ncpus: 1 } : {}, attrs: { ...busy.attrs, ...attrs } },
  });
  assert.equal(told(), REFUSED);
  assert.equal(told(put({})), RUNS, "its job is gone");
  assert.equal(told(put({}, "9")), REFUSED);
  assert.equal(told(put({ sharing: "ignore_excl" }, "9")), RUNS);
  assert.equal(told(put({}, "9")), REFUSED);
  assert.equal(told({ drop: "node", id: "a2" }), REFUSED);
  assert.equal(told({ drop: "node", id: "a1" }), RUNS);
  assert.equal(told(put({}, "9")), REFUSED, "it is there again");
});

test("mirror: counts that change in server and queue do not index jobs again, limits do", () => {
  const universe = universeOf({ nodes: "a ncpus=1", jobs: "1; 2 u=bob" });
  const entry = universe.entries.get("1");
  const { server } = universe;
  applyDelta(universe, {
    revision: 2,
    changes: [
      { put: "server", value: { ...server, attrs: { total_jobs: 7 } } },
      { put: "queue", value: queue("workq", { total_jobs: 3 }) },
    ],
  });
  assert.equal(universe.entries.get("1"), entry);
  assert.equal(universe.classes.size, 1);
  applyDelta(universe, { revision: 3, changes: [{ put: "server", value: { ...server, attrs: { max_run: { "u:PBS_GENERIC": 1 } } } }] });
  assert.equal(universe.classes.size, 2, "users differ once a limit looks at them");
});

test("mirror: a comment of our own is taken over", () => {
  const policies = book();
  const universe = universeOf({ nodes: "a ncpus=1", jobs: "1 ncpus=2" }, policies);
  const [decision] = cycle(universe, policies, INPUT).decisions;
  assert.ok(decision?.kind === "comment");
  takeComment(universe, "1", decision.comment);
  assert.deepEqual(cycle(universe, policies, INPUT).decisions, []);
  takeComment(universe, "nosuch", "x");
});

test("mirror: a subjob that was over before it was told of counts with what it used, and leaves nothing else", () => {
  const universe = universeOf({ nodes: "a ncpus=2", jobs: "1 ncpus=1" });
  const untold = { ...jobOf("2[1] R (a:ncpus=1)", 2), run_count: 1 };
  applyDelta(universe, { revision: 2, changes: [{ drop: "job", id: untold.id, resources_used: { cput: 7 }, untold }] });
  assert.deepEqual(universe.ended, [{ job: untold, resources_used: { cput: 7 } }]);
  assert.deepEqual([...universe.jobs.keys()], ["1"]);
});
