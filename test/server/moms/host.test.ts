// Moms as the server sees them: vnodes that come up and go down, and jobs after every kind of failure: what was committed and
// what had left the server when it was killed, and what the mom had done meanwhile. Each run is accounted for exactly once.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { MomToServer, ServerToMom } from "#protocol/mom-link.ts";
import type { Attrs } from "#server/state/state.ts";
import {
  ALICE,
  addHost,
  addJob,
  addVnode,
  advance,
  apply,
  ask,
  type Harness,
  harness,
  holdCommits,
  jobAttrs,
  jobOwn,
  lettersOf,
  logsOf,
  mom,
  momHello,
  obit,
  outcome,
  ROOT,
  release,
  restart,
  runOn,
  settle,
  stateOf,
  statusOf,
} from "../harness.ts";

const LINK = 100;
type HeldJob = MomToServer["mom-hello"]["jobs"][number];

function world(): Harness {
  const h = harness();
  assert.equal(addHost(h, "n1"), LINK);
  return h;
}

const vnodeAttrs = (h: Harness, name: string): Attrs => h.core.state.vnodes.get(name)?.attrs ?? {};
const statesOf = (h: Harness, name: string): string => ((vnodeAttrs(h, name)["state"] as string[]) ?? []).join();
const lose = (h: Harness, link = LINK): void => {
  h.core.momLost(link, h.now_ms);
  settle(h);
};
/** The data of the frames of a type sent to moms. */
const sent = <T extends keyof ServerToMom>(h: Harness, type: T): ServerToMom[T][] =>
  h.to_moms.filter((frame) => frame.type === type).map((frame) => frame.data as ServerToMom[T]);
const welcome = (h: Harness): ServerToMom["mom-welcome"] => sent(h, "mom-welcome").at(-1) as ServerToMom["mom-welcome"];

// --- vnodes

test("a node is down until its mom says hello, then free with what the mom reports", () => {
  const h = harness();
  apply(h, {
    kind: "created",
    object: "node",
    name: "n1",
    attrs: { Mom: ["n1"], state: ["state-unknown", "down"], resources_available: {} },
  });
  assert.equal(statesOf(h, "n1"), "state-unknown,down");
  momHello(h, LINK, "n1");
  assert.equal(statesOf(h, "n1"), "");
  assert.deepEqual(vnodeAttrs(h, "n1")["resources_available"], { host: "n1", vnode: "n1", ncpus: 4, mem: "8gb", arch: "linux" });
  assert.ok(logsOf(h, "n1").includes("node up"));
});

test("a mom that came before its node was created: the node is up at once; deleted and created again likewise", () => {
  const h = harness();
  momHello(h, LINK, "n1");
  assert.equal(h.core.state.vnodes.size, 0);
  const create = (): void =>
    apply(h, { kind: "created", object: "node", name: "n1", attrs: { Mom: ["n1"], state: ["state-unknown", "down"] } });
  create();
  assert.equal(statesOf(h, "n1"), "");
  apply(h, { kind: "deleted", object: "node", name: "n1" });
  create();
  assert.equal(statesOf(h, "n1"), "");
});

test("values an administrator set are not overwritten by reports, states of his stay", () => {
  const h = world();
  apply(h, {
    kind: "changed",
    object: "node",
    name: "n1",
    set: { resources_available: { ncpus: 64, mem: "8gb" }, state: ["offline"], comment: "mine" },
    unset: [],
  });
  apply(h, { kind: "vnode-admin-set", name: "n1", add: ["resources_available.ncpus", "comment"], remove: [] });
  lose(h);
  assert.deepEqual([statesOf(h, "n1"), vnodeAttrs(h, "n1")["comment"]], ["down,offline", "mine"]);
  momHello(h, LINK, "n1", [], { ncpus: 2, mem: "16gb" });
  assert.deepEqual([statesOf(h, "n1"), vnodeAttrs(h, "n1")["comment"]], ["offline", "mine"]);
  assert.deepEqual(vnodeAttrs(h, "n1")["resources_available"], { ncpus: 64, mem: "16gb", host: "n1", vnode: "n1", arch: "linux" });
});

