// Requests on jobs as tables: the user, the request, the state of the job, the answer, and the state afterwards
// (docs/reference/commands.md 3, transcripts hold-release, qdel, move-order-run).

import assert from "node:assert/strict";
import { test } from "node:test";
import { SUBSTATE } from "#model/job-state.ts";
import type { Request } from "#protocol/messages.ts";
import type { Peer } from "#server/engine/identity.ts";
import type { Attrs } from "#server/state/state.ts";
import {
  ALICE,
  addHost,
  addJob,
  addQueue,
  advance,
  apply,
  ask,
  BOB,
  cycle,
  type Harness,
  harness,
  jobAttrs,
  jobOwn,
  lettersOf,
  logsOf,
  mom,
  obit,
  outcome,
  ROOT,
  runOn,
  START_S,
  schedHello,
  stateOf,
  statusOf,
  user,
} from "../harness.ts";

const OPERATOR = user("oper");
const OK = "ok";
const PERM = "15007 Unauthorized Request ";
const STATE = "15016 Request invalid for state of job";
const UNKNOWN = "15001 Unknown Job Id";
const FINISHED = "15139 Job has finished";

type Before = "queued" | "held" | "waiting" | "running" | "suspended" | "finished" | "nosuch";

/** A complex with an operator, queues q2, off (disabled) and typeless, host n1, and a job of alice in the given state. */
function world(before: Before, attrs: Attrs = {}): { h: Harness; job: string; link: number } {
  const h = harness({ server: { operators: ["oper@*"] } });
  addQueue(h, "q2");
  addQueue(h, "off", { enabled: false });
  apply(h, { kind: "created", object: "queue", name: "typeless", attrs: {} });
  const link = addHost(h, "n1");
  if (before === "nosuch") return { h, job: "99.svr", link };
  const more: Attrs = before === "held" ? { Hold_Types: "u" } : before === "waiting" ? { Execution_Time: START_S + 1000 } : {};
  const job = addJob(h, { ...more, ...attrs });
  if (before === "running" || before === "suspended" || before === "finished") runOn(h, job, "n1", link);
  if (before === "finished") obit(h, link, job);
  if (before === "suspended") {
    assert.equal(ask(h, ROOT, { kind: "signal-job", job, signal: "suspend" }), undefined);
    answerMom(h, link);
  }
  return { h, job, link };
}

/** The mom answers the latest question. */
function answerMom(h: Harness, link: number, ok = true): void {
  const asked = h.to_moms.filter((frame) => frame.type === "mom-signal" || frame.type === "mom-message").at(-1);
  assert.ok(asked !== undefined, "nothing was asked");
  const { token } = asked.data as { token: number };
  mom(h, link, "mom-result", { token, ok });
}

type Row = readonly [before: Before, who: Peer, request: (job: string) => Request, answer: string, after: string];

const hold = (holds: string) => (job: string) => ({ kind: "hold-job", job, holds }) as const;
const release = (holds: string) => (job: string) => ({ kind: "release-job", job, holds }) as const;
const del =
  (more: object = {}) =>
  (job: string) =>
    ({ kind: "delete-job", job, ...more }) as const;
const move = (destination: string) => (job: string) => ({ kind: "move-job", job, destination }) as const;
const signal = (name: string) => (job: string) => ({ kind: "signal-job", job, signal: name }) as const;
const rerun =
  (more: object = {}) =>
  (job: string) =>
    ({ kind: "rerun-job", job, ...more }) as const;
const run = (exec_vnode: string) => (job: string) => ({ kind: "run-job", job, exec_vnode, async: true }) as const;
const message = (job: string) => ({ kind: "message-job", job, files: "e", message: "hello" }) as const;

