// Jobs over several hosts as the server sees them, and its knowledge of sisters after it was killed.

import assert from "node:assert/strict";
import { test } from "node:test";
import { alterHook, freshHook } from "#model/tables/hook.ts";
import type { MomPatience, MomToServer, ServerToMom } from "#protocol/mom-link.ts";
import type { Attrs } from "#server/state/state.ts";
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
  momHello,
  ROOT,
  restart,
  settle,
  stateOf,
} from "../harness.ts";

const MOTHER = 100;
const SISTER = 101;

/** A job running on n1 and n2. */
function running(attrs: Attrs = {}): { readonly h: Harness; readonly job: string } {
  const h = harness();
  assert.deepEqual([addHost(h, "n1"), addHost(h, "n2")], [MOTHER, SISTER]);
  const job = addJob(h, attrs);
  const answer = ask(h, ROOT, { kind: "run-job", job, exec_vnode: "(n1:ncpus=1)+(n2:ncpus=1)", async: true });
  assert.equal(answer?.ok, true, JSON.stringify(answer));
  for (const link of [SISTER, MOTHER]) mom(h, link, "mom-started", { job, run_count: 1, session_id: link, jobdir: "/home/x" });
  assert.equal(stateOf(h, job), "R 42");
  return { h, job };
}

const held = (job: string): MomToServer["mom-hello"]["jobs"] => [{ job, run_count: 1, state: "running", session_id: 9 }];

for (const first of ["mother superior", "sister"] as const) {
  test(`a sister that lost the job while the server was away ends the run, if the ${first} says hello first`, () => {
    const { h, job } = running();
    restart(h);
    const hellos = [() => momHello(h, MOTHER, "n1", held(job)), () => momHello(h, SISTER, "n2")];
    for (const hello of first === "sister" ? hellos.reverse() : hellos) hello();
    assert.ok(logsOf(h, job).some((text) => text.startsWith("Job is ended, its sister n2 was lost")));
    assert.equal(stateOf(h, job), "R 60");
    mom(h, MOTHER, "mom-obit", { job, run_count: 1, exit_status: -11, used: {} });
    assert.equal(stateOf(h, job), "Q 10");
  });
}

for (const first of ["mother superior", "sister"] as const) {
  test(`a suspended job whose sister lost it while the server was away is ended, if the ${first} says hello first`, () => {
    const { h, job } = running();
    ask(h, ROOT, { kind: "signal-job", job, signal: "suspend" });
    answer(h, true);
    assert.equal(stateOf(h, job), "S 43");
    restart(h);
    const stands = [{ job, run_count: 1, state: "suspended", session_id: 9 }] as const;
    const hellos = [() => momHello(h, MOTHER, "n1", stands), () => momHello(h, SISTER, "n2")];
    for (const hello of first === "sister" ? hellos.reverse() : hellos) hello();
    const ends = h.to_moms.filter(({ type, data }) => type === "mom-terminate" && (data as { readonly job: string }).job === job);
    assert.deepEqual(
      ends.map(({ link }) => link),
      [MOTHER],
    );
    mom(h, MOTHER, "mom-obit", { job, run_count: 1, exit_status: -11, used: {} });
    assert.equal(stateOf(h, job), "Q 10");
  });
}

test("what a sister reports again and again before the mother superior has spoken is not added up", () => {
  const { h, job } = running();
  const usage = (link: number, cput: number): void => mom(h, link, "mom-usage", { jobs: [{ job, run_count: 1, used: { cput } }] });
  const cput = (): unknown => (jobAttrs(h, job)["resources_used"] as { cput?: number } | undefined)?.cput;
  usage(MOTHER, 100);
  usage(SISTER, 20);
  assert.equal(cput(), 120);
  restart(h);
  momHello(h, SISTER, "n2", held(job));
  for (const told of [21, 22, 23]) usage(SISTER, told);
  assert.equal(cput(), 120, "the last sum stands");
  momHello(h, MOTHER, "n1", held(job));
  usage(MOTHER, 110);
  assert.equal(cput(), 133);
});

