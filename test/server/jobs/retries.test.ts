// Failed jobs: how often they run again, after which pause, and when they are held (src/server/jobs/retries.ts).

import assert from "node:assert/strict";
import { test } from "node:test";
import { JOB_EXEC } from "#model/exit-status.ts";
import { pauseAfter } from "#server/jobs/retries.ts";
import {
  ALICE,
  addHost,
  addJob,
  addQueue,
  addSched,
  advance,
  apply,
  askOk,
  BOB,
  type Harness,
  harness,
  jobAttrs,
  jobOwn,
  mom,
  obit,
  outcome,
  ROOT,
  runners,
  runOn,
  schedHello,
  stateOf,
} from "../harness.ts";
import { qsub } from "../requests/qsub.ts";

const LINK = 50;

/** A server with a vnode n1 of its own in the default partition. */
function site(): { readonly h: Harness; readonly link: number } {
  const h = harness({ server: { job_history_enable: true } });
  const link = addHost(h, "n1");
  return { h, link };
}

test("retries: the pauses double up to half an hour, have a random part, and are the same each time they are computed", () => {
  for (const [failures, least_s, most_s] of [
    [1, 30, 60],
    [2, 60, 90],
    [4, 240, 270],
    [7, 1800, 1830],
    [100, 1800, 1830],
  ] as const) {
    const pauses = Array.from({ length: 50 }, (_, at) => pauseAfter(failures, 30, `${at}.svr`));
    assert.ok(
      pauses.every((pause_s) => pause_s >= least_s && pause_s < most_s),
      `${failures}: ${pauses}`,
    );
    assert.ok(new Set(pauses).size > 10, "jobs that fail together do not run again together");
    assert.deepEqual(
      pauses,
      Array.from({ length: 50 }, (_, at) => pauseAfter(failures, 30, `${at}.svr`)),
    );
  }
  assert.equal(pauseAfter(1, 1, "1.svr"), 1);
});

// biome-ignore format: a table
const EXITS: readonly (readonly [retries: number | undefined, rerunable: boolean, exit_status: number, after: string, fail_reason: string | undefined])[] = [
  [undefined, true,  3,                     "F 93", undefined],
  [0,         true,  3,                     "F 93", "exit"],
  [1,         true,  0,                     "F 92", undefined],
  [1,         true,  3,                     "W 30", "exit"],
  [1,         true,  137,                   "W 30", "signal"],
  [1,         true,  JOB_EXEC.KILL_MEM,      "W 30", "mem"],
  [1,         true,  JOB_EXEC.KILL_WALLTIME, "W 30", "time"],
  [1,         true,  126,                   "F 93", "not_executable"],
  [1,         true,  127,                   "F 93", "not_found"],
  [1,         false, 3,                     "F 93", "exit"],
];
for (const [retries, Rerunable, exit_status, after, fail_reason] of EXITS) {
  test(`retries: retries ${retries}, ${Rerunable ? "rerunnable" : "not rerunnable"}, exit status ${exit_status}: ${after}`, () => {
    const { h, link } = site();
    const id = addJob(h, { Rerunable, ...(retries === undefined ? {} : { retries }) });
    runOn(h, id, "n1", link);
    obit(h, link, id, exit_status);
    const job = h.core.state.jobs.get(id) ?? h.store.history.get(id);
    assert.equal(`${job?.attrs.job_state} ${job?.attrs.substate}`, after);
    assert.equal(job?.attrs["fail_reason"], fail_reason);
  });
}

test("retries: a job whose retries are used up is held; its owner releases it with qrls, and it has all retries again", () => {
  const { h, link } = site();
  const id = addJob(h, { retries: 1 });
  const fail = (): void => {
    runOn(h, id, "n1", link);
    obit(h, link, id, 3);
  };
  fail();
  advance(h, 100);
  assert.equal(stateOf(h, id), "Q 10");
  fail();
  assert.deepEqual([stateOf(h, id), jobAttrs(h, id).Hold_Types, jobOwn(h, id).failures], ["H 20", "s", 2]);
  const release = { kind: "release-job", job: id, holds: "u" } as const;
  assert.match(outcome(h, BOB, release), /15007/);
  askOk(h, ALICE, release);
  const { Hold_Types, comment, fail_reason } = jobAttrs(h, id);
  assert.deepEqual([stateOf(h, id), Hold_Types, comment, fail_reason], ["Q 10", "n", undefined, undefined]);
  fail();
  assert.equal(stateOf(h, id), "W 30");
});

test("retries: the owner does not release a system hold that a manager has set after the job was buried", () => {
  const { h, link } = site();
  const id = addJob(h, { retries: 1 });
  for (let run = 0; run < 2; run++) {
    runOn(h, id, "n1", link);
    obit(h, link, id, 3);
    advance(h, 100);
  }
  askOk(h, ROOT, { kind: "hold-job", job: id, holds: "s" });
  askOk(h, ALICE, { kind: "release-job", job: id, holds: "u" });
  assert.equal(stateOf(h, id), "H 20");
});

test("retries: a job with many retries is not held for too many starts", () => {
  const { h, link } = site();
  const id = addJob(h, { retries: 30 });
  for (let run = 1; run <= 30; run++) {
    runOn(h, id, "n1", link);
    obit(h, link, id, 3);
    assert.equal(stateOf(h, id), "W 30", `run ${run}`);
    advance(h, 4000);
  }
});

test("retries: a subjob whose retries are used up ends, and its array goes on", async () => {
  const { h, link } = site();
  const id = await qsub(h, "-W retries=1 -J 1-2 -- /bin/false");
  const subjob = id.replace("[]", "[1]");
  for (let run = 0; run < 2; run++) {
    runOn(h, subjob, "n1", link);
    obit(h, link, subjob, 3);
    advance(h, 100);
  }
  assert.equal(jobAttrs(h, id).job_state, "B");
  assert.equal(h.core.state.jobs.has(subjob), false);
});

