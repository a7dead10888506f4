// What a loop asks its backend and the spare on this machine (src/runner/backend-loop.ts), with backends that do what the test says.

import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import type { Backend, RunnerOrder, RunnerSighting } from "#backends/contract/backend.ts";
import { BackendError, type FaultKind } from "#backends/contract/fault.ts";
import type { BackendSettings } from "#backends/contract/settings.ts";
import type { BackendWork, RunnersToServer, RunnerWork } from "#protocol/runner-link.ts";
import { BackendLoop } from "#runner/backend-loop.ts";
import type { Plan } from "#runner/plan.ts";

const BUCKET = { key: "b", owner: "a", queue: "q", project: "p", ncpus: 1, mem_kb: 0, tmp_kb: 0, walltime_s: 60, resources: {} };
const NOTHING: Plan = { asks: [], cancels: [], drains: [] };
const ONE: Plan = { ...NOTHING, asks: [{ backend: "sl", bucket: BUCKET, count: 1, priority: 0 }] };

const fault = (kind: FaultKind, text: string, uncertain = false): BackendError => new BackendError({ kind, text }, { uncertain });
const sightingsOf = ({ tag, count }: Pick<RunnerOrder, "tag" | "count">): readonly RunnerSighting[] =>
  Array.from({ length: count }, (_, index) => {
    const common = { reason: "", user: null, host: null, ending: null, fault: null } as const;
    return { tag, index, id: `1_${index}`, state: "running", ...common };
  });

/** A backend that shows what it was given. */
function fake(type: Backend["type"], over: Partial<Backend> = {}): Backend {
  const shown: RunnerSighting[] = [];
  return {
    type,
    async submit(order) {
      shown.push(...sightingsOf(order));
      return sightingsOf(order);
    },
    list: async () => shown,
    cancel: async () => undefined,
    probe: async () => ({ text: "", array_max: 1 }),
    release: async () => undefined,
    close: async () => undefined,
    ...over,
  };
}

type Sent = { readonly [T in keyof RunnersToServer]: { readonly type: T; readonly data: RunnersToServer[T] } }[keyof RunnersToServer];

/** A loop whose backends are those that `open` returns. pass: lets it look once, with the attributes and runners that the server has. */
function bed(t: TestContext, open: (settings: BackendSettings) => Backend, user: string | null = "me") {
  const directory = mkdtempSync(join(tmpdir(), "partita-loop-"));
  const sent: Sent[] = [];
  const refused: string[] = [];
  let serial = 0;
  let woken = 0;
  const workOf = (attrs: BackendWork["attrs"]): BackendWork => ({
    name: "sl",
    partition: "p1",
    attrs: { type: "slurm", enabled: true, ...attrs },
  });
  const loop = new BackendLoop(workOf({}), {
    complex: "c",
    user,
    directory,
    pause_ms_min: 0,
    argv: ["/bin/runner"],
    env: {},
    ownerOf: (name) => (name === "root" ? null : { name, uid: 1000, gid: 1000, groups: [1000] }),
    open,
    send: (type, data) => void sent.push({ type, data } as Sent),
    record: async () => ++serial,
    note: () => undefined,
    refused: (_partition, _bucket, why) => void refused.push(why),
    changed: () => void woken++,
  });
  t.after(async () => {
    await loop.close();
    rmSync(directory, { recursive: true });
  });
  const pass = async (plan: Plan, { attrs = {}, runners = [] }: { attrs?: BackendWork["attrs"]; runners?: readonly RunnerWork[] } = {}) => {
    loop.update(workOf(attrs), runners, () => plan);
    await loop.idle();
  };
  return { directory, sent, refused, pass, loop, woken: () => woken };
}

const runner = (serial: number, more: Partial<RunnerWork>): RunnerWork => {
  const name = `sl-${serial}-0`;
  return { name, backend: "sl", serial, index: 0, bucket: BUCKET, doing: "busy", asked_s: 0, life_s: 60, ...more };
};

test("loop: a submission without a clear answer is repeated with the attributes that a person has set since", async (t) => {
  const orders: string[] = [];
  const { pass } = bed(t, ({ type, attributes }) => {
    const timeout = String(attributes["command_timeout"]);
    return fake(type, {
      async submit(order) {
        orders.push(`${order.tag} isFirst=${order.isFirst} timeout=${timeout}`);
        if (timeout !== "60") throw fault("transient", "sbatch did not answer", true);
        return sightingsOf(order);
      },
    });
  });
  const slow = { fallback: "hold", command_timeout: 1 };
  await pass(ONE, { attrs: slow });
  await pass(NOTHING, { attrs: { ...slow, command_timeout: 60 } });
  assert.deepEqual(orders, ["c.sl.1 isFirst=true timeout=1", "c.sl.1 isFirst=false timeout=60"]);
});

test("loop: a backend that cannot be opened fails like any other, and this machine takes its jobs, unless its fallback is hold", async (t) => {
  const diverted: string[] = [];
  const open = ({ type }: BackendSettings): Backend => {
    if (type !== "local") throw fault("configuration", "bin is not set");
    return fake(type, {
      async submit(order) {
        diverted.push(`${order.tag} ${order.request.diverted}`);
        return sightingsOf(order);
      },
    });
  };
  const falls = bed(t, open);
  await falls.pass(ONE);
  assert.deepEqual(diverted, ["c.sl.1 true"]);
  assert.equal(falls.loop.planned(0).asks, true);
  assert.deepEqual(
    falls.sent.find(({ type }) => type === "runners-state"),
    { type: "runners-state", data: { backend: "sl", error: "bin is not set" } },
  );
  const holds = bed(t, open);
  await holds.pass(ONE, { attrs: { fallback: "hold" } });
  assert.equal(diverted.length, 1);
  assert.equal(holds.loop.planned(0).asks, false);
});

