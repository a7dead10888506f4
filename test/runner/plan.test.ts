// How many runners are wanted (src/runner/plan.ts): tables, and worlds drawn at random.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { Bucket } from "#model/request/bucket.ts";
import type { Demand, RunnerDoing, RunnerWork } from "#protocol/runner-link.ts";
import { type PlanBackend, type PlanInput, planOf } from "#runner/plan.ts";
import { prng } from "#support/prng.ts";

const bucket = (key: string): Bucket => ({
  key,
  owner: "alice",
  queue: "cloud",
  project: "p",
  ncpus: 1,
  mem_kb: 0,
  tmp_kb: 0,
  walltime_s: 64,
  resources: {},
});
const backend = (name: string, more: Partial<PlanBackend> = {}): PlanBackend => ({
  name,
  partition: "p1",
  enabled: true,
  max_runners: 10,
  n_max_queued: 10,
  refused: new Set(),
  asks: true,
  ...more,
});
const demand = (key: string, ready: number, priority = 0): Demand => ({ partition: "p1", bucket: bucket(key), ready, priority });

let serial = 0;
/** Runners of a bucket: `runners("b", "sl", { busy: 2, asked: 1 })`. */
function runners(key: string, of: string, counts: { readonly [D in RunnerDoing]?: number }, more: Partial<RunnerWork> = {}): RunnerWork[] {
  return Object.entries(counts).flatMap(([doing, count]) =>
    Array.from({ length: count }, (): RunnerWork => {
      serial++;
      return {
        name: `${of}-${serial}-0`,
        backend: of,
        serial,
        index: 0,
        bucket: bucket(key),
        doing: doing as RunnerDoing,
        asked_s: 0,
        life_s: 3600,
        ...more,
      };
    }),
  );
}

/** The plan as text: `ask sl 3 of b`, `cancel 2`, `drain 1`. */
function plan(input: PlanInput): readonly string[] {
  const { asks, cancels, drains } = planOf(input);
  return [
    ...asks.map(({ backend: of, bucket: { key }, count }) => `ask ${of} ${count} of ${key}`),
    ...(cancels.length > 0 ? [`cancel ${cancels.length}`] : []),
    ...(drains.length > 0 ? [`drain ${drains.length}`] : []),
  ];
}

test("plan: a runner for each waiting and each running job, never more than max_runners", () => {
  const backends = [backend("sl", { max_runners: 4 })];
  assert.deepEqual(plan({ backends, demands: [], runners: [] }), []);
  assert.deepEqual(plan({ backends, demands: [demand("a", 3)], runners: [] }), ["ask sl 3 of a"]);
  assert.deepEqual(plan({ backends, demands: [demand("a", 9)], runners: [] }), ["ask sl 4 of a"]);
  assert.deepEqual(plan({ backends, demands: [demand("a", 9)], runners: runners("a", "sl", { busy: 2, idle: 1 }) }), ["ask sl 1 of a"]);
  assert.deepEqual(plan({ backends, demands: [demand("a", 2)], runners: runners("a", "sl", { busy: 1, asked: 2 }) }), []);
  assert.deepEqual(plan({ backends, demands: [demand("a", 9)], runners: runners("a", "sl", { busy: 1, lost: 2 }) }), ["ask sl 1 of a"]);
  assert.deepEqual(plan({ backends: [backend("sl", { enabled: false })], demands: [demand("a", 2)], runners: [] }), []);
});

test("plan: at most n_max_queued_jobs of a bucket wait in a backend", () => {
  const backends = [backend("sl", { max_runners: 100, n_max_queued: 10 })];
  assert.deepEqual(plan({ backends, demands: [demand("a", 50)], runners: [] }), ["ask sl 10 of a"]);
  assert.deepEqual(plan({ backends, demands: [demand("a", 50)], runners: runners("a", "sl", { asked: 7, busy: 20 }) }), ["ask sl 3 of a"]);
  assert.deepEqual(plan({ backends, demands: [demand("a", 50)], runners: runners("a", "sl", { asked: 12 }) }), []);
});

test("plan: surplus is cancelled while it waits; what is connected leaves by itself", () => {
  const backends = [backend("sl")];
  const asked = runners("a", "sl", { asked: 3 });
  assert.deepEqual(planOf({ backends, demands: [demand("a", 1)], runners: asked }).cancels, [asked[2]?.name, asked[1]?.name]);
  assert.deepEqual(plan({ backends, demands: [], runners: runners("a", "sl", { asked: 2, idle: 3, busy: 1 }) }), ["cancel 2"]);
  assert.deepEqual(plan({ backends, demands: [], runners: runners("a", "sl", { idle: 3 }) }), []);
});

test("plan: buckets share the places, the highest priority first, and a bucket with more than its share makes room", () => {
  const backends = [backend("sl", { max_runners: 4 })];
  assert.deepEqual(plan({ backends, demands: [demand("a", 9), demand("b", 9)], runners: [] }), ["ask sl 2 of a", "ask sl 2 of b"]);
  assert.deepEqual(plan({ backends, demands: [demand("a", 9), demand("b", 1)], runners: [] }), ["ask sl 3 of a", "ask sl 1 of b"]);
  const three = [demand("a", 9), demand("b", 9), demand("c", 9, 5)];
  assert.deepEqual(plan({ backends: [backend("sl", { max_runners: 2 })], demands: three, runners: [] }), [
    "ask sl 1 of c",
    "ask sl 1 of a",
  ]);
  const full = runners("a", "sl", { busy: 4 });
  assert.deepEqual(plan({ backends, demands: [demand("a", 9), demand("b", 1)], runners: full }), ["drain 1"]);
  const draining = [...full.slice(1), ...runners("a", "sl", { busy: 1 }, { draining: true })];
  assert.deepEqual(plan({ backends, demands: [demand("a", 9), demand("b", 1)], runners: draining }), []);
});