test("a lost mom: down with the reason as comment and in the log; the comment goes when it is back", () => {
  const h = world();
  lose(h);
  assert.deepEqual([statesOf(h, "n1"), vnodeAttrs(h, "n1")["comment"]], ["down", "node down: communication closed"]);
  assert.ok(logsOf(h, "n1").includes("node down: communication closed"));
  momHello(h, LINK, "n1");
  assert.deepEqual([statesOf(h, "n1"), vnodeAttrs(h, "n1")["comment"]], ["", undefined]);
});

test("a mom creates no vnode with the name of another host whose mom is connected (I3)", () => {
  const h = harness();
  addVnode(h, "n1");
  momHello(h, LINK + 1, "n9");
  mom(h, LINK, "mom-hello", {
    host: "n1",
    port: 15002,
    pid: 5,
    version: "1",
    jobs: [],
    vnodes: ["n1", "N9", "n8"].map((name) => ({ name, attrs: {} })),
  });
  assert.deepEqual([...h.core.state.vnodes.keys()], ["n1", "n8"]);
});

test("vnodes of a definition file come by themselves, and are stale when no longer reported", () => {
  const h = world();
  const hello = (...names: string[]): void =>
    mom(h, LINK, "mom-hello", {
      host: "n1",
      port: 15002,
      pid: 1,
      version: "x",
      jobs: [],
      vnodes: names.map((name) => ({ name, attrs: { resources_available: { ncpus: 2 }, sharing: "default_shared" } })),
    });
  hello("n1", "n1[0]", "n1[1]");
  assert.deepEqual([...h.core.state.vnodes.keys()], ["n1", "n1[0]", "n1[1]"]);
  assert.deepEqual(
    ["n1", "n1[1]"].map((name) => vnodeAttrs(h, name)["in_multivnode_host"]),
    [1, 1],
  );
  assert.deepEqual((vnodeAttrs(h, "n1[1]")["resources_available"] as Attrs)["host"], "n1");
  hello("n1");
  assert.deepEqual([statesOf(h, "n1"), statesOf(h, "n1[0]")], ["", "stale"]);
  assert.equal(vnodeAttrs(h, "n1")["in_multivnode_host"], undefined);
  lose(h);
  assert.equal(vnodeAttrs(h, "n1[0]")["comment"], "node down: communication closed");
  hello("n1");
  assert.deepEqual([statesOf(h, "n1[0]"), vnodeAttrs(h, "n1[0]")["comment"]], ["stale", undefined]);
  hello("n1", "n1[0]");
  assert.equal(statesOf(h, "n1[0]"), "");
});

test("a vnode that another host's mom reports is left alone", () => {
  const h = world();
  addVnode(h, "other", { Mom: ["elsewhere"], state: ["down"], resources_available: { ncpus: 9 } });
  mom(h, LINK, "mom-vnodes", {
    vnodes: [
      { name: "n1", attrs: {} },
      { name: "other", attrs: { resources_available: { ncpus: 1 } } },
    ],
  });
  assert.equal(statesOf(h, "other"), "down");
  assert.equal((vnodeAttrs(h, "other")["resources_available"] as Attrs)["ncpus"], 9);
});

test("node_fail_requeue: jobs of a host that stays down are requeued, or deleted if they cannot be rerun; the host's return then kills them", () => {
  const h = world();
  const reruns = addJob(h);
  const not = addJob(h, { Rerunable: false });
  runOn(h, reruns, "n1", LINK);
  runOn(h, not, "n1", LINK);
  lose(h);
  advance(h, 309);
  assert.deepEqual([stateOf(h, reruns), stateOf(h, not)], ["R 42", "R 42"]);
  advance(h, 1);
  assert.deepEqual([stateOf(h, reruns), stateOf(h, not)], ["Q 10", "F 93"]);
  assert.ok(logsOf(h, reruns).includes("Job requeued, execution node n1 down"));
  assert.ok(logsOf(h, not).includes("Job deleted, execution node n1 down"));
  assert.deepEqual([lettersOf(h, reruns), lettersOf(h, not)], ["QSR", "QSAE"]);
  const held: HeldJob[] = [reruns, not].map((job) => ({ job, run_count: 1, state: "running" }));
  momHello(h, LINK, "n1", held);
  assert.deepEqual(welcome(h).kill, [reruns, not]);
});

