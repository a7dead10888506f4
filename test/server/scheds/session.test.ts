// Schedulers as the server sees them: hello, mirror, triggers and their merging, decisions and verdicts, qrun, faults, crashes
// and restarts.

import assert from "node:assert/strict";
import { test } from "node:test";
import { afterCrash } from "#model/restart-rules.ts";
import type { Decision, SchedCycle } from "#protocol/sched-link.ts";
import { type Change, type Delta, SCHED_COMMAND, type Snapshot } from "#protocol/sched-link.ts";
import { isServersComment } from "#server/scheds/supervisor.ts";
import {
  ALICE,
  addHost,
  addJob,
  addQueue,
  addSched,
  addVnode,
  advance,
  apply,
  ask,
  commandsTo,
  cycle,
  type Harness,
  harness,
  holdCommits,
  jobAttrs,
  logsOf,
  mom,
  momHello,
  obit,
  outcome,
  ROOT,
  release,
  restart,
  runOn,
  sched,
  schedHello,
  settle,
  stateOf,
} from "../harness.ts";
import { qsub } from "../requests/qsub.ts";

const LINK = 1;
const { NEW, TERM, TIME, CMD, FIRST, AJOB, ETE_ON, STARTQ } = SCHED_COMMAND;

/** Host n1, the default scheduler connected and idle. */
function world(): { h: Harness; host: number } {
  const h = harness();
  const host = addHost(h, "n1");
  schedHello(h, LINK);
  cycle(h, LINK);
  return { h, host };
}

const attrsOf = (h: Harness, name: string) => h.core.state.scheds.get(name)?.attrs ?? {};
const set = (h: Harness, name: string, attrs: { [name: string]: unknown }, unset: string[] = []): void =>
  apply(h, { kind: "changed", object: "sched", name, set: attrs, unset });
/** Changes told to a scheduler since `from` frames. */
const changesTo = (h: Harness, link: number, from = 0): Change[] =>
  h.to_scheds
    .slice(from)
    .filter((frame) => frame.link === link && frame.type === "sched-delta")
    .flatMap((frame) => (frame.data as Delta).changes);
const starts = (h: Harness): string[] => h.actions.flatMap((action) => (action.kind === "start-sched" ? [action.sched] : []));

test("hello: snapshot first, then FIRST; unknown names and second ones are refused", () => {
  const h = harness();
  addHost(h, "n1");
  const job = addJob(h);
  schedHello(h, LINK);
  const [first, second] = h.to_scheds;
  assert.equal(first?.type, "sched-snapshot");
  const snapshot = first?.data as Snapshot;
  assert.deepEqual(
    [
      snapshot.queues.map((queue) => queue.name),
      snapshot.nodes.map((node) => node.name),
      snapshot.jobs.map((item) => item.id),
      snapshot.revision,
    ],
    [["workq"], ["n1"], [job], 1],
  );
  assert.deepEqual(second, { link: LINK, type: "sched-cycle", data: { cycle: 1, command: FIRST } });
  schedHello(h, 2);
  assert.deepEqual(h.to_scheds.at(-1), { link: 2, type: "sched-refused", data: { code: 15230, text: "Scheduler already connected" } });
  schedHello(h, 3, "nosuch");
  assert.deepEqual(h.to_scheds.at(-1), { link: 3, type: "sched-refused", data: { code: 15213, text: "Unknown Scheduler" } });
  assert.ok(logsOf(h, "default").includes("connected"));
});

test("states: down before the hello, scheduling in a cycle, idle after it, down when lost; server_state follows", () => {
  const h = harness();
  const seen = (): unknown[] => [attrsOf(h, "default")["state"], h.core.state.server["server_state"]];
  assert.deepEqual(seen(), ["down", "Active"]);
  schedHello(h, LINK);
  assert.deepEqual(seen(), ["scheduling", "Scheduling"]);
  cycle(h, LINK);
  assert.deepEqual(seen(), ["idle", "Active"]);
  set(h, "default", { scheduling: false });
  assert.deepEqual(seen(), ["idle", "Active"]);
  h.core.schedLost(LINK, h.now_ms);
  assert.deepEqual(seen(), ["down", "Active"]);
});

// biome-ignore format: a table
const TRIGGERS: readonly [name: string, act: (h: Harness, running: string, host: number) => void, commands: number[]][] = [
  ["a job is submitted",                   (h) => void addJob(h),                                                              [NEW]],
  ["a held job is submitted",              (h) => void addJob(h, { Hold_Types: "u" }),                                         []],
  ["a job is submitted to a stopped queue",(h) => { addQueue(h, "off", { started: false }); addJob(h, { queue: "off" }); },    [NEW]],
  ["a job of another partition",           (h) => { addQueue(h, "pq", { partition: "p1" }); addJob(h, { queue: "pq" }); },     []],
  ["a job ends",                           (h, running, host) => obit(h, host, running),                                       [TERM]],
  ["a job is requeued",                    (h, running, host) => obit(h, host, running, -11),                                  [NEW]],
  ["a waiting job is deleted",             (h) => void ask(h, ALICE, { kind: "delete-job", job: addJob(h, { Hold_Types: "u" }) }), [TERM]],
  ["a job is moved here",                  (h) => { addQueue(h, "pq", { partition: "p1" }); const job = addJob(h, { queue: "pq" }); ask(h, ALICE, { kind: "move-job", job, destination: "workq" }); }, [NEW]],
  ["a hold is released",                   (h) => { const job = addJob(h, { Hold_Types: "u" }); ask(h, ALICE, { kind: "release-job", job, holds: "u" }); }, [NEW]],
  ["scheduling is set True again",         (h) => set(h, "default", { scheduling: true }),                                     [CMD]],
  ["server scheduling is set True",        (h) => apply(h, { kind: "server-changed", set: { scheduling: true }, unset: [] }),  [CMD]],
  ["another attribute of the scheduler",   (h) => set(h, "default", { log_events: 1023 }),                                     []],
  ["a limit is set",                       (h) => apply(h, { kind: "server-changed", set: { max_run: { "u:PBS_GENERIC": 1 } }, unset: [] }), []],
  ["a queue is started",                   (h) => apply(h, { kind: "changed", object: "queue", name: "workq", set: { started: true }, unset: [] }), []],
  ["a node changes",                       (h) => apply(h, { kind: "changed", object: "node", name: "n1", set: { state: ["offline"] }, unset: [] }), []],
  ["a vnode comes into its partition",     (h) => apply(h, { kind: "changed", object: "node", name: "n1", set: { partition: "pbs-default" }, unset: [] }), [NEW]],
  ["an attribute of a job changes",        (h, running) => apply(h, { kind: "job-changed", id: running, set: { Priority: 5 }, unset: [] }), []],
  ["eligible_time_enable is switched on",  (h) => apply(h, { kind: "server-changed", set: { eligible_time_enable: true }, unset: [] }), [ETE_ON]],
];

