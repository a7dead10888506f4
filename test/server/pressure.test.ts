// Pressure: the longest chain behind a job, expected run times, when schedulers hear of them.

import assert from "node:assert/strict";
import { test } from "node:test";
import { isDependent } from "#model/depend.ts";
import type { Delta, Snapshot } from "#protocol/sched-link.ts";
import { RUN_TIMES_MAX } from "#server/apply.ts";
import { pressuresNow } from "#server/pressure.ts";
import { prng } from "#support/prng.ts";
import { ALICE, addHost, apply, askOk, BOB, type Harness, harness, jobAttrs, mom, restart, runOn, schedHello } from "./harness.ts";
import { qalter, qsub } from "./requests/qsub.ts";

const TRUE = "-- /bin/true";
const FORMULA = { kind: "server-changed", set: { job_sort_formula: "pressure" }, unset: [] } as const;

/** What the scheduler has been told last of each job. */
function told(h: Harness, link = 1): Record<string, number | undefined> {
  const jobs = new Map<string, { readonly pressure_s?: number }>();
  for (const frame of h.to_scheds) {
    if (frame.link !== link) continue;
    if (frame.type === "sched-snapshot") {
      jobs.clear();
      for (const job of (frame.data as Snapshot).jobs) jobs.set(job.id, job);
    } else if (frame.type === "sched-delta") {
      for (const change of (frame.data as Delta).changes) {
        if ("put" in change && change.put === "job") jobs.set(change.value.id, change.value);
        if ("drop" in change && change.drop === "job") jobs.delete(change.id);
      }
    }
  }
  return Object.fromEntries([...jobs].map(([id, { pressure_s }]) => [id.replace(".svr", ""), pressure_s]));
}

function ended(h: Harness, link: number, id: string, walltime: number, exit_status = 0): void {
  runOn(h, id, "n1", link);
  mom(h, link, "mom-obit", { job: id, run_count: 1, exit_status, used: { walltime }, stageout_status: 1 });
}

test("a job's pressure is the longest chain behind it, told only where a formula names it, and again when the chain changes", async () => {
  const h = harness();
  schedHello(h, 1);
  await qsub(h, `-l walltime=10 ${TRUE}`);
  await qsub(h, `-l walltime=20 -W depend=afterok:1 ${TRUE}`);
  await qsub(h, `-l walltime=5 -W depend=afterany:2 ${TRUE}`);
  assert.deepEqual(told(h), { 1: undefined, 2: undefined, 3: undefined });
  apply(h, FORMULA);
  assert.deepEqual(told(h), { 1: 35, 2: 25, 3: 5 });
  await qsub(h, `-l walltime=100 -W depend=after:2 ${TRUE}`);
  assert.equal(told(h)[1], 130);
  await qsub(h, `-l walltime=1000 -W depend=afternotok:1 ${TRUE}`);
  assert.equal(told(h)[1], 130, "who waits for a failure is not counted upon");
  assert.equal(qalter(h, "4.svr", ["Resource_List.walltime=50"]), "ok");
  assert.equal(told(h)[1], 80);
  await askOk(h, ALICE, { kind: "delete-job", job: "4.svr" });
  assert.equal(told(h)[1], 35);
  await qsub(h, `-W depend=on:1 -l walltime=60 ${TRUE}`);
  await qsub(h, `-W depend=before:6 ${TRUE}`);
  assert.equal(told(h)[7], 61);
  await qsub(h, `-J 1-1000 -l walltime=7 -W depend=afterok:1 ${TRUE}`);
  await qsub(h, `-l walltime=40 -W depend=afterok:8[] ${TRUE}`);
  assert.equal(told(h)[1], 10 + 7 + 40);
});

test("a scheduler's own formula names it, or keeps it from being told", async () => {
  const h = harness();
  schedHello(h, 1);
  await qsub(h, `-l walltime=10 ${TRUE}`);
  const set = (job_sort_formula: string): void =>
    apply(h, { kind: "changed", object: "sched", name: "default", set: { job_sort_formula }, unset: [] });
  set("pressure/2");
  assert.deepEqual(told(h), { 1: 10 });
  set("ncpus");
  apply(h, FORMULA);
  await qsub(h, `-l walltime=10 ${TRUE}`);
  assert.equal(told(h)[2], undefined);
});