// biome-ignore format: a table
const ROWS: readonly Row[] = [
  // qhold
  ["queued",    ALICE,    hold("u"),            OK,       "H 20"],
  ["queued",    ALICE,    hold("n"),            OK,       "Q 10"],
  ["queued",    ALICE,    hold("o"),            PERM,     "Q 10"],
  ["queued",    ALICE,    hold("s"),            PERM,     "Q 10"],
  ["queued",    ALICE,    hold("us"),           PERM,     "Q 10"],
  ["queued",    OPERATOR, hold("o"),            OK,       "H 20"],
  ["queued",    OPERATOR, hold("s"),            PERM,     "Q 10"],
  ["queued",    ROOT,     hold("os"),           OK,       "H 20"],
  ["queued",    BOB,      hold("u"),            PERM,     "Q 10"],
  ["queued",    ALICE,    hold("x"),            "15014 Illegal attribute or resource value Hold_Types", "Q 10"],
  ["waiting",   ALICE,    hold("u"),            OK,       "H 20"],
  ["running",   ALICE,    hold("u"),            OK,       "R 42"],
  ["finished",  ALICE,    hold("u"),            FINISHED, "F 92"],
  ["nosuch",    ALICE,    hold("u"),            UNKNOWN,  ""],
  // qrls
  ["held",      ALICE,    release("u"),         OK,       "Q 10"],
  ["held",      BOB,      release("u"),         PERM,     "H 20"],
  ["held",      ALICE,    release("uos"),       PERM,     "H 20"],
  ["held",      OPERATOR, release("uo"),        OK,       "Q 10"],
  ["held",      OPERATOR, release("o"),         OK,       "H 20"],
  ["queued",    ALICE,    release("u"),         OK,       "Q 10"],
  ["finished",  ALICE,    release("u"),         FINISHED, "F 92"],
  // qdel
  ["queued",    ALICE,    del(),                OK,       "F 91"],
  ["held",      ALICE,    del(),                OK,       "F 91"],
  ["waiting",   OPERATOR, del(),                OK,       "F 91"],
  ["queued",    BOB,      del(),                PERM,     "Q 10"],
  ["queued",    BOB,      del({ force: true }), PERM,     "Q 10"],
  ["running",   ALICE,    del(),                OK,       "R 42"],
  ["running",   ALICE,    del({ force: true }), OK,       "F 91"],
  ["suspended", ALICE,    del(),                OK,       "S 43"],
  ["finished",  ALICE,    del(),                FINISHED, "F 92"],
  ["finished",  BOB,      del({ history: true }), PERM,   "F 92"],
  ["nosuch",    ALICE,    del(),                UNKNOWN,  ""],
  ["nosuch",    ALICE,    del({ history: true }), UNKNOWN, ""],
  // qmove
  ["queued",    ALICE,    move("q2"),           OK,       "Q 10"],
  ["held",      ALICE,    move("q2@svr"),       OK,       "H 20"],
  ["waiting",   ALICE,    move("q2"),           OK,       "W 30"],
  ["queued",    ALICE,    move("workq"),        OK,       "Q 10"],
  ["queued",    BOB,      move("q2"),           PERM,     "Q 10"],
  ["queued",    ALICE,    move("nosuch"),       "15018 Unknown queue", "Q 10"],
  ["queued",    ALICE,    move("q2@elsewhere"), "15008 Access from host not allowed, or unknown host", "Q 10"],
  ["queued",    ALICE,    move("off"),          "15021 Queue is not enabled", "Q 10"],
  ["queued",    ALICE,    move("typeless"),     "15137 Queue type not set for queue 'typeless'", "Q 10"],
  ["running",   ALICE,    move("q2"),           STATE,    "R 42"],
  ["finished",  ALICE,    move("q2"),           FINISHED, "F 92"],
  // qsig
  ["running",   ALICE,    signal("USR1"),       "deferred", "R 42"],
  ["running",   ALICE,    signal("SIGUSR1"),    "deferred", "R 42"],
  ["running",   ALICE,    signal("0"),          "deferred", "R 42"],
  ["running",   ALICE,    signal("USR9"),       "15013 Unknown/illegal signal name", "R 42"],
  ["running",   BOB,      signal("USR1"),       PERM,     "R 42"],
  ["running",   ALICE,    signal("suspend"),    PERM,     "R 42"],
  ["running",   OPERATOR, signal("suspend"),    "deferred", "R 42"],
  ["suspended", OPERATOR, signal("suspend"),    STATE,    "S 43"],
  ["suspended", OPERATOR, signal("resume"),     OK,       "S 45"],
  ["suspended", OPERATOR, signal("admin-resume"), "15177 Job can not be resumed with the requested resume signal", "S 43"],
  ["running",   OPERATOR, signal("resume"),     STATE,    "R 42"],
  ["queued",    ALICE,    signal("TERM"),       STATE,    "Q 10"],
  ["finished",  ALICE,    signal("TERM"),       FINISHED, "F 92"],
  // qmsg
  ["running",   ALICE,    message,              "deferred", "R 42"],
  ["queued",    ALICE,    message,              STATE,    "Q 10"],
  ["running",   BOB,      message,              PERM,     "R 42"],
  // qrerun
  ["running",   ALICE,    rerun(),              PERM,     "R 42"],
  ["running",   OPERATOR, rerun(),              "deferred", "R 60"],
  ["running",   OPERATOR, rerun({ force: true }), OK,     "Q 10"],
  ["suspended", ROOT,     rerun(),              STATE,    "S 43"],
  ["queued",    ROOT,     rerun(),              STATE,    "Q 10"],
  ["nosuch",    ROOT,     rerun(),              UNKNOWN,  ""],
  // qrun -H
  ["queued",    ALICE,    run("n1:ncpus=1"),    PERM,     "Q 10"],
  ["queued",    OPERATOR, run("n1:ncpus=1"),    OK,       "R 41"],
  ["held",      OPERATOR, run("n1:ncpus=1"),    OK,       "R 41"],
  ["queued",    OPERATOR, run("n1:ncpus=99"),   OK,       "R 41"],
  ["queued",    OPERATOR, run("n1"),            OK,       "R 41"],
  ["queued",    OPERATOR, run("(n1"),           "15014 Illegal attribute or resource value", "Q 10"],
  ["queued",    OPERATOR, run("nosuch"),        "15062 Unknown node  nosuch", "Q 10"],
  ["queued",    OPERATOR, run("nosuch:ncpus=1"), "15062 Unknown node  nosuch", "Q 10"],
  ["running",   OPERATOR, run("n1:ncpus=1"),    STATE,    "R 42"],
  ["finished",  OPERATOR, run("n1:ncpus=1"),    FINISHED, "F 92"],
];

