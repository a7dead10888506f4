// Runners in the server: what pbs_runners is told, and how runners come, work, leave and are lost (docs/runners.md).

import assert from "node:assert/strict";
import { test } from "node:test";
import type { Demand, ServerToRunners } from "#protocol/runner-link.ts";
import type { RunnersItem } from "#protocol/runners-view.ts";
import { withinRoom } from "#server/runners/demand.ts";
import {
  ALICE,
  addHost,
  addJob,
  addQueue,
  addSched,
  advance,
  apply,
  ask,
  askOk,
  BOB,
  type Harness,
  harness,
  mom,
  ROOT,
  restart,
  runners,
  runOn,
  schedHello,
  statusOf,
} from "../harness.ts";

const LINK = 50;
const S1 = { partition: ["p1"], sched_priv: "/home/pbs/sched_priv_s1", sched_log: "/home/pbs/sched_logs_s1", scheduling: true };
const DIGEST = "a".repeat(64);

/** A partition p1 with a scheduler, a queue and an enabled backend; pbs_runners is connected. */
function world(attrs: { readonly [name: string]: unknown } = {}): Harness {
  const h = harness();
  addHost(h, "n1");
  addQueue(h, "pq", { partition: "p1" });
  addSched(h, "s1", S1);
  schedHello(h, 7, "s1");
  const backend = {
    type: "local",
    partition: "p1",
    enabled: true,
    max_runners: 4,
    runner_idle_wait: 2,
    runner_resync_interval: 60,
    ...attrs,
  };
  apply(h, { kind: "created", object: "backend", name: "sl", attrs: backend });
  runners(h, LINK, "runners-hello", { pid: 9 });
  return h;
}
const attrsOf = (h: Harness, id: string): { readonly [name: string]: unknown } => h.core.state.jobs.get(id)?.attrs ?? {};
type Work = ServerToRunners["runners-work"];
const picture = (h: Harness): Work => h.to_runners.findLast(({ type }) => type === "runners-work")?.data as Work;
const demands = (h: Harness): readonly string[] => picture(h).demands.map(({ bucket, ready }) => `${ready} ${bucket.key}`);
const doing = (h: Harness): readonly string[] => picture(h).runners.map((runner) => `${runner.name} ${runner.doing}`);
const job = (h: Harness, select: string, more: { readonly [name: string]: unknown } = {}): string =>
  addJob(h, { queue: "pq", schedselect: select, Resource_List: { select, place: "free", walltime: 60 }, ...more });

/** Lets the controller ask for runners of the first demand. Returns their names. */
function asked(h: Harness, count: number): readonly string[] {
  const before = new Set(h.core.state.runners.keys());
  runners(h, LINK, "runners-ask", {
    token: 1,
    backend: "sl",
    bucket: picture(h).demands[0]?.bucket.key ?? "",
    life_s: 600,
    digests: Array(count).fill(DIGEST),
  });
  return [...h.core.state.runners.keys()].filter((name) => !before.has(name));
}
const hello = (h: Harness, link: number, host: string): void =>
  mom(h, link, "mom-hello", {
    host,
    port: 15002,
    pid: 1,
    version: "1",
    vnodes: [{ name: host, attrs: { resources_available: { ncpus: 64, mem: "100gb" } } }],
    jobs: [],
    pongs: true,
    runner: { token: "", age_s: 10 },
  });
const lose = (h: Harness, link: number): void => {
  h.driver.momLost(link);
  advance(h, 0);
};

test("runners: the controller is told which jobs wait, by bucket, as far as limits admit", () => {
  const h = world();
  for (let at = 0; at < 3; at++) job(h, "1:ncpus=1");
  job(h, "1:ncpus=9:mem=1000mb");
  const held = job(h, "1:ncpus=1", { Hold_Types: "u", job_state: "H", substate: 20 });
  advance(h, 1);
  assert.deepEqual([...demands(h)].sort(), [
    "1 alice:pq:_pbs_project_default:ncpus=10:mem=1048576kb:walltime=00:01:04",
    "3 alice:pq:_pbs_project_default:ncpus=1:walltime=00:01:04",
  ]);
  apply(h, { kind: "changed", object: "queue", name: "pq", set: { max_run: { "u:PBS_GENERIC": 2 } }, unset: [] });
  job(h, "1:ncpus=1");
  advance(h, 1);
  assert.equal(
    picture(h).demands.reduce((sum, { ready }) => sum + ready, 0),
    2,
  );
  assert.ok(h.core.state.jobs.has(held));
});

