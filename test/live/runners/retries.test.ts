// Jobs on runners that fail: they run again, are held when their retries are used up, and go on after qrls; a lost runner is found, or confirmed dead (docs/runners.md).

import assert from "node:assert/strict";
import { appendFileSync, existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { type Complex, startComplex, until } from "../complex.ts";

let complex: Complex;
before(async () => {
  complex = await startComplex();
  complex.qmgr(
    "set server job_history_enable=t",
    "create queue cloud queue_type=e,enabled=t,started=t,partition=cloud",
    "create sched cs partition=cloud",
    "set sched cs scheduling=t",
    "create backend sl type=local",
    "set backend sl partition=cloud,max_runners=4,retry_wait=1,runner_lost_after=1,enabled=t",
  );
});
after(() => complex?.stop());

const submit = (options: readonly string[], script: string): string =>
  complex.submit([
    "-q",
    "cloud",
    "-l",
    "walltime=0:05:00",
    "-o",
    "/dev/null",
    "-e",
    "/dev/null",
    ...options,
    "--",
    "/bin/sh",
    "-c",
    script,
  ]);

type Runner = { readonly runner: string; readonly backend_id: string | null; readonly state: string };
const runnerOf = (id: string): Runner | undefined => {
  const { runners } = JSON.parse(complex.must("partita", ["runners", "-F", "json", "--home", complex.home])) as {
    readonly runners: readonly Runner[];
  };
  return runners.find(({ runner }) => runner === complex.job(id)["runner"]);
};

test("retries: a job that fails runs again, is held when its retries are used up, and ends well after qrls", async () => {
  const file = join(complex.work(), "tries");
  const good = join(complex.work(), "good");
  const id = submit(["-W", "retries=1"], `echo try >> ${file}; test -e ${good} || exit 3`);
  const missing = submit(["-W", "retries=5"], "exec /no/such/program");
  const held = await complex.untilJob(id, "H");
  assert.deepEqual([held["Hold_Types"], held["fail_reason"]], ["s", "exit"]);
  assert.match(String(held.comment), /^Job held: Failed with exit status 3, run 2 of 2/);
  assert.equal(readFileSync(file, "utf8"), "try\ntry\n");
  const never = await complex.untilJob(missing, "F");
  assert.deepEqual([never.run_count, never["fail_reason"]], [1, "not_found"]);
  appendFileSync(good, "");
  complex.must("qrls", [id]);
  const done = await complex.untilJob(id, "F");
  assert.deepEqual([done.Exit_status, done["fail_reason"]], [0, undefined]);
});

test("retries: the job of a runner that was killed runs again; one whose runner is confirmed dead is held", async () => {
  const begun = join(complex.work(), "begun");
  const id = submit(["-W", "retries=1"], `test -e ${begun} || { touch ${begun}; sleep 1000; }`);
  await until("the job has begun", () => existsSync(begun));
  process.kill(Number(await until("its runner is known", () => runnerOf(id)?.backend_id ?? false)), "SIGKILL");
  const done = await complex.untilJob(id, "F");
  assert.deepEqual([done.Exit_status, done.run_count], [0, 2]);

  const other = submit([], "sleep 1000");
  await complex.untilJob(other, "R");
  const pid = Number(await until("its runner is known", () => runnerOf(other)?.backend_id ?? false));
  assert.match(complex.run("qdel", ["-W", "dead", other]).stderr, /is not lost/);
  process.kill(pid, "SIGSTOP");
  try {
    complex.qmgr("set server node_silence_timeout=1");
    await until("the job is lost", () => complex.job(other)["lost_since"] !== undefined);
    assert.equal(complex.job(other).job_state, "R");
    complex.must("qdel", ["-W", "dead", other]);
    const held = await complex.untilJob(other, "H");
    assert.match(String(held.comment), /^Job held: runner .* is confirmed dead/);
  } finally {
    process.kill(pid, "SIGCONT");
  }
  complex.must("qdel", [other]);
  await until("the runner has left", () => runnerOf(other) === undefined);
});
