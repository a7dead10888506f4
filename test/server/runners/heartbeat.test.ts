// The heartbeat of pbs_runners (src/server/runners/heartbeat.ts), and what jobs without a walltime get in a partition with runners.

import assert from "node:assert/strict";
import { test } from "node:test";
import {
  ALICE,
  addHost,
  addJob,
  addQueue,
  addSched,
  advance,
  apply,
  askOk,
  type Harness,
  harness,
  ROOT,
  runners,
  schedHello,
} from "../harness.ts";

const LINK = 50;

function world(attrs: { readonly [name: string]: unknown } = {}): Harness {
  const h = harness();
  addHost(h, "n1");
  addQueue(h, "pq", { partition: "p1" });
  addQueue(h, "other", { partition: "p2" });
  addSched(h, "s1", { partition: ["p1"], sched_priv: "/home/pbs/sched_priv_s1", sched_log: "/home/pbs/sched_logs_s1", scheduling: true });
  schedHello(h, 7, "s1");
  apply(h, {
    kind: "created",
    object: "backend",
    name: "sl",
    attrs: { type: "local", partition: "p1", enabled: true, max_runners: 4, runner_idle_wait: 2, ...attrs },
  });
  return h;
}

const pings = (h: Harness): readonly number[] =>
  h.to_runners.flatMap(({ type, data }) => (type === "runners-ping" ? [(data as { number: number }).number] : []));
const kills = (h: Harness): readonly object[] => h.actions.filter(({ kind }) => kind === "kill-runners" || kind === "drop-link");

test("pbs_runners: one that answers stays; one that is silent for sched_silence_timeout is killed", () => {
  const h = world();
  runners(h, LINK, "runners-hello", { pid: 4711, pongs: true });
  for (let at = 0; at < 20; at++) {
    advance(h, 12);
    runners(h, LINK, "runners-pong", { number: pings(h).at(-1) ?? 0 });
  }
  assert.ok(pings(h).length > 15);
  assert.deepEqual(kills(h), []);
  for (let at = 0; at < 4; at++) advance(h, 11);
  assert.deepEqual(kills(h), []);
  advance(h, 12);
  assert.deepEqual(kills(h), [
    { kind: "kill-runners", pid: 4711 },
    { kind: "drop-link", link: LINK },
  ]);
});

test("pbs_runners: it is not asked if it does not know the question, if schedulers are not asked either, and not blamed while the server stood still", () => {
  const old = world();
  runners(old, LINK, "runners-hello", { pid: 4711 });
  advance(old, 200);
  assert.deepEqual([pings(old), kills(old)], [[], []]);
  const off = world();
  askOk(off, ROOT, {
    kind: "manager",
    verb: "set",
    object: "server",
    name: "",
    attrs: [{ name: "sched_silence_timeout", op: "=", value: "0" }],
  });
  runners(off, LINK, "runners-hello", { pid: 4711, pongs: true });
  advance(off, 200);
  assert.deepEqual([pings(off), kills(off)], [[], []]);
  const slept = world();
  runners(slept, LINK, "runners-hello", { pid: 4711, pongs: true });
  slept.now_ms += 600_000;
  advance(slept, 0);
  assert.deepEqual(kills(slept), []);
  assert.equal(pings(slept).length, 2);
});

test("default_walltime of a backend is the walltime of jobs that get none from elsewhere, and goes with a move to another queue", () => {
  const h = world({ default_walltime: 7200 });
  const walltime = (id: string): unknown => h.core.state.jobs.get(id)?.attrs.Resource_List["walltime"];
  const submit = (queue: string, ...list: readonly (readonly [string, string])[]): string =>
    (
      askOk(h, ALICE, {
        kind: "queue-job",
        destination: queue,
        attrs: list.map(([resource, value]) => ({ name: "Resource_List", resource, value })),
        script: "x",
      }) as { readonly id: string }
    ).id;
  const id = submit("pq");
  assert.equal(walltime(id), 7200);
  assert.equal(walltime(submit("pq", ["walltime", "60"])), 60);
  assert.equal(walltime(submit("other")), undefined);
  askOk(h, ALICE, { kind: "move-job", job: id, destination: "other" });
  assert.equal(walltime(id), undefined);
  apply(h, { kind: "changed", object: "queue", name: "pq", set: { resources_default: { walltime: 30 } }, unset: [] });
  assert.equal(walltime(submit("pq")), 30);
});

test("jobs without a walltime that no backend can run are told what helps", () => {
  const h = world();
  runners(h, LINK, "runners-hello", { pid: 4711, pongs: true });
  const id = addJob(h, { queue: "pq", schedselect: "1:ncpus=1", Resource_List: { select: "1:ncpus=1", place: "free" } });
  advance(h, 1);
  runners(h, LINK, "runners-impossible", { bucket: "alice:pq:_pbs_project_default:ncpus=1", why: "time limit exceeds the partition's" });
  assert.match(String(h.core.state.jobs.get(id)?.attrs["comment"]), /partition's \(the job requests no walltime: .* default_walltime/);
});