test("node_fail_requeue: a job that somebody deleted meanwhile ends as deleted by him", () => {
  const h = world();
  const job = addJob(h);
  runOn(h, job, "n1", LINK);
  lose(h);
  assert.equal(outcome(h, ALICE, { kind: "delete-job", job }), "15070 Server could not connect to MOM");
  assert.equal(stateOf(h, job), "R 42");
  advance(h, 310);
  assert.equal(stateOf(h, job), "F 91");
  assert.match(String(jobAttrs(h, job).comment), / and terminated by alice@svr$/);
  assert.equal(lettersOf(h, job), "QSDE");
  assert.ok(logsOf(h, job).includes("Job deleted, execution node n1 down"));
});

// biome-ignore format: a table
const SILENCES: readonly [set: number | undefined, after_s: number | null][] = [[undefined, 310], [60, 60], [-5, 1], [0, null]];
for (const [value, after_s] of SILENCES) {
  test(`node_fail_requeue ${value ?? "unset"}: ${after_s === null ? "never" : `after ${after_s} s`}`, () => {
    const h = harness();
    apply(h, {
      kind: "server-changed",
      set: value === undefined ? {} : { node_fail_requeue: value },
      unset: value === undefined ? ["node_fail_requeue"] : [],
    });
    addHost(h, "n1");
    const job = addJob(h);
    runOn(h, job, "n1", LINK);
    lose(h);
    advance(h, (after_s ?? 100_000) - 1);
    assert.equal(stateOf(h, job), "R 42");
    advance(h, 1);
    assert.equal(stateOf(h, job), after_s === null ? "R 42" : "Q 10");
  });
}

test("a mom that is back in time keeps its jobs", () => {
  const h = world();
  const job = addJob(h);
  runOn(h, job, "n1", LINK);
  lose(h);
  advance(h, 300);
  momHello(h, LINK + 1, "n1", [{ job, run_count: 1, state: "running" }]);
  assert.deepEqual(welcome(h), { keep: [job], kill: [], acknowledged: [] });
  advance(h, 1000);
  assert.equal(stateOf(h, job), "R 42");
});

test("usage of a run is stored, of an earlier run not", () => {
  const h = world();
  const job = addJob(h);
  runOn(h, job, "n1", LINK);
  mom(h, LINK, "mom-usage", { jobs: [{ job, run_count: 1, used: { cput: 5 } }] });
  mom(h, LINK, "mom-usage", { jobs: [{ job, run_count: 0, used: { cput: 99 } }] });
  assert.deepEqual(jobAttrs(h, job).resources_used, { cput: 5 });
});

test("frames of a connection that never said hello are ignored", () => {
  const h = world();
  const job = addJob(h);
  runOn(h, job, "n1", LINK);
  mom(h, 55, "mom-obit", { job, run_count: 1, exit_status: 0, used: {} });
  assert.equal(stateOf(h, job), "R 42");
});

// --- killed between commit and action, and at other points

/** The mom's state of a run after the server was killed. absent: the mom never received it. */
type MomKnows = HeldJob["state"] | "absent" | "other-run";
/** The last commit before the server was killed. */
type Point = "decided" | "started" | "deleting" | "rerunning" | "ended";

// biome-ignore format: a table
const CRASHES: readonly [point: Point, mom: MomKnows, rerunable: boolean, expected: string, action: string, letters: string][] = [
  // the decision was committed, but the start had not left: it leaves now
  ["decided",   "absent",    true,  "R 41", "start",     "Q"],
  ["decided",   "starting",  true,  "R 41", "keep",      "Q"],
  ["decided",   "running",   true,  "R 42", "keep",      "QS"],
  ["decided",   "ended",     true,  "R 41", "keep",      "Q"],
  ["decided",   "other-run", true,  "R 41", "kill start", "Q"],
  ["started",   "running",   true,  "R 42", "keep",      "QS"],
  ["started",   "suspended", true,  "S 43", "keep",      "QSz"],
  ["started",   "ended",     true,  "R 42", "keep",      "QS"],
  // the mom has lost the job, so its run is over
  ["started",   "absent",    true,  "Q 10", "",          "QSR"],
  ["started",   "absent",    false, "F 93", "",          "QSAE"],
  ["started",   "other-run", true,  "Q 10", "kill",      "QSR"],
  // the end was requested but may not have reached the mom: it is requested again
  ["deleting",  "running",   true,  "R 42", "keep terminate-delete", "QSD"],
  ["deleting",  "absent",    true,  "F 91", "",          "QSDE"],
  ["rerunning", "running",   true,  "R 60", "keep terminate-rerun", "QS"],
  ["rerunning", "absent",    true,  "Q 10", "",          "QSR"],
  // the obit was committed, but its acknowledgement had not left
  ["ended",     "ended",     true,  "F 92", "ack",       "QSE"],
  ["ended",     "absent",    true,  "F 92", "",          "QSE"],
];