test("loop: runners that an earlier process started on this machine are not taken for gone while their backend works", async (t) => {
  const { directory, sent, pass } = bed(t, ({ type }) =>
    fake(type, { list: async () => (type === "local" ? sightingsOf({ tag: "c.sl.7", count: 1 }) : []) }),
  );
  mkdirSync(join(directory, "sl.local"));
  await pass(NOTHING, { runners: [runner(7, { away: true }), runner(8, { away: true })] });
  const gone = sent.flatMap((frame) => (frame.type === "runners-gone" ? frame.data.runners.map(({ name }) => name) : []));
  assert.deepEqual(gone, ["sl-8-0"]);
});

test("loop: jobs of a backend whose quota is used up wait for it and do not run on this machine", async (t) => {
  const here: string[] = [];
  const { pass, loop } = bed(t, ({ type }) =>
    fake(type, {
      async submit(order) {
        if (type !== "local") throw fault("limit", "the quota is used up");
        here.push(order.tag);
        return sightingsOf(order);
      },
    }),
  );
  await pass(ONE);
  await pass(ONE);
  assert.deepEqual(here, []);
  assert.equal(loop.planned(0).asks, false);
});

test("loop: a submission that hangs again and again does not keep other buckets from this machine", async (t) => {
  const here: string[] = [];
  const { pass } = bed(t, ({ type }) =>
    fake(type, {
      async submit(order) {
        if (type !== "local") throw fault("transient", "sbatch did not answer", true);
        here.push(order.tag);
        return sightingsOf(order);
      },
    }),
  );
  await pass(ONE);
  await pass(ONE);
  assert.deepEqual(here, ["c.sl.2"]);
});

test("loop: a backend gets the options of the jobs; one that does not take them is asked for no runner of the bucket", async (t) => {
  const options: unknown[] = [];
  const { pass, sent, loop } = bed(t, ({ type }) =>
    fake(type, {
      async submit(order) {
        options.push(order.request.options);
        return sightingsOf(order);
      },
    }),
  );
  const plan: Plan = { ...NOTHING, asks: [{ backend: "sl", bucket: { ...BUCKET, options: "-C fast" }, count: 1, priority: 0 }] };
  await pass(plan);
  assert.deepEqual(options, [{ constraint: "fast" }]);
  await pass(plan, { attrs: { backend_opts_allowed: ["partition"] } });
  assert.equal(options.length, 1);
  assert.ok(loop.planned(Date.now()).refused.has(BUCKET.key));
  assert.deepEqual(
    sent.flatMap(({ type, data }) => (type === "runners-state" ? [data.error] : [])),
    [null],
  );
});

test("loop: what a backend kept of orders that this process does not know is removed when none of their runners is left", async (t) => {
  const released: string[] = [];
  const open = ({ type }: BackendSettings): Backend =>
    fake(type, { kept: () => ["c.sl.1", "c.sl.2", "c.other.3"], release: async (tag) => void released.push(tag) });
  const { pass } = bed(t, open);
  await pass(NOTHING, { runners: [runner(2, {})] });
  assert.deepEqual(released, ["c.sl.1"]);
  await pass(NOTHING);
  assert.deepEqual(released, ["c.sl.1", "c.sl.2"]);
});

test("loop: while runners are expected to come or go, the backend is soon asked again, and then less and less often", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const one = bed(t, ({ type }) => fake(type, { list: async () => sightingsOf({ tag: "c.sl.1", count: 1 }) }));
  const asked = { runners: [runner(1, { doing: "asked" })] };
  await one.pass(NOTHING, asked);
  const waits: number[] = [];
  for (let round = 0; round < 3; round++) {
    const before = one.woken();
    let waited_s = 0;
    for (; one.woken() === before; waited_s++) t.mock.timers.tick(1000);
    waits.push(waited_s);
    await one.pass(NOTHING, asked);
  }
  assert.deepEqual(waits, [2, 4, 8]);
  await one.pass(NOTHING, { runners: [runner(1, { doing: "busy" })] });
  const before = one.woken();
  t.mock.timers.tick(59_000);
  assert.equal(one.woken(), before, "nothing is expected: the next look is that of runner_resync_interval");
});

test("loop: in system mode, runners are asked for as the owner of their jobs; a job with the name of another user's runner is no runner", async (t) => {
  const orders: RunnerOrder[] = [];
  let shown: readonly RunnerSighting[] = [];
  const slurm = fake("slurm", {
    async submit(order) {
      orders.push(order);
      return sightingsOf(order).map((each) => ({ ...each, user: order.owner?.name ?? null }));
    },
    list: async () => shown,
  });
  const { pass, sent, refused } = bed(t, () => slurm, null);
  await pass({ ...ONE, asks: [{ backend: "sl", bucket: { ...BUCKET, owner: "root" }, count: 1, priority: 0 }] });
  assert.deepEqual([orders.length, refused.length], [0, 1]);
  assert.match(String(refused[0]), /^root is no user of the server's host who may have runners/);
  await pass(ONE);
  assert.deepEqual(
    orders.map(({ owner }) => owner?.name),
    ["a"],
  );
  const gone = (): number => sent.filter(({ type }) => type === "runners-gone").length;
  const [real] = orders.flatMap(sightingsOf);
  assert.ok(real !== undefined);
  shown = [{ ...real, user: "a", state: "running" }];
  await pass(NOTHING, { runners: [runner(1, { doing: "lost" })] });
  assert.equal(gone(), 0, "the owner's job is the runner");
  shown = [{ ...real, user: "mallory", state: "running" }];
  await pass(NOTHING, { runners: [runner(1, { doing: "lost" })] });
  assert.equal(gone(), 1, "the job of somebody else is not");
});
