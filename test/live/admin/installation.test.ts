// The life of an installation in system mode: its files, an upgrade while jobs run, and its removal.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { complexConf } from "#admin/complex/complex-home.ts";
import { stopDaemons } from "#admin/complex/daemons.ts";
import { fromTemplate } from "#admin/installation/install.ts";
import { startComplex, until } from "../complex.ts";
import { ROOT } from "../shared.ts";

const partita = join(ROOT, "bin", "partita");
const isRoot = process.geteuid?.() === 0;

type Ran = { readonly status: number | null; readonly out: string; readonly err: string };
function run(program: string, args: readonly string[], env: NodeJS.ProcessEnv = process.env): Ran {
  const { status, stdout, stderr } = spawnSync(program, args, { encoding: "utf8", env });
  return { status, out: stdout, err: stderr };
}

test("an installation: what site tools look for, upgraded without harm to a running job, uninstalled without a rest", {
  skip: isRoot ? false : "needs root",
}, async () => {
  const complex = await startComplex({ mode: "system" });
  try {
    const exec = join(complex.home, "..", "opt");
    const call = (...args: string[]): Ran => run(partita, [...args, "--home", complex.home]);
    assert.equal(run(join(exec, "sbin/pbsfs"), ["--version"]).status, 0);
    assert.equal(run(join(exec, "bin/pbs_sleep"), ["0"]).status, 0);
    const probe = run(join(exec, "sbin/pbs_probe"), ["-v"], { ...process.env, PBS_CONF_FILE: join(complex.home, "pbs.conf") });
    assert.match(probe.out, /^ok +the server answers$/m, probe.err);
    assert.equal(run(join(exec, "sbin/pbs_probe"), ["-x"]).status, 1);
    const python = (code: string): Ran =>
      run("python3", ["-c", code], { ...process.env, PYTHONPATH: join(exec, "lib/python"), PYTHONDONTWRITEBYTECODE: "" });
    assert.equal(python("import pbs; print(pbs.JOB_STATE_HELD is not None)").out, "True\n");
    assert.match(python("import pbs_ifl").err, /ImportError: pbs_ifl needs the C library libpbs, which Partita does not have yet/);
    for (const page of ["man1/qsub.1B", "man1/partita.1B", "man8/pbs_server.8B"])
      assert.match(readFileSync(join(exec, "share/man", page), "utf8"), /^\.TH (?:QSUB|PARTITA|PBS_SERVER) [18]B /, page);

    complex.qmgr("set server acl_roots+=root@*", "set server job_history_enable=True");
    const id = complex.submit(["--", "/bin/sleep", "600"]);
    await complex.untilJob(id, "R");
    chmodSync(complex.pbsHome, 0o775);
    assert.match(call("doctor").out, /^FAULT +PBS_HOME is not safe: \S+ can be written by group or others: the daemons do not start\./m);
    const server = complex.pid("server");
    assert.match(call("upgrade").err, /^partita: PBS_HOME is not safe: .*: the new daemons would not start, nothing was changed\n$/);
    assert.equal(complex.pid("server"), server);
    chmodSync(complex.pbsHome, 0o755);
    const before = { server: complex.pid("server"), mom: complex.pid("mom"), comm: complex.pid("comm") };
    const again = run(partita, ["init", "--system", "--prefix", exec, "--home", complex.home]);
    assert.match(again.out, /^pbs_comm, pbs_mom, pbs_server still run the programs of before\. partita upgrade restarts/m);
    assert.doesNotMatch(again.out, /Start it/);
    const upgraded = call("upgrade");
    assert.equal(upgraded.status, 0, upgraded.err);
    assert.match(
      upgraded.out,
      /^The store is saved: (\S+)\nPrograms of partita \S+ are in \S+\.\nRestarted pbs_comm, pbs_server\.\npbs_mom has jobs and goes on /,
    );
    assert.ok(existsSync(/saved: (\S+)/.exec(upgraded.out)?.[1] as string));
    assert.notEqual(complex.pid("server"), before.server);
    assert.notEqual(complex.pid("comm"), before.comm);
    assert.equal(complex.pid("mom"), before.mom);
    assert.equal(complex.job(id).job_state, "R");
    assert.match(run(join(exec, "bin/partita"), ["upgrade", "--home", complex.home]).err, /this is the installed program itself/);
    complex.must("qdel", [id]);
    await complex.untilJob(id, "F");
    // Only PBS_CONF_FILE names the complex: this complex is upgraded, and nothing is installed elsewhere.
    rmSync(join(exec, "bin/pbs_sleep"));
    const named = run(partita, ["upgrade"], { ...process.env, PBS_CONF_FILE: join(complex.home, "pbs.conf") });
    assert.match(named.out, /^Restarted pbs_comm, pbs_mom, pbs_server\.$/m, named.err);
    assert.ok(existsSync(join(exec, "bin/pbs_sleep")));

    assert.match(call("uninstall").err, /^partita: pbs_comm, pbs_mom, pbs_server, pbs_sched default still run: stop them first/);
    assert.equal(call("stop").status, 0);
    writeFileSync(join(exec, "bin/site_tool"), "#!/bin/sh\n");
    const removed = call("uninstall");
    assert.match(
      removed.out,
      /^Removed: the programs in \S+\nKept: \S+pbs\.conf and \S+pbs, with jobs, logs and configuration/,
      removed.err,
    );
    assert.deepEqual(readdirSync(exec), ["bin"], "what somebody else put there stays");
    assert.deepEqual(readdirSync(join(exec, "bin")), ["site_tool"]);
    assert.ok(existsSync(join(complex.pbsHome, "server_priv/partita.db")));
    assert.match(removed.out, /^Remove them, too, from a checkout: {2}bin\/partita uninstall --purge --home \S+$/m);
    assert.equal(call("uninstall", "--purge").status, 0);
    assert.ok(!existsSync(complex.pbsHome));
  } finally {
    await complex.stop();
  }
});