for (const [point, knows, rerunable, expected, action, letters] of CRASHES) {
  test(`server killed with the job ${point}, mom: ${knows}${rerunable ? "" : ", not rerunable"}: ${expected} ${action}`, () => {
    const h = world();
    const job = addJob(h, { Rerunable: rerunable });
    bringTo(h, job, point);
    restart(h);
    h.to_moms.length = 0;
    const run_count = knows === "other-run" ? 7 : 1;
    const held: HeldJob[] = knows === "absent" ? [] : [{ job, run_count, state: knows === "other-run" ? "running" : knows, session_id: 9 }];
    momHello(h, LINK, "n1", held);
    assert.equal(stateOf(h, job), expected);
    assert.equal(actionsOn(h, job), action);
    assert.equal(lettersOf(h, job), letters);
  });
}

function bringTo(h: Harness, job: string, point: Point): void {
  if (point === "decided") {
    assert.equal(outcome(h, ROOT, { kind: "run-job", job, exec_vnode: "(n1:ncpus=1)", async: true }), "ok");
    return;
  }
  runOn(h, job, "n1", LINK);
  if (point === "deleting") ask(h, ALICE, { kind: "delete-job", job });
  if (point === "rerunning") ask(h, ROOT, { kind: "rerun-job", job });
  if (point === "ended") obit(h, LINK, job);
}

/** `keep`, `kill`, `start`, `terminate-WHY`: the messages to the mom about the job. */
function actionsOn(h: Harness, job: string): string {
  return h.to_moms
    .flatMap((frame) => {
      const data = frame.data as {
        keep?: string[];
        kill?: string[];
        acknowledged?: { job: string }[];
        jobs?: { id?: string }[];
        job?: string;
        why?: string;
      };
      if (frame.type === "mom-welcome")
        return [
          ...(data.keep?.includes(job) ? ["keep"] : []),
          ...(data.kill?.includes(job) ? ["kill"] : []),
          ...(data.acknowledged?.some((run) => run.job === job) ? ["ack"] : []),
        ];
      if (frame.type === "mom-start") return data.jobs?.some((item) => item.id === job) ? ["start"] : [];
      return frame.type === "mom-terminate" && data.job === job ? [`terminate-${data.why}`] : [];
    })
    .join(" ");
}

test("an obit that was applied but not committed is applied again after the crash: one E record", () => {
  const h = world();
  const job = addJob(h);
  runOn(h, job, "n1", LINK);
  // The server is killed before the batch with the obit is written, so nothing of it has left.
  h.core.mom(LINK, "mom-obit", { job, run_count: 1, exit_status: 0, used: {} }, h.now_ms);
  restart(h);
  assert.equal(stateOf(h, job), "R 42");
  momHello(h, LINK, "n1", [{ job, run_count: 1, state: "ended" }]);
  obit(h, LINK, job);
  assert.equal(stateOf(h, job), "F 92");
  assert.equal(lettersOf(h, job), "QSE");
  assert.deepEqual(sent(h, "mom-obit-ack").at(-1), { jobs: [{ job, run_count: 1 }] });
});

test("an obit repeated after its acknowledgement was lost is acknowledged and not accounted for again", () => {
  const h = world();
  const job = addJob(h);
  runOn(h, job, "n1", LINK);
  obit(h, LINK, job);
  mom(h, LINK, "mom-obit", { job, run_count: 1, exit_status: 0, used: {} });
  assert.equal(lettersOf(h, job), "QSE");
  assert.equal(sent(h, "mom-obit-ack").length, 2);
});

test("a submission that was not committed is not there after the crash, and its id is given again", () => {
  const h = world();
  const first = addJob(h);
  const commits = h.store.commits;
  h.core.request(ALICE, { kind: "hold-job", job: first, holds: "u" }, 900, h.now_ms);
  restart(h);
  assert.ok(h.store.commits >= commits);
  assert.equal(stateOf(h, first), "Q 10");
  assert.equal(h.answers.has(900), false, "nothing was answered that was not written");
  assert.equal(addJob(h), "2.svr");
});