for (const [at, [before, who, request, answer, after]] of ROWS.entries()) {
  const shown = request("J");
  test(`${at}: ${shown.kind} ${JSON.stringify(shown)} of a ${before} job by ${who.user}: ${answer}`, () => {
    const { h, job } = world(before);
    assert.equal(outcome(h, who, request(job)), answer);
    if (after !== "") assert.equal(stateOf(h, job), after);
  });
}

// Vnodes n1, n2 and n3 have 4 cpus and 8gb each. A job on n1 has 3 cpus.
// biome-ignore format: a table
const NAMED: readonly (readonly [select: string, given: string, exec_vnode: string, exec_host: string])[] = [
  ["1:ncpus=3",                       "n2",                  "(n2:ncpus=3)",                            "n2/0*3"],
  ["1:ncpus=3:mem=1gb:mpiprocs=2",    "(n2)",                "(n2:ncpus=3:mem=1048576kb)",              "n2/0*3"],
  ["1:ncpus=2",                       "(n2)+(n3)",           "(n2:ncpus=2)+(n3:ncpus=2)",               "n2/0*2+n3/0*2"],
  ["2:ncpus=2+1:ncpus=3:mem=10mb",    "n1+n2+n3",            "(n1:ncpus=2)+(n2:ncpus=2)+(n3:ncpus=3:mem=10240kb)", "n1/1*2+n2/0*2+n3/0*3"],
  ["1:ncpus=2+1:ncpus=3",             "n2+n2+n3",            "(n2:ncpus=2)+(n2:ncpus=3)+(n3:ncpus=2)",  "n2/0*2+n2/1*3+n3/0*2"],
  ["1:ncpus=6",                       "(n1+n2+n3)",          "(n1:ncpus=1+n2:ncpus=4+n3:ncpus=1)",      "n1/1+n2/0*4+n3/0"],
  ["1:ncpus=9",                       "(n2+n3)",             "(n2:ncpus=4+n3:ncpus=5)",                 "n2/0*4+n3/0*5"],
  ["1:ncpus=3",                       "n2:ncpus=1",          "(n2:ncpus=1)",                            "n2/0"],
  ["1:ncpus=3",                       "(n2+n3:ncpus=1)",     "(n2+n3:ncpus=1)",                         "n2/0*0+n3/0"],
];