test("runners: they are recorded before they are asked for, within max_runners, and survive a restart", () => {
  const h = world();
  job(h, "1:ncpus=1");
  advance(h, 1);
  assert.deepEqual(asked(h, 5), []);
  const names = asked(h, 2);
  assert.equal(names.length, 2);
  const answers = h.to_runners.filter(({ type }) => type === "runners-asked").map(({ data }) => (data as { serial: number | null }).serial);
  assert.equal(answers[0], null);
  assert.equal(names[1], `sl-${answers[1]}-1`);
  restart(h);
  assert.deepEqual([...h.core.state.runners.keys()], names);
  runners(h, LINK, "runners-hello", { pid: 10 });
  assert.deepEqual(doing(h), [`${names[0]} asked`, `${names[1]} asked`]);
});

test("runners: a runner is a vnode with the amounts of its bucket, and leaves when it had no job for runner_idle_wait", () => {
  const h = world();
  const id = job(h, "1:ncpus=1:mem=1000mb");
  advance(h, 1);
  const [name = ""] = asked(h, 1);
  runners(h, LINK, "runners-seen", { remotes: { [name]: "4711" } });
  hello(h, 60, name);
  const attrs = h.core.state.vnodes.get(name)?.attrs ?? {};
  assert.deepEqual((attrs["resources_available"] as { ncpus: number; mem: string }).mem, "1048576kb");
  assert.deepEqual([attrs["partition"], attrs["max_running"], attrs["backend"], attrs["backend_id"]], ["p1", 1, "sl", "4711"]);
  assert.equal(attrs["runner_end"], Math.floor(h.now_ms / 1000) + 600 - 10 - 30);
  runOn(h, id, name, 60);
  const { backend, backend_id, runner } = attrsOf(h, id);
  assert.deepEqual([backend, backend_id, runner], ["sl", "4711", name]);
  advance(h, 10);
  assert.deepEqual(doing(h), [`${name} busy`]);
  mom(h, 60, "mom-obit", { job: id, run_count: 1, exit_status: 0, used: {} });
  advance(h, 1);
  assert.deepEqual(doing(h), [`${name} idle`]);
  advance(h, 3);
  assert.ok(h.to_moms.some(({ link, type }) => link === 60 && type === "mom-quit"));
  assert.deepEqual([h.core.state.runners.size, h.core.state.vnodes.has(name)], [0, false]);
  hello(h, 61, name);
  assert.equal(h.core.state.vnodes.has(name), false);
});

test("runners: a lost runner keeps its job until it is back, or its backend says that it is gone", () => {
  const h = world();
  const [first, second] = [job(h, "1:ncpus=1"), job(h, "1:ncpus=1")];
  advance(h, 1);
  const [a = "", b = ""] = asked(h, 2);
  for (const [link, name, id] of [
    [60, a, first],
    [61, b, second],
  ] as const) {
    hello(h, link, name);
    runOn(h, id, name, link);
  }
  const run_count = h.core.state.jobs.get(first)?.attrs.run_count ?? 0;
  runners(h, LINK, "runners-gone", { runners: [{ name: a, why: "not shown" }] });
  assert.ok(h.core.state.runners.has(a), "a runner that is connected exists");
  lose(h, 60);
  lose(h, 61);
  advance(h, 400);
  assert.deepEqual(doing(h), [`${a} lost`, `${b} lost`]);
  assert.equal(h.core.state.jobs.get(first)?.attrs.job_state, "R");
  mom(h, 62, "mom-hello", {
    host: a,
    port: 15002,
    pid: 1,
    version: "1",
    vnodes: [],
    pongs: true,
    jobs: [{ job: first, run_count, state: "running", session_id: 5 }],
    runner: { token: "", age_s: 500 },
  });
  advance(h, 1);
  assert.deepEqual(doing(h), [`${a} busy`, `${b} lost`]);
  assert.equal(ask(h, BOB, { kind: "confirm-dead", names: [b], age_s: 0 })?.ok, false);
  assert.deepEqual(askOk(h, ALICE, { kind: "confirm-dead", names: [second], age_s: 0 }), { confirmed: [b] });
  assert.equal(h.core.state.jobs.get(second)?.attrs.job_state, "H");
  lose(h, 62);
  runners(h, LINK, "runners-gone", { runners: [{ name: a, why: "node failed" }] });
  assert.equal(h.core.state.jobs.get(first)?.attrs.job_state, "Q");
  assert.equal(h.core.state.runners.size, 0);
});