test("a run decision that was not committed never reached the mom; the job is queued and its run count was not used up", () => {
  const h = world();
  const job = addJob(h);
  h.core.request(ROOT, { kind: "run-job", job, exec_vnode: "(n1:ncpus=1)", async: true }, 901, h.now_ms);
  assert.equal(sent(h, "mom-start").length, 0);
  restart(h);
  assert.equal(stateOf(h, job), "Q 10");
  momHello(h, LINK, "n1");
  runOn(h, job, "n1", LINK);
  assert.equal(jobAttrs(h, job).run_count, 1);
});

test("the same mom over a new connection before the old one was missed: the old one is dropped, jobs go on", () => {
  const h = world();
  const job = addJob(h);
  runOn(h, job, "n1", LINK);
  momHello(h, LINK + 1, "n1", [{ job, run_count: 1, state: "running" }]);
  assert.deepEqual(h.actions.at(-1), { kind: "drop-link", link: LINK });
  lose(h, LINK);
  assert.equal(statesOf(h, "n1"), "");
  obit(h, LINK + 1, job);
  assert.equal(stateOf(h, job), "F 92");
});

test("qdel while the mom is away: the mom is told when it is back", () => {
  const h = world();
  const job = addJob(h);
  runOn(h, job, "n1", LINK);
  lose(h);
  assert.equal(outcome(h, ALICE, { kind: "delete-job", job }), "15070 Server could not connect to MOM");
  assert.equal(stateOf(h, job), "R 42");
  momHello(h, LINK, "n1", [{ job, run_count: 1, state: "running" }]);
  assert.equal(sent(h, "mom-terminate").at(-1)?.why, "delete");
});

test("a signal for a job whose mom is away is refused with 15070", () => {
  const h = world();
  const job = addJob(h);
  runOn(h, job, "n1", LINK);
  lose(h);
  assert.equal(outcome(h, ALICE, { kind: "signal-job", job, signal: "USR1" }), "15070 Server could not connect to MOM n1");
});

test("a node with another name than its mom's host is the vnode of its own name", () => {
  const h = harness();
  apply(h, {
    kind: "created",
    object: "node",
    name: "10.0.0.5",
    attrs: { Mom: ["n1"], Port: 15002, state: ["state-unknown", "down"], resources_available: {} },
  });
  mom(h, LINK, "mom-hello", {
    host: "n1",
    port: 15002,
    pid: 1,
    version: "x",
    vnodes: [{ name: "n1", attrs: { resources_available: { host: "n1", vnode: "n1", ncpus: 4 } } }],
    jobs: [],
  });
  assert.deepEqual(vnodeAttrs(h, "10.0.0.5")["resources_available"], { host: "n1", vnode: "10.0.0.5", ncpus: 4 });
  const job = addJob(h);
  assert.equal(ask(h, ROOT, { kind: "run-job", job, exec_vnode: "10.0.0.5:ncpus=2", async: true })?.ok, true);
  mom(h, LINK, "mom-started", { job, run_count: 1, session_id: 7, jobdir: "/home/x" });
  const [item] = statusOf(h, ALICE, { kind: "status", object: "job", ids: [job], attrs: ["exec_host", "exec_vnode"] });
  assert.deepEqual((item as { attrs: Attrs }).attrs, { exec_host: "10.0.0.5/0*2", exec_vnode: "(10.0.0.5:ncpus=2)" });
  assert.match(h.accounting.find(({ type }) => type === "S")?.text ?? "", / exec_host=10\.0\.0\.5\/0\*2 /);
  obit(h, LINK, job);
  assert.equal(stateOf(h, job), "F 92", "mom and server know the host by its own name");
});

// --- partitions of vnode definition files