for (const [name, act, commands] of TRIGGERS) {
  test(`trigger: ${name}: ${commands.length === 0 ? "no cycle" : `command ${commands.join()}`}`, () => {
    const { h, host } = world();
    const running = addJob(h);
    cycle(h, LINK);
    runOn(h, running, "n1", host);
    const before = commandsTo(h, LINK).length;
    act(h, running, host);
    assert.deepEqual(commandsTo(h, LINK).slice(before), commands);
  });
}

test("a queue that is started triggers only while eligible_time_enable is True", () => {
  const { h } = world();
  apply(h, { kind: "server-changed", set: { eligible_time_enable: true }, unset: [] });
  cycle(h, LINK);
  apply(h, { kind: "changed", object: "queue", name: "workq", set: { started: true }, unset: [] });
  assert.equal(commandsTo(h, LINK).at(-1), STARTQ);
});

test("triggers during a cycle are folded into one more", () => {
  const { h } = world();
  const before = commandsTo(h, LINK).length;
  for (let n = 0; n < 5; n++) addJob(h);
  assert.deepEqual(commandsTo(h, LINK).slice(before), [NEW]);
  cycle(h, LINK);
  assert.deepEqual(commandsTo(h, LINK).slice(before), [NEW, NEW]);
  cycle(h, LINK);
  assert.deepEqual(commandsTo(h, LINK).slice(before), [NEW, NEW]);
});

test("what comes in the batch that begins a cycle is in the cycle's mirror: no further cycle for it, but for what comes later", () => {
  const { h, host } = world();
  const jobs = [1, 2, 3].map(() => addJob(h));
  cycle(h, LINK);
  cycle(h, LINK);
  for (const job of jobs) runOn(h, job, "n1", host);
  const [before, frames] = [commandsTo(h, LINK).length, h.to_scheds.length];
  const ends = (job: string): void => {
    const used = { cput: 0, mem: "0kb", ncpus: 1, walltime: 10 };
    h.core.mom(host, "mom-obit", { job, run_count: jobAttrs(h, job).run_count ?? 0, exit_status: 0, used, stageout_status: 1 }, h.now_ms);
  };
  const [one, two, three] = jobs as [string, string, string];
  ends(one);
  ends(two);
  settle(h);
  assert.deepEqual(commandsTo(h, LINK).slice(before), [TERM]);
  const told = h.to_scheds.slice(frames).map(({ type }) => type);
  assert.ok(told.lastIndexOf("sched-delta") < told.indexOf("sched-cycle"), told.join());
  const gone = changesTo(h, LINK, frames).flatMap((change) => ("drop" in change && change.drop === "job" ? [change.id] : []));
  assert.deepEqual(gone.sort(), [one, two]);
  ends(three);
  settle(h);
  cycle(h, LINK);
  assert.deepEqual(commandsTo(h, LINK).slice(before), [TERM, TERM]);
  cycle(h, LINK);
  assert.deepEqual(commandsTo(h, LINK).slice(before), [TERM, TERM]);
});

test("scheduler_iteration: a cycle that long after the last one began; 0: none", () => {
  const { h } = world();
  const before = commandsTo(h, LINK).length;
  advance(h, 599);
  assert.equal(commandsTo(h, LINK).length, before);
  advance(h, 1);
  assert.deepEqual(commandsTo(h, LINK).slice(before), [TIME]);
  cycle(h, LINK);
  set(h, "default", { scheduler_iteration: 0 });
  advance(h, 10_000);
  assert.equal(commandsTo(h, LINK).length, before + 1);
  set(h, "default", { scheduler_iteration: 60 });
  advance(h, 60);
  assert.equal(commandsTo(h, LINK).length, before + 2);
});

test("hosts that come after the first cycle of a start of the server have another, one for all that come together", () => {
  const { h } = world();
  addHost(h, "n2");
  advance(h, 1);
  cycle(h, LINK);
  restart(h);
  h.to_scheds.length = 0;
  schedHello(h, 7);
  cycle(h, 7);
  assert.deepEqual(commandsTo(h, 7), [FIRST]);
  momHello(h, 100, "n1");
  momHello(h, 101, "n2");
  assert.deepEqual(commandsTo(h, 7), [FIRST]);
  advance(h, 1);
  assert.deepEqual(commandsTo(h, 7), [FIRST, NEW]);
  cycle(h, 7);
  // Its mom is already connected: nothing has come back.
  momHello(h, 102, "n2");
  advance(h, 10);
  assert.deepEqual(commandsTo(h, 7), [FIRST, NEW]);
});

