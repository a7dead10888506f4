// Daemons stopped by SIGSTOP: what users are told meanwhile, and what is right again when they go on.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type Complex, startComplex, until } from "./complex.ts";

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
    // It has ended meanwhile.
  }
  if (name === "SIGSTOP") stopped.add(pid);
}

type SchedStatus = { readonly name: string; readonly state: string; readonly comment: string | null };
const sched = (): SchedStatus => {
  const { scheds } = JSON.parse(complex.run("partita", ["status", "--json"]).stdout) as { readonly scheds: readonly SchedStatus[] };
  return scheds.find(({ name }) => name === "default") as SchedStatus;
};

test("a stopped scheduler is down, jobs and status say why, it is killed, and the next one runs the job", async () => {
  const pid = complex.schedPid("default") as number;
  signal(pid, "SIGSTOP");
  const id = complex.submit(["--", "/bin/true"]);
  await until("it is down", () => sched().state === "down");
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
  signal(pid, "SIGCONT");
  await complex.untilJob(id, "F");
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
