// Moms that stop answering: their vnodes, their unconfirmed starts, and the state that they find when they continue.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { ServerToMom } from "#protocol/mom-link.ts";
import {
  addHost,
  addJob,
  advance,
  askOk,
  type Harness,
  harness,
  jobAttrs,
  lettersOf,
  mom,
  momHello,
  outcome,
  ROOT,
  restart,
  runOn,
  stateOf,
} from "../harness.ts";

const sent = <T extends keyof ServerToMom>(h: Harness, type: T): ServerToMom[T][] =>
  h.to_moms.filter((frame) => frame.type === type).map((frame) => frame.data as ServerToMom[T]);
const send = (h: Harness, job: string, exec_vnode: string): unknown => askOk(h, ROOT, { kind: "run-job", job, exec_vnode, async: true });
const node = (h: Harness, name = "n1"): string => {
  const { state, comment } = h.core.state.vnodes.get(name)?.attrs ?? {};
  return [(state as string[]).join() || "free", ...(comment === undefined ? [] : [comment])].join(": ");
};
const setServer = (h: Harness, value: string): string =>
  outcome(h, ROOT, {
    kind: "manager",
    verb: "set",
    object: "server",
    name: "",
    attrs: [{ name: "node_silence_timeout", op: "=", value }],
  });
const dropped = (h: Harness): number => h.actions.filter(({ kind }) => kind === "drop-link").length;
/** Seconds until the state of the vnode changes. */
function secondsUntilChange(h: Harness): number {
  const before = node(h);
  for (let seconds = 1; seconds <= 1000; seconds++) {
    advance(h, 1);
    if (node(h) !== before) return seconds;
  }
  return Number.POSITIVE_INFINITY;
}

test("a silent mom is noticed: its vnodes are unknown within 45 seconds, its connection ends, and later they are down", () => {
  const h = harness();
  const link = addHost(h, "n1");
  advance(h, 500);
  assert.equal(node(h), "free", "a mom that answers is there");
  h.silent.add(link);
  const seconds = secondsUntilChange(h);
  assert.ok(seconds > 20 && seconds <= 45, `${seconds}`);
  assert.equal(node(h), "state-unknown: node unknown: the mom has not answered for 45 seconds");
  assert.equal(dropped(h), 1);
  assert.equal(secondsUntilChange(h), 45);
  assert.equal(node(h), "state-unknown,down: node down: the mom has not answered for 90 seconds");
  momHello(h, link + 10, "n1");
  assert.equal(node(h), "free");
  assert.ok(h.logs.some(({ text }) => text === "node up"));
});

test("a mom is given up when its last word is as old as the comment says, not sooner", () => {
  const h = harness();
  const link = addHost(h, "n1");
  advance(h, 20);
  h.silent.add(link);
  mom(h, link, "mom-usage", { jobs: [] });
  assert.equal(secondsUntilChange(h), 45);
});

test("a mom of an earlier release is not asked, and not taken for silent: it knows no pings", () => {
  const h = harness();
  const link = addHost(h, "n1");
  const vnodes = [{ name: "n1", attrs: { resources_available: { ncpus: 4 } } }];
  mom(h, link + 10, "mom-hello", { host: "n1", port: 15002, pid: 1, version: "23.06.06", vnodes, jobs: [] });
  h.to_moms.length = 0;
  h.silent.add(link + 10);
  setServer(h, "20");
  const job = addJob(h);
  send(h, job, "(n1:ncpus=1)");
  advance(h, 500);
  assert.equal(node(h), "free");
  assert.deepEqual(
    h.to_moms.map(({ type }) => type),
    ["mom-start"],
  );
  assert.equal(h.core.kernel.moms.by_host.get("n1")?.sent.size, 0, "nothing is kept for an answer that never comes");
});

test("the time is node_silence_timeout, from when it is set; 0: moms are not asked", () => {
  for (const [value, most] of [
    ["4", 4],
    ["200", 200],
    ["0", Number.POSITIVE_INFINITY],
  ] as const) {
    const h = harness();
    const link = addHost(h, "n1");
    assert.equal(setServer(h, value), "ok");
    h.silent.add(link);
    const seconds = secondsUntilChange(h);
    assert.ok(most === Number.POSITIVE_INFINITY ? seconds === most : seconds <= most && seconds > most / 3, `${value}: ${seconds}`);
  }
});

