// How long the server waits for a mom that it has lost before it starts the mom's jobs elsewhere (mom-link.ts I7), and what it tells the moms.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { MomGrace, MomToServer } from "#protocol/mom-link.ts";
import {
  addHost,
  addJob,
  advance,
  apply,
  ask,
  type Harness,
  harness,
  jobAttrs,
  logsOf,
  mom,
  obit,
  ROOT,
  restart,
  runOn,
  settle,
  stateOf,
} from "../harness.ts";

const LINK = 200;

/** A mom that heeds its grace says hello. grace: what it knows */
function hello(h: Harness, link: number, jobs: MomToServer["mom-hello"]["jobs"] = [], grace: MomGrace | null = null): void {
  const resources_available = { ncpus: 4, mem: "8gb", arch: "linux" };
  const vnodes = [{ name: "n1", attrs: { resources_available, pcpus: 4, sharing: "default_shared" } }];
  mom(h, link, "mom-hello", { host: "n1", port: 15002, pid: 1, version: "x", vnodes, jobs, pongs: true, grace });
}

const set = (h: Harness, attrs: Readonly<Record<string, number>>): void => apply(h, { kind: "server-changed", set: attrs, unset: [] });
const graceOf = (h: Harness, link = LINK): MomGrace | undefined => h.core.graceOf(link)?.grace;
const lose = (h: Harness, link = LINK): void => {
  h.core.momLost(link, h.now_ms);
  settle(h);
};
let reports = 0;
const reportsIn = (h: Harness, grace: number, link = LINK): void => mom(h, link, "mom-report", { number: ++reports, grace });

/** A complex with a job on n1, whose mom heeds its grace and knows the present one. */
function world(node_fail_requeue?: number): { readonly h: Harness; readonly job: string } {
  const h = harness();
  addHost(h, "n1");
  if (node_fail_requeue !== undefined) set(h, { node_fail_requeue });
  hello(h, LINK);
  const job = addJob(h);
  runOn(h, job, "n1", LINK);
  reportsIn(h, graceOf(h)?.number ?? -1);
  return { h, job };
}

/** Loses the mom and returns the seconds until its job is queued again; null: that does not happen in a day. */
function requeuedAfter_s(h: Harness, job: string, link = LINK): number | null {
  lose(h, link);
  for (let passed_s = 0; passed_s <= 86_400; passed_s += 1) {
    if (stateOf(h, job) === "Q 10") return passed_s;
    advance(h, passed_s < 1000 ? 1 : 600);
    if (passed_s >= 1000) passed_s += 599;
  }
  return null;
}

// biome-ignore format: a table
const VALUES: readonly (readonly [set: number | undefined, told_s: number, requeued_s: number | null])[] = [
  [undefined, 310, 310], [60, 60, 60], [5, 10, 10], [-5, 10, 10], [0, 0, null],
];
for (const [value, told_s, requeued_s] of VALUES) {
  test(`node_fail_requeue ${value ?? "unset"}: the mom is told ${told_s} s, and its jobs are queued again after ${requeued_s ?? "ever"}`, () => {
    const { h, job } = world(value);
    assert.deepEqual([graceOf(h)?.requeue_s, graceOf(h)?.sister_s], [told_s, 300]);
    assert.equal(requeuedAfter_s(h, job), requeued_s);
  });
}

test("the grace counts from the mom's last message, node_fail_requeue from its loss; node_requeue_min bounds the grace", () => {
  const { h, job } = world(5);
  advance(h, 8);
  assert.equal(requeuedAfter_s(h, job), 5, "the mom was silent for 8 s already");
  const other = world(5);
  set(other.h, { node_requeue_min: 30 });
  reportsIn(other.h, graceOf(other.h)?.number ?? -1);
  assert.equal(requeuedAfter_s(other.h, other.job), 30);
});

test("a lower value counts when the mom has named it; until then the server waits for what the mom may know", () => {
  const { h, job } = world(100);
  set(h, { node_fail_requeue: 20 });
  const told = graceOf(h);
  assert.equal(told?.requeue_s, 20);
  assert.equal(requeuedAfter_s(h, job), 100, "the answer may have been lost");
  const named = world(100);
  set(named.h, { node_fail_requeue: 20 });
  reportsIn(named.h, graceOf(named.h)?.number ?? -1);
  assert.equal(requeuedAfter_s(named.h, named.job), 20);
});