test("a sister that the job goes on without is missed once, and her vnodes can be released though she is gone", () => {
  const { h, job } = running({ tolerate_node_failures: "all", schedselect: "2:ncpus=1" });
  const gone = (): void => mom(h, SISTER, "mom-obit", { job, run_count: 1, exit_status: 265, used: {} });
  gone();
  gone();
  assert.equal(logsOf(h, job).filter((text) => text.startsWith("Job goes on without its sister n2")).length, 1);
  assert.equal(ask(h, ROOT, { kind: "release-nodes", job, nodes: ["n2"] })?.ok, true);
  assert.equal(jobAttrs(h, job).exec_vnode, "(n1:ncpus=1)");
  assert.equal(stateOf(h, job), "R 42");
});

test("output that the mother superior kept for a next run is deleted with the job, though a sister has not ended", () => {
  const { h, job } = running();
  h.core.momLost(SISTER, h.now_ms);
  settle(h);
  mom(h, MOTHER, "mom-obit", { job, run_count: 1, exit_status: -3, used: {}, kept: true });
  const discarded = (): number[] => h.to_moms.filter(({ type }) => type === "mom-discard").map(({ link }) => link);
  assert.deepEqual([jobAttrs(h, job).job_state, discarded()], ["R", []], "the sister may still have the run");
  assert.equal(ask(h, ROOT, { kind: "delete-job", job, force: true })?.ok, true);
  assert.deepEqual(discarded(), [MOTHER]);
});

test("a sister that keeps other vnodes of the job is told of those that were released", () => {
  const h = harness();
  addHost(h, "n1");
  addHost(h, "n2");
  const part = { attrs: { resources_available: { ncpus: 1 } } };
  mom(h, SISTER, "mom-vnodes", {
    vnodes: [
      { name: "n2", ...part },
      { name: "n2[1]", ...part },
    ],
  });
  const job = addJob(h, { schedselect: "3:ncpus=1" });
  assert.equal(ask(h, ROOT, { kind: "run-job", job, exec_vnode: "(n1:ncpus=1)+(n2:ncpus=1)+(n2[1]:ncpus=1)", async: true })?.ok, true);
  for (const link of [SISTER, MOTHER]) mom(h, link, "mom-started", { job, run_count: 1, session_id: link, jobdir: "/home/x" });
  assert.equal(ask(h, ROOT, { kind: "release-nodes", job, nodes: ["n2[1]"] })?.ok, true);
  const told = h.to_moms.filter(({ type }) => type === "mom-modify");
  assert.deepEqual(
    told.map(({ link, data }) => [link, (data as { readonly attrs: Attrs }).attrs["exec_vnode"]]),
    [MOTHER, SISTER].map((link) => [link, "(n1:ncpus=1)+(n2:ncpus=1)"]),
  );
});

test("a sister that refuses a start which does without her is told that her word has come", () => {
  const { h, job } = starting({}, { tolerate_node_failures: "job_start" });
  mom(h, SISTER, "mom-obit", { job, run_count: 1, exit_status: -16, used: {}, message: "no" });
  assert.equal(jobAttrs(h, job).exec_vnode, "(n1:ncpus=1)");
  const acknowledged = h.to_moms.filter(({ link, type }) => link === SISTER && type === "mom-obit-ack").map(({ data }) => data);
  assert.deepEqual(acknowledged, [{ jobs: [{ job, run_count: 1 }] }]);
  assert.equal(
    h.to_moms.some(({ link, type }) => link === SISTER && type === "mom-terminate"),
    false,
  );
});

// --- waiting times for hosts

