// Runners of this machine: a backend of type local, from qmgr to the end of the last runner (docs/runners.md).

import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { type Complex, startComplex, until } from "../complex.ts";

let complex: Complex;
before(async () => {
  complex = await startComplex();
});
after(() => complex?.stop());

const SET_UP = [
  "set server job_history_enable=t",
  "create queue cloud queue_type=e,enabled=t,started=t,partition=cloud",
  "create sched cs partition=cloud",
  "set sched cs scheduling=t",
  "create backend sl type=local",
  "set backend sl partition=cloud,max_runners=4,enabled=t",
];

type Runner = { readonly runner: string; readonly backend_id: string | null; readonly backend: string; readonly state: string };
const runners = (): readonly Runner[] =>
  (JSON.parse(complex.must("partita", ["runners", "-F", "json", "--home", complex.home])) as { readonly runners: readonly Runner[] })
    .runners;

test("runners: jobs run on runners of this machine, which come and leave by themselves", async () => {
  complex.qmgr(...SET_UP);
  const out = join(complex.work(), "out");
  const ids = Array.from({ length: 6 }, (_, at) =>
    complex.submit([
      "-q",
      "cloud",
      "-l",
      "walltime=0:01:00",
      "-j",
      "oe",
      "-o",
      "/dev/null",
      "--",
      "/bin/sh",
      "-c",
      `echo ${at} >> ${out}; env > ${out}.env`,
    ]),
  );
  for (const id of ids) {
    const job = await complex.untilJob(id, "F");
    assert.equal(job.Exit_status, 0);
    assert.equal(job["backend"], "sl");
    assert.match(String(job["runner"]), /^sl-\d+-\d+$/);
    assert.match(String(job.exec_vnode), /^\(sl-\d+-\d+:ncpus=1\)$/);
  }
  assert.deepEqual(readFileSync(out, "utf8").trim().split("\n").sort(), ["0", "1", "2", "3", "4", "5"]);
  assert.doesNotMatch(readFileSync(`${out}.env`, "utf8"), /PARTITA_RUNNER/);
  await until("the runners have left", () => runners().length === 0);
  assert.doesNotMatch(complex.must("pbsnodes", ["-a"]), /sl-/);
  assert.match(complex.qmgr("list backend sl"), /state = ready/);
});

/** A job that notes its id when it begins and when it ends. The first run of job 0 goes on until it is killed. */
function noting(file: string, at: number, seconds: number): string {
  const first = at === 0 ? `mkdir ${file}.first 2>/dev/null && sleep 600; ` : "";
  const script = `echo begin ${at} >> ${file}; ${first}sleep ${seconds}; echo end ${at} >> ${file}`;
  return complex.submit([
    "-q",
    "cloud",
    "-l",
    "walltime=0:05:00",
    "-r",
    "y",
    "-o",
    "/dev/null",
    "-e",
    "/dev/null",
    "--",
    "/bin/sh",
    "-c",
    script,
  ]);
}

const runnerPid = (id: string): number => {
  const { runner } = complex.job(id);
  const found = runners().find((each) => each.runner === runner);
  return Number(found?.backend_id);
};

test("runners: jobs run to their end once, whatever is killed, and nothing is left", async () => {
  complex.qmgr("set server sched_silence_timeout=4");
  const file = join(complex.work(), "killed");
  const ids = Array.from({ length: 6 }, (_, at) => noting(file, at, 4));
  const [first = ""] = ids;
  await complex.untilJob(first, "R");
  // A runner is killed: its job is ended with it, requeued, and runs again.
  const pid = await until("the runner is known", () => runnerPid(first) || false);
  process.kill(pid, "SIGKILL");
  await until("the job was requeued", () => (complex.job(first).run_count ?? 0) > 1);
  // The controller hangs: the server kills it and starts another one, which is killed as well.
  const lock = join(complex.pbsHome, "runner_priv/runners.lock");
  const hung = Number(readFileSync(lock, "utf8"));
  process.kill(hung, "SIGSTOP");
  await until("another controller runs", () => ![0, hung].includes(Number(readFileSync(lock, "utf8"))));
  process.kill(Number(readFileSync(lock, "utf8")), "SIGKILL");
  // The server is killed: runners and jobs go on.
  await until("a job runs", () => ids.some((id) => complex.job(id).job_state === "R"));
  process.kill(complex.pid("server") ?? 0, "SIGKILL");
  await until("the server is gone", () => complex.pid("server") === null);
  complex.start();
  for (const id of ids) assert.equal((await complex.untilJob(id, "F")).Exit_status, 0);
  const lines = readFileSync(file, "utf8").trim().split("\n");
  for (const at of ids.keys()) {
    const mine = lines.filter((line) => line.endsWith(` ${at}`));
    assert.equal(mine.filter((line) => line.startsWith("end")).length, 1, `job ${at} ended once: ${mine}`);
    assert.equal(mine.at(-1), `end ${at}`, `no run of job ${at} began after its end`);
  }
  await until("the runners have left", () => runners().length === 0);
  const left = (): readonly string[] => readdirSync(join(complex.pbsHome, "runner_priv/sl/tokens"));
  assert.deepEqual(await until("the tokens are removed", () => left().length === 0 && left()), []);
});

test("runners: while a backend cannot be used, its jobs run on this machine, or wait and say why; they go on when it is mended", async () => {
  complex.qmgr(
    "create queue far queue_type=e,enabled=t,started=t,partition=far",
    "set sched cs partition+=far",
    "create backend bad type=slurm",
    `set backend bad bin=${complex.work()},partition=far,max_runners=2,fallback=hold,enabled=t`,
  );
  const id = complex.submit(["-q", "far", "-l", "walltime=0:01:00", "-o", "/dev/null", "-e", "/dev/null", "--", "/bin/true"]);
  const comment = (): string => String(complex.job(id).comment);
  await until("the job says why it waits", () => comment().startsWith("Not Running: Backend bad fails: "));
  assert.match(complex.qmgr("list backend bad"), /state = failing[\s\S]*last_error = \S/);
  assert.equal(complex.job(id).job_state, "Q");
  complex.qmgr("set backend bad fallback=local");
  const job = await complex.untilJob(id, "F");
  assert.deepEqual([job.Exit_status, job["backend"]], [0, "bad"]);
  const other = complex.submit([
    "-q",
    "far",
    "-l",
    "walltime=0:01:00",
    "-o",
    "/dev/null",
    "-e",
    "/dev/null",
    "--",
    "/bin/sh",
    "-c",
    "exit 127",
  ]);
  complex.qmgr("set backend bad enabled=f", "unset backend bad bin", "set backend bad type=local", "set backend bad enabled=t");
  const failed = await complex.untilJob(other, "F");
  assert.deepEqual([failed.Exit_status, failed["fail_reason"]], [127, "not_found"]);
  await until("the runners have left", () => runners().length === 0);
});