test("a host that was down and comes back starts a cycle", () => {
  const { h } = world();
  advance(h, 1);
  cycle(h, LINK);
  const before = commandsTo(h, LINK).length;
  h.core.momLost(100, h.now_ms);
  settle(h);
  advance(h, 10);
  assert.equal(commandsTo(h, LINK).length, before);
  momHello(h, 100, "n1");
  advance(h, 1);
  assert.deepEqual(commandsTo(h, LINK).slice(before), [NEW]);
});

test("job_accumulation_time: submissions wait, other triggers do not", () => {
  const { h } = world();
  apply(h, { kind: "server-changed", set: { job_accumulation_time: 30 }, unset: [] });
  const before = commandsTo(h, LINK).length;
  addJob(h);
  advance(h, 20);
  addJob(h);
  advance(h, 9);
  assert.equal(commandsTo(h, LINK).length, before);
  advance(h, 1);
  assert.deepEqual(commandsTo(h, LINK).slice(before), [NEW]);
  cycle(h, LINK);
  addJob(h);
  set(h, "default", { scheduling: true });
  assert.deepEqual(commandsTo(h, LINK).slice(before), [NEW, CMD]);
  cycle(h, LINK);
  advance(h, 60);
  assert.deepEqual(commandsTo(h, LINK).slice(before), [NEW, CMD], "the waiting submission was served by the other cycle");
});

test("scheduling False: no cycles, but qrun", () => {
  const { h, host } = world();
  apply(h, { kind: "server-changed", set: { scheduling: false }, unset: [] });
  assert.equal(attrsOf(h, "default")["scheduling"], false);
  const before = commandsTo(h, LINK).length;
  const job = addJob(h);
  assert.equal(commandsTo(h, LINK).length, before);
  const token = h.next_token;
  assert.equal(ask(h, ROOT, { kind: "run-job", job }), undefined);
  assert.deepEqual(commandsTo(h, LINK).slice(before), [AJOB]);
  cycle(h, LINK, [{ kind: "run", job, exec_vnode: "(n1:ncpus=1)" }]);
  assert.equal(h.answers.get(token), undefined, "until the mom has it");
  assert.equal(stateOf(h, job), "R 41");
  mom(h, host, "mom-started", { job, run_count: 1, session_id: 2, jobdir: "/" });
  assert.equal(h.answers.get(token)?.ok, true);
  obit(h, host, job);
  assert.equal(commandsTo(h, LINK).length, before + 1);
});

test("qrun: the scheduler's refusal is the answer with 15044; an unreachable one gives 15099", () => {
  const { h } = world();
  const job = addJob(h, { Hold_Types: "u" });
  let token = h.next_token;
  ask(h, ROOT, { kind: "run-job", job });
  const text = "Insufficient amount of resource: ncpus (R: 40 A: 16 T: 16)";
  cycle(h, LINK, [{ kind: "qrun-refused", job, text }]);
  assert.deepEqual(h.answers.get(token), { ok: false, code: 15044, text });
  token = h.next_token;
  ask(h, ROOT, { kind: "run-job", job });
  h.core.schedLost(LINK, h.now_ms);
  settle(h);
  assert.equal(outcome(h, ROOT, { kind: "run-job", job }), "15099 Could not contact Scheduler");
  assert.deepEqual(h.answers.get(token), { ok: false, code: 15099, text: "Could not contact Scheduler" });
});

test("qruns come one by one, before the pending trigger; a held job is run", () => {
  const { h } = world();
  const before = commandsTo(h, LINK).length;
  const one = addJob(h);
  const two = addJob(h, { Hold_Types: "u" });
  for (const job of [one, two]) assert.equal(outcome(h, ROOT, { kind: "run-job", job, async: true }), "ok");
  cycle(h, LINK);
  cycle(h, LINK);
  assert.deepEqual(cycle(h, LINK, [{ kind: "run", job: two, exec_vnode: "(n1:ncpus=1)" }]), [{ ok: true }]);
  assert.deepEqual(commandsTo(h, LINK).slice(before), [NEW, AJOB, AJOB]);
  assert.equal(stateOf(h, two), "R 41");
});

test("decisions are checked against the present state, each gets its verdict in order", () => {
  const { h } = world();
  const [a, b, c, d] = [addJob(h), addJob(h), addJob(h, { Resource_List: { place: "excl", select: "1:ncpus=1", ncpus: 1 } }), addJob(h)];
  addVnode(h, "far", { partition: "p9" });
  addVnode(h, "off", { state: ["offline"] });
  ask(h, ALICE, { kind: "delete-job", job: d });
  const run = (job: string, exec_vnode: string) => ({ kind: "run", job, exec_vnode }) as const;
  const verdicts = cycle(h, LINK, [
    run(a, "(n1:ncpus=3)"),
    run(b, "(n1:ncpus=2)"),
    run(c, "(n1:ncpus=1)"),
    run(d, "(n1:ncpus=1)"),
    run(b, "(far:ncpus=1)"),
    run(b, "(off:ncpus=1)"),
    run(b, "(nosuch:ncpus=1)"),
    run(b, "(n1:ncpus"),
    run(a, "(n1:ncpus=1)"),
    run(b, "(n1:ncpus=1)"),
    { kind: "comment", job: b, comment: "too late", why: { code: "X" } },
    { kind: "preempt", job: d, methods: "SCR", for: b },
  ]);
  const code = (number: number) => ({ ok: false, code: number });
  assert.deepEqual(
    verdicts.map((verdict) => (verdict.ok ? { ok: true } : { ok: false, code: verdict.code })),
    [
      { ok: true },
      code(15044),
      code(15044),
      code(15001),
      code(15044),
      code(15044),
      code(15062),
      code(15014),
      code(15016),
      { ok: true },
      code(15016),
      code(15001),
    ],
  );
  assert.equal(h.core.state.vnodes.get("n1")?.assigned.get("ncpus"), 4);
});