test("a job that shortens the grace of its sister says so with the start, and the shorter one counts once the mom has named it", () => {
  const { h } = world();
  const mother = addHost(h, "n2");
  mom(h, mother, "mom-vnodes", { vnodes: [], patience: { downtime_s: 40 } });
  const told = (): unknown[] => h.to_moms.filter(({ link, type }) => link === LINK && type === "mom-heard").map(({ data }) => data);
  const start = (): string => {
    const id = addJob(h, { schedselect: "2:ncpus=1" });
    ask(h, ROOT, { kind: "run-job", job: id, exec_vnode: "(n2:ncpus=1)+(n1:ncpus=1)", async: true });
    return id;
  };
  start();
  const number = graceOf(h)?.number ?? -1;
  assert.deepEqual(told(), [{ number: 0, grace: { number, requeue_s: 310, sister_s: 40 } }]);
  start();
  assert.equal(told().length, 1, "the second job changes nothing");
  assert.equal(h.core.kernel.moms.by_host.get("n1")?.graces?.length, 2);
  reportsIn(h, number);
  lose(h);
  assert.equal(h.core.kernel.moms.lost.get("n1")?.sister_s, 40);
});

test("a mom that was told to wait for ever is waited for until it has heard of the change", () => {
  const { h, job } = world(0);
  set(h, { node_fail_requeue: 20 });
  assert.equal(requeuedAfter_s(h, job), null);
});

test("a report that arrives late does not bring an old grace back", () => {
  const { h, job } = world(100);
  const old = graceOf(h)?.number ?? -1;
  set(h, { node_fail_requeue: 20 });
  const number = graceOf(h)?.number ?? -1;
  mom(h, LINK, "mom-report", { number: 1000, grace: number });
  mom(h, LINK, "mom-report", { number: 999, grace: old });
  assert.equal(requeuedAfter_s(h, job), 20);
});

test("a mom that connects again goes by what it says in its hello until it names what the welcome says", () => {
  const { h, job } = world(20);
  const held: MomToServer["mom-hello"]["jobs"] = [{ job, run_count: 1, state: "running" }];
  hello(h, LINK + 1, held, { number: 7, requeue_s: 500, sister_s: 300 });
  assert.equal(graceOf(h, LINK + 1)?.requeue_s, 20);
  assert.equal(requeuedAfter_s(h, job, LINK + 1), 500);
});

test("a mom of an earlier release is told nothing, and node_fail_requeue counts as before", () => {
  const h = harness();
  const link = addHost(h, "n1");
  set(h, { node_fail_requeue: 3 });
  const job = addJob(h);
  runOn(h, job, "n1", link);
  assert.deepEqual(h.core.graceOf(link), {});
  assert.equal(requeuedAfter_s(h, job, link), 3);
});

test("a connection without a mom gets no answer", () => {
  const { h } = world();
  lose(h);
  assert.deepEqual([h.core.graceOf(LINK), h.core.graceOf(12_345)], [null, null]);
});

test("after a restart the server waits at least node_requeue_min, also if node_fail_requeue is shorter", () => {
  const { h, job } = world(-1);
  restart(h);
  advance(h, 9);
  assert.equal(stateOf(h, job), "R 42");
  advance(h, 1);
  assert.equal(stateOf(h, job), "Q 10");
});

test("a value that is lowered while the mom is cut off does not shorten the wait of the next server", () => {
  const { h, job } = world(400);
  lose(h);
  set(h, { node_fail_requeue: 30 });
  restart(h);
  advance(h, 395);
  assert.equal(stateOf(h, job).startsWith("R"), true);
  advance(h, 10);
  assert.equal(stateOf(h, job), "Q 10");
});

test("once the mom has named the lower value, the next server waits only for that one", () => {
  const { h, job } = world(400);
  set(h, { node_fail_requeue: 30 });
  reportsIn(h, graceOf(h)?.number ?? -1);
  lose(h);
  restart(h);
  advance(h, 35);
  assert.equal(stateOf(h, job), "Q 10");
});

test("the log says why a host has ended a job by itself, and the job is queued again once", () => {
  const { h, job } = world();
  const said = "ended by its host, which was cut off from the server for too long";
  mom(h, LINK, "mom-obit", { job, run_count: 1, exit_status: -20, used: {}, message: said });
  assert.equal(stateOf(h, job), "Q 10");
  assert.ok(logsOf(h, job).some((text) => text.includes(said)));
  assert.equal(jobAttrs(h, job).run_count, 1);
  obit(h, LINK, job, -20, 1);
  assert.equal(stateOf(h, job), "Q 10");
});