test("runners: a backend that fails says so, and a job that no runner can take is held with the reason", () => {
  const h = world();
  runners(h, LINK, "runners-state", { backend: "sl", error: "sbatch: error: no such partition" });
  const { state, last_error } = h.core.state.backends.get("sl")?.attrs ?? {};
  assert.deepEqual([state, last_error], ["failing", "sbatch: error: no such partition"]);
  const id = job(h, "2:ncpus=1", { Resource_List: { select: "2:ncpus=1", place: "scatter" } });
  advance(h, 1);
  const { job_state, Hold_Types, comment, fail_reason } = attrsOf(h, id);
  assert.deepEqual([job_state, Hold_Types, fail_reason], ["H", "s", "impossible"]);
  assert.match(String(comment), /^Can Never Run: no runner can take it: place=scatter asks for several hosts/);
  runners(h, LINK, "runners-state", { backend: "sl", error: null });
  assert.equal(h.core.state.backends.get("sl")?.attrs["state"], "ready");
});

test("runners: a job that no backend took goes on by itself when a backend takes its runner", () => {
  const h = world();
  const id = job(h, "1:ncpus=1");
  const other = job(h, "1:ncpus=2");
  advance(h, 1);
  const key = "alice:pq:_pbs_project_default:ncpus=1:walltime=00:01:04";
  runners(h, LINK, "runners-impossible", { bucket: key, why: "Invalid license specification" });
  for (const each of [id, other]) askOk(h, ROOT, { kind: "hold-job", job: each, holds: "u" });
  askOk(h, ROOT, { kind: "release-job", job: other, holds: "u" });
  assert.equal(attrsOf(h, id)["Hold_Types"], "su");
  advance(h, 1);
  assert.deepEqual(demands(h), ["1 alice:pq:_pbs_project_default:ncpus=2:walltime=00:01:04"], "a job that a person holds is not tried");
  runners(h, LINK, "runners-impossible", { bucket: "alice:pq:_pbs_project_default:ncpus=2:walltime=00:01:04", why: "no such node" });
  assert.deepEqual([attrsOf(h, other)["Hold_Types"], attrsOf(h, other)["fail_reason"]], ["s", "impossible"]);
  advance(h, 1);
  assert.deepEqual(
    picture(h).demands.map(({ ready, trial }) => [ready, trial]),
    [[1, true]],
    "the bucket is tried again with one runner",
  );
  const [name = ""] = asked(h, 1);
  assert.equal(attrsOf(h, other)["job_state"], "H", "the backend has not taken the runner yet");
  runners(h, LINK, "runners-seen", { remotes: { [name]: "7_0" } });
  const { job_state, Hold_Types, comment, fail_reason } = attrsOf(h, other);
  assert.deepEqual([job_state, Hold_Types, comment, fail_reason], ["Q", "n", undefined, undefined]);
  assert.equal(attrsOf(h, id)["job_state"], "H");
  advance(h, 1);
  assert.deepEqual(
    picture(h).demands.map(({ ready, trial }) => [ready, trial]),
    [[1, undefined]],
  );
});

test("runners: a backend that is switched off lets its runners leave after their jobs", () => {
  const h = world();
  const id = job(h, "1:ncpus=1");
  advance(h, 1);
  const [name = ""] = asked(h, 1);
  hello(h, 60, name);
  runOn(h, id, name, 60);
  askOk(h, ROOT, { kind: "manager", verb: "set", object: "backend", name: "sl", attrs: [{ name: "enabled", op: "=", value: "False" }] });
  advance(h, 1);
  assert.deepEqual(h.core.state.vnodes.get(name)?.attrs["state"], ["offline", "job-busy"]);
  mom(h, 60, "mom-obit", { job: id, run_count: 1, exit_status: 0, used: {} });
  advance(h, 1);
  assert.equal(h.core.state.runners.size, 0);
});

