// The life of jobs, from the queue to the history, with the lines of log and accounting file.

import assert from "node:assert/strict";
import { test } from "node:test";
import { JOB_EXEC } from "#model/exit-status.ts";
import type { Harness } from "../harness.ts";
import {
  ALICE,
  addHost,
  addJob,
  addQueue,
  advance,
  apply,
  ask,
  cycle,
  harness,
  jobAttrs,
  lettersOf,
  logsOf,
  mom,
  momHello,
  obit,
  outcome,
  ROOT,
  restart,
  runOn,
  START_S,
  schedHello,
  stateOf,
} from "../harness.ts";

/** A complex with one host n1 of 4 cpus. */
function world(): { h: Harness; link: number } {
  const h = harness();
  return { h, link: addHost(h, "n1") };
}

test("an unknown request is refused with 15005, an unknown reservation with 15084", () => {
  const h = harness();
  assert.equal(outcome(h, ALICE, { kind: "nosuch" } as never), "15005 Unknown request");
  assert.equal(outcome(h, ALICE, { kind: "delete-resv", resv: "R1.svr" }), "15084 Unknown Reservation Id");
});

test("a job runs from submission to history, with log lines and accounting records as PBS writes them", () => {
  const { h, link } = world();
  schedHello(h, 1);
  cycle(h, 1);
  const job = addJob(h, {
    Account_Name: "acc",
    Job_Name: "life",
    Resource_List: { walltime: 60, select: "1:ncpus=2", place: "free", nodect: 1, ncpus: 2 },
  });
  assert.equal(stateOf(h, job), "Q 10");
  assert.deepEqual(cycle(h, 1, [{ kind: "run", job, exec_vnode: "(n1:ncpus=2)" }]), [{ ok: true }]);
  assert.equal(stateOf(h, job), "R 41");
  assert.equal(jobAttrs(h, job).comment, "Job was sent for execution at Fri Nov 20 at 09:26 on (n1:ncpus=2)");
  assert.equal(jobAttrs(h, job).exec_host, "n1/0*2");
  advance(h, 1);
  mom(h, link, "mom-started", { job, run_count: 1, session_id: 77, jobdir: "/home/alice" });
  assert.equal(stateOf(h, job), "R 42");
  assert.equal(jobAttrs(h, job).comment, "Job run at Fri Nov 20 at 09:26 on (n1:ncpus=2)");
  advance(h, 10);
  obit(h, link, job);
  assert.equal(stateOf(h, job), "F 92");
  const { comment, Stageout_status, Exit_status, obittime, history_timestamp } = jobAttrs(h, job);
  assert.deepEqual(
    { comment, Stageout_status, Exit_status, obittime, history_timestamp },
    {
      comment: "Job run at Fri Nov 20 at 09:26 on (n1:ncpus=2) and finished",
      Stageout_status: 1,
      Exit_status: 0,
      obittime: START_S + 11,
      history_timestamp: START_S + 11,
    },
  );
  assert.deepEqual(logsOf(h, job), [
    "enqueuing into workq, state Q hop 1",
    "Job Queued at request of alice@svr, owner = alice@svr, job name = life, queue = workq",
    "Job Run at request of Scheduler@svr on exec_vnode (n1:ncpus=2)",
    "Obit received momhop:1 serverhop:1 state:R substate:42",
    "Exit_status=0 resources_used.cput=00:00:00 resources_used.mem=0kb resources_used.ncpus=1 resources_used.walltime=00:00:10",
  ]);
  const t = START_S;
  const a = `user=alice group=users account="acc" project=_pbs_project_default jobname=life queue=workq ctime=${t} qtime=${t} etime=${t}`;
  const r =
    "Resource_List.ncpus=2 Resource_List.nodect=1 Resource_List.place=free Resource_List.select=1:ncpus=2 Resource_List.walltime=00:01:00";
  const x = `start=${t} exec_host=n1/0*2 exec_vnode=(n1:ncpus=2)`;
  assert.deepEqual(
    h.accounting.map(({ type, text }) => `${type};${text}`),
    [
      `Q;${a} ${r} `,
      `S;${a} ${x} ${r} resource_assigned.ncpus=2 `,
      `E;${a} ${x} ${r} session=77 end=${t + 11} Exit_status=0 resources_used.cput=00:00:00 resources_used.mem=0kb resources_used.ncpus=1 resources_used.walltime=00:00:10 run_count=1`,
    ],
  );
});

