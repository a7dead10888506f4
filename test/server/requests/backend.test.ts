// Backends: qmgr, their rows after a restart, and what jobs of their partition are told (docs/runners.md).

import assert from "node:assert/strict";
import { test } from "node:test";
import type { StatusItem } from "#protocol/messages.ts";
import type { ServerToRunners } from "#protocol/runner-link.ts";
import type { SchedQueue } from "#protocol/sched-link.ts";
import { startAll } from "#server/runners/controller.ts";
import {
  ALICE,
  addHost,
  addJob,
  addQueue,
  addSched,
  advance,
  apply,
  CONFIG,
  type Harness,
  harness,
  restart,
  runners,
  schedHello,
  statusOf,
} from "../harness.ts";
import { session, shown } from "./qmgr.ts";

const S1 = { partition: ["p1"], sched_priv: "/home/pbs/sched_priv_s1", sched_log: "/home/pbs/sched_logs_s1", scheduling: true };

test("backend: create, set, unset, print and delete", async () => {
  const h = harness();
  await session(h, [
    ["alice: create backend sl", "15007 Unauthorized Request "],
    ["create backend sl type=slurm"],
    ["create backend sl", "15004 backend sl exists already"],
    ["create backend s-l", "15172 Invalid object name"],
    ["create backend x type=torque", "15014 Illegal attribute or resource value"],
    ["set backend sl partition=cloud,max_runners=4,enabled=t"],
    ["set backend sl type=local", "15004 the type of a backend that is enabled cannot be changed: set enabled=False first"],
    ["set backend sl state=ready", "15003 Cannot set attribute, read only or insufficient permission  state"],
    ["set backend other max_runners=1", "15004 Unknown backend other"],
    ["create backend none"],
    ["set backend none enabled=t", "15004 a backend needs a type before it is enabled"],
    ["delete backend none"],
    ["unset backend sl max_runners"],
  ]);
  const seen = (name: string): unknown => shown(h, "backend", "sl", name);
  assert.deepEqual([seen("type"), seen("max_runners"), seen("fallback"), seen("retries")], ["slurm", "100", "local", "0"]);
  assert.deepEqual([seen("state"), seen("state_count")], ["starting", "Asked:0 Idle:0 Busy:0 Lost:0"]);
  await session(h, [["set backend sl enabled=f"]]);
  assert.equal(seen("state"), "disabled");
});

test("backend: its type does not change while it has runners, of which another type would know nothing", async () => {
  const h = harness();
  await session(h, [["create backend sl type=slurm"]]);
  const bucket = { key: "b", owner: "a", queue: "q", project: "p", ncpus: 1, mem_kb: 0, tmp_kb: 0, walltime_s: null, resources: {} };
  const attrs = { backend: "sl", serial: 1, index: 0, bucket, digest: "a".repeat(64), asked_s: 0, life_s: 60 };
  apply(h, { kind: "created", object: "runner", name: "sl-1-0", attrs });
  const why = "15004 the type of a backend with runners cannot be changed: set enabled=False and wait until its 1 runners have ended";
  await session(h, [["set backend sl type=local", why], ["set backend sl comment=x"]]);
  apply(h, { kind: "deleted", object: "runner", name: "sl-1-0" });
  await session(h, [["set backend sl type=local"]]);
});