/** A job whose start was sent to n1 and n2. mother: n1's configured patience. */
function starting(patience: MomPatience = {}, attrs: Attrs = {}): { readonly h: Harness; readonly job: string } {
  const h = harness();
  assert.deepEqual([addHost(h, "n1"), addHost(h, "n2")], [MOTHER, SISTER]);
  mom(h, MOTHER, "mom-vnodes", { vnodes: [], patience });
  const job = addJob(h, attrs);
  assert.equal(ask(h, ROOT, { kind: "run-job", job, exec_vnode: "(n1:ncpus=1)+(n2:ncpus=1)", async: true })?.ok, true);
  return { h, job };
}

const putHook = (h: Harness, name: string, event: string, alarm: string): void => {
  const attrs = alterHook(freshHook(), [
    { name: "event", op: "=", value: event },
    { name: "alarm", op: "=", value: alarm },
  ]);
  apply(h, { kind: "hook-put", name, attrs, script: { language: "python", content: "cGFzcw==" }, config: null });
};

/** Seconds until the server cancels the job on the sister; null: not within an hour. */
function givenUpAfter(h: Harness): number | null {
  const told = (): boolean => h.to_moms.some(({ link, type }) => link === SISTER && type === "mom-terminate");
  for (let waited = 0; waited <= 3600; waited++) {
    if (told()) return waited;
    advance(h, 1);
  }
  return null;
}

test("a sister has the time of her execjob_begin hooks, or what the mother superior's configuration says, to join", () => {
  assert.equal(givenUpAfter(starting().h), 30);
  assert.equal(givenUpAfter(starting({ join_s: 7 }).h), 7);
  const { h } = starting();
  putHook(h, "a", "execjob_begin,execjob_prologue", "50");
  putHook(h, "b", "execjob_begin", "20");
  putHook(h, "c", "execjob_launch", "500");
  const job = addJob(h);
  h.to_moms.length = 0;
  assert.equal(ask(h, ROOT, { kind: "run-job", job, exec_vnode: "(n1:ncpus=1)+(n2:ncpus=1)", async: true })?.ok, true);
  // The first job's walltime ends meanwhile.
  advance(h, 69);
  assert.equal(h.to_moms.filter(({ type, data }) => type === "mom-terminate" && (data as { job: string }).job === job).length, 0);
  advance(h, 1);
  assert.equal(h.to_moms.filter(({ type, data }) => type === "mom-terminate" && (data as { job: string }).job === job).length, 1);
});

test("when all have accepted the job, the time of their execjob_prologue hooks begins", () => {
  const { h, job } = starting({ join_s: 10, launch_s: 40 });
  advance(h, 9);
  mom(h, SISTER, "mom-joined", { job, run_count: 1 });
  assert.equal(givenUpAfter(h), 40);
  const usual = starting();
  putHook(usual.h, "p", "execjob_prologue", "5");
  mom(usual.h, SISTER, "mom-joined", { job: usual.job, run_count: 1 });
  assert.equal(givenUpAfter(usual.h), 5);
  // A host whose prologue hooks do not finish is dropped from a job that tolerates failures.
  const tolerant = starting({ launch_s: 3 }, { tolerate_node_failures: "job_start" });
  mom(tolerant.h, SISTER, "mom-joined", { job: tolerant.job, run_count: 1 });
  assert.equal(givenUpAfter(tolerant.h), 3);
  assert.equal(jobAttrs(tolerant.h, tolerant.job).exec_vnode, "(n1:ncpus=1)");
  assert.ok(tolerant.h.to_moms.some(({ link, type }) => link === MOTHER && type === "mom-start"));
});