// biome-ignore format: a table
const EXITS: readonly [exit: number, rerunable: boolean, state: string, suffix: string, letters: string][] = [
  [0,                          true,  "F 92", " and finished",                       "QSE"],
  [3,                          true,  "F 93", " and failed",                         "QSE"],
  [254,                        true,  "F 93", " and failed",                         "QSE"],
  [271,                        true,  "F 93", " and failed",                         "QSE"],
  [JOB_EXEC.KILL_WALLTIME,     true,  "F 93", " and exceeded resource walltime",     "QSE"],
  [JOB_EXEC.KILL_CPUT,         true,  "F 93", " and exceeded resource cput",         "QSE"],
  [JOB_EXEC.KILL_MEM,          true,  "F 93", " and exceeded resource mem",          "QSE"],
  [JOB_EXEC.KILL_VMEM,         true,  "F 93", " and exceeded resource vmem",         "QSE"],
  [JOB_EXEC.KILL_NCPUS_SUM,    true,  "F 93", " and exceeded resource ncpus (sum)",  "QSE"],
  [JOB_EXEC.KILL_NCPUS_BURST,  true,  "F 93", " and exceeded resource ncpus (burst)","QSE"],
  [JOB_EXEC.FAIL1,             true,  "F 93", " and failed",                         "QSAE"],
  [JOB_EXEC.FAIL2,             true,  "F 93", " and failed",                         "QSAE"],
  [JOB_EXEC.INITABT,           true,  "Q 10", "",                                    "QSR"],
  [JOB_EXEC.INITABT,           false, "F 93", " and failed",                         "QSAE"],
  [JOB_EXEC.RERUN,             true,  "Q 10", "",                                    "QSR"],
  [JOB_EXEC.RERUN_SIS_FAIL,    true,  "Q 10", "",                                    "QSR"],
  [JOB_EXEC.RETRY,             true,  "Q 10", "",                                    "QSR"],
  [JOB_EXEC.RETRY,             false, "Q 10", "",                                    "QSR"],
  [JOB_EXEC.FAILUID,           true,  "Q 10", "",                                    "QSR"],
  [JOB_EXEC.FAIL_PASSWORD,     true,  "H 20", "",                                    "QSR"],
  [JOB_EXEC.FAIL_SECURITY,     true,  "H 20", "",                                    "QSR"],
  [JOB_EXEC.HOOKERROR,         true,  "Q 10", "",                                    "QSR"],
  [JOB_EXEC.HOOK_DELETE,       true,  "F 93", " and failed",                         "QSE"],
  [-99,                        true,  "F 93", " and failed",                         "QSAE"],
];

for (const [exit, rerunable, state, suffix, letters] of EXITS) {
  test(`exit status ${exit} of a job that is ${rerunable ? "" : "not "}rerunable gives ${state}${suffix}`, () => {
    const { h, link } = world();
    const job = addJob(h, { Rerunable: rerunable });
    runOn(h, job, "n1", link);
    obit(h, link, job, exit);
    assert.equal(stateOf(h, job), state);
    assert.equal(lettersOf(h, job), letters);
    if (suffix !== "") assert.equal(jobAttrs(h, job).comment, `Job run at Fri Nov 20 at 09:26 on (n1:ncpus=1)${suffix}`);
    else
      assert.deepEqual(
        [jobAttrs(h, job).exec_vnode, jobAttrs(h, job)["Exit_status"], jobAttrs(h, job).run_count],
        [undefined, undefined, 1],
      );
  });
}

// biome-ignore format: a table
const REASONS: readonly [exit: number, rerunable: boolean, text: string][] = [
  [JOB_EXEC.FAIL1,             true,  "Job cannot be executed"],
  [JOB_EXEC.FAIL2,             true,  "Job cannot be executed"],
  [JOB_EXEC.INITABT,           false, "Job aborted on PBS Server initialization"],
  [JOB_EXEC.RERUN_SIS_FAIL,    false, "Non-rerunable job deleted on requeue"],
  [JOB_EXEC.FAILHOOK_RERUN,    true,  "hook rejected request, requiring job to be rerun"],
  [JOB_EXEC.HOOKERROR,         true,  "hook rejected request, requiring job to be rerun"],
  [JOB_EXEC.FAILHOOK_DELETE,   true,  "hook rejected request, requiring job to be deleted"],
  [JOB_EXEC.HOOK_DELETE,       true,  "a hook requested for job to be deleted"],
  [JOB_EXEC.JOINJOB,           true,  "Mom rejected job due to join job error"],
];

for (const [exit, rerunable, text] of REASONS) {
  test(`exit status ${exit} of a job that is ${rerunable ? "" : "not "}rerunable: the log says ${text}`, () => {
    const { h, link } = world();
    const job = addJob(h, { Rerunable: rerunable });
    runOn(h, job, "n1", link);
    obit(h, link, job, exit);
    assert.equal(logsOf(h, job).filter((line) => line === text).length, 1);
  });
}