test("times are learned from jobs that ended well, by user, project and name; a restart keeps them", async () => {
  const h = harness();
  const link = addHost(h, "n1", { ncpus: 16 });
  apply(h, FORMULA);
  schedHello(h, 1);
  const runs = async (walltime: number, status = 0, options = "-N a"): Promise<void> =>
    ended(h, link, await qsub(h, `${options} -l walltime=999 ${TRUE}`), walltime, status);
  const expected = async (options = "-N a", who = ALICE): Promise<number | undefined> => {
    const id = await qsub(h, `${options} -l walltime=999 ${TRUE}`, who);
    return told(h)[id.replace(".svr", "")];
  };
  assert.equal(await expected(), 999);
  await runs(7, 1);
  assert.equal(await expected(), 999, "a failure teaches nothing");
  await runs(100);
  assert.equal(await expected(), 100);
  await runs(200);
  assert.equal(await expected(), 125);
  for (const options of ["-N b", "-N a -P other"]) assert.equal(await expected(options), 999);
  assert.equal(await expected("-N a", BOB), 999);
  await runs(0, 0, "-N quick");
  assert.equal(await expected("-N quick"), 1, "no job counts nothing");
  restart(h);
  schedHello(h, 2);
  const id = await qsub(h, `-N a ${TRUE}`);
  assert.equal(told(h, 2)[id.replace(".svr", "")], 125);
});

test("no more than so many times are remembered: those learned last", () => {
  const h = harness();
  for (let at = 0; at < RUN_TIMES_MAX + 3; at++) apply(h, { kind: "run-time-learned", key: `k${at}`, seconds: at });
  apply(h, { kind: "run-time-learned", key: "k3", seconds: 1 });
  apply(h, { kind: "run-time-learned", key: "more", seconds: 2 });
  const { run_times } = h.core.state;
  assert.deepEqual([run_times.size, run_times.has("k2"), run_times.has("k3"), run_times.has("k4")], [RUN_TIMES_MAX, false, true, false]);
  restart(h);
  assert.equal(h.core.state.run_times.size, RUN_TIMES_MAX);
});

test("random graphs: what schedulers were told of jobs that may run is the longest chain, after every change", async () => {
  for (let seed = 1; seed <= 20; seed++) {
    const random = prng(`pressure ${seed}`);
    const h = harness();
    const link = addHost(h, "n1", { ncpus: 1000 });
    apply(h, FORMULA);
    schedHello(h, 1);
    for (let step = 0; step < 60; step++) {
      const live = [...h.core.state.jobs.values()];
      const one = live.length > 0 ? random.pick(live).id : null;
      const parents = live.filter(() => random.chance(2 / (live.length + 1))).map(({ id }) => id);
      const type = random.pick(["afterok", "afterok", "afterany", "after", "afternotok"]);
      const depend = parents.length === 0 ? "" : `-W depend=${type}:${parents.join(":")}`;
      if (one === null || random.chance(0.6)) await qsub(h, `${depend} -l walltime=${random.int(1, 500)} ${TRUE}`);
      else if (random.chance(0.3)) await askOk(h, ALICE, { kind: "delete-job", job: one });
      else if (!isDependent(jobAttrs(h, one)["depend"])) ended(h, link, one, random.int(1, 50), random.pick([0, 0, 1]));
      const { state } = h.core;
      const naive = (id: string): number => {
        const job = state.jobs.get(id);
        assert.ok(job !== undefined);
        const behind = [...state.jobs.values()].filter(({ attrs }) =>
          ((attrs["depend"] as string[] | undefined) ?? []).some(
            (item) => /^after(ok|any)?:/.test(item) && item.split(":").includes(`${id}@svr`),
          ),
        );
        const own =
          state.run_times.get(`${job.attrs.euser}\n${job.attrs.project}\n${job.attrs.Job_Name}`) ?? job.attrs.Resource_List["walltime"];
        return Math.max(1, own as number) + Math.max(0, ...behind.map((other) => naive(other.id)));
      };
      const now = pressuresNow(state);
      const sent = told(h);
      for (const job of state.jobs.values()) {
        assert.ok(Math.abs(now(job) - naive(job.id)) < 1e-6, `seed=${seed} step ${step} ${job.id}`);
        // Times that were learned meanwhile are told later.
        if (job.attrs.job_state === "Q" && state.run_times.size === 0)
          assert.equal(sent[job.id.replace(".svr", "")], now(job), `seed=${seed} step ${step} ${job.id}`);
      }
    }
  }
});