test("a sister that is away is waited for as long as the mother superior's configuration says, whatever node_fail_requeue is", () => {
  const ended = (h: Harness, job: string): boolean =>
    logsOf(h, job).some((text) => text.startsWith("Job is ended, its sister n2 was lost"));
  for (const [downtime_s, node_fail_requeue] of [
    [undefined, 10],
    [20, 0],
    [500, 310],
  ] as const) {
    const { h, job } = running();
    apply(h, { kind: "server-changed", set: { node_fail_requeue }, unset: [] });
    mom(h, MOTHER, "mom-vnodes", { vnodes: [], patience: downtime_s === undefined ? {} : { downtime_s } });
    h.core.momLost(SISTER, h.now_ms);
    settle(h);
    const wait_s = downtime_s ?? 300;
    assert.ok(logsOf(h, job).includes(`sister n2 is away: the job goes on, and waits for her ${wait_s} seconds`));
    advance(h, wait_s - 1);
    assert.equal(ended(h, job), false);
    advance(h, 1);
    assert.equal(ended(h, job), true);
  }
  const { h, job } = running();
  h.core.momLost(SISTER, h.now_ms);
  settle(h);
  advance(h, 299);
  momHello(h, SISTER, "n2", held(job));
  advance(h, 1000);
  assert.equal(ended(h, job), false, "she has come back");
});

test("tolerate_node_failures=job_start: the start does without a host, the run does not", () => {
  for (const lose of ["obit", "silence"] as const)
    for (const [tolerate_node_failures, expected] of [
      ["none", "R 60"],
      ["job_start", "R 60"],
      ["all", "R 42"],
    ] as const) {
      const { h, job } = running({ tolerate_node_failures });
      if (lose === "obit") mom(h, SISTER, "mom-obit", { job, run_count: 1, exit_status: 265, used: {} });
      else h.core.momLost(SISTER, h.now_ms);
      settle(h);
      advance(h, lose === "obit" ? 0 : 300);
      assert.equal(stateOf(h, job), expected, `${lose} ${tolerate_node_failures}`);
    }
  for (const [tolerate_node_failures, exec_vnode] of [
    ["none", undefined],
    ["job_start", "(n1:ncpus=1)"],
    ["all", "(n1:ncpus=1)"],
  ] as const) {
    const { h, job } = starting({}, { tolerate_node_failures });
    mom(h, SISTER, "mom-obit", { job, run_count: 1, exit_status: -1, used: {}, message: "no room" });
    assert.equal(jobAttrs(h, job).exec_vnode, exec_vnode, tolerate_node_failures);
    assert.equal(h.accounting.filter(({ type, id }) => type === "s" && id === job).length, exec_vnode === undefined ? 0 : 1);
  }
});

test("after a restart of the server a sister that does not come is missed by the mother superior's word", () => {
  const { h, job } = running();
  restart(h);
  advance(h, 5);
  momHello(h, MOTHER, "n1", held(job));
  mom(h, MOTHER, "mom-vnodes", { vnodes: [], patience: { downtime_s: 20 } });
  momHello(h, MOTHER, "n1", held(job));
  advance(h, 294);
  assert.equal(stateOf(h, job), "R 42");
  advance(h, 1);
  assert.equal(stateOf(h, job), "R 60");
});

/** Types of the frames about the job that were sent to the sister. */
const sentToSister = (h: Harness): string[] =>
  h.to_moms.filter(({ link, type }) => link === SISTER && type !== "mom-ping").map(({ type }) => type);

/** The sister is silent until the server gives it up, and then sends hello. */
function returnLate(h: Harness, jobs: MomToServer["mom-hello"]["jobs"]): void {
  h.core.momLost(SISTER, h.now_ms);
  settle(h);
  advance(h, 300);
  momHello(h, SISTER, "n2", jobs);
  h.to_moms.length = 0;
}

for (const state of ["running", "suspended", "starting"] as const)
  test(`a sister that was given up and comes back with the run (${state}) lets the run go before the run is over`, () => {
    const { h, job } = running();
    returnLate(h, [{ job, run_count: 1, state, session_id: 9 }]);
    assert.equal(stateOf(h, job), "R 60");
    mom(h, MOTHER, "mom-obit", { job, run_count: 1, exit_status: -11, used: {} });
    assert.deepEqual(sentToSister(h), ["mom-terminate"]);
    assert.equal(stateOf(h, job), "R 60", "the sister still holds the run");
    mom(h, SISTER, "mom-obit", { job, run_count: 1, exit_status: 265, used: {} });
    assert.deepEqual(sentToSister(h), ["mom-terminate", "mom-obit-ack"]);
    assert.equal(stateOf(h, job), "Q 10");
  });

