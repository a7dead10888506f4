// Pressure: the longest chain behind a job, expected run times, and when schedulers learn of them.

import assert from "node:assert/strict";
import { test } from "node:test";
import { RUN_TIMES_MAX } from "#server/state/apply.ts";
import { ALICE, addHost, apply, askOk, BOB, harness, restart, schedHello } from "../harness.ts";
import { qalter, qsub } from "../requests/qsub.ts";
import { ended, FORMULA, TRUE, told } from "./pressure-bed.ts";

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
  assert.equal(await expected(), 200, "the last success of the same command counts");
  for (const options of ["-N b", "-N a -P other"]) assert.equal(await expected(options), 999);
  assert.equal(await expected("-N a", BOB), 999);
  await runs(0, 0, "-N quick");
  assert.equal(await expected("-N quick"), 1, "no job counts nothing");
  restart(h);
  schedHello(h, 2);
  const id = await qsub(h, `-N a ${TRUE}`);
  assert.equal(told(h, 2)[id.replace(".svr", "")], 200);
});

test("no more than so many times are remembered: those learned last", () => {
  const h = harness();
  for (let at = 0; at < RUN_TIMES_MAX + 3; at++) apply(h, { kind: "run-time-learned", key: `k${at}`, value: { seconds: at } });
  apply(h, { kind: "run-time-learned", key: "k3", value: { seconds: 1 } });
  apply(h, { kind: "run-time-learned", key: "more", value: { seconds: 2 } });
  const { run_times } = h.core.state;
  assert.deepEqual([run_times.size, run_times.has("k2"), run_times.has("k3"), run_times.has("k4")], [RUN_TIMES_MAX, false, true, false]);
  restart(h);
  assert.equal(h.core.state.run_times.size, RUN_TIMES_MAX);
});