test("a job that is over before its start was reported has S before E and the obit of substate 41", () => {
  const { h, link } = world();
  const job = addJob(h);
  assert.equal(outcome(h, ROOT, { kind: "run-job", job, exec_vnode: "n1:ncpus=1", async: true }), "ok");
  assert.equal(jobAttrs(h, job).comment, "Job was sent for execution at Fri Nov 20 at 09:26 on n1:ncpus=1");
  obit(h, link, job);
  assert.equal(lettersOf(h, job), "QSE");
  assert.ok(logsOf(h, job).includes("Obit received momhop:1 serverhop:1 state:R substate:41"));
  assert.equal(jobAttrs(h, job).comment, "Job run at Fri Nov 20 at 09:26 on n1:ncpus=1 and finished");
  assert.equal(jobAttrs(h, job).exec_vnode, "(n1:ncpus=1)");
});

test("a start that fails before anything ran leaves no S and no R record", () => {
  const { h, link } = world();
  const job = addJob(h);
  ask(h, ROOT, { kind: "run-job", job, exec_vnode: "(n1:ncpus=1)", async: true });
  obit(h, link, job, JOB_EXEC.RETRY);
  assert.equal(stateOf(h, job), "Q 10");
  assert.equal(lettersOf(h, job), "Q");
});

test("the twenty-first failed start holds the job", () => {
  const { h, link } = world();
  const job = addJob(h);
  for (let run = 1; run <= 21; run++) {
    assert.equal(stateOf(h, job), "Q 10", `before run ${run}`);
    ask(h, ROOT, { kind: "run-job", job, exec_vnode: "(n1:ncpus=1)", async: true });
    obit(h, link, job, JOB_EXEC.RETRY);
  }
  assert.equal(stateOf(h, job), "H 20");
  assert.deepEqual([jobAttrs(h, job).Hold_Types, jobAttrs(h, job).comment], ["s", "job held, too many failed attempts to run"]);
});

test("without job history a finished job is gone", () => {
  const h = harness({ server: { job_history_enable: false } });
  const link = addHost(h, "n1");
  const job = addJob(h);
  runOn(h, job, "n1", link);
  obit(h, link, job);
  assert.equal(h.store.history.size, 0);
  assert.equal(h.core.state.jobs.size, 0);
  assert.equal(outcome(h, ALICE, { kind: "hold-job", job, holds: "u" }), "15001 Unknown Job Id");
});

test("job_history_duration: old jobs leave the history, younger ones stay", () => {
  const { h } = world();
  apply(h, { kind: "server-changed", set: { job_history_duration: 7200 }, unset: [] });
  const old = addJob(h);
  assert.equal(outcome(h, ALICE, { kind: "delete-job", job: old }), "ok");
  advance(h, 3600);
  const young = addJob(h);
  assert.equal(outcome(h, ALICE, { kind: "delete-job", job: young }), "ok");
  assert.equal(h.core.state.history_count, 2);
  advance(h, 7300);
  assert.deepEqual([...h.store.history.keys()], [young]);
  assert.equal(h.core.state.history_count, 1);
});

for (const [op, value] of [
  ["unset", ""],
  ["=", "False"],
] as const)
  test(`job_history_enable ${op} ${value}: finished jobs leave at once, and nothing counts or holds them any more`, () => {
    const { h } = world();
    apply(h, { kind: "resource-put", resource: { name: "seats", type: "long", flags: "", read: "all", set: "user" } });
    const job = addJob(h, { Resource_List: { seats: 1, ncpus: 1, nodect: 1, place: "free", select: "1:ncpus=1" } });
    assert.equal(outcome(h, ALICE, { kind: "delete-job", job }), "ok");
    const attrs = [{ name: "job_history_enable", op, value }] as const;
    assert.equal(outcome(h, ROOT, { kind: "manager", verb: op === "=" ? "set" : "unset", object: "server", name: "", attrs }), "ok");
    advance(h, 0);
    assert.deepEqual([h.store.history.size, h.core.state.history_count], [0, 0]);
    assert.equal(outcome(h, ROOT, { kind: "manager", verb: "delete", object: "resource", name: "seats", attrs: [] }), "ok");
    apply(h, { kind: "server-changed", set: { job_history_enable: true }, unset: [] });
    const later = addJob(h);
    assert.equal(outcome(h, ALICE, { kind: "delete-job", job: later }), "ok");
    advance(h, 3600);
    assert.deepEqual([...h.store.history.keys()], [later]);
  });

test("job_history_duration unset: the default of two weeks counts at once", () => {
  const { h } = world();
  const job = addJob(h);
  assert.equal(outcome(h, ALICE, { kind: "delete-job", job }), "ok");
  apply(h, { kind: "server-changed", set: { job_history_duration: 40 * 86400 }, unset: [] });
  advance(h, 20 * 86400);
  assert.equal(h.store.history.size, 1);
  apply(h, { kind: "server-changed", set: {}, unset: ["job_history_duration"] });
  advance(h, 0);
  assert.equal(h.store.history.size, 0);
});