for (const [select, given, exec_vnode, exec_host] of NAMED) {
  test(`qrun -H ${given} of a job that asks ${select}: ${exec_vnode}, and that much is assigned`, () => {
    const h = harness();
    const link = addHost(h, "n1", { ncpus: 4, mem: "8gb" });
    for (const name of ["n2", "n3"]) addHost(h, name, { ncpus: 4, mem: "8gb" });
    runOn(h, addJob(h), "n1", link, 3);
    const job = addJob(h, { schedselect: select });
    assert.equal(outcome(h, ROOT, run(given)(job)), OK);
    assert.equal(jobAttrs(h, job).exec_vnode, exec_vnode);
    assert.equal(jobAttrs(h, job).exec_host, exec_host);
    const assigned = ["n1", "n2", "n3"].map((name) => h.core.state.vnodes.get(name)?.assigned.get("ncpus") ?? 0);
    const wanted = ["n1", "n2", "n3"].map((name) =>
      [...exec_vnode.matchAll(/(n\d):ncpus=(\d)/g)].reduce((sum, [, vnode, ncpus]) => sum + (vnode === name ? Number(ncpus) : 0), 0),
    );
    assert.deepEqual(assigned, [(wanted[0] ?? 0) + 3, wanted[1], wanted[2]]);
  });
}

test("holds are shown in the order s, o, u and their comment goes with the release", () => {
  const { h, job } = world("queued");
  ask(h, ALICE, hold("u")(job));
  assert.equal(jobAttrs(h, job).comment, "Job held by alice on Fri Nov 20 09:26:28 2026");
  ask(h, ROOT, hold("os")(job));
  assert.equal(jobAttrs(h, job).Hold_Types, "sou");
  ask(h, ROOT, release("uos")(job));
  assert.deepEqual([jobAttrs(h, job).Hold_Types, jobAttrs(h, job).comment], ["n", undefined]);
});

test("a held job with an execution time ahead waits after the release", () => {
  const { h, job } = world("held", { Execution_Time: START_S + 60 });
  assert.equal(stateOf(h, job), "H 20");
  ask(h, ALICE, release("u")(job));
  assert.equal(stateOf(h, job), "W 30");
  advance(h, 60);
  assert.equal(stateOf(h, job), "Q 10");
});

test("qdel of a running job: the mom is told, the obit ends it with its exit status", () => {
  const { h, job, link } = world("running");
  ask(h, ALICE, del()(job));
  assert.deepEqual(h.to_moms.at(-1), { link, type: "mom-terminate", data: { job, run_count: 1, why: "delete", kill_delay_s: 10 } });
  obit(h, link, job, 271);
  assert.equal(stateOf(h, job), "F 91");
  assert.equal(jobAttrs(h, job).Exit_status, 271);
  assert.equal(jobAttrs(h, job).comment, "Job run at Fri Nov 20 at 09:26 on (n1:ncpus=1) and terminated by alice@svr");
  assert.equal(lettersOf(h, job), "QSDE");
  assert.equal(jobOwn(h, job).termination, undefined);
});

