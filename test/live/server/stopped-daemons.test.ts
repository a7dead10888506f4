// Daemons stopped by SIGSTOP: the messages to users meanwhile, and the recovery after they continue.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { type Complex, startComplex, until } from "../complex.ts";

let complex: Complex;
const stopped = new Set<number>();
before(async () => {
  complex = await startComplex();
  complex.qmgr("set server job_history_enable = True", "set server sched_silence_timeout = 4");
});
after(async () => {
  for (const pid of stopped) signal(pid, "SIGKILL");
  await complex?.stop();
});

function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch {
    // The process has ended meanwhile.
  }
  if (name === "SIGSTOP") stopped.add(pid);
}

type SchedStatus = { readonly name: string; readonly state: string; readonly comment: string | null };
const sched = (): SchedStatus => {
  const { scheds } = JSON.parse(complex.run("partita", ["status", "--json"]).stdout) as { readonly scheds: readonly SchedStatus[] };
  return scheds.find(({ name }) => name === "default") as SchedStatus;
};

type Ended = { readonly status: number | null; readonly stdout: string; readonly stderr: string };
/** A command that runs while the test continues. */
function begin(
  command: string,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): { readonly seen: { stderr: string }; readonly ended: Promise<Ended> } {
  const child = spawn(complex.command(command), args, {
    cwd: complex.work(),
    env: { ...complex.env(), ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const seen = { stdout: "", stderr: "" };
  child.stdout.on("data", (text: Buffer) => {
    seen.stdout += text.toString();
  });
  child.stderr.on("data", (text: Buffer) => {
    seen.stderr += text.toString();
  });
  return { seen, ended: new Promise((resolve) => child.once("close", (status) => resolve({ status, ...seen }))) };
}

/** Connections at the server's socket, accepted or not. */
function connections(): number {
  const socket = join(complex.pbsHome, "sock/server.sock");
  return readFileSync("/proc/net/unix", "utf8")
    .split("\n")
    .filter((line) => line.endsWith(` ${socket}`) && / 0001 0[123] /.test(line)).length;
}

test("a stopped scheduler is down, jobs and status say why, it is killed, and the next one runs the job", async () => {
  const pid = complex.schedPid("default") as number;
  signal(pid, "SIGSTOP");
  const id = complex.submit(["--", "/bin/true"]);
  await until("it is down", () => sched().state === "down");
  // It is killed when everything has been asked, however long that takes.
  complex.qmgr("set server sched_silence_timeout = 600");
  const said = new RegExp(`has not answered for \\d+ seconds, process ${pid} is stopped`);
  assert.match(sched().comment ?? "", said);
  assert.match(
    complex.job(id).comment ?? "",
    new RegExp(`^Not Running: Scheduler default ${said.source} \\(to mend: kill -CONT ${pid}; else `),
  );
  assert.match(complex.must("partita", ["explain", id]), said);
  const status = complex.run("partita", ["status"]);
  assert.match(status.stdout, said);
  assert.equal(status.status, 1);
  complex.qmgr("set server sched_silence_timeout = 4");
  await complex.untilJob(id, "F");
  assert.notEqual(complex.schedPid("default"), pid);
  assert.equal(sched().comment, null);
  assert.match(complex.log("server_logs"), /;default;ended with signal SIGKILL; it is started again at once/);
});

test("a scheduler that goes on before it is killed connects again, and runs what waits", async () => {
  complex.qmgr("set server sched_silence_timeout = 6");
  const pid = complex.schedPid("default") as number;
  signal(pid, "SIGSTOP");
  const id = complex.submit(["--", "/bin/true"]);
  await until("it is down", () => sched().state === "down");
  complex.qmgr("set server sched_silence_timeout = 600");
  signal(pid, "SIGCONT");
  await complex.untilJob(id, "F");
  complex.qmgr("set server sched_silence_timeout = 6");
  assert.equal(complex.schedPid("default"), pid);
  assert.equal(sched().comment, null);
});

test("a scheduler that was stopped when its server was killed is noticed and replaced by the next server", async () => {
  const pid = complex.schedPid("default") as number;
  signal(pid, "SIGSTOP");
  process.kill(complex.pid("server") as number, "SIGKILL");
  await until("the server has ended", () => complex.pid("server") === null);
  complex.must("pbs_server", []);
  const id = complex.submit(["--", "/bin/true"]);
  await complex.untilJob(id, "F");
  assert.notEqual(complex.schedPid("default"), pid);
});

test("SIGKILL while stopped: server, mom and scheduler come back, waiting commands end, the running job goes on and what waits runs", async () => {
  const running = complex.submit(["--", "/bin/sleep", "1000"]);
  await complex.untilJob(running, "R");
  const [server, mom, default_sched] = [complex.pid("server"), complex.pid("mom"), complex.schedPid("default")] as [number, number, number];
  for (const pid of [default_sched, mom, server]) signal(pid, "SIGSTOP");
  const before = connections();
  const qdel = begin("qdel", ["99"]);
  const qsub = begin("qsub", ["--", "/bin/true"]);
  await until("both are in the server's queue of connections", () => connections() >= before + 2);
  for (const pid of [default_sched, mom, server]) signal(pid, "SIGKILL");
  for (const { status, stderr } of [await qdel.ended, await qsub.ended]) {
    assert.match(stderr, /^Communication failure\.\n/);
    assert.notEqual(status, 0);
  }
  await until(
    "all have ended",
    () => complex.pid("server") === null && complex.pid("mom") === null && complex.schedPid("default") === null,
  );
  complex.start();
  const id = complex.submit(["--", "/bin/true"]);
  await complex.untilJob(id, "F");
  assert.deepEqual([complex.job(running).job_state, complex.job(running).run_count], ["R", 1]);
  complex.must("qdel", [running]);
  await complex.untilJob(running, "F");
});

test("a stopped server: questions end after a time, what changes something waits and is done once, status and stop know", async () => {
  const pid = complex.pid("server") as number;
  const server = /^PBS_SERVER=(.*)$/m.exec(readFileSync(join(complex.home, "pbs.conf"), "utf8"))?.[1] ?? "";
  const silent = (command: string): string => `${command}: server ${server} does not answer, still waiting\n`;
  signal(pid, "SIGSTOP");
  const impatient = { PARTITA_SERVER_NOTICE: "1", PARTITA_SERVER_TIMEOUT: "3" };
  const qsub = begin("qsub", ["-N", "once", "--", "/bin/true"], impatient);
  const qstat = await begin("qstat", [], impatient).ended;
  assert.deepEqual(qstat, {
    status: 255,
    stdout: "",
    stderr: `${silent("qstat")}Communication failure.\nqstat: cannot connect to server ${server} (errno=15010)\n`,
  });
  const explain = await begin("partita", ["explain", "1"], impatient).ended;
  assert.deepEqual([explain.status, explain.stderr.startsWith(`${silent("partita")}partita: Communication failure.`)], [1, true]);
  const status = complex.run("partita", ["status"]);
  assert.match(status.stdout, /the server does not answer\n/);
  assert.match(status.stdout, new RegExp(`pbs_server +pid ${pid}, stopped: kill -CONT ${pid} continues it\n`));
  assert.equal(status.status, 1);
  const started = complex.run("partita", ["start"]);
  assert.deepEqual([started.status, started.stderr.includes(`pbs_server (pid ${pid}) is stopped`)], [1, true]);
  await until("qsub tells", () => qsub.seen.stderr !== "");
  signal(pid, "SIGCONT");
  const submitted = await qsub.ended;
  assert.deepEqual([submitted.status, submitted.stderr], [0, silent("qsub")]);
  await complex.untilJob(submitted.stdout.trim(), "F");
  assert.equal(Object.values(complex.jobs()).filter((job) => job["Job_Name"] === "once").length, 1);
  for (const stopped_pid of [pid, complex.pid("mom") as number]) signal(stopped_pid, "SIGSTOP");
  complex.halt();
  assert.deepEqual([complex.pid("server"), complex.pid("mom")], [null, null]);
});