test("a mom that an upgrade ends leaves a job that started in the last moment to the next mom, and takes an idle starter with it", async () => {
  const complex = await startComplex({ mode: "user" });
  try {
    complex.qmgr("set server job_history_enable=True");
    const conf = complexConf(complex.home);
    const leave = (): Promise<unknown> => stopDaemons(conf, () => undefined, ["mom"], "SIGINT");
    const id = complex.submit(["--", "/bin/sleep", "600"]);
    await complex.untilJob(id, "R");
    const starter = complex.pid("starter");
    await leave();
    assert.deepEqual([complex.pid("mom"), complex.pid("starter")], [null, starter]);
    complex.start();
    assert.deepEqual([complex.job(id).job_state, complex.job(id).run_count], ["R", 1]);
    complex.must("qdel", [id]);
    assert.equal((await complex.untilJob(id, "F")).Exit_status, 271);
    await leave();
    await until("the idle starter has ended", () => complex.pid("starter") === null);
  } finally {
    await complex.stop();
  }
});

test("a complex in user mode goes as a whole, and only when that is asked for", async () => {
  const complex = await startComplex({ mode: "user" });
  try {
    const call = (...args: string[]): Ran => run(partita, [...args, "--home", complex.home]);
    assert.match(call("uninstall", "--purge").err, /still run: stop them first/);
    assert.match(call("upgrade").out, /^The store is saved: \S+\nRestarted pbs_comm, pbs_mom, pbs_server\.$/m);
    complex.halt();
    assert.match(call("doctor").out, /^ok +\S+pbs_environment: jobs find the commands of PBS$/m);
    writeFileSync(join(complex.pbsHome, "pbs_environment"), "PATH=/usr/bin:/bin\n");
    assert.match(call("doctor").out, /^warning \S+: jobs may not find qsub: put \S+bin into its PATH\nwarning .* add PBS_CONF_FILE=\S+$/m);
    assert.match(call("uninstall").err, /consists of \S+ and \S+pbs\.conf only: say --purge/);
    assert.equal(call("uninstall", "--purge").status, 0);
    assert.ok(!existsSync(complex.home));
    // A foreign directory is not removed, whatever pbs.conf says.
    mkdirSync(join(complex.home, "precious"), { recursive: true });
    writeFileSync(join(complex.home, "pbs.conf"), `PBS_HOME=${complex.home}/precious\nPBS_EXEC=${ROOT}\nPBS_SERVER=x\nPARTITA_MODE=user\n`);
    assert.match(call("uninstall", "--purge").err, /does not look like a PBS_HOME/);
    assert.ok(statSync(join(complex.home, "precious")).isDirectory());
  } finally {
    await complex.stop();
  }
});

test("login files: PBS comes into PATH and MANPATH once, sbin for root", () => {
  const text = fromTemplate("pbs.sh.in", "/opt/pbs", "/etc/pbs.conf").toString();
  for (const shell of ["sh", "bash"]) {
    const input = `${text}\n${text}\nprintf '%s\\n' "$PATH" "$MANPATH"\n`;
    const { stdout, stderr } = spawnSync(shell, ["-u"], { input, encoding: "utf8", env: { PATH: "/usr/bin:/bin" } });
    assert.equal(stdout, `/usr/bin:/bin:/opt/pbs/bin${isRoot ? ":/opt/pbs/sbin" : ""}\n:/opt/pbs/share/man\n`, stderr);
  }
});