test("a job with an execution time waits in W until then", () => {
  const { h } = world();
  const job = addJob(h, { Execution_Time: START_S + 100 });
  assert.equal(stateOf(h, job), "W 30");
  assert.equal(jobAttrs(h, job).etime, undefined);
  advance(h, 99);
  assert.equal(stateOf(h, job), "W 30");
  advance(h, 1);
  assert.equal(stateOf(h, job), "Q 10");
  assert.equal(jobAttrs(h, job).etime, START_S + 100);
});

test("a restart keeps the waiting time of a job", () => {
  const { h } = world();
  const job = addJob(h, { Execution_Time: START_S + 100 });
  advance(h, 50);
  restart(h);
  assert.equal(stateOf(h, job), "W 30");
  advance(h, 50);
  assert.equal(stateOf(h, job), "Q 10");
});

test("cpu slots and chunk indexes: the lowest free ones are given, and given back", () => {
  const { h, link } = world();
  const [one, two, three] = [addJob(h), addJob(h), addJob(h)];
  const slots = (): string => h.core.state.vnodes.get("n1")?.slots.join(" ") ?? "";
  ask(h, ROOT, { kind: "run-job", job: one, exec_vnode: "(n1:ncpus=2)", async: true });
  ask(h, ROOT, { kind: "run-job", job: two, exec_vnode: "(n1:ncpus=1)+(n1:ncpus=1)", async: true });
  assert.equal(jobAttrs(h, two).exec_host, "n1/1+n1/2");
  assert.equal(slots(), `${one} ${one} ${two} ${two}`);
  assert.deepEqual(h.core.state.vnodes.get("n1")?.attrs["state"], ["job-busy"]);
  obit(h, link, one);
  assert.deepEqual(h.core.state.vnodes.get("n1")?.attrs["state"], []);
  ask(h, ROOT, { kind: "run-job", job: three, exec_vnode: "(n1:ncpus=1)", async: true });
  assert.equal(jobAttrs(h, three).exec_host, "n1/0");
  assert.equal(slots(), `${three}  ${two} ${two}`);
});

test("an exclusive job makes its vnode job-exclusive, an exclhost job all vnodes of the host", () => {
  const { h } = world();
  momHello(h, 100, "n1");
  apply(h, { kind: "created", object: "node", name: "n1[1]", attrs: { Mom: ["n1"], state: [], resources_available: { ncpus: 2 } } });
  const states = (): unknown[] => [...h.core.state.vnodes.values()].map((vnode) => vnode.attrs["state"]);
  const excl = addJob(h, { Resource_List: { ncpus: 1, place: "free:excl", select: "1:ncpus=1" } });
  ask(h, ROOT, { kind: "run-job", job: excl, exec_vnode: "(n1:ncpus=1)", async: true });
  assert.deepEqual(states(), [["job-exclusive"], []]);
  obit(h, 100, excl);
  const host = addJob(h, { Resource_List: { ncpus: 1, place: "exclhost", select: "1:ncpus=1" } });
  ask(h, ROOT, { kind: "run-job", job: host, exec_vnode: "(n1:ncpus=1)", async: true });
  assert.deepEqual(states(), [["job-exclusive"], ["job-exclusive"]]);
  obit(h, 100, host);
  assert.deepEqual(states(), [[], []]);
});

test("last_used_time is set when a job ends on a vnode", () => {
  const { h, link } = world();
  const job = addJob(h);
  runOn(h, job, "n1", link);
  assert.equal(h.core.state.vnodes.get("n1")?.attrs["last_used_time"], undefined);
  advance(h, 5);
  obit(h, link, job);
  assert.equal(h.core.state.vnodes.get("n1")?.attrs["last_used_time"], START_S + 5);
});

test("a queue's kill_delay goes with the job to its mom", () => {
  const { h } = world();
  addQueue(h, "slow", { kill_delay: 33 });
  const job = addJob(h, { queue: "slow" });
  ask(h, ROOT, { kind: "run-job", job, exec_vnode: "(n1:ncpus=1)", async: true });
  const start = h.to_moms.filter((frame) => frame.type === "mom-start").at(-1)?.data as {
    jobs: { id: string; kill_delay_s: number; run_count: number }[];
  };
  assert.deepEqual(
    start.jobs.map(({ id, kill_delay_s, run_count }) => ({ id, kill_delay_s, run_count })),
    [{ id: job, kill_delay_s: 33, run_count: 1 }],
  );
});
