// The adapter for Grid Engine against a real Grid Engine.

import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { BackendError } from "#backends/contract/fault.ts";
import { request } from "../../../backends/order.ts";
import { until } from "../../complex.ts";
import { mixedJobs } from "../mixed-jobs.ts";
import { writer, written } from "../runner-script.ts";
import { gridEngineSeat } from "./mixed-seats.ts";
import { bed, peerEnv, STATE, startFreshPeer, startPeer, stopPeer, whyNoPeer } from "./peer-bed.ts";

const skip = whyNoPeer("gridengine") ?? false;

before(() => skip === false && startFreshPeer("gridengine", { SGE_TUNED: "1" }));
after(() => skip === false && stopPeer("gridengine"));

const attributes = (more: Record<string, string | number> = {}) => {
  const env = peerEnv("gridengine");
  return {
    bin: "/usr/lib/gridengine",
    root: env["SGE_ROOT"] ?? "",
    cell: env["SGE_CELL"] ?? "",
    config: join(STATE, "gridengine", "env"),
    ...more,
  };
};

test("Grid Engine runs the runners of an array as their owner, and shows them until they end", { skip }, async (t) => {
  const { dir, open, order } = bed(t, "gridengine");
  const engine = open(attributes({ parallel_env: "make", repo_key: "repo:" }));
  assert.deepEqual(await engine.probe(), { text: "SGE 8.1.9", array_max: 75_000 });
  const asked = order({ count: 3, argv: writer(dir), env: { SITE: "it's $HOME" }, request: request({ ncpus: 2 }) });
  const submitted = await engine.submit(asked);
  for (const index of [0, 1, 2]) {
    const lines = (await until(`runner ${index}`, () => written(dir, asked.tag, index))).split("\n");
    assert.deepEqual(lines.slice(0, 2), ["batch1", `secret-${index}`]);
    assert.ok(lines.includes("SITE=it's $HOME"), lines.join("\n"));
    assert.ok(lines.includes("NSLOTS=2"), lines.join("\n"));
  }
  const seen = (await engine.list()).toSorted((a, b) => a.index - b.index);
  assert.deepEqual(
    seen.map(({ id, state, user, host }) => [id, state, user, host]),
    submitted.map(({ id }) => [id, "running", "batch1", "localhost"]),
  );
  writeFileSync(join(dir, "go"), "");
  await until("the end of the runners", async () => (await engine.list()).every(({ state }) => state === "ended"));
});

test("B1: a submission to a Grid Engine whose answer never came is not repeated", { skip }, async (t) => {
  const { dir, open, order } = bed(t, "gridengine");
  const patient = open(attributes());
  await patient.probe();
  const hasty = open(attributes({ command_timeout: 3 }));
  await hasty.probe();
  const asked = order({ count: 2, argv: writer(dir) });
  await until("the facts are known", async () => (await hasty.submit(order({ argv: ["/bin/true"] }))).length === 1);
  const pid = Number(readFileSync(join(STATE, "gridengine", "qmaster", "qmaster.pid"), "latin1"));
  process.kill(pid, "SIGSTOP");
  try {
    await assert.rejects(hasty.submit(asked), (error) => {
      assert.ok(error instanceof BackendError, String(error));
      assert.match(error.message, /qsub did not answer within 3 s/);
      return error.kind === "transient" && error.uncertain;
    });
  } finally {
    process.kill(pid, "SIGCONT");
  }
  await until("the second submission", () => patient.submit({ ...asked, isFirst: false }).catch(() => undefined));
  await patient.submit({ ...asked, isFirst: false });
  const live = await until("one submission of two runners", async () => {
    const all = (await patient.list()).filter(({ tag, state }) => tag === asked.tag && state === "running");
    return all.length === 2 && all;
  });
  assert.equal(new Set(live.map(({ id }) => id.split(".")[0])).size, 1);
  await patient.cancel(live);
  await until("no runner", async () => (await patient.list()).every(({ state }) => state === "ended"));
});

test("what Grid Engine refuses is told in its words, by kind", { skip }, async (t) => {
  const { open, order } = bed(t, "gridengine");
  const engine = open(attributes());
  const refusal = async (parts: Parameters<typeof request>[0], with_ = engine): Promise<string> => {
    try {
      await with_.submit(order({ request: request(parts) }));
      return "accepted";
    } catch (error) {
      assert.ok(error instanceof BackendError, String(error));
      return `${error.kind}: ${error.message}`;
    }
  };
  assert.match(await refusal({ resources: { nosuch: 1 } }), /^impossible: .*unknown resource "nosuch"/);
  assert.match(await refusal({ resources: { arch: "nosuch" } }), /^impossible: .*no suitable queues/);
  assert.match(await refusal({ ncpus: 2 }), /^configuration: .*parallel_env/);
  assert.match(await refusal({}, open(attributes({ remote_queue: "nosuch" }))), /^configuration: .*unknown queue "nosuch"/);
  assert.match(await refusal({ ncpus: 2 }, open(attributes({ parallel_env: "nosuch" }))), /^configuration: .*does not exist/);
  assert.match(await refusal({}, open(attributes({ root: "/nonexistent" }))), /^configuration: /);
});

test("waiting runners are cancelled alone if that is wished; a job in error state tells its reason", { skip }, async (t) => {
  const { dir, open, order } = bed(t, "gridengine");
  const engine = open(attributes({ parallel_env: "make" }));
  const asked = order({ count: 3, argv: writer(dir), request: request({ ncpus: 24 }) });
  await engine.submit(asked);
  await until("two of three on 64 slots", async () => {
    const all = await engine.list();
    return all.filter(({ state }) => state === "running").length === 2 && all.some(({ state }) => state === "queued");
  });
  await engine.reschedule?.(await engine.list(), { start_s: null, priority: -100 });
  await engine.cancel(await engine.list(), { queued_only: true });
  await until("two runners", async () => {
    const all = await engine.list();
    return all.filter(({ state }) => state === "running").length === 2 && all.every(({ state }) => state !== "queued");
  });
  await engine.cancel(await engine.list());
  const broken = open(attributes({ output_dir: "/nonexistent" }));
  const { tag } = order();
  await broken.submit(order({ tag: `${tag}0` }));
  const told = await until("the reason", async () =>
    (await broken.list()).find(({ fault }) => fault !== null && /can't open output file/.test(fault.text)),
  );
  assert.equal(told.fault?.kind, "configuration");
});

test("a Grid Engine that is not there is transient, and its jobs are found again", { skip }, async (t) => {
  const { dir, open, order } = bed(t, "gridengine");
  const engine = open(attributes());
  const asked = order({ argv: writer(dir) });
  const [runner] = await engine.submit(asked);
  await until("the runner", () => written(dir, asked.tag, 0));
  const pid = Number(readFileSync(join(STATE, "gridengine", "qmaster", "qmaster.pid"), "latin1"));
  process.kill(pid, "SIGTERM");
  await until("the end of the qmaster", async () => {
    const error: unknown = await engine.list().then(
      () => undefined,
      (caught: unknown) => caught,
    );
    if (error !== undefined) assert.ok(error instanceof BackendError && error.kind === "transient", String(error));
    return error !== undefined;
  });
  startPeer("gridengine", { SGE_TUNED: "1" });
  const again = await engine.submit({ ...asked, isFirst: false });
  assert.deepEqual(
    again.map(({ id }) => id),
    [runner?.id],
  );
});

test("mixed jobs on runners that Grid Engine starts complete exactly once", { skip }, async (t) => {
  t.diagnostic(JSON.stringify(await mixedJobs(gridEngineSeat)));
});