test("backend: in a complex with two servers none is enabled, and one that was enabled before fails and starts nothing", async () => {
  const h = harness();
  await session(h, [["create backend old type=slurm,enabled=t,partition=p1"], ["create backend sl type=slurm"]]);
  const pair = { role: "primary", host: "svr", other: "spare", standbys: () => [] } as const;
  Object.assign(h.core.kernel, { config: { ...CONFIG, pair } });
  const why =
    "runners cannot be used in a complex with two servers yet: take PBS_PRIMARY and PBS_SECONDARY out of pbs.conf first, or use no backends";
  await session(h, [
    ["set backend sl enabled=t", `15004 ${why}`],
    ["create backend more type=local,enabled=t", `15004 ${why}`],
    ["set backend old max_runners=3"],
    ["set backend sl max_runners=3"],
  ]);
  restart(h);
  Object.assign(h.core.kernel, { config: { ...CONFIG, pair } });
  startAll(h.core.kernel);
  advance(h, 1);
  const seen = (name: string, backend: string): unknown => shown(h, "backend", backend, name);
  assert.deepEqual([seen("state", "old"), seen("last_error", "old"), seen("state", "sl")], ["failing", why, "disabled"]);
  runners(h, 50, "runners-hello", { pid: 9 });
  runners(h, 50, "runners-state", { backend: "old", error: null });
  assert.equal(seen("state", "old"), "failing", "the controller does not know better");
  const work = h.to_runners.findLast(({ type }) => type === "runners-work")?.data as ServerToRunners["runners-work"];
  assert.deepEqual(
    work.backends.map(({ name, attrs }) => [name, attrs["enabled"]]),
    [
      ["old", false],
      ["sl", false],
    ],
  );
  runners(h, 50, "runners-ask", { token: 1, backend: "old", bucket: "b", life_s: 60, digests: ["a".repeat(64)] });
  assert.equal(h.core.state.runners.size, 0);
  await session(h, [["set backend old enabled=f"]]);
  assert.equal(seen("state", "old"), "disabled");
});

/** A partition p1 with a scheduler, a queue, no vnodes, and a backend that is not enabled. */
function world(): Harness {
  const h = harness();
  addHost(h, "n1");
  addQueue(h, "pq", { partition: "p1" });
  addSched(h, "s1", S1);
  schedHello(h, 7, "s1");
  apply(h, { kind: "created", object: "backend", name: "sl", attrs: { type: "slurm", partition: "p1" } });
  return h;
}
const set = (h: Harness, attrs: { [name: string]: unknown }): void =>
  apply(h, { kind: "changed", object: "backend", name: "sl", set: attrs, unset: [] });
const commentOf = (h: Harness, job: string): unknown => {
  const [item] = statusOf(h, ALICE, { kind: "status", object: "job", ids: [job] }) as StatusItem[];
  assert.ok(item !== undefined && "attrs" in item);
  return item.attrs["comment"];
};

test("backend: a partition with an enabled backend and no vnodes is not now, never Can Never Run", () => {
  const h = world();
  const job = addJob(h, { queue: "pq" });
  assert.match(String(commentOf(h, job)), /has no vnodes/);
  set(h, { enabled: true });
  assert.match(String(commentOf(h, job)), /^Not Running: No runner of backend sl is connected yet, 0 are asked for/);
  set(h, { state: "failing", last_error: "sbatch: error: invalid partition specified: x" });
  assert.match(String(commentOf(h, job)), /^Not Running: Backend sl fails: sbatch: error: invalid partition specified: x/);
});

test("backend: its scheduler is told whether runners can come, and its row survives a restart", () => {
  const h = world();
  const elastic = (): unknown => {
    const queues = h.to_scheds.flatMap(({ data }) => {
      const frame = data as {
        readonly queues?: readonly SchedQueue[];
        readonly changes?: readonly { readonly put?: string; readonly value: SchedQueue }[];
      };
      return [...(frame.queues ?? []), ...(frame.changes ?? []).flatMap(({ put, value }) => (put === "queue" ? [value] : []))];
    });
    return queues.findLast(({ name }) => name === "pq")?.attrs["elastic"];
  };
  assert.equal(elastic(), undefined);
  set(h, { enabled: true });
  assert.equal(elastic(), true);
  set(h, { enabled: false });
  assert.equal(elastic(), undefined);
  set(h, { enabled: true, max_runners: 4 });
  restart(h);
  assert.deepEqual(h.core.state.backends.get("sl")?.attrs, { type: "slurm", partition: "p1", enabled: true, max_runners: 4 });
});
