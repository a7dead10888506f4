// Server, scheduler and mom are each killed or stopped while jobs run, and started again: jobs continue, end with their own
// status, and run once.

import assert from "node:assert/strict";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { type Complex, type Daemon, isAlive, type JobRecord, startComplex, until } from "../complex.ts";

let complex: Complex;

before(async () => {
  complex = await startComplex();
  complex.qmgr("set server job_history_enable=True", "set node @default resources_available.ncpus=16");
});
after(() => complex.stop());

/** A job that runs until it is told its exit status, and records each of its runs. */
class Patient {
  readonly id: string;
  readonly #file: string;
  static #count = 0;

  constructor() {
    this.#file = join(complex.work(), `patient${++Patient.#count}`);
    const script = `echo run $$ >> ${this.#file}.runs; while ! read status < ${this.#file}.end 2>/dev/null; do sleep 0.05; done; exit $status`;
    this.id = complex.submit(["-r", "y", "--", "/bin/sh", "-c", script]);
  }
  /** pids of its runs so far */
  runs(): readonly number[] {
    const file = `${this.#file}.runs`;
    return existsSync(file) ? [...readFileSync(file, "utf8").matchAll(/^run (\d+)\n/gm)].map((match) => Number(match[1])) : [];
  }
  async started(): Promise<number> {
    await complex.untilJob(this.id, "R");
    return until(`a run of ${this.id}`, () => this.runs()[0]);
  }
  end(status: number): void {
    writeFileSync(`${this.#file}.end`, `${status}\n`);
  }
  async finished(): Promise<JobRecord> {
    return complex.untilJob(this.id, "F");
  }
}

const processOf = (daemon: Daemon | "sched"): number =>
  (daemon === "sched" ? complex.schedPid("default") : complex.pid(daemon)) ?? assert.fail(`${daemon} does not run`);

async function killed(...daemons: readonly (Daemon | "sched")[]): Promise<void> {
  const pids = daemons.map(processOf);
  for (const pid of pids) process.kill(pid, "SIGKILL");
  await until("the processes gone", () => !pids.some(isAlive));
}

/** The accounting records of one job by type. */
function records(id: string): string {
  return [...complex.log("server_priv/accounting").matchAll(/^[^;]*;(.);([^;]*);/gm)]
    .filter(([, , about]) => about === id)
    .map(([, type]) => type)
    .join("");
}

const CRASHES: readonly (readonly (Daemon | "sched")[])[] = [["server"], ["sched"], ["mom"], ["server", "mom"], ["server", "sched", "mom"]];

for (const daemons of CRASHES) {
  const what = daemons.join(", ");
  test(`jobs survive a kill -9 of ${what}`, async () => {
    const [first, second] = [new Patient(), new Patient()];
    const pids = [await first.started(), await second.started()];
    const server = processOf("server");
    await killed(...daemons);
    // One job ends while a daemon is down, the other after everything is back.
    first.end(3);
    await until("its end", () => !isAlive(pids[0] as number));
    assert.ok(isAlive(pids[1] as number));
    complex.start();
    const third = new Patient();
    await third.started();
    assert.equal((await first.finished()).Exit_status, 3);
    second.end(4);
    third.end(0);
    assert.deepEqual([(await second.finished()).Exit_status, (await third.finished()).Exit_status], [4, 0]);
    for (const job of [first, second, third]) {
      assert.equal(job.runs().length, 1, `runs of ${job.id}`);
      assert.equal(complex.job(job.id).run_count, 1);
      assert.equal(records(job.id), "QSE", `accounting of ${job.id}`);
    }
    assert.equal(processOf("server") !== server, daemons.includes("server"));
  });
}

test("what was queued, held and configured is there after a kill -9 of the server", async () => {
  complex.qmgr("create queue kept queue_type=e,enabled=t,started=f,Priority=7");
  const queued = complex.submit(["-q", "kept", "-l", "walltime=0:10:00", "-v", "A=b", "--", "/bin/true"]);
  const held = complex.submit(["-h", "--", "/bin/true"]);
  const before = [complex.must("qstat", ["-f", queued, held]), complex.qmgr("print server")];
  await killed("server");
  complex.start();
  assert.deepEqual([complex.must("qstat", ["-f", queued, held]), complex.qmgr("print server")], before);
  complex.must("qdel", [queued, held]);
  complex.qmgr("delete queue kept");
});

test("qterm leaves jobs running and schedulers up, which the next server adopts", async () => {
  const job = new Patient();
  await job.started();
  const [server, sched] = [processOf("server"), processOf("sched")];
  complex.must("qterm", []);
  await until("the server gone", () => !isAlive(server));
  const refused = complex.run("qstat", []);
  assert.equal(refused.status, 255);
  assert.match(refused.stderr, /^Connection refused\nqstat: cannot connect to server \S+ \(errno=15010\)\n$/);
  assert.ok(isAlive(sched));
  complex.start();
  assert.equal(processOf("sched"), sched);
  job.end(5);
  assert.equal((await job.finished()).Exit_status, 5);
  assert.equal(job.runs().length, 1);
});

test("qterm -s stops the schedulers too, and those with scheduling=True come back with the server", async () => {
  complex.qmgr("create sched s1 partition=p1", "set sched s1 scheduling=True", "create sched s2 partition=p2");
  const pids = [processOf("server"), processOf("sched"), await until("scheduler s1", () => complex.schedPid("s1") ?? undefined)];
  complex.must("qterm", ["-s"]);
  await until("all of them gone", () => !pids.some(isAlive));
  complex.start();
  const state = (name: string): string | undefined => /state = (\w+)/.exec(complex.qmgr(`list sched ${name} state`))?.[1];
  await until("the schedulers idle", () => state("default") === "idle" && state("s1") === "idle");
  assert.equal(state("s2"), "down");
});

test("jobs go on when partita stops and starts only after the mom was told to leave them: SIGINT", async () => {
  const job = new Patient();
  await job.started();
  const mom = processOf("mom");
  process.kill(mom, "SIGINT");
  await until("the mom gone", () => !isAlive(mom));
  complex.start();
  job.end(6);
  assert.equal((await job.finished()).Exit_status, 6);
});

test("a starter that is killed loses its jobs: they run again, and a job that may not ends", async () => {
  const job = new Patient();
  await job.started();
  const once = complex.submit(["-r", "n", "--", "/bin/sleep", "1000"]);
  await complex.untilJob(once, "R");
  await killed("starter", "mom");
  complex.start();
  await until("a second run", () => job.runs().length === 2);
  job.end(0);
  const done = await job.finished();
  assert.deepEqual([done.Exit_status, done.run_count], [0, 2]);
  await complex.untilJob(once, "F");
  const [first] = job.runs();
  assert.ok(!isAlive(first as number), "the first run is gone");
});
