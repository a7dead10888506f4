// Moms of other hosts: missing reports, the question that follows, what their reports change, and starts that they confirm.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { MomReport, MomToServer, ServerToMom } from "#protocol/mom-link.ts";
import { addHost, addJob, advance, askOk, type Harness, harness, jobAttrs, mom, outcome, ROOT, runOn, stateOf } from "../harness.ts";

const LINK = 500;

/** A host whose mom reports over the network every 15 seconds, and answers no question by itself. Questions of the server are counted from its hello. */
function farHost(h: Harness, name: string, link: number, jobs: MomToServer["mom-hello"]["jobs"] = []): void {
  const resources_available = { ncpus: 4, mem: "8gb", arch: "linux" };
  h.silent.add(link);
  mom(h, link, "mom-hello", {
    host: name,
    port: 15002,
    pid: 1,
    version: "23.06.06",
    vnodes: [{ name, attrs: { resources_available, pcpus: 4, sharing: "default_shared" } }],
    jobs,
    pongs: true,
    reports: { every_s: 15 },
  });
}

function far(h: Harness = harness(), name = "n1", link = LINK): Harness {
  const local = addHost(h, name);
  h.driver.momLost(local);
  farHost(h, name, link);
  return h;
}

const node = (h: Harness, name = "n1"): string => {
  const { state, comment } = h.core.state.vnodes.get(name)?.attrs ?? {};
  return [(state as string[]).join() || "free", ...(comment === undefined ? [] : [comment])].join(": ");
};
const report = (h: Harness, data: MomReport, link = LINK): void => mom(h, link, "mom-report", data);
const sent = <T extends keyof ServerToMom>(h: Harness, type: T): ServerToMom[T][] =>
  h.to_moms.filter((frame) => frame.type === type).map((frame) => frame.data as ServerToMom[T]);
const asked = (h: Harness): boolean => h.core.kernel.moms.by_host.get("n1")?.asked_ms != null;
const setServer = (h: Harness, name: string, value: string): string =>
  outcome(h, ROOT, { kind: "manager", verb: "set", object: "server", name: "", attrs: [{ name, op: "=", value }] });
const start = (h: Harness, job: string, exec_vnode: string): unknown => askOk(h, ROOT, { kind: "run-job", job, exec_vnode, async: true });

test("after three missed reports a mom is asked; without an answer in 5 seconds it is unknown, and down after node_silence_timeout", () => {
  const h = far();
  advance(h, 44);
  assert.deepEqual([asked(h), node(h)], [false, "free"]);
  advance(h, 1);
  assert.deepEqual([asked(h), node(h)], [true, "free"]);
  advance(h, 4);
  assert.equal(node(h), "free");
  advance(h, 1);
  assert.equal(node(h), "state-unknown: node unknown: the mom has not answered for 50 seconds");
  assert.ok(h.actions.some((action) => action.kind === "drop-link" && action.link === LINK));
  advance(h, 44);
  assert.equal(node(h), "state-unknown: node unknown: the mom has not answered for 50 seconds");
  advance(h, 1);
  assert.equal(node(h), "state-unknown,down: node down: the mom has not answered for 95 seconds");
  farHost(h, "n1", LINK + 1);
  assert.equal(node(h), "free");
});

test("two missed reports are nothing, and an answer to the question is enough", () => {
  const h = far();
  for (let count = 1; count <= 40; count++) {
    advance(h, 44);
    report(h, { number: count });
    assert.equal(asked(h), false);
  }
  advance(h, 46);
  assert.ok(asked(h));
  mom(h, LINK, "mom-pong", { number: 1 });
  advance(h, 40);
  assert.deepEqual([asked(h), node(h)], [false, "free"]);
});

test("both times can be set, and 0 for node_silence_timeout asks nobody", () => {
  for (const [answer, silence, unknown, down] of [
    ["1", "10", 46, 56],
    ["30", "100", 75, 175],
  ] as const) {
    const h = far();
    assert.equal(setServer(h, "node_answer_timeout", answer), "ok");
    assert.equal(setServer(h, "node_silence_timeout", silence), "ok");
    advance(h, unknown - 1);
    assert.equal(node(h), "free");
    advance(h, 1);
    assert.match(node(h), /^state-unknown: /);
    advance(h, down - unknown - 1);
    assert.match(node(h), /^state-unknown: /);
    advance(h, 1);
    assert.match(node(h), /^state-unknown,down: /);
  }
  const h = far();
  setServer(h, "node_silence_timeout", "0");
  advance(h, 10_000);
  assert.equal(node(h), "free");
  assert.match(setServer(h, "node_answer_timeout", "0"), /^15014 /);
});

test("moms of the server's own host are asked as before, whatever moms of others do", () => {
  const h = harness();
  addHost(h, "near");
  far(h);
  advance(h, 500);
  assert.match(node(h), /^state-unknown,down/);
  assert.equal(node(h, "near"), "free");
});

test("time in which the server stood still is no silence", () => {
  const h = far();
  advance(h, 44);
  h.now_ms += 600_000;
  h.clock.ring();
  advance(h, 40);
  assert.deepEqual([asked(h), node(h)], [false, "free"]);
  advance(h, 5);
  assert.ok(asked(h));
  h.now_ms += 600_000;
  h.clock.ring();
  advance(h, 1);
  assert.equal(node(h), "free", "nor is it time to answer");
});