test("a comment of the scheduler is stored and not told back to it, other schedulers' news are", () => {
  const { h } = world();
  const job = addJob(h);
  cycle(h, LINK);
  sched(h, LINK, "sched-decisions", { cycle: 2, decisions: [] });
  const from = h.to_scheds.length;
  sched(h, LINK, "sched-decisions", { cycle: 2, decisions: [{ kind: "comment", job, comment: "Not Running: x", why: { code: "X" } }] });
  assert.equal(jobAttrs(h, job).comment, "Not Running: x");
  assert.deepEqual(changesTo(h, LINK, from), []);
  ask(h, ALICE, { kind: "hold-job", job, holds: "u" });
  assert.deepEqual(
    changesTo(h, LINK, from).map((change) => ("put" in change ? change.put : change.drop)),
    ["job"],
  );
});

test("a comment that replaces the scheduler's own before it is told anything is told", () => {
  const { h } = world();
  const job = addJob(h);
  const asked = h.to_scheds.findLast((frame) => frame.link === LINK && frame.type === "sched-cycle");
  const number = (asked as { readonly data: SchedCycle }).data.cycle;
  const from = h.to_scheds.length;
  const comment: Decision = { kind: "comment", job, comment: "Not Running: x", why: { code: "X" } };
  sched(h, LINK, "sched-decisions", { cycle: number, decisions: [comment], more: true });
  apply(h, { kind: "job-changed", id: job, set: { comment: "an operator's" }, unset: [] });
  sched(h, LINK, "sched-decisions", { cycle: number, decisions: [] });
  assert.deepEqual(
    changesTo(h, LINK, from).flatMap((change) => ("put" in change && change.put === "job" ? [change.value.comment] : [])),
    ["an operator's"],
  );
});

test("while decisions come in parts nothing is told; before the verdicts on the last part everything, as it then is", () => {
  const { h } = world();
  const [first, second] = [addJob(h), addJob(h)];
  sched(h, LINK, "sched-cycle-end", { cycle: 1, jobs_considered: 0, cycle_ms: 1 });
  const asked = h.to_scheds.findLast((frame) => frame.link === LINK && frame.type === "sched-cycle");
  const number = (asked as { readonly data: SchedCycle }).data.cycle;
  const from = h.to_scheds.length;
  const run = (job: string): Decision => ({ kind: "run", job, exec_vnode: "(n1:ncpus=1)" });
  sched(h, LINK, "sched-decisions", { cycle: number, decisions: [run(first)], more: true });
  ask(h, ALICE, { kind: "hold-job", job: second, holds: "u" });
  ask(h, ALICE, { kind: "release-job", job: second, holds: "u" });
  assert.equal(jobAttrs(h, first).job_state, "R");
  assert.deepEqual(changesTo(h, LINK, from), []);
  sched(h, LINK, "sched-decisions", { cycle: number, decisions: [] });
  const told = h.to_scheds.slice(from).filter((frame) => frame.link === LINK);
  assert.deepEqual(
    told.map(({ type }) => type),
    ["sched-verdicts", "sched-delta", "sched-verdicts"],
  );
  const jobs = changesTo(h, LINK, from).flatMap((change) =>
    "put" in change && change.put === "job" ? [[change.value.id, change.value.state]] : [],
  );
  assert.deepEqual(jobs.sort(), [
    [first, "R"],
    [second, "Q"],
  ]);
});

test("the last decisions of a cycle in parts are committed before it is told what has changed: a change from then on is told with it", () => {
  const { h } = world();
  const [first, second] = [addJob(h), addJob(h)];
  sched(h, LINK, "sched-cycle-end", { cycle: 1, jobs_considered: 0, cycle_ms: 1 });
  const asked = h.to_scheds.findLast((frame) => frame.link === LINK && frame.type === "sched-cycle");
  const number = (asked as { readonly data: SchedCycle }).data.cycle;
  const run = (job: string): Decision => ({ kind: "run", job, exec_vnode: "(n1:ncpus=1)" });
  sched(h, LINK, "sched-decisions", { cycle: number, decisions: [run(first)], more: true });
  holdCommits(h);
  h.to_scheds.length = 0;
  sched(h, LINK, "sched-decisions", { cycle: number, decisions: [run(second)] });
  assert.equal(h.store.stored.jobs.get(second)?.run?.["job_state"], "R", "the start is committed");
  ask(h, ALICE, { kind: "delete-job", job: second });
  assert.deepEqual(h.to_scheds, []);
  release(h);
  assert.deepEqual(
    h.to_scheds.slice(0, 2).map(({ type }) => type),
    ["sched-delta", "sched-verdicts"],
  );
});

test("mirrors: each scheduler sees its own partitions; a queue that changes partition takes its jobs along", () => {
  const { h } = world();
  addSched(h, "s1", { partition: ["p1"] });
  addQueue(h, "q1", { partition: "p1" });
  addVnode(h, "v1", { partition: "p1" });
  schedHello(h, 2, "s1");
  const snapshot = h.to_scheds.find((frame) => frame.link === 2 && frame.type === "sched-snapshot")?.data as Snapshot;
  assert.deepEqual(
    [snapshot.queues.map((queue) => queue.name), snapshot.nodes.map((node) => node.name), snapshot.jobs],
    [["q1"], ["v1"], []],
  );
  const from = h.to_scheds.length;
  const job = addJob(h, { queue: "q1" });
  const told = (link: number): string[] =>
    changesTo(h, link, from).map((change) => ("put" in change ? `put ${change.put}` : `drop ${change.drop} ${change.id}`));
  assert.deepEqual(told(LINK), ["put server"]);
  assert.deepEqual(told(2), ["put server", "put job"]);
  const later = h.to_scheds.length;
  apply(h, { kind: "changed", object: "queue", name: "q1", set: {}, unset: ["partition"] });
  const names = (link: number): string[] =>
    changesTo(h, link, later).map((change) => ("put" in change ? `put ${change.put}` : `drop ${change.drop} ${change.id}`));
  assert.deepEqual(names(LINK), ["put queue", "put job"]);
  assert.deepEqual(names(2), ["drop queue q1", `drop job ${job}`]);
});