/** A job on a runner of a backend that is lost. */
function lost(attrs: { readonly [name: string]: unknown }): { readonly h: Harness; readonly id: string; readonly runner: string } {
  const h = harness({ server: { job_history_enable: true } });
  addQueue(h, "pq", { partition: "p1" });
  addSched(h, "s1", { partition: ["p1"], sched_priv: "/home/pbs/sched_priv_s1", sched_log: "/home/pbs/sched_logs_s1", scheduling: true });
  schedHello(h, 7, "s1");
  apply(h, { kind: "created", object: "backend", name: "sl", attrs: { type: "local", partition: "p1", enabled: true, max_runners: 4 } });
  runners(h, LINK, "runners-hello", { pid: 9 });
  const id = addJob(h, { queue: "pq", Resource_List: { select: "1:ncpus=1", place: "free", walltime: 60 }, ...attrs });
  advance(h, 1);
  const [bucket = ""] = h.core.kernel.runners.wanted.keys();
  runners(h, LINK, "runners-ask", { token: 1, backend: "sl", bucket, life_s: 600, digests: ["a".repeat(64)] });
  const [runner = ""] = h.core.state.runners.keys();
  const hello = {
    host: runner,
    port: 15002,
    pid: 1,
    version: "1",
    vnodes: [],
    jobs: [],
    pongs: true as const,
    runner: { token: "", age_s: 10 },
  };
  mom(h, 60, "mom-hello", hello);
  runOn(h, id, runner, 60);
  h.driver.momLost(60);
  advance(h, 100);
  return { h, id, runner };
}

test("retries: a job on a lost runner shows since when, and no longer when the runner is back", () => {
  const { h, id, runner } = lost({});
  assert.ok(Number(jobAttrs(h, id)["lost_since"]) > 0);
  const run_count = jobAttrs(h, id).run_count ?? 0;
  const job = { job: id, run_count, state: "running" as const, session_id: 5 };
  const hello = {
    host: runner,
    port: 15002,
    pid: 1,
    version: "1",
    vnodes: [],
    jobs: [job],
    pongs: true as const,
    runner: { token: "", age_s: 100 },
  };
  mom(h, 61, "mom-hello", hello);
  assert.deepEqual([stateOf(h, id), jobAttrs(h, id)["lost_since"]], ["R 42", undefined]);
});

test("retries: a runner that stays connected but answers nothing counts as lost", () => {
  const { h, id, runner } = lost({});
  const run_count = jobAttrs(h, id).run_count ?? 0;
  const job = { job: id, run_count, state: "running" as const, session_id: 5 };
  const hello = {
    host: runner,
    port: 15002,
    pid: 1,
    version: "1",
    vnodes: [],
    jobs: [job],
    pongs: true as const,
    runner: { token: "", age_s: 100 },
  };
  mom(h, 61, "mom-hello", hello);
  assert.equal(jobAttrs(h, id)["lost_since"], undefined);
  h.silent.add(61);
  advance(h, 200);
  assert.notEqual(jobAttrs(h, id)["lost_since"], undefined);
  assert.equal(jobAttrs(h, id).job_state, "R");
});

// biome-ignore format: a table
const ENDS: readonly (readonly [attrs: { readonly [name: string]: unknown }, how: "gone" | "preempted" | "dead", after: string, fail_reason: string | undefined])[] = [
  [{},                   "gone",      "Q 10", "lost"],
  [{ retries: 2 },       "gone",      "W 30", "lost"],
  [{ retries: 0 },       "gone",      "H 20", "lost"],
  [{ retries: 0 },       "preempted", "Q 10", "lost"],
  [{ Rerunable: false }, "gone",      "F 93", "lost"],
  [{},                   "dead",      "H 20", "lost"],
  [{ retries: 2 },       "dead",      "H 20", "lost"],
  [{ Rerunable: false }, "dead",      "F 93", "lost"],
];
for (const [attrs, how, after, fail_reason] of ENDS) {
  test(`retries: the lost runner of a job with ${JSON.stringify(attrs)} is ${how}: ${after}`, () => {
    const { h, id, runner } = lost(attrs);
    if (how === "dead") askOk(h, ALICE, { kind: "confirm-dead", names: [id], age_s: 0 });
    else
      runners(h, LINK, "runners-gone", {
        runners: [{ name: runner, why: "not shown", ...(how === "preempted" ? { preempted: true as const } : {}) }],
      });
    const job = h.core.state.jobs.get(id) ?? h.store.history.get(id);
    assert.equal(`${job?.attrs.job_state} ${job?.attrs.substate}`, after);
    assert.equal(job?.attrs["fail_reason"], fail_reason);
    if (!after.startsWith("F")) assert.equal(job?.attrs["lost_since"], undefined);
    assert.equal(h.core.state.runners.size, 0);
    if (after !== "H 20") return;
    askOk(h, ALICE, { kind: "release-job", job: id, holds: "u" });
    assert.equal(stateOf(h, id), "Q 10");
  });
}

test("retries: the kind of answers about jobs that are on no lost runner", () => {
  const { h, link } = site();
  const id = addJob(h);
  runOn(h, id, "n1", link);
  assert.match(outcome(h, ALICE, { kind: "confirm-dead", names: [id], age_s: 0 }), /15062/);
  assert.match(outcome(h, ALICE, { kind: "confirm-dead", names: ["99.svr"], age_s: 0 }), /15001/);
});