test("a mom that reports but does not take a start is asked, and its reports are no answer: the start goes elsewhere", () => {
  const h = far();
  addHost(h, "n2");
  const job = addJob(h);
  advance(h, 10);
  start(h, job, "(n1:ncpus=1)");
  for (let count = 1; count <= 9; count++) {
    report(h, { number: count });
    advance(h, 5);
  }
  assert.deepEqual([asked(h), stateOf(h, job)], [true, "R 41"]);
  for (let count = 10; count <= 14; count++) {
    report(h, { number: count });
    advance(h, 1);
  }
  assert.equal(stateOf(h, job), "Q 10");
  assert.match(node(h), /^state-unknown: /);
});

test("accepted starts are confirmed; those that the server no longer wants are ended", () => {
  const h = far();
  const [wanted, other] = [addJob(h), addJob(h)];
  start(h, wanted, "(n1:ncpus=1)");
  start(h, other, "(n1:ncpus=1)");
  mom(h, LINK, "mom-accepted", {
    runs: [
      { job: wanted, run_count: 1 },
      { job: other, run_count: 2 },
      { job: "999.svr", run_count: 1 },
    ],
  });
  assert.deepEqual(sent(h, "mom-confirmed"), [{ runs: [{ job: wanted, run_count: 1 }] }]);
  const ended = sent(h, "mom-terminate").map(({ job, run_count, why }) => [job, run_count, why]);
  assert.deepEqual(ended, [
    [other, 2, "rerun"],
    ["999.svr", 1, "rerun"],
  ]);
});

test("a mom that came back does not get a confirmation for what it had accepted on a connection that was given up", () => {
  const h = far();
  addHost(h, "n2");
  const job = addJob(h);
  start(h, job, "(n1:ncpus=1)");
  advance(h, 200);
  assert.equal(stateOf(h, job), "Q 10");
  mom(h, LINK, "mom-accepted", { runs: [{ job, run_count: 1 }] });
  assert.deepEqual(sent(h, "mom-confirmed"), []);
  start(h, job, "(n2:ncpus=1)");
  h.to_moms.length = 0;
  farHost(h, "n1", LINK + 1, [{ job, run_count: 1, state: "starting" }]);
  const [welcome] = sent(h, "mom-welcome");
  assert.deepEqual([welcome?.keep, welcome?.kill, welcome?.confirms], [[], [job], true]);
});

test("moms of the server's own host get no confirmations", () => {
  const h = harness();
  const link = addHost(h, "n1");
  const job = addJob(h);
  start(h, job, "(n1:ncpus=1)");
  mom(h, link, "mom-accepted", { runs: [{ job, run_count: 1 }] });
  assert.deepEqual(sent(h, "mom-confirmed"), []);
  assert.ok(sent(h, "mom-welcome").every(({ confirms }) => confirms === undefined));
});

test("a report has usage, resources of the site, and what is wrong with the mom; a part that was overtaken still counts, but replaces nothing", () => {
  const h = far();
  const job = addJob(h);
  runOn(h, job, "n1", LINK);
  const used = (): unknown => jobAttrs(h, job)["resources_used"];
  outcome(h, ROOT, {
    kind: "manager",
    verb: "create",
    object: "resource",
    name: "temp",
    attrs: [{ name: "type", op: "=", value: "long" }],
  });
  const site = (): unknown => h.core.state.vnodes.get("n1")?.attrs["site_resources"];
  report(h, { number: 1, site: { temp: "20" }, jobs: [{ job, run_count: 1, used: { cput: 5 } }] });
  assert.deepEqual([used(), site(), node(h)], [{ cput: 5 }, { temp: 20 }, "free"]);
  report(h, { number: 4, ill: "the starter of its jobs does not answer" });
  assert.equal(node(h), "state-unknown: node unknown: the starter of its jobs does not answer");
  report(h, { number: 3, site: { temp: "30" }, jobs: [{ job, run_count: 1, used: { cput: 9 } }] });
  report(h, { number: 2, site: { temp: "25" } });
  assert.deepEqual([used(), site()], [{ cput: 9 }, { temp: 30 }]);
  assert.match(node(h), /^state-unknown/, "an overtaken report does not say that the mom is well");
  report(h, { number: 5 });
  assert.equal(node(h), "free");
  report(h, { number: 6, jobs: [{ job, run_count: 0, used: { cput: 99 } }] });
  report(h, { number: 7, jobs: [{ job: "999.svr", run_count: 1, used: { cput: 99 } }] });
  assert.deepEqual(used(), { cput: 9 });
});

test("a mom reports about its own host only", () => {
  const h = far();
  far(h, "n2", LINK + 1);
  const job = addJob(h);
  runOn(h, job, "n1", LINK);
  const before = jobAttrs(h, job)["resources_used"];
  report(h, { number: 1, jobs: [{ job, run_count: 1, used: { cput: 99 } }] }, LINK + 1);
  assert.deepEqual(jobAttrs(h, job)["resources_used"], before);
});
