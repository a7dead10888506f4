// A complex whose server has its store in PostgreSQL: jobs, schedulers, history, restarts, and a database that goes away.

import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { type Complex, isAlive, startComplex, until } from "../complex.ts";
import { ROOT } from "../shared.ts";
import { LACK_OF_POSTGRES, PASSWORD, type Postgres, startPostgres } from "./postgres-bed.ts";

const how = { skip: LACK_OF_POSTGRES };
let postgres: Postgres;
let complex: Complex;

before(async () => {
  if (LACK_OF_POSTGRES !== false) return;
  postgres = startPostgres();
  complex = await startComplex({
    conf: { PARTITA_STORE: "postgres" },
    files: { "server_priv/database.conf": postgres.conf("patience = 5") },
  });
  complex.qmgr("set server job_history_enable=True", "set node @default resources_available.ncpus=8");
});
after(async () => {
  await complex?.stop();
  postgres?.remove();
});

const kill = async (pid: number): Promise<void> => {
  process.kill(pid, "SIGKILL");
  await until(`${pid} gone`, () => !isAlive(pid));
};
const rows = (table: string): number => Number(postgres.sql(`SELECT count(*) FROM partita.${table}`));

test("jobs run under two schedulers, and the history is in the database", how, async () => {
  complex.qmgr(
    "create sched s1 partition=p1,scheduling=True",
    "create queue q1 queue_type=execution,partition=p1,enabled=True,started=True",
  );
  const script = '#!/bin/sh\necho from the script \\\\ "quoted"\nexit 3\n';
  const id = complex.submit(["-N", "one", "-j", "oe"], { input: script });
  const job = await complex.untilJob(id, "F");
  assert.equal(job.Exit_status, 3);
  const array = complex.submit(["-J", "1-3", "--", "/bin/true"]);
  await complex.untilJob(array, "F");
  const held = complex.submit(["-h", "-q", "q1", "--", "/bin/true"]);
  assert.deepEqual([rows("jobs"), rows("scheds"), rows("history")], [1, 2, 5]);
  complex.must("qdel", [held]);
});

test("a killed server finds everything again, and running jobs go on", how, async () => {
  const running = complex.submit(["--", "/bin/sleep", "600"]);
  await complex.untilJob(running, "R");
  const waiting = complex.submit(["-h", "-v", "A=ü", "--", "/bin/true"]);
  const before = complex.job(waiting);
  await kill(complex.pid("server") as number);
  complex.start();
  assert.equal(complex.job(running).job_state, "R");
  assert.deepEqual(complex.job(waiting), before);
  complex.must("qrls", [waiting]);
  await complex.untilJob(waiting, "F");
  complex.must("qdel", [running]);
  await complex.untilJob(running, "F");
});

test("a database that is killed and started again interrupts nothing", how, async () => {
  const ids: string[] = [];
  const submitting = (async () => {
    for (let count = 0; count < 5; count++) {
      const child = spawn(complex.command("qsub"), ["--batch", "-"], {
        env: complex.env(),
        cwd: complex.work(),
        stdio: ["pipe", "pipe", "inherit"],
      });
      let printed = "";
      child.stdout.setEncoding("utf8").on("data", (text) => {
        printed += text;
      });
      child.stdin.end("-h -- /bin/true\n".repeat(20));
      assert.equal(await new Promise((resolve) => child.once("close", resolve)), 0);
      ids.push(...printed.trim().split("\n"));
    }
  })();
  for (let round = 0; round < 2; round++) {
    const before = ids.length;
    await until("submissions flow", () => ids.length > before || ids.length === 100);
    postgres.kill();
    postgres.start();
  }
  await submitting;
  assert.equal(new Set(ids).size, 100);
  assert.equal(rows("jobs"), 100);
  complex.must("qdel", ids);
  await until("they are gone", () => rows("jobs") === 0);
});

test("while the database is away for long, requests get the reason; then the server goes on by itself", how, async () => {
  const pid = complex.pid("server");
  postgres.stop("immediate");
  const refused = complex.run("qsub", ["--", "/bin/true"]);
  assert.notEqual(refused.status, 0);
  assert.match(refused.stderr, /PostgreSQL \/.*\/partita\.partita: the database cannot be reached/);
  postgres.start();
  await until("it accepts jobs again", () => complex.run("qsub", ["--", "/bin/true"]).status === 0);
  assert.equal(complex.pid("server"), pid);
  assert.match(complex.log("server_logs"), /waiting for the database: .*cannot be reached/);
  assert.match(complex.log("server_logs"), /partita\.partita answers again/);
  assert.match(complex.log("server_logs"), /the store can be written again/);
});

test("a server can be stopped while its database is away", how, async () => {
  postgres.stop("immediate");
  complex.halt();
  assert.equal(complex.pid("server"), null);
  postgres.start();
  complex.start();
});

test("a start waits for the database and says so", how, async () => {
  complex.halt();
  postgres.stop();
  const starting = spawn(join(ROOT, "bin", "partita"), ["start", "--home", complex.home], { stdio: ["ignore", "pipe", "pipe"] });
  let told = "";
  starting.stderr.setEncoding("utf8").on("data", (text) => {
    told += text;
  });
  const ended = new Promise((resolve) => starting.once("close", resolve));
  await until("the reason is told", () => /^pbs_server: waiting for the database: PostgreSQL .* cannot be reached/m.test(told));
  postgres.start();
  assert.equal(await ended, 0, told);
});

test("a server whose database is taken by another one ends at once", how, async () => {
  const pid = complex.pid("server") as number;
  postgres.sql("UPDATE partita.leader SET term = term + 1, holder = 'other', instance = 'other', host = 'otherhost', pid = 4711");
  await until("the server has ended", () => !isAlive(pid));
  assert.match(complex.log("server_logs"), /the server ends at once: .*the server on otherhost \(pid 4711\) has taken this database/);
  // Nothing more is heard of the other server.
  complex.start();
  assert.match(complex.log("server_logs"), /waiting up to 7 s for a sign of life: .* was used by the server on otherhost \(pid 4711\)/);
});

test("another complex cannot use the database meanwhile", how, async () => {
  const other = await startComplex({ files: { "server_priv/database.conf": postgres.conf() } });
  try {
    other.halt();
    const { status, stderr } = spawnSync(
      "sh",
      ["-c", `echo PARTITA_STORE=postgres >>"$1/pbs.conf"; exec "$0" start --home "$1"`, join(ROOT, "bin", "partita"), other.home],
      {
        encoding: "utf8",
      },
    );
    assert.equal(status, 1);
    // Its mark names its own store.
    assert.match(stderr, /this is the store of another complex.*partita store migrate/);
  } finally {
    await other.stop();
  }
  assert.notEqual(complex.pid("server"), null);
  complex.must("qstat", ["-B"]);
});

test("the password is in no log, no command line and no environment", how, () => {
  const pid = complex.pid("server") as number;
  assert.doesNotMatch(complex.log("server_logs"), /a secret/);
  for (const file of ["cmdline", "environ"]) assert.equal(readFileSync(`/proc/${pid}/${file}`, "latin1").includes("a secret"), false, file);
  assert.ok(PASSWORD.startsWith("a secret"));
});

test("the driver of PostgreSQL is in a bundle that only a server with this store loads", { skip: false }, () => {
  const dist = join(ROOT, "dist");
  const having = readdirSync(dist).filter(
    (name) => /\.(mjs|cjs)$/.test(name) && readFileSync(join(dist, name), "utf8").includes("SCRAM-SHA-256"),
  );
  assert.deepEqual(having, ["store-postgres-postgres-store.mjs"]);
});