test("a job that is deleted before it ran has Exit_status 271, also when it ran before and was queued again", () => {
  for (const before of ["queued", "held", "waiting"] as const) {
    const { h, job } = world(before);
    assert.equal(outcome(h, ALICE, del()(job)), OK);
    assert.equal(jobAttrs(h, job).Exit_status, 271, before);
    assert.equal(lettersOf(h, job), "QD");
  }
  const { h, job } = world("running");
  assert.equal(outcome(h, OPERATOR, rerun({ force: true })(job)), OK);
  assert.equal(jobAttrs(h, job).Exit_status, undefined, "nobody has deleted it yet");
  assert.equal(outcome(h, ALICE, del()(job)), OK);
  assert.equal(jobAttrs(h, job).Exit_status, 271);
});

test("who waits for a job that is deleted before it ran is told so", () => {
  const { h, job } = world("queued");
  const token = h.next_token;
  assert.equal(ask(h, ALICE, { kind: "wait-job", job }), undefined);
  ask(h, ALICE, del()(job));
  assert.deepEqual(h.answers.get(token), { ok: true, value: { message: "Job to be deleted at request of alice@svr" } });
  assert.deepEqual(ask(h, ALICE, { kind: "wait-job", job }), { ok: true, value: { message: "Job deleted" } });
});

test("qdel by force ends the job at once with 265, whatever the mom does", () => {
  const { h, job, link } = world("running");
  ask(h, ALICE, del({ force: true })(job));
  assert.equal(jobAttrs(h, job).Exit_status, 265);
  assert.equal(jobAttrs(h, job).comment, "Job run at Fri Nov 20 at 09:26 on (n1:ncpus=1) and terminated by alice@svr");
  assert.equal(h.core.state.vnodes.get("n1")?.assigned.size, 0);
  mom(h, link, "mom-obit", { job, run_count: 1, exit_status: 271, used: {} });
  assert.equal(jobAttrs(h, job).Exit_status, 265, "a late obit changes nothing");
  assert.equal(lettersOf(h, job), "QSDE");
});

test("qdel -x leaves no history, and takes it away from a finished job", () => {
  const { h, job, link } = world("running");
  ask(h, ALICE, del({ history: true })(job));
  obit(h, link, job, 271);
  assert.equal(h.store.history.has(job), false);
  const done = world("finished");
  assert.equal(outcome(done.h, ALICE, del({ history: true })(done.job)), OK);
  assert.equal(outcome(done.h, ALICE, hold("u")(done.job)), UNKNOWN);
  assert.equal(done.h.core.state.history_count, 0);
});

test("qdel twice tells the mom twice and accounts once", () => {
  const { h, job } = world("running");
  ask(h, ALICE, del()(job));
  ask(h, ALICE, del()(job));
  assert.equal(h.to_moms.filter((frame) => frame.type === "mom-terminate").length, 2);
  assert.equal(lettersOf(h, job), "QSD");
});

test("qmove gives a new place in the order, a new qtime and a second Q record", () => {
  const { h, job } = world("queued");
  const other = addJob(h, { queue: "q2" });
  advance(h, 5);
  ask(h, ALICE, move("q2")(job));
  assert.equal(jobAttrs(h, job).queue, "q2");
  assert.equal(jobAttrs(h, job).qtime, START_S + 5);
  assert.ok(jobAttrs(h, job).queue_rank > jobAttrs(h, other).queue_rank);
  assert.equal(lettersOf(h, job), "QQ");
  assert.deepEqual(logsOf(h, job).slice(2), [
    "dequeuing from workq, state Q",
    "enqueuing into q2, state Q hop 1",
    "Job moved to q2 at request of alice@svr",
  ]);
  assert.deepEqual([...(h.core.state.queues.get("q2")?.jobs ?? [])], [other, job]);
});