test("a sister that was given up and comes back when the run has ended there is not waited for", () => {
  const { h, job } = running();
  returnLate(h, [{ job, run_count: 1, state: "ended" }]);
  mom(h, MOTHER, "mom-obit", { job, run_count: 1, exit_status: -11, used: {} });
  assert.equal(stateOf(h, job), "Q 10");
  assert.deepEqual(sentToSister(h), ["mom-obit-ack"]);
});

test("a job that went on without a sister has the sister again when it comes back: its vnodes are released once the run is gone there", () => {
  const { h, job } = running({ tolerate_node_failures: "all", schedselect: "2:ncpus=1" });
  returnLate(h, held(job));
  assert.equal(stateOf(h, job), "R 42");
  assert.equal(ask(h, ROOT, { kind: "release-nodes", job, nodes: ["n2"] })?.ok, true);
  assert.deepEqual(sentToSister(h), ["mom-terminate"]);
  assert.equal(jobAttrs(h, job).exec_vnode, "(n1:ncpus=1)+(n2:ncpus=1)");
  mom(h, SISTER, "mom-obit", { job, run_count: 1, exit_status: 265, used: {} });
  assert.equal(jobAttrs(h, job).exec_vnode, "(n1:ncpus=1)");
  // A loss after the return is a new one.
  const again = running({ tolerate_node_failures: "all" });
  for (let times = 0; times < 2; times++) returnLate(again.h, held(again.job));
  assert.equal(logsOf(again.h, again.job).filter((text) => text.startsWith("Job goes on without its sister n2")).length, 2);
});

// --- suspension

const signalsTo = (h: Harness, link: number): string[] =>
  h.to_moms.flatMap((frame) =>
    frame.link === link && frame.type === "mom-signal" ? [(frame.data as { readonly signal: string }).signal] : [],
  );
const answer = (h: Harness, ok: boolean): void => {
  const asked = h.to_moms.findLast(({ link, type }) => link === MOTHER && type === "mom-signal")?.data as { token: number };
  mom(h, MOTHER, "mom-result", { token: asked.token, ok, ...(ok ? {} : { code: 15017, text: "no" }) });
};

test("sisters stand still when their mother superior does; one that was away hears of it when she comes back", () => {
  const { h, job } = running();
  ask(h, ROOT, { kind: "signal-job", job, signal: "suspend" });
  assert.deepEqual([signalsTo(h, MOTHER), signalsTo(h, SISTER)], [["suspend"], []]);
  answer(h, false);
  assert.deepEqual(signalsTo(h, SISTER), [], "the mother superior would not");
  h.core.momLost(SISTER, h.now_ms);
  settle(h);
  ask(h, ROOT, { kind: "signal-job", job, signal: "suspend" });
  answer(h, true);
  assert.equal(stateOf(h, job), "S 43");
  assert.deepEqual(signalsTo(h, SISTER), []);
  momHello(h, SISTER, "n2", held(job));
  assert.deepEqual(signalsTo(h, SISTER), ["suspend"]);
  // After a restart of the server the sister reports its state.
  restart(h);
  momHello(h, SISTER, "n2", [{ job, run_count: 1, state: "suspended", session_id: 9 }]);
  momHello(h, MOTHER, "n1", held(job));
  assert.equal(stateOf(h, job), "R 42", "the mother superior had gone on");
  assert.deepEqual(signalsTo(h, SISTER), ["suspend", "resume"]);
});