test("runners: a job that fails runs again as often as the backend's retries say, but not if its program does not exist", () => {
  const h = world({ retries: 1 });
  const ids = [job(h, "1:ncpus=1"), job(h, "1:ncpus=1")];
  advance(h, 1);
  const names = asked(h, 2);
  const end = (at: number, run_count: number, exit_status: number): void => {
    const [id = "", name = ""] = [ids[at], names[at]];
    if (!h.core.state.vnodes.has(name)) hello(h, 60 + at, name);
    runOn(h, id, name, 60 + at);
    mom(h, 60 + at, "mom-obit", { job: id, run_count, exit_status, used: {} });
  };
  const [first = "", second = ""] = ids;
  end(0, 1, 3);
  const { job_state, substate, Execution_Time, fail_reason, comment } = attrsOf(h, first);
  assert.deepEqual([job_state, substate, fail_reason], ["W", 30, "exit"]);
  assert.ok(Number(Execution_Time) >= Math.floor(h.now_ms / 1000) + 30);
  assert.match(String(comment), /^Failed with exit status 3, run 1 of 2; tried again at /);
  end(1, 1, 127);
  assert.equal(h.core.state.jobs.has(second), false);
  assert.equal(h.store.history.get(second)?.attrs["fail_reason"], "not_found");
  apply(h, { kind: "changed", object: "backend", name: "sl", set: { runner_idle_wait: 3600 }, unset: [] });
  advance(h, 90);
  assert.equal(attrsOf(h, first)["job_state"], "Q");
  end(0, 2, 3);
  const buried = attrsOf(h, first);
  assert.deepEqual([buried["job_state"], buried["Hold_Types"], buried["fail_reason"]], ["H", "s", "exit"]);
  assert.equal(buried["comment"], "Job held: Failed with exit status 3, run 2 of 2. qrls lets it run again");
});

test("runners: a job that ran on a runner and runs on a vnode of the site now has no runner, and is not tried again", () => {
  const h = world({ retries: 5 });
  apply(h, { kind: "changed", object: "node", name: "n1", set: { partition: "p1" }, unset: [] });
  const id = job(h, "1:ncpus=1");
  advance(h, 1);
  const [name = ""] = asked(h, 1);
  hello(h, 60, name);
  runOn(h, id, name, 60);
  mom(h, 60, "mom-obit", { job: id, run_count: 1, exit_status: 3, used: {} });
  assert.equal(attrsOf(h, id)["runner"], name);
  advance(h, 90);
  runOn(h, id, "n1", 100);
  assert.deepEqual(
    ["backend", "backend_id", "runner", "fail_reason"].map((attr) => attrsOf(h, id)[attr]),
    Array(4).fill(undefined),
  );
  mom(h, 100, "mom-obit", { job: id, run_count: 2, exit_status: 3, used: {} });
  assert.equal(h.core.state.jobs.has(id), false);
});

test("runners: what the jobs of a user ask for is shown to others only if they may query these jobs", () => {
  const h = world();
  job(h, "1:ncpus=1");
  advance(h, 1);
  asked(h, 1);
  const shown = (who: typeof ALICE): readonly string[] =>
    (statusOf(h, who, { kind: "view-runners" }) as RunnersItem[]).flatMap((item) => ("runner" in item ? [item.runner.bucket] : []));
  const [bucket = ""] = shown(ALICE);
  assert.match(bucket, /^alice:/);
  assert.deepEqual(shown(BOB), [bucket]);
  apply(h, { kind: "server-changed", set: { query_other_jobs: false }, unset: [] });
  assert.deepEqual([shown(ALICE), shown(BOB), shown(ROOT)], [[bucket], [""], [bucket]]);
});

test("runners: a job of another user never runs on a runner, also if an operator names it", () => {
  const h = world();
  const own = job(h, "1:ncpus=1");
  advance(h, 1);
  const [name = ""] = asked(h, 1);
  hello(h, 60, name);
  const other = job(h, "1:ncpus=1", { euser: "bob", Job_Owner: "bob@h" });
  const run = (id: string) => ask(h, ROOT, { kind: "run-job", job: id, exec_vnode: `(${name}:ncpus=1)`, async: true });
  const refused = run(other);
  assert.deepEqual([refused?.ok, refused?.ok === false && (refused.text ?? "").includes("belongs to another user")], [false, true]);
  assert.equal(run(own)?.ok, true);
});