test("kill_delay of a queue that goes to another partition is told with its running jobs", () => {
  const { h, host } = world();
  addQueue(h, "slow", { kill_delay: 40 });
  const running = addJob(h, { queue: "slow" });
  cycle(h, LINK);
  runOn(h, running, "n1", host);
  const told = (from: number): string[] =>
    changesTo(h, LINK, from).flatMap((change) =>
      "put" in change && change.put === "job" ? `${change.value.id} ${change.value.kill_delay_s}` : "drop" in change ? change.id : [],
    );
  assert.equal(told(0).at(-1), `${running} undefined`);
  const from = h.to_scheds.length;
  apply(h, { kind: "changed", object: "queue", name: "slow", set: { partition: "p1" }, unset: [] });
  assert.deepEqual(told(from), ["slow", `${running} 40`]);
  const later = h.to_scheds.length;
  apply(h, { kind: "changed", object: "queue", name: "slow", set: { kill_delay: 50 }, unset: [] });
  assert.deepEqual(told(later), [`${running} 50`]);
});

test("mirrors equal the state after every kind of change: deltas give what a fresh snapshot gives", () => {
  const { h, host } = world();
  const jobs = [addJob(h), addJob(h, { Hold_Types: "u" }), addJob(h)];
  runOn(h, jobs[0] as string, "n1", host);
  ask(h, ALICE, { kind: "release-job", job: jobs[1] as string, holds: "u" });
  ask(h, ALICE, { kind: "delete-job", job: jobs[2] as string });
  addQueue(h, "q2");
  ask(h, ALICE, { kind: "move-job", job: jobs[1] as string, destination: "q2" });
  obit(h, host, jobs[0] as string);
  const mirror = mirrorOf(h, LINK);
  h.core.schedLost(LINK, h.now_ms);
  schedHello(h, 9);
  assert.deepEqual(mirror, mirrorOf(h, 9));
});

/** A mirror maintained as in a scheduler. */
function mirrorOf(h: Harness, link: number): unknown {
  const objects = new Map<string, unknown>();
  let revision = 0;
  for (const frame of h.to_scheds) {
    if (frame.link !== link) continue;
    if (frame.type === "sched-snapshot") {
      const snapshot = frame.data as Snapshot;
      revision = snapshot.revision;
      objects.clear();
      objects.set("server", snapshot.server);
      for (const item of snapshot.resources) objects.set(`resource ${item.name}`, item);
      for (const item of snapshot.queues) objects.set(`queue ${item.name}`, item);
      for (const item of snapshot.nodes) objects.set(`node ${item.name}`, item);
      for (const item of snapshot.jobs) objects.set(`job ${item.id}`, item);
    }
    if (frame.type !== "sched-delta") continue;
    const delta = frame.data as Delta;
    assert.equal(delta.revision, ++revision, "revisions grow by one");
    for (const change of delta.changes) {
      if ("drop" in change) objects.delete(`${change.drop} ${change.id}`);
      else if (change.put === "server") objects.set("server", change.value);
      else if (change.put !== "sched")
        objects.set(`${change.put} ${"id" in change.value ? change.value.id : change.value.name}`, change.value);
    }
  }
  // The states of the server itself are not mirrored immediately, because they change with every cycle.
  const server = objects.get("server") as { attrs: { [name: string]: unknown } };
  return [...objects]
    .map(([key, value]) => (key === "server" ? [key, { ...server, attrs: { ...server.attrs, server_state: "" } }] : [key, value]))
    .sort();
}

test("scheduling and scheduler_iteration of server and default scheduler are one value", () => {
  const { h } = world();
  apply(h, { kind: "server-changed", set: { scheduler_iteration: 120 }, unset: [] });
  assert.equal(attrsOf(h, "default")["scheduler_iteration"], 120);
  set(h, "default", { scheduler_iteration: 300, scheduling: false });
  assert.deepEqual([h.core.state.server["scheduler_iteration"], h.core.state.server["scheduling"]], [300, false]);
  addSched(h, "s1", { partition: ["p1"] });
  set(h, "s1", { scheduler_iteration: 7 });
  assert.equal(h.core.state.server["scheduler_iteration"], 300);
});

test("a subjob that is deleted or starts is news to the scheduler whose comment on the array came before", async () => {
  for (const change of ["delete", "run"] as const) {
    const { h } = world();
    const array = await qsub(h, "-J 0-5 -- /bin/true");
    const asked = h.to_scheds.findLast((frame) => frame.link === LINK && frame.type === "sched-cycle");
    const number = (asked as { readonly data: SchedCycle }).data.cycle;
    const from = h.to_scheds.length;
    const comment: Decision = { kind: "comment", job: array, comment: "Not Running: x", why: { code: "X" } };
    sched(h, LINK, "sched-decisions", { cycle: number, decisions: [comment], more: true });
    const subjob = array.replace("[]", "[1]");
    if (change === "delete") ask(h, ROOT, { kind: "delete-job", job: subjob });
    else ask(h, ROOT, { kind: "run-job", job: subjob, exec_vnode: "(n1:ncpus=1)", async: true });
    sched(h, LINK, "sched-decisions", { cycle: number, decisions: [] });
    const told = changesTo(h, LINK, from).flatMap((item) =>
      "put" in item && item.put === "job" && item.value.id === array ? [item.value.array] : [],
    );
    assert.equal(told.at(-1)?.indices_remaining, "0,2-5", change);
  }
});