test("a suspended job that has lost a sister stays off its vnodes until its mother superior has ended it", () => {
  const { h, job } = running();
  ask(h, ROOT, { kind: "signal-job", job, signal: "suspend" });
  answer(h, true);
  const other = addJob(h);
  assert.equal(ask(h, ROOT, { kind: "run-job", job: other, exec_vnode: "(n2:ncpus=4)", async: true })?.ok, true);
  mom(h, SISTER, "mom-obit", { job, run_count: 1, exit_status: -4, used: {} });
  assert.equal(stateOf(h, job), "S 43");
  assert.equal(h.core.state.vnodes.get("n2")?.assigned.get("ncpus"), 4);
  mom(h, MOTHER, "mom-obit", { job, run_count: 1, exit_status: -11, used: {} });
  assert.equal(stateOf(h, job), "Q 10");
});

test("other signals go to all hosts at once", () => {
  const { h, job } = running();
  ask(h, ROOT, { kind: "signal-job", job, signal: "USR1" });
  assert.deepEqual([signalsTo(h, MOTHER), signalsTo(h, SISTER)], [["USR1"], ["USR1"]]);
});

test("each mom of a run is told how it reaches the others: by a socket on the server's machine, otherwise by TCP", () => {
  const h = harness();
  for (const name of ["n1", "n2", "n3", "n4"]) addHost(h, name);
  const hello = (link: number, host: string, place: Partial<MomToServer["mom-hello"]>): void => {
    const vnodes = [{ name: host, attrs: { resources_available: { ncpus: 4 } } }];
    mom(h, link, "mom-hello", { host, port: 15002, pid: 1, version: "x", vnodes, jobs: [], pongs: true, ...place });
  };
  hello(100, "n1", { tasks: "/n1.sock" });
  hello(101, "n2", { tasks: "/n2.sock" });
  hello(102, "n3", { address: "10.0.0.3" });
  hello(103, "n4", { address: "10.0.0.4", port: 16002 });
  /** what the moms of a job on these hosts are told, by host */
  const told = (hosts: readonly string[]): unknown => {
    const job = addJob(h);
    const from = h.to_moms.length;
    ask(h, ROOT, { kind: "run-job", job, exec_vnode: hosts.map((name) => `(${name}:ncpus=1)`).join("+"), async: true });
    for (const name of hosts.slice(1)) mom(h, linkOf(name), "mom-started", { job, run_count: 1, session_id: 1, jobdir: "/" });
    const frames = h.to_moms.slice(from).filter(({ type }) => type === "mom-start");
    const places = frames.map(({ link, data }) => {
      const [start] = (data as ServerToMom["mom-start"]).jobs;
      return [`n${link - 99}`, { tasks: start?.tasks, sisters: start?.sisters?.hosts }] as const;
    });
    ask(h, ROOT, { kind: "delete-job", job, force: true } as never);
    return Object.fromEntries(places);
  };
  const linkOf = (name: string): number => 99 + Number(name.slice(1));
  const sockets = { n1: "/n1.sock", n2: "/n2.sock" };
  const [here, n3, n4] = [
    { address: null, port: 15002 },
    { address: "10.0.0.3", port: 15002 },
    { address: "10.0.0.4", port: 16002 },
  ];
  assert.deepEqual(told(["n1", "n2"]), { n1: { tasks: sockets, sisters: undefined }, n2: { tasks: sockets, sisters: undefined } });
  assert.deepEqual(told(["n1", "n2", "n3"]), {
    n1: { tasks: sockets, sisters: { n3 } },
    n2: { tasks: sockets, sisters: { n3 } },
    n3: { tasks: undefined, sisters: { n1: here, n2: here } },
  });
  assert.deepEqual(told(["n3", "n4"]), { n3: { tasks: undefined, sisters: { n4 } }, n4: { tasks: undefined, sisters: { n3 } } });
  assert.deepEqual(told(["n3"]), { n3: { tasks: undefined, sisters: undefined } });
});