test("runners: a job that was preempted by deletion is not tried again, whatever the backend's retries say", () => {
  const h = world({ retries: 5 });
  const id = job(h, "1:ncpus=1");
  advance(h, 1);
  const [name = ""] = asked(h, 1);
  hello(h, 60, name);
  runOn(h, id, name, 60);
  apply(h, { kind: "job-changed", id, set: {}, unset: [], own: { termination: { by: "Scheduler@h", history: true, preempted: true } } });
  mom(h, 60, "mom-obit", { job: id, run_count: 1, exit_status: 271, used: {} });
  assert.equal(h.core.state.jobs.has(id), false);
  assert.equal(h.store.history.get(id)?.attrs.Exit_status, 271);
});

test("runners: a picture has a bounded size, however long and many the buckets of a user are, and others find room in it", () => {
  const demand = (owner: string, text: string): Demand => {
    const bucket = { key: `${owner}:${text}`, owner, queue: "q", project: "p", ncpus: 1, mem_kb: 0, tmp_kb: 0, walltime_s: null };
    return { partition: "p1", ready: 1, priority: 0, bucket: { ...bucket, resources: { software: text } } };
  };
  const many = Array.from({ length: 20_000 }, (_, at) => demand("alice", `${at}`.padEnd(4000, "x")));
  const kept = withinRoom([...many, demand("zoe", "small")]);
  assert.ok(JSON.stringify(kept).length < 4.1 * 1024 * 1024);
  assert.ok(kept.length > 100);
  assert.ok(kept.some(({ bucket }) => bucket.owner === "zoe"));
});

test("runners: the controller is told to end when no backend is enabled and no runner is left, and is started when one is enabled again", () => {
  const h = world();
  const quits = (): number => h.to_runners.filter(({ type }) => type === "runners-quit").length;
  const enable = (value: string): void =>
    void askOk(h, ROOT, { kind: "manager", verb: "set", object: "backend", name: "sl", attrs: [{ name: "enabled", op: "=", value }] });
  job(h, "1:ncpus=1");
  advance(h, 1);
  const [name = ""] = asked(h, 1);
  enable("False");
  advance(h, 1);
  assert.equal(quits(), 0, "a runner is recorded");
  runners(h, LINK, "runners-gone", { runners: [{ name, why: "it has ended" }] });
  advance(h, 1);
  assert.equal(h.core.state.runners.size, 0);
  assert.ok(quits() > 0);
  h.driver.runnersLost(LINK);
  advance(h, 60);
  const { runners: runtime } = h.core.kernel;
  assert.deepEqual([runtime.link, runtime.started], [null, false]);
  enable("True");
  advance(h, 0);
  assert.equal(runtime.started, true);
  runners(h, LINK + 1, "runners-hello", { pid: 10 });
  const before = quits();
  advance(h, 1);
  assert.equal(quits(), before);
  enable("False");
  askOk(h, ROOT, { kind: "manager", verb: "delete", object: "backend", name: "sl", attrs: [] });
  advance(h, 1);
  assert.ok(quits() > before, "the last backend is deleted");
});

test("runners: a runner on a server of a cloud waits for keep_alive before it leaves", () => {
  const h = world();
  apply(h, { kind: "changed", object: "backend", name: "sl", set: { type: "openstack", keep_alive: 20 }, unset: [] });
  const id = job(h, "1:ncpus=1:mem=1000mb");
  advance(h, 1);
  const [name = ""] = asked(h, 1);
  hello(h, 60, name);
  runOn(h, id, name, 60);
  mom(h, 60, "mom-obit", { job: id, run_count: 1, exit_status: 0, used: {} });
  advance(h, 15);
  assert.deepEqual(doing(h), [`${name} idle`]);
  advance(h, 10);
  assert.equal(h.core.state.runners.size, 0);
});

test("runners: the view of many runners travels in slices", () => {
  const h = world({ max_runners: 3000 });
  job(h, "1:ncpus=1");
  advance(h, 1);
  const names = asked(h, 1201);
  const items = statusOf(h, ROOT, { kind: "view-runners" }) as RunnersItem[];
  assert.deepEqual(
    items.flatMap((item) => ("runner" in item ? [item.runner.runner] : [])),
    names,
  );
  assert.deepEqual(
    items.flatMap((item) => ("waiting" in item ? [item.waiting.jobs] : [])),
    [1],
  );
});