test("what happens on a host is told to a vnode there that another scheduler has, also to one with ignore_excl", () => {
  const { h } = world();
  addSched(h, "s1", { partition: ["p1"] });
  const link = addHost(h, "n7");
  mom(h, link, "mom-vnodes", {
    vnodes: [
      { name: "n7", attrs: { resources_available: { ncpus: 1 } } },
      { name: "n7[0]", attrs: { resources_available: { ncpus: 4 }, sharing: "ignore_excl" } },
      { name: "n7[1]", attrs: { resources_available: { ncpus: 4 } } },
    ],
  });
  apply(h, { kind: "changed", object: "node", name: "n7[1]", set: { partition: "p1" }, unset: [] });
  const job = addJob(h);
  const from = h.to_scheds.length;
  const told = (): unknown[] =>
    changesTo(h, LINK, from).flatMap((item) =>
      "put" in item && item.put === "node" && item.value.name === "n7[0]" ? [item.value.crowded] : [],
    );
  ask(h, ROOT, { kind: "run-job", job, exec_vnode: "(n7[1]:ncpus=1)", async: true });
  cycle(h, LINK);
  const during = told().at(-1);
  obit(h, link, job, -3);
  cycle(h, LINK);
  assert.deepEqual([during, told().at(-1)], [true, undefined]);
});

test("any attribute but scheduling, comment and state makes the scheduler configure; so do resources", () => {
  const { h } = world();
  const configures = (): number => h.to_scheds.filter((frame) => frame.type === "sched-configure").length;
  set(h, "default", { scheduling: true });
  assert.equal(configures(), 0);
  set(h, "default", { log_events: 2047 });
  assert.equal(configures(), 1);
  apply(h, { kind: "resource-put", resource: { name: "color", type: "string", flags: "h", read: "all", set: "user" } });
  assert.equal(configures(), 2);
});

test("a fault switches scheduling off and comments; when it is over the comment goes, scheduling stays off", () => {
  const { h } = world();
  const text = "PBS failed validation checks for sched_priv directory";
  sched(h, LINK, "sched-fault", { fault: text });
  assert.deepEqual([attrsOf(h, "default")["scheduling"], attrsOf(h, "default")["comment"]], [false, text]);
  sched(h, LINK, "sched-fault", { fault: null });
  assert.deepEqual([attrsOf(h, "default")["scheduling"], attrsOf(h, "default")["comment"]], [false, undefined]);
  set(h, "default", { comment: "mine" });
  sched(h, LINK, "sched-fault", { fault: text });
  assert.equal(attrsOf(h, "default")["comment"], "mine");
});

test("a problem of a module is in the comment unless an administrator's is there; scheduling goes on", () => {
  const { h } = world();
  const problem = (text: string | null): unknown => {
    sched(h, LINK, "sched-problem", { problem: text });
    return attrsOf(h, "default")["comment"];
  };
  assert.equal(problem("module a: left out"), "NEEDS_ATTENTION: module a: left out");
  assert.equal(problem("module b: left out"), "NEEDS_ATTENTION: module b: left out");
  assert.equal(attrsOf(h, "default")["scheduling"], true);
  assert.equal(problem(null), undefined);
  set(h, "default", { comment: "mine" });
  assert.equal(problem("module a: left out"), "mine");
  assert.equal(problem(null), "mine");
  const fault = "PBS failed validation checks for sched_priv directory";
  sched(h, LINK, "sched-fault", { fault });
  set(h, "default", { comment: fault });
  assert.equal(problem("module a: left out"), fault);
});

test("each cycle is announced in the server's log at DEBUG3", () => {
  const { h } = world();
  const from = h.logs.length;
  set(h, "default", { scheduling: true });
  const told = h.logs.slice(from).filter(({ text }) => /^(processing priority socket|Scheduler sent command)/.test(text));
  assert.deepEqual(
    told.map(({ event, text }) => `${event.toString(16)} ${text}`),
    ["400 processing priority socket", "40 Scheduler sent command 5"],
  );
});

test("a scheduler that wants a cycle gets one", () => {
  const { h } = world();
  const before = h.to_scheds.length;
  sched(h, LINK, "sched-wake", {});
  assert.deepEqual(
    h.to_scheds.slice(before).map(({ type, data }) => [type, (data as { command: number }).command]),
    [["sched-cycle", SCHED_COMMAND.TIME]],
  );
});

// --- processes

const NO_PARTITION = "Scheduler does not contain a partition";

test("a scheduler that is to run and has no partition says so, in its comment and in its log; the comment goes with its cause", () => {
  const h = harness();
  addSched(h, "s1", { scheduling: true });
  const says = (): string[] => h.actions.flatMap((action) => (action.kind === "say-sched" ? [`${action.sched}: ${action.text}`] : []));
  assert.deepEqual([attrsOf(h, "s1")["comment"], says()], [NO_PARTITION, [`s1: ${NO_PARTITION}`]]);
  set(h, "s1", { partition: ["p1"] });
  assert.equal(attrsOf(h, "s1")["comment"], undefined);
  set(h, "s1", {}, ["partition"]);
  assert.equal(attrsOf(h, "s1")["comment"], NO_PARTITION);
  set(h, "s1", { scheduling: false });
  assert.equal(attrsOf(h, "s1")["comment"], undefined);
  set(h, "s1", { scheduling: true, comment: "ours" });
  assert.equal(attrsOf(h, "s1")["comment"], "ours", "an administrator's comment stays");
  set(h, "s1", {}, ["comment"]);
  assert.equal(attrsOf(h, "s1")["comment"], NO_PARTITION);
  set(h, "s1", { partition: ["p1"] });
  set(h, "s1", {}, ["partition", "comment"]);
  assert.equal(attrsOf(h, "s1")["comment"], undefined, "who removes both wants neither");
});

