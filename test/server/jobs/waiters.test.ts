// Clients that wait for a job: each gets one answer, whatever becomes of the job, and the server keeps no record of the wait.

import assert from "node:assert/strict";
import { test } from "node:test";
import { SCHED_COMMAND } from "#protocol/sched-link.ts";
import {
  addHost,
  addJob,
  addQueue,
  addSched,
  apply,
  ask,
  commandsTo,
  cycle,
  type Harness,
  harness,
  mom,
  momHello,
  ROOT,
  runOn,
  schedHello,
  stateOf,
} from "../harness.ts";

const SCHED = 1;
const HOST = 100;

/** Host n1, the default scheduler connected and idle. */
function world(): Harness {
  const h = harness();
  assert.equal(addHost(h, "n1"), HOST);
  schedHello(h, SCHED);
  cycle(h, SCHED);
  return h;
}

/** A request that waits. Returns its token. */
function begin(h: Harness, request: Parameters<typeof ask>[2]): number {
  const token = h.next_token;
  assert.equal(ask(h, ROOT, request), undefined, "no answer yet");
  return token;
}

// --- qrun

test("qrun of a job that is deleted before its cycle is refused", () => {
  const h = world();
  const [first, second] = [addJob(h), addJob(h)];
  const tokens = [first, second].map((job) => begin(h, { kind: "run-job", job }));
  assert.equal(ask(h, ROOT, { kind: "delete-job", job: second })?.ok, true);
  assert.deepEqual(h.answers.get(tokens[1] ?? 0), { ok: false, code: 15001, text: "Unknown Job Id" });
  cycle(h, SCHED);
  cycle(h, SCHED, [{ kind: "qrun-refused", job: first, text: "no room" }]);
  assert.equal(h.answers.get(tokens[0] ?? 0)?.ok, false);
  assert.equal(h.core.kernel.scheds.qruns.size, 0);
});

test("two qruns of one job: one cycle for both, and both clients are answered", () => {
  const h = world();
  const job = addJob(h);
  cycle(h, SCHED);
  const before = commandsTo(h, SCHED).length;
  const tokens = [begin(h, { kind: "run-job", job }), begin(h, { kind: "run-job", job })];
  cycle(h, SCHED, [{ kind: "run", job, exec_vnode: "(n1:ncpus=1)" }]);
  mom(h, HOST, "mom-started", { job, run_count: 1, session_id: 2, jobdir: "/" });
  assert.deepEqual(
    tokens.map((token) => h.answers.get(token)),
    [{ ok: true }, { ok: true }],
  );
  assert.deepEqual(commandsTo(h, SCHED).slice(before), [SCHED_COMMAND.AJOB]);
});

test("qrun of a job whose scheduler is deleted is refused", () => {
  const h = world();
  addSched(h, "s1", { partition: ["p1"] });
  addQueue(h, "q1", { partition: "p1" });
  schedHello(h, 5, "s1");
  cycle(h, 5);
  const job = addJob(h, { queue: "q1" });
  const token = begin(h, { kind: "run-job", job });
  apply(h, { kind: "deleted", object: "sched", name: "s1" });
  assert.deepEqual(h.answers.get(token), { ok: false, code: 15099, text: "Could not contact Scheduler" });
});

// --- qrerun

test("qrerun is answered however the run ends", () => {
  const rows: readonly (readonly [what: string, end: (h: Harness, job: string) => void])[] = [
    ["obit", (h, job) => mom(h, HOST, "mom-obit", { job, run_count: 1, exit_status: -11, used: {} })],
    ["its mom does not know it", (h) => momHello(h, HOST, "n1")],
    ["requeued by force", (h, job) => void ask(h, ROOT, { kind: "rerun-job", job, force: true })],
  ];
  for (const [what, end] of rows) {
    const h = world();
    const job = addJob(h);
    runOn(h, job, "n1", HOST);
    const token = begin(h, { kind: "rerun-job", job });
    end(h, job);
    assert.equal(stateOf(h, job), "Q 10", what);
    assert.deepEqual(h.answers.get(token), { ok: true }, what);
    assert.equal(h.core.kernel.jobs.reruns.size, 0, what);
    assert.equal(h.core.kernel.timers.at(`rerun:${job}`), undefined, what);
  }
});

test("qrerun of a job that waits for its sisters is answered when they have released it", () => {
  const h = world();
  const sister = addHost(h, "n2");
  const job = addJob(h);
  assert.equal(ask(h, ROOT, { kind: "run-job", job, exec_vnode: "(n1:ncpus=1)+(n2:ncpus=1)", async: true })?.ok, true);
  const token = begin(h, { kind: "rerun-job", job });
  mom(h, sister, "mom-obit", { job, run_count: 1, exit_status: 265, used: {} });
  assert.equal(stateOf(h, job), "Q 10");
  assert.deepEqual(h.answers.get(token), { ok: true });
});

// --- runtime records

test("a job that has released all its sisters leaves no crew behind", () => {
  const h = world();
  const sister = addHost(h, "n2");
  const job = addJob(h);
  ask(h, ROOT, { kind: "run-job", job, exec_vnode: "(n1:ncpus=1)+(n2:ncpus=1)", async: true });
  for (const link of [sister, HOST]) mom(h, link, "mom-started", { job, run_count: 1, session_id: link, jobdir: "/home/x" });
  assert.equal(ask(h, ROOT, { kind: "release-nodes", job, nodes: ["n2"] })?.ok, true);
  mom(h, sister, "mom-obit", { job, run_count: 1, exit_status: 265, used: {} });
  mom(h, HOST, "mom-obit", { job, run_count: 1, exit_status: 0, used: {} });
  assert.equal(stateOf(h, job), "F 92");
  assert.equal(h.core.kernel.moms.crews.size, 0);
});