test("qorder swaps ranks, also of jobs in different queues; refuses what runs or is unknown", () => {
  const { h, job } = world("queued");
  const other = addJob(h, { queue: "q2" });
  const ranks = [jobAttrs(h, job).queue_rank, jobAttrs(h, other).queue_rank];
  assert.equal(outcome(h, ALICE, { kind: "order-job", job, other }), OK);
  assert.deepEqual([jobAttrs(h, other).queue_rank, jobAttrs(h, job).queue_rank], ranks);
  assert.equal(outcome(h, ALICE, { kind: "order-job", job, other: "99.svr" }), UNKNOWN);
  assert.equal(outcome(h, BOB, { kind: "order-job", job, other }), PERM);
  ask(h, ROOT, run("n1:ncpus=1")(job));
  assert.equal(outcome(h, ALICE, { kind: "order-job", job, other }), STATE);
});

test("qrerun: substate 60 until the obit, record R, then queued again; the reply comes with the obit", () => {
  const { h, job, link } = world("running");
  const token = h.next_token;
  assert.equal(ask(h, OPERATOR, rerun()(job)), undefined);
  obit(h, link, job, -11);
  assert.equal(h.answers.get(token)?.ok, true);
  assert.equal(stateOf(h, job), "Q 10");
  assert.equal(lettersOf(h, job), "QSR");
  assert.ok(h.accounting.at(-1)?.text.includes("Exit_status=-11"));
});

test("qrerun that takes too long is answered after job_requeue_timeout", () => {
  const { h, job } = world("running");
  apply(h, { kind: "server-changed", set: { job_requeue_timeout: 20 }, unset: [] });
  const token = h.next_token;
  ask(h, OPERATOR, rerun()(job));
  advance(h, 19);
  assert.equal(h.answers.get(token), undefined);
  advance(h, 1);
  assert.deepEqual(h.answers.get(token), { ok: false, code: 15208, text: "Response timed out. Job rerun request still in progress for" });
  assert.equal(stateOf(h, job), "R 60");
});

test("qrerun of a job that cannot be rerun is refused with 15038", () => {
  const { h, job } = world("running", { Rerunable: false });
  assert.equal(outcome(h, ROOT, rerun()(job)), "15038 job is not rerunnable");
});

test("an obit of the killed run after a forced rerun is acknowledged and changes nothing", () => {
  const { h, job, link } = world("running");
  ask(h, ROOT, rerun({ force: true })(job));
  runOn(h, job, "n1", link);
  obit(h, link, job, 271, 1);
  assert.equal(stateOf(h, job), "R 42");
  assert.deepEqual(h.to_moms.at(-1)?.data, { jobs: [{ job, run_count: 1 }] });
  assert.equal(jobAttrs(h, job).run_count, 2);
});

test("suspension frees the resources, resume by the scheduler takes them again", () => {
  const { h, job, link } = world("suspended");
  const vnode = h.core.state.vnodes.get("n1");
  assert.equal(vnode?.assigned.get("ncpus"), undefined);
  assert.deepEqual([...(vnode?.jobs.keys() ?? [])], [job]);
  schedHello(h, 1);
  cycle(h, 1);
  assert.equal(outcome(h, ROOT, signal("resume")(job)), OK);
  assert.equal(jobAttrs(h, job).substate, SUBSTATE.SCHED_SUSPENDED);
  assert.deepEqual(cycle(h, 1, [{ kind: "run", job, exec_vnode: "(n1:ncpus=1)" }]), [{ ok: true }]);
  answerMom(h, link);
  assert.equal(stateOf(h, job), "R 42");
  assert.equal(vnode?.assigned.get("ncpus"), 1);
});

test("a suspended job cannot be resumed onto cpus that another has taken", () => {
  const { h, job, link } = world("suspended");
  const other = addJob(h, {});
  runOn(h, other, "n1", link, 4);
  assert.match(outcome(h, ROOT, { kind: "run-job", job, exec_vnode: "-" }), /^15044 /);
  assert.equal(stateOf(h, job), "S 43");
});