test("the server's own comment comes back when an administrator's is unset", () => {
  const { h } = world();
  const crash = (): void => {
    h.core.schedExited("default", { code: 1, signal: null, stopped: false }, h.now_ms);
    settle(h);
  };
  const replaced = (): unknown => {
    set(h, "default", { comment: "being looked at" });
    assert.equal(attrsOf(h, "default")["comment"], "being looked at");
    set(h, "default", {}, ["comment"]);
    return attrsOf(h, "default")["comment"];
  };
  assert.equal(replaced(), undefined);
  h.core.schedLost(LINK, h.now_ms);
  for (let times = 0; times < 3; times++) crash();
  assert.equal(replaced(), "NEEDS_ATTENTION");
  assert.equal(logsOf(h, "default").at(-1), "ended with exit status 1; it is started again in 10 s");
  schedHello(h, LINK);
  sched(h, LINK, "sched-problem", { problem: "module a: left out" });
  cycle(h, LINK);
  assert.equal(replaced(), "NEEDS_ATTENTION: module a: left out");
  sched(h, LINK, "sched-fault", { fault: "Unable to change the sched_log directory" });
  assert.equal(replaced(), "Unable to change the sched_log directory");
});

test("another sched_user: the scheduler ends and is started as that user", () => {
  const { h } = world();
  h.actions.length = 0;
  set(h, "default", { sched_user: "alice" });
  assert.deepEqual(
    h.actions.map(({ kind }) => kind),
    ["stop-sched"],
  );
  h.core.schedLost(LINK, h.now_ms);
  h.core.schedExited("default", { code: 0, signal: null, stopped: true }, h.now_ms);
  settle(h);
  assert.deepEqual(starts(h), ["default"]);
  h.core.schedExited("default", { code: 0, signal: null, stopped: true }, h.now_ms);
  advance(h, 100);
  assert.deepEqual(starts(h), ["default"], "once");
});

test("a scheduler that is wanted again while its process still ends is started when it has ended", () => {
  const { h } = world();
  addSched(h, "s1", { partition: ["p1"], scheduling: true });
  schedHello(h, 2, "s1");
  const ended = (): void => {
    h.core.schedExited("s1", { code: 0, signal: null, stopped: true }, h.now_ms);
    settle(h);
  };
  h.actions.length = 0;
  set(h, "s1", {}, ["partition"]);
  set(h, "s1", { partition: ["p1"] });
  assert.deepEqual(starts(h), [], "it is connected yet");
  h.core.schedLost(2, h.now_ms);
  ended();
  assert.deepEqual(starts(h), ["s1"]);
  schedHello(h, 3, "s1");
  set(h, "s1", { sched_user: "alice" });
  h.core.schedLost(3, h.now_ms);
  advance(h, 10);
  h.actions.length = 0;
  ended();
  assert.deepEqual(starts(h), ["s1"], "its end took longer than a lost connection is waited for");
  schedHello(h, 4, "s1");
  set(h, "s1", {}, ["partition"]);
  h.core.schedLost(4, h.now_ms);
  h.actions.length = 0;
  ended();
  advance(h, 100);
  assert.deepEqual(starts(h), [], "nobody wants it");
});

test("a directory that fails its check: the scheduler is not started, and is again once scheduling is True", () => {
  const h = harness();
  h.core.schedUnfit("default", "PBS failed validation checks for sched_priv directory", h.now_ms);
  settle(h);
  const { comment, scheduling, state } = attrsOf(h, "default");
  assert.deepEqual([comment, scheduling, state], ["PBS failed validation checks for sched_priv directory", false, "down"]);
  advance(h, 1000);
  assert.deepEqual(starts(h), ["default"]);
  set(h, "default", { scheduling: true });
  assert.deepEqual(starts(h), ["default", "default"]);
  schedHello(h, LINK);
  sched(h, LINK, "sched-fault", { fault: null });
  assert.equal(attrsOf(h, "default")["comment"], undefined, "it is mended");
});

test("the server's log names the job whose scheduler cannot be reached", () => {
  const h = harness();
  addHost(h, "n1");
  addSched(h, "s1", { partition: ["p1"] });
  addQueue(h, "pq", { partition: "p1" });
  addQueue(h, "nobody", { partition: "p9" });
  schedHello(h, 5, "s1");
  sched(h, 5, "sched-leaving", {});
  h.core.schedLost(5, h.now_ms);
  h.core.schedExited("s1", { code: 0, signal: null, stopped: false }, h.now_ms);
  settle(h);
  const said = (act: () => void): string[] => {
    const from = h.logs.length;
    act();
    return h.logs.slice(from).flatMap(({ text }) => (/^(Unable to reach|No scheduler)/.test(text) ? [text] : []));
  };
  let job = "";
  const submitted = said(() => {
    job = addJob(h, { queue: "pq" });
  });
  const unreachable = `Unable to reach scheduler associated with job ${job}`;
  assert.deepEqual(submitted, ["Unable to reach scheduler associated with partition p1", unreachable]);
  const ran = said(() => assert.equal(outcome(h, ROOT, { kind: "run-job", job }), "15099 Could not contact Scheduler"));
  assert.deepEqual(ran, [unreachable]);
  const orphan = addJob(h, { queue: "nobody" });
  const refused = said(() => assert.equal(outcome(h, ROOT, { kind: "run-job", job: orphan }), "15099 Could not contact Scheduler"));
  assert.deepEqual(refused, [`Unable to reach scheduler associated with job ${orphan}`]);
});

test("who is started: with scheduling True at the start, or when it becomes True, and never without a partition", () => {
  const h = harness();
  assert.deepEqual(starts(h), ["default"]);
  addSched(h, "none", { scheduling: true });
  addSched(h, "s1", { scheduling: false, partition: ["p1"] });
  assert.deepEqual(starts(h), ["default"]);
  set(h, "s1", { scheduling: true });
  assert.deepEqual(starts(h), ["default", "s1"]);
  set(h, "none", { partition: ["p2"] });
  assert.deepEqual(starts(h), ["default", "s1", "none"]);
  h.actions.length = 0;
  restart(h);
  assert.deepEqual(starts(h), ["default", "none", "s1"]);
});