test("a partition in a vnode definition file counts, unless an administrator set another or the vnode may not have it", () => {
  const h = world();
  const report = (partitions: { readonly [vnode: string]: string | undefined }): void =>
    mom(h, LINK, "mom-vnodes", {
      vnodes: Object.entries(partitions).map(([name, partition]) => ({
        name,
        attrs: { ...(partition === undefined ? {} : { partition }), resources_available: { ncpus: 4 } },
      })),
    });
  const partitions = (): unknown[] => ["n1", "n1[0]", "n1[1]"].map((name) => vnodeAttrs(h, name)["partition"]);
  const set = (line: string, op: "=" | "unset", value = ""): string =>
    outcome(h, ROOT, {
      kind: "manager",
      verb: op === "=" ? "set" : "unset",
      object: "node",
      name: line,
      attrs: [{ name: "partition", op, value }],
    });
  report({ n1: undefined, "n1[0]": "P1", "n1[1]": "P2" });
  assert.deepEqual(partitions(), [undefined, "P1", "P2"]);
  report({ n1: "P1", "n1[0]": "P1", "n1[1]": "pbs-default" });
  assert.deepEqual(partitions(), ["P1", "P1", "P2"]);
  assert.deepEqual(logsOf(h, "n1[1]"), [
    "the partition pbs-default that the mom reports is not used: Default partition name is not allowed",
  ]);
  assert.equal(set("n1[0]", "=", "P9"), "ok");
  report({ n1: "P1", "n1[0]": "P1", "n1[1]": "P2" });
  assert.deepEqual(partitions(), ["P1", "P9", "P2"]);
  assert.equal(set("n1[0]", "unset"), "ok");
  runOn(h, addJob(h), "n1[1]", LINK);
  report({ n1: "P1", "n1[0]": "P1", "n1[1]": "P3" });
  assert.deepEqual(partitions(), ["P1", "P1", "P2"], "a busy vnode keeps its partition");
  assert.match(logsOf(h, "n1[1]").at(-1) ?? "", /P3 that the mom reports is not used: Node is busy/);
  report({ n1: "no such/name", "n1[0]": "P1", "n1[1]": "P2" });
  assert.equal(vnodeAttrs(h, "n1")["partition"], "P1");
});

// --- hosts that others use

test("busy: said by the mom, on all vnodes of its host, until it says otherwise or comes back", () => {
  const h = world();
  mom(h, LINK, "mom-busy", { busy: true });
  assert.equal(statesOf(h, "n1"), "busy");
  addVnode(h, "n1[1]", { Mom: ["n1"], resources_available: { host: "n1", ncpus: 1 }, from_mom: true });
  mom(h, LINK, "mom-vnodes", {
    vnodes: [
      { name: "n1", attrs: {} },
      { name: "n1[1]", attrs: {} },
    ],
  });
  assert.deepEqual([statesOf(h, "n1"), statesOf(h, "n1[1]")], ["busy", "busy"]);
  momHello(h, LINK + 1, "n1");
  assert.equal(statesOf(h, "n1"), "");
  mom(h, LINK + 1, "mom-busy", { busy: true });
  mom(h, LINK + 1, "mom-busy", { busy: false });
  assert.equal(statesOf(h, "n1"), "");
});

test("a job that stands still because its host is in use shows state U and runs in all else", () => {
  const h = world();
  const id = addJob(h);
  runOn(h, id, "n1", LINK);
  const shown = (): unknown => (statusOf(h, ROOT, { kind: "status", object: "job", ids: [id] })[0] as { attrs: Attrs }).attrs["job_state"];
  mom(h, LINK, "mom-idled", { job: id, run_count: 1, idled: true });
  assert.deepEqual([shown(), stateOf(h, id)], ["U", "R 42"]);
  mom(h, LINK, "mom-idled", { job: id, run_count: 1, idled: false });
  assert.deepEqual([shown(), jobOwn(h, id).idled], ["R", undefined]);
  mom(h, LINK, "mom-idled", { job: id, run_count: 9, idled: true });
  assert.equal(shown(), "R");
  mom(h, LINK, "mom-idled", { job: id, run_count: 1, idled: true });
  obit(h, LINK, id);
  assert.equal(jobOwn(h, id).idled, undefined);
});

test("resources of the site are typed, kept apart from the vnode's own, and shown to nobody but schedulers", () => {
  const h = world();
  const own = vnodeAttrs(h, "n1")["resources_available"];
  mom(h, LINK, "mom-site", { resources: { ncpus: "3", mem: "lots", nosuch: "1" } });
  assert.deepEqual(vnodeAttrs(h, "n1")["site_resources"], { ncpus: 3 });
  assert.deepEqual(vnodeAttrs(h, "n1")["resources_available"], own);
  const [item] = statusOf(h, ROOT, { kind: "status", object: "node", ids: ["n1"] });
  assert.ok(!JSON.stringify(item).includes("site_resources"));
  mom(h, LINK, "mom-site", { resources: {} });
  assert.equal(vnodeAttrs(h, "n1")["site_resources"], undefined);
});