test("plan: what one backend cannot take, the next one of the partition gets", () => {
  const demands = [demand("a", 6)];
  assert.deepEqual(plan({ backends: [backend("x", { max_runners: 2 }), backend("y")], demands, runners: [] }), [
    "ask x 2 of a",
    "ask y 4 of a",
  ]);
  assert.deepEqual(plan({ backends: [backend("x", { refused: new Set(["a"]) }), backend("y")], demands, runners: [] }), ["ask y 6 of a"]);
  assert.deepEqual(plan({ backends: [backend("x", { asks: false }), backend("y")], demands, runners: [] }), ["ask y 6 of a"]);
  assert.deepEqual(plan({ backends: [backend("x", { partition: "p2" })], demands, runners: [] }), []);
});

test("plan: a bucket that no backend can run takes no place, and is tried with what is left", () => {
  const trial = (key: string): Demand => ({ ...demand(key, 1), trial: true });
  const small = (refused: readonly string[]): PlanBackend => backend("sl", { max_runners: 2, refused: new Set(refused) });
  const demands = [trial("x"), trial("y"), demand("a", 9)];
  assert.deepEqual(plan({ backends: [small(["x", "y"])], demands, runners: [] }), ["ask sl 2 of a"]);
  assert.deepEqual(plan({ backends: [backend("sl", { max_runners: 4 })], demands, runners: [] }), [
    "ask sl 2 of a",
    "ask sl 1 of x",
    "ask sl 1 of y",
  ]);
  for (const counts of [{ asked: 2 }, { busy: 2 }])
    assert.deepEqual(plan({ backends: [small(["x"])], demands, runners: runners("a", "sl", counts) }), [], "nobody gives a runner up");
  assert.deepEqual(plan({ backends: [small(["x"])], demands, runners: runners("a", "sl", { busy: 1 }) }), ["ask sl 1 of y"]);
  const unwanted = runners("b", "sl", { asked: 2 });
  assert.deepEqual(plan({ backends: [small([])], demands: [trial("x"), trial("y")], runners: unwanted }), ["cancel 2"]);
});

test("plan: in worlds drawn at random, no limit is exceeded, and repeating it leads to rest", () => {
  for (let seed = 1; seed <= 300; seed++) {
    const random = prng(seed);
    const backends = Array.from({ length: random.int(1, 3) }, (_, at) =>
      backend(`b${at}`, { max_runners: random.int(0, 12), n_max_queued: random.int(1, 5), partition: random.chance(0.8) ? "p1" : "p2" }),
    );
    const demands = Array.from({ length: random.int(0, 6) }, (_, at) => demand(`k${at}`, random.int(1, 20), random.int(-3, 3)));
    let present: RunnerWork[] = [];
    for (let step = 0; ; step++) {
      assert.ok(step < 100, `seed ${seed} does not come to rest`);
      const { asks, cancels, drains } = planOf({ backends, demands, runners: present });
      for (const { name, max_runners, n_max_queued } of backends) {
        const mine = asks.filter((ask) => ask.backend === name);
        const total = present.filter((runner) => runner.backend === name).length + mine.reduce((sum, { count }) => sum + count, 0);
        assert.ok(mine.length === 0 || total <= max_runners, `seed ${seed}: ${total} of ${max_runners}`);
        for (const { bucket: of, count } of mine) {
          const queued = present.filter(
            (runner) => runner.backend === name && runner.bucket.key === of.key && runner.doing === "asked",
          ).length;
          assert.ok(count > 0 && queued + count <= n_max_queued, `seed ${seed}: ${queued}+${count} of ${n_max_queued} wait`);
        }
      }
      if (asks.length + cancels.length + drains.length === 0) {
        if (present.every(({ doing }) => doing !== "asked")) break;
      }
      present = present.filter(({ name }) => !cancels.includes(name) && !drains.includes(name));
      for (const ask of asks) present.push(...runners(ask.bucket.key, ask.backend, { asked: ask.count }));
      // Some connect, and wait for the scheduler.
      present = present.map((runner) => (runner.doing === "asked" && random.chance(0.5) ? { ...runner, doing: "idle" as const } : runner));
    }
    for (const { bucket: of, ready } of demands) {
      const have = present.filter((runner) => runner.bucket.key === of.key).length;
      assert.ok(have <= ready, `seed ${seed}: ${have} runners for ${ready} jobs`);
    }
  }
});

test("plan: owners take turns, so that many buckets of one leave places for another", () => {
  const of = (owner: string, key: string): Demand => ({ ...demand(key, 5), bucket: { ...bucket(key), owner } });
  const many = Array.from({ length: 50 }, (_, at) => of("alice", `alice:${at}`));
  const { asks } = planOf({ backends: [backend("sl")], demands: [...many, of("zoe", "zoe:1")], runners: [] });
  assert.equal(asks.length, 10);
  assert.ok(asks.some((ask) => ask.bucket.owner === "zoe"));
});