test("the last partition is taken away: the scheduler is told to end; deleted: likewise", () => {
  const h = harness();
  addSched(h, "s1", { partition: ["p1"] });
  schedHello(h, 5, "s1");
  set(h, "s1", {}, ["partition"]);
  assert.equal(
    h.to_scheds.at(-1)?.type === "sched-quit" || h.to_scheds.some((frame) => frame.link === 5 && frame.type === "sched-quit"),
    true,
  );
  assert.ok(h.actions.some((action) => action.kind === "stop-sched" && action.sched === "s1" && action.pid === 4711));
  h.core.schedLost(5, h.now_ms);
  h.core.schedExited("s1", { code: 0, signal: null, stopped: true }, h.now_ms);
  advance(h, 100);
  assert.deepEqual(starts(h), ["default", "s1"], "not started again");
  assert.equal(attrsOf(h, "s1")["state"], "down");
});

test("the log says how a scheduler ended: by a signal, by its own watch over modules", () => {
  const { h } = world();
  for (const signal of ["SIGKILL", "SIGALRM"]) {
    h.core.schedExited("default", { code: null, signal, stopped: false }, h.now_ms);
    settle(h);
  }
  const ends = logsOf(h, "default").filter((text) => text.startsWith("ended with"));
  assert.equal(ends[0], "ended with signal SIGKILL; it is started again at once");
  assert.match(
    ends[1] ?? "",
    /^ended with signal SIGALRM from its own watch thread: a module's call took longer than module_alarm \(.*modules_stuck\); it is started again at once$/,
  );
});

test("a crash is answered at once, the third within an hour with NEEDS_ATTENTION and 10 s, the next 20 s; READY_TO_USE after a cycle", () => {
  const { h } = world();
  const crash = (): void => {
    h.core.schedExited("default", { code: null, signal: "SIGKILL", stopped: false }, h.now_ms);
    settle(h);
  };
  h.actions.length = 0;
  crash();
  assert.deepEqual([starts(h).length, attrsOf(h, "default")["comment"]], [1, undefined]);
  crash();
  assert.deepEqual([starts(h).length, attrsOf(h, "default")["comment"]], [2, undefined]);
  crash();
  assert.deepEqual([starts(h).length, attrsOf(h, "default")["comment"]], [2, "NEEDS_ATTENTION"]);
  advance(h, 9);
  assert.equal(starts(h).length, 2);
  advance(h, 1);
  assert.equal(starts(h).length, 3);
  crash();
  advance(h, 19);
  assert.equal(starts(h).length, 3);
  advance(h, 1);
  assert.equal(starts(h).length, 4);
  schedHello(h, 8);
  assert.equal(attrsOf(h, "default")["comment"], "NEEDS_ATTENTION");
  cycle(h, 8);
  assert.equal(attrsOf(h, "default")["comment"], "READY_TO_USE");
});

test("setting scheduling True starts a delayed scheduler at once", () => {
  const { h } = world();
  h.core.schedLost(LINK, h.now_ms);
  for (let n = 0; n < 3; n++) h.core.schedExited("default", { code: 1, signal: null, stopped: false }, h.now_ms);
  settle(h);
  h.actions.length = 0;
  set(h, "default", { scheduling: true });
  assert.deepEqual(starts(h), ["default"]);
});

test("one that ended in good order, or was told to, is not started again", () => {
  const { h } = world();
  h.actions.length = 0;
  sched(h, LINK, "sched-leaving", {});
  h.core.schedLost(LINK, h.now_ms);
  h.core.schedExited("default", { code: 0, signal: null, stopped: false }, h.now_ms);
  advance(h, 1000);
  assert.deepEqual(starts(h), []);
  assert.equal(attrsOf(h, "default")["state"], "down");
});

test("a lost connection is waited for; a scheduler that does not come back is started", () => {
  const { h } = world();
  h.actions.length = 0;
  h.core.schedLost(LINK, h.now_ms);
  advance(h, 2);
  assert.deepEqual(starts(h), []);
  schedHello(h, 2);
  advance(h, 10);
  assert.deepEqual(starts(h), []);
  h.core.schedLost(2, h.now_ms);
  advance(h, 3);
  assert.deepEqual(starts(h), ["default"]);
});

// biome-ignore format: a table
const CRASHES: readonly [earlier_s: number[], counted: number, attention: boolean, delay_s: number][] = [
  [[],                             1, false, 0],
  [[10],                           2, false, 0],
  [[10, 20],                       3, true,  10],
  [[10, 20, 30],                   4, true,  20],
  [[3700, 3650],                   1, false, 0],
  [[3700, 20, 10],                 3, true,  10],
  [Array.from({ length: 40 }, (_, n) => n), 41, true, 300],
];
for (const [earlier_s, counted, attention, delay_s] of CRASHES) {
  test(`supervision: a crash after ${earlier_s.length} others ${earlier_s.slice(0, 3).join()} s ago: ${counted} count, wait ${delay_s} s`, () => {
    const now = 10_000_000;
    const after = afterCrash(
      earlier_s.map((ago) => now - ago * 1000),
      now,
    );
    assert.deepEqual([after.crashes.length, after.attention, after.delay_ms], [counted, attention, delay_s * 1000]);
  });
}

test("an administrator's comment is not the server's", () => {
  assert.deepEqual(
    ["NEEDS_ATTENTION", "READY_TO_USE", undefined, "hands off"].map((comment) => isServersComment(comment)),
    [true, true, true, false],
  );
});