test("admin-suspend puts the vnode into maintenance until admin-resume", () => {
  const { h, job, link } = world("running");
  ask(h, ROOT, signal("admin-suspend")(job));
  answerMom(h, link);
  const vnode = h.core.state.vnodes.get("n1");
  assert.deepEqual([vnode?.attrs["state"], vnode?.attrs["maintenance_jobs"]], [["maintenance"], [job]]);
  assert.equal(outcome(h, ROOT, signal("resume")(job)), "15177 Job can not be resumed with the requested resume signal");
  ask(h, ROOT, signal("admin-resume")(job));
  answerMom(h, link);
  assert.deepEqual([vnode?.attrs["state"], vnode?.attrs["maintenance_jobs"], stateOf(h, job)], [[], undefined, "R 42"]);
});

test("a mom that does not answer a signal: 15070 after half a minute", () => {
  const { h, job } = world("running");
  const token = h.next_token;
  ask(h, ALICE, signal("USR1")(job));
  advance(h, 30);
  assert.deepEqual(h.answers.get(token), { ok: false, code: 15070, text: "Server could not connect to MOM n1" });
});

test("qsub -W block=true: wait-job is answered with the exit status, or with a message for a job that never ran", () => {
  const { h, job, link } = world("running");
  const token = h.next_token;
  assert.equal(ask(h, ALICE, { kind: "wait-job", job }), undefined);
  const [item] = statusOf(h, ALICE, { kind: "status", object: "job", ids: [job], attrs: ["block"] });
  assert.deepEqual(item, { id: job, attrs: { block: "True" } });
  obit(h, link, job, 7);
  assert.deepEqual(h.answers.get(token), { ok: true, value: { exit_status: 7 } });
  assert.deepEqual(ask(h, ALICE, { kind: "wait-job", job }), { ok: true, value: { exit_status: 7 } });
  assert.ok(h.logs.some(({ object, text }) => object === job && text === `check_block_wt: Write successful to client svr for job ${job}`));
  const queued = addJob(h);
  const waiting = h.next_token;
  ask(h, ALICE, { kind: "wait-job", job: queued });
  ask(h, ALICE, del()(queued));
  assert.deepEqual(h.answers.get(waiting), { ok: true, value: { message: "Job to be deleted at request of alice@svr" } });
});

test("the qsub of an interactive job looks whether the job is there: the job does not show block", () => {
  const { h } = world("queued");
  const job = addJob(h, { interactive: 1 });
  ask(h, ALICE, { kind: "wait-job", job });
  const [item] = statusOf(h, ALICE, { kind: "status", object: "job", ids: [job], attrs: ["block", "interactive"] });
  assert.deepEqual(item, { id: job, attrs: { interactive: "True" } });
});

test("a client that goes away waits for nothing", () => {
  const { h, job, link } = world("running");
  const token = h.next_token;
  ask(h, ALICE, { kind: "wait-job", job });
  h.core.clientLost([token]);
  obit(h, link, job);
  assert.equal(h.answers.has(token), false);
});

test("locate-job tells the server of live and finished jobs", () => {
  const { h, job } = world("finished");
  assert.deepEqual(ask(h, BOB, { kind: "locate-job", job }), { ok: true, value: { server: "svr" } });
  assert.equal(outcome(h, BOB, { kind: "locate-job", job: "99" }), UNKNOWN);
});

test("backup is root's; the shell is asked to make it", () => {
  const { h } = world("queued");
  apply(h, { kind: "server-changed", set: { managers: ["boss@*"] }, unset: [] });
  assert.equal(outcome(h, OPERATOR, { kind: "backup", file: "/tmp/x" }), PERM);
  assert.equal(outcome(h, user("boss"), { kind: "backup", file: "/tmp/x" }), PERM);
  assert.equal(outcome(h, ROOT, { kind: "backup", file: "x" }), "15014 the file of a backup must be an absolute path");
  assert.equal(outcome(h, ROOT, { kind: "backup", file: "/tmp/x" }), "deferred");
  assert.deepEqual(h.actions.at(-1), { kind: "backup", file: "/tmp/x", token: h.next_token - 1 });
});
