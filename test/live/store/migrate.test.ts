// `partita store`, `partita backup` and `partita restore` with a store in PostgreSQL.

import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { type Complex, startComplex } from "../complex.ts";
import { ROOT } from "../shared.ts";
import { LACK_OF_POSTGRES, type Postgres, startPostgres } from "./postgres-bed.ts";

const how = { skip: LACK_OF_POSTGRES };
let postgres: Postgres;
let complex: Complex;

before(async () => {
  if (LACK_OF_POSTGRES !== false) return;
  postgres = startPostgres();
  complex = await startComplex({ files: { "server_priv/database.conf": postgres.conf() } });
  complex.qmgr("set server job_history_enable=True", "set node @default resources_available.ncpus=8", "create resource lic type=long");
  await complex.untilJob(complex.submit(["-J", "1-3", "--", "/bin/true"]), "F");
  for (let count = 0; count < 3; count++) complex.submit(["-h", "-l", "lic=1"], { input: `#!/bin/sh\necho ${count} 'ü "\\'\n` });
});
after(async () => {
  await complex?.stop();
  postgres?.remove();
});

const partita = (...args: readonly string[]) =>
  spawnSync(join(ROOT, "bin", "partita"), [...args, "--home", complex.home], { encoding: "utf8" });
function must(...args: readonly string[]): string {
  const { status, stdout, stderr } = partita(...args);
  assert.equal(status, 0, `partita ${args.join(" ")}: ${stdout}${stderr}`);
  return stdout;
}
/** Everything that qstat and qmgr show, without what changes with time. */
const shown = (): string =>
  [complex.must("qstat", ["-x", "-t", "-f"]), complex.must("qmgr", ["-c", "print server"]), complex.must("pbsnodes", ["-a"])]
    .join("\n")
    .replaceAll(/^\s+(eligible_time|last_state_change_time|last_used_time|resources_available\.mem) = .*$/gm, "");
const priv = (): string => join(complex.pbsHome, "server_priv");

test("a store moves to PostgreSQL and back, and everything is as before", how, () => {
  const before = shown();
  assert.match(
    must("store", "status"),
    /^store {5}SQLite: .*partita\.db\nsize {6}[\d.]+ MiB, \d+ commits\njobs {6}3 not finished, 4 finished\n$/,
  );
  assert.match(partita("store", "migrate", "postgres").stderr, /the server runs \(pid \d+\): stop it first/);
  complex.halt();
  const told = must("store", "migrate", "postgres");
  assert.match(
    told,
    /Copied and compared: 3 jobs with 3 scripts, 4 finished jobs, \d+ other objects\.\nThe store is in PostgreSQL .*\/partita\.partita\. The former one: .*partita\.db\.before-/,
  );
  assert.match(readFileSync(join(complex.home, "pbs.conf"), "utf8"), /^PARTITA_STORE=postgres$/m);
  assert.equal(existsSync(join(priv(), "partita.db")), false);
  assert.match(partita("store", "migrate", "postgres").stderr, /the store is in PostgreSQL already/);
  complex.start();
  assert.equal(shown(), before);
  assert.match(
    must("store", "status"),
    /^store {5}PostgreSQL: .*\n.*\njobs {6}3 not finished, 4 finished\nused by {3}\S+, pid \d+, term \d+\n$/,
  );
  assert.equal(JSON.parse(must("store", "status", "--json")).jobs, 3);
  const id = complex.submit(["-h", "--", "/bin/true"]);
  complex.halt();
  assert.match(must("store", "migrate", "sqlite"), /Copied and compared: 4 jobs with 3 scripts, 4 finished jobs/);
  complex.start();
  complex.must("qdel", [id]);
  assert.equal(shown().length > 0, true);
  assert.match(must("store", "status"), /SQLite/);
  // The former store in the database is not overwritten.
  complex.halt();
  assert.match(
    partita("store", "migrate", "postgres").stderr,
    /has a store already, with 4 jobs and 4 finished ones: choose another schema/,
  );
  postgres.sql("DROP SCHEMA partita CASCADE");
  complex.start();
});

test("a move that is killed at any moment leaves a whole store, and can be repeated", how, async () => {
  const before = shown();
  for (const wait_ms of [300, 700, 1200, 2000, 3_600_000]) {
    complex.halt();
    const child = spawn(join(ROOT, "bin", "partita"), ["store", "migrate", "postgres", "--home", complex.home], {
      stdio: "ignore",
      detached: true,
    });
    const ended = new Promise<number | null>((resolve) => child.once("close", resolve));
    const killing = setTimeout(() => {
      try {
        process.kill(-(child.pid as number), "SIGKILL");
      } catch {
        // It has ended.
      }
    }, wait_ms);
    const status = await ended;
    clearTimeout(killing);
    complex.start();
    assert.equal(shown(), before, `killed after ${wait_ms} ms`);
    if (status === 0) break;
    if (!/PARTITA_STORE=postgres/.test(readFileSync(join(complex.home, "pbs.conf"), "utf8"))) {
      // The new store may have got its place before the kill: it was never used.
      complex.halt();
      if (postgres.sql("SELECT count(*) FROM pg_namespace WHERE nspname = 'partita'") === "1") postgres.sql("DROP SCHEMA partita CASCADE");
      complex.start();
    }
  }
  assert.match(must("store", "status"), /PostgreSQL/);
});

test("a backup is made while the server works, and restored into the database; the former store is kept", how, async () => {
  const before = shown();
  const file = join(complex.home, "monday.db");
  const submitting = spawn(complex.command("qsub"), ["--batch", "-"], {
    env: complex.env(),
    cwd: complex.work(),
    stdio: ["pipe", "ignore", "ignore"],
  });
  const ended = new Promise((resolve) => submitting.once("close", resolve));
  assert.equal(must("backup", file), `Saved to ${file}.\n`);
  submitting.stdin.end("-h -- /bin/true\n".repeat(300));
  await ended;
  assert.match(partita("backup", file).stderr, /does not overwrite a file/);
  assert.match(partita("restore", file).stderr, /the server runs/);
  complex.halt();
  const told = must("restore", file);
  assert.match(told, /Jobs: 3 not finished, 5 finished\.\nThe store of before: schema partita_before_\d{8}t\d{6}z of the database/);
  complex.start();
  assert.equal(shown(), before);
  const kept = /schema (\w+) of/.exec(told)?.[1];
  assert.equal(postgres.sql(`SELECT count(*) FROM ${kept}.jobs`), "303");
  // No number is given twice.
  const id = complex.submit(["-h", "--", "/bin/true"]);
  assert.ok(Number.parseInt(id, 10) > 303, id);
  complex.must("qdel", [id]);
  rmSync(file);
  assert.deepEqual(
    readdirSync(priv()).filter((name) => /restored|incoming|partial/.test(name)),
    [],
  );
});

test("doctor examines the database", how, () => {
  assert.match(partita("doctor").stdout, /FAULT +PostgreSQL .*: fsync is off: acknowledged jobs are lost/);
});