test("what a mom is sent of a job that starts is what was committed with the start, whatever happens to the job before the frame leaves", () => {
  const h = world();
  const id = addJob(h);
  holdCommits(h);
  ask(h, ROOT, { kind: "run-job", job: id, exec_vnode: "(n1:ncpus=1)", async: true });
  ask(h, ROOT, { kind: "hold-job", job: id, holds: "u" });
  ask(h, ROOT, { kind: "delete-job", job: id });
  assert.deepEqual(sent(h, "mom-start"), []);
  release(h);
  const [start] = sent(h, "mom-start").flatMap(({ jobs }) => jobs);
  assert.deepEqual([start?.attrs["substate"], start?.attrs["Hold_Types"]], [41, "n"]);
  assert.ok(sent(h, "mom-terminate").length > 0);
});

test("what a vnode gives follows the definition of a resource, also for jobs that ask alike", () => {
  const h = world();
  const resource = (flags: string): void =>
    apply(h, { kind: "resource-put", resource: { name: "seats", type: "long", flags, read: "all", set: "user" } });
  const assigned = (id: string): number | undefined => {
    assert.equal(ask(h, ROOT, { kind: "run-job", job: id, exec_vnode: "(n1:ncpus=1:seats=2)", async: true })?.ok, true);
    return h.core.state.vnodes.get("n1")?.assigned.get("seats");
  };
  resource("h");
  const first = addJob(h);
  assert.equal(assigned(first), undefined);
  obit(h, LINK, first);
  resource("hn");
  assert.equal(assigned(addJob(h)), 2);
});

test("a mom speaks for its own host only: its vnodes cannot claim to be on another one", () => {
  const h = world();
  addVnode(h, "n2");
  const claims = { host: "n1", ncpus: 8 };
  const vnodes = [
    { name: "n2", attrs: { resources_available: claims } },
    { name: "n2[0]", attrs: { resources_available: claims } },
  ];
  mom(h, 77, "mom-hello", { host: "n2", port: 15002, pid: 1, version: "x", vnodes, jobs: [] });
  for (const name of ["n2", "n2[0]"]) assert.partialDeepStrictEqual(vnodeAttrs(h, name)["resources_available"], { host: "n2", ncpus: 8 });
});

test("a mom speaks for its own host only: its words about runs and questions of another host have no effect (I3)", () => {
  const h = world();
  const OTHER = addHost(h, "n2");
  const id = addJob(h);
  runOn(h, id, "n1", LINK);
  const before = JSON.stringify([jobAttrs(h, id), jobOwn(h, id), statesOf(h, "n1")]);
  const unchanged = (what: string): void => {
    settle(h);
    assert.equal(JSON.stringify([jobAttrs(h, id), jobOwn(h, id), statesOf(h, "n1")]), before, what);
  };
  mom(h, OTHER, "mom-idled", { job: id, run_count: 1, idled: true });
  unchanged("mom-idled");
  mom(h, OTHER, "mom-kept", { job: id, run_count: 1, text: "it stays" });
  unchanged("mom-kept");
  mom(h, OTHER, "mom-usage", { jobs: [{ job: id, run_count: 1, used: { cput: "01:00:00" } }] });
  unchanged("mom-usage");
  mom(h, OTHER, "mom-obit", { job: id, run_count: 1, exit_status: 0, used: {} });
  unchanged("mom-obit");
  const token = h.next_token;
  ask(h, ROOT, { kind: "signal-job", job: id, signal: "suspend" });
  const asked = sent(h, "mom-signal").at(-1);
  assert.ok(asked !== undefined);
  mom(h, OTHER, "mom-result", { token: asked.token, ok: true });
  settle(h);
  assert.deepEqual([stateOf(h, id), h.answers.has(token)], ["R 42", false]);
  mom(h, LINK, "mom-result", { token: asked.token, ok: true });
  settle(h);
  assert.deepEqual([stateOf(h, id), h.answers.has(token)], ["S 43", true]);
});