test("a start that a silent mom has not taken goes elsewhere; what it has taken waits for it, and runs nowhere twice", () => {
  for (const taken of [false, true]) {
    const h = harness();
    const link = addHost(h, "n1");
    addHost(h, "n2");
    const job = addJob(h);
    h.silent.add(link);
    send(h, job, "(n1:ncpus=1)");
    if (taken) mom(h, link, "mom-accepted", { runs: [{ job, run_count: 1 }] });
    advance(h, 46);
    assert.equal(stateOf(h, job), taken ? "R 41" : "Q 10");
    if (taken) {
      // The mom continues, and sends hello with its jobs.
      momHello(h, link + 10, "n1", [{ job, run_count: 1, state: "starting" }]);
      assert.deepEqual(sent(h, "mom-welcome").at(-1), { keep: [job], kill: [], acknowledged: [] });
      continue;
    }
    assert.equal(lettersOf(h, job), "Q", "it has not begun");
    send(h, job, "(n2:ncpus=1)");
    assert.equal(jobAttrs(h, job).run_count, 2);
    // The mom had received the start just before it was stopped, or just after: the run is not wanted any more.
    momHello(h, link + 10, "n1", [{ job, run_count: 1, state: "starting" }]);
    assert.deepEqual(sent(h, "mom-welcome").at(-1), { keep: [], kill: [job], acknowledged: [] });
    assert.equal(
      sent(h, "mom-start")
        .flatMap(({ jobs }) => jobs)
        .filter(({ exec_host }) => exec_host.startsWith("n1")).length,
      1,
    );
  }
});

test("a running job of a silent mom waits for it, until node_fail_requeue is over", () => {
  const h = harness();
  const link = addHost(h, "n1");
  const job = addJob(h);
  runOn(h, job, "n1", link);
  h.silent.add(link);
  advance(h, 300);
  assert.equal(stateOf(h, job), "R 42");
  advance(h, 60);
  assert.equal(stateOf(h, job), "Q 10");
});

test("a start over several hosts goes back when its mother superior, who is silent, has not taken it", () => {
  const h = harness();
  const [n1, n2] = [addHost(h, "n1"), addHost(h, "n2")] as const;
  const job = addJob(h);
  send(h, job, "(n1:ncpus=1)+(n2:ncpus=1)");
  mom(h, n2, "mom-started", { job, run_count: 1, session_id: 7, jobdir: "/" });
  assert.equal(sent(h, "mom-start").length, 2);
  h.silent.add(n1);
  advance(h, 46);
  assert.equal(stateOf(h, job), "R 41", "until its sister has let it go");
  assert.equal(sent(h, "mom-terminate").length, 1);
  mom(h, n2, "mom-obit", { job, run_count: 1, exit_status: 271, used: {} });
  assert.equal(stateOf(h, job), "Q 10");
});

test("what the server itself did not do for a time is no mom's silence", () => {
  const h = harness();
  const link = addHost(h, "n1");
  h.silent.add(link);
  advance(h, 10);
  // The server or its machine was stopped: frames that arrived meanwhile are unread.
  h.now_ms += 100_000;
  h.core.tick(h.now_ms);
  assert.equal(node(h), "free");
  assert.ok(secondsUntilChange(h) <= 45, "from then on it counts");
});

test("a mom that answers and can start nothing: its vnodes are unknown, with the reason, until it is well", () => {
  const h = harness();
  const link = addHost(h, "n1");
  mom(h, link, "mom-pong", { number: 1, ill: "the starter of its jobs does not answer" });
  assert.equal(node(h), "state-unknown: node unknown: the starter of its jobs does not answer");
  const job = addJob(h);
  assert.match(outcome(h, ROOT, { kind: "run-job", job, exec_vnode: "(n1:ncpus=1)", async: true }), /Server could not connect to MOM/);
  mom(h, link, "mom-vnodes", { vnodes: [{ name: "n1", attrs: { resources_available: { ncpus: 8 } } }] });
  assert.equal(node(h), "state-unknown: node unknown: the starter of its jobs does not answer", "new vnodes do not make it well");
  mom(h, link, "mom-pong", { number: 2 });
  assert.equal(node(h), "free");
});

test("after a restart of the server a start under way waits for its mom: who knows what it has taken", () => {
  const h = harness();
  addHost(h, "n1");
  const job = addJob(h);
  send(h, job, "(n1:ncpus=1)");
  restart(h);
  advance(h, 200);
  assert.equal(stateOf(h, job), "R 41");
});
