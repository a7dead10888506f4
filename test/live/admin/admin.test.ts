// `partita` and the init script on real complexes: the properties that tools of sites expect of an installation
// (docs/reference/files.md 9).

import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { type Complex, startComplex, until } from "../complex.ts";
import { ROOT } from "../shared.ts";

const partita = join(ROOT, "bin", "partita");
const isRoot = process.geteuid?.() === 0;
const made: string[] = [];
after(() => {
  for (const dir of made) rmSync(dir, { recursive: true, force: true });
});

function scratch(): string {
  const dir = mkdtempSync(join(tmpdir(), "partita-admin-"));
  made.push(dir);
  return dir;
}

type Ran = { readonly status: number | null; readonly out: string; readonly err: string };
function run(program: string, args: readonly string[], env: NodeJS.ProcessEnv = process.env): Ran {
  const { status, stdout, stderr } = spawnSync(program, args, { encoding: "utf8", env });
  return { status, out: stdout, err: stderr };
}
const pidIn = (path: string): number => Number.parseInt(readFileSync(path, "utf8"), 10);
/** The words of a process, joined; "" if it does not exist. They are read from /proc, because a fresh machine has no ps. */
const commandOf = (pid: number | string): string => {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ").trim();
  } catch {
    return "";
  }
};
const processesLike = (words: string): string[] =>
  readdirSync("/proc").filter((pid) => /^\d+$/.test(pid) && commandOf(pid).includes(words));
const exists = (pid: number): boolean => existsSync(`/proc/${pid}`);

/** Pid files by the name that their command line must show. */
function pidFiles(home: string): [name: string, pid: number][] {
  return [
    ["pbs_server", pidIn(join(home, "server_priv/server.lock"))],
    ["pbs_sched", pidIn(join(home, "sched_priv/sched.lock"))],
    ["pbs_mom", pidIn(join(home, "mom_priv/mom.lock"))],
    ["pbs_comm", pidIn(join(home, "server_priv/comm.lock"))],
  ];
}

async function inComplex(
  mode: "user" | "system",
  work: (complex: Complex) => Promise<void>,
  conf: Readonly<Record<string, string>> = {},
): Promise<void> {
  const complex = await startComplex({ mode, conf });
  try {
    await work(complex);
  } finally {
    await complex.stop();
  }
}

test("partita: init, start, status, env, stop; each again is harmless or refused with a reason", async () => {
  const dir = join(scratch(), "c");
  const call = (...args: string[]): Ran => run(partita, [...args, "--home", dir]);
  assert.deepEqual(call("start").err, `partita: there is no complex in ${dir}; make one with: partita init --home ${dir}\n`);
  assert.equal(call("init").status, 0);
  assert.match(call("init").err, /holds a complex already/);
  assert.equal(call("status").status, 1);
  const started = call("start");
  assert.equal(started.status, 0, started.err);
  try {
    assert.equal(started.out, "Started pbs_comm, pbs_mom, pbs_server.\n");
    assert.equal(call("start").out, "Everything runs already.\n");
    const report = JSON.parse(call("status", "--json").out) as {
      answers: boolean;
      scheds: { state: string }[];
      nodes: { name: string; state: string }[];
    };
    assert.deepEqual(
      [report.answers, report.scheds.map(({ state }) => state), report.nodes.map(({ state }) => state)],
      [true, ["idle"], ["free"]],
    );
    assert.equal(call("status").status, 0);
    const doctor = call("doctor");
    assert.equal(doctor.status, 0, doctor.out);
    assert.match(doctor.out, /^ok +the server answers$/m);
    const shown = spawnSync("sh", ["-c", `eval "$(${partita} env --home ${dir})"; qstat -B`], { encoding: "utf8" });
    assert.match(shown.stdout, /^Server +Max/);
  } finally {
    const pids = pidFiles(join(dir, "pbs")).map(([, pid]) => pid);
    const stopped = call("stop");
    assert.equal(stopped.out, "Stopped pbs_comm, pbs_mom, pbs_server, pbs_sched default.\n");
    assert.deepEqual(pids.filter(exists), [], "gone, not even zombies, when stop returns");
  }
  assert.equal(call("stop").out, "Nothing was running.\n");
  assert.match(call("status").out, /the server does not answer/);
  assert.equal(call("doctor").status, 1);
});

test("partita: calls and options that are none are refused with status 2", () => {
  const rows: [args: string[], text: RegExp][] = [
    [[], /^partita: a command is missing\nTry partita --help\.\n$/],
    [["strat"], /^partita: .+\nTry partita --help\.\n$/s],
    [["start", "--hmoe", "x"], /^partita: .+\nTry partita start --help\.\n$/s],
    [["backup"], /^partita: an argument is missing\nTry partita backup --help\.\n$/],
    [["status", "--home"], /^partita: --home needs a value\nTry partita status --help\.\n$/],
    [["init", "--home", join(scratch(), "none"), "--vnodes"], /^partita: --vnodes needs a value\nTry partita init --help\.\n$/],
  ];
  for (const [args, text] of rows) {
    const { status, err } = run(partita, args);
    assert.equal(status, 2, args.join(" "));
    assert.match(err, text);
  }
  assert.match(run(partita, ["status", "--home", ""]).err, /^partita: --home: the directory's name is empty\n$/);
  assert.match(run(partita, ["--version"]).out, /^partita \d+\.\d+\.\d+ \(pbs_version = [\d.]+\)\n$/);
  assert.match(run(partita, ["completion"]).out, /complete .* partita/);
  assert.match(run(partita, ["reset", "--home", scratch()]).err, /say --yes/);
});

test("partita stop: a scheduler that has no link to the server just then ends, too", async () => {
  await inComplex("user", async (complex) => {
    await until("the scheduler has its lock", () => existsSync(join(complex.pbsHome, "sched_priv/sched.lock")));
    const sched = pidIn(join(complex.pbsHome, "sched_priv/sched.lock"));
    process.kill(sched, "SIGSTOP");
    try {
      const server = complex.pid("server") as number;
      process.kill(server, "SIGKILL");
      await until("the server is gone", () => !exists(server));
      complex.run("pbs_server", []);
      await until("the new server answers", () => complex.run("qstat", ["-B"]).status === 0);
      const stopping = spawn(partita, ["stop", "--home", complex.home], { stdio: "ignore" });
      const ended = once(stopping, "exit");
      await until("the server is down again", () => complex.pid("server") === null);
      // On a busy machine stop may have lost patience and ended the scheduler.
      if (exists(sched)) process.kill(sched, "SIGCONT");
      assert.deepEqual(await ended, [0, null]);
      assert.ok(!exists(sched));
    } finally {
      if (exists(sched)) process.kill(sched, "SIGCONT");
    }
  });
});

test("a job finds the commands of PBS and its complex, after login files that set PATH anew, too; every name of the machine is local", async () => {
  const body = async (complex: Complex): Promise<void> => {
    // Output_Path contains the machine's name, but the mom has another name: the machine needs no scp to itself.
    assert.match(complex.must("pbsnodes", ["-a"]), /^localhost\n/);
    const id = complex.submit(["-j", "oe", "-o", join(complex.work(), "out"), "-W", "block=true"], {
      input: "#!/bin/sh\nqsub -h -N inner -- /bin/true && qstat -f | grep -c Job_Name\n",
    });
    assert.match(readFileSync(join(complex.work(), "out"), "utf8"), /^2\.\S+\n2$/m, id);
    // A program that is not started by a shell gets its environment from pbs_environment.
    complex.submit(["-j", "oe", "-o", join(complex.work(), "direct"), "-W", "block=true", "--", "qselect", "-N", "inner"]);
    assert.match(readFileSync(join(complex.work(), "direct"), "utf8"), /^2\./m);
  };
  await inComplex("user", body, { PBS_MOM_NODE_NAME: "localhost" });
});

test("pbs_sched -I NAME -d DIR: the scheduler's home is DIR, the server is that of pbs.conf", async () => {
  await inComplex("user", async (complex) => {
    complex.qmgr("create sched s1 partition=p1");
    const dir = scratch();
    for (const name of ["sched_priv", "sched_logs"]) cpSync(join(complex.pbsHome, name), join(dir, `${name}_s1`), { recursive: true });
    rmSync(join(dir, "sched_priv_s1/sched.lock"), { force: true });
    complex.must("pbs_sched", ["-I", "s1", "-d", dir]);
    try {
      await until("the server has adopted it", () => !/state = down/.test(complex.must("qmgr", ["-c", "list sched s1 state"])));
    } finally {
      // The server reports the directories in use; by then the scheduler may hold its lock there.
      const pid = complex.schedPid("s1") ?? pidIn(join(dir, "sched_priv_s1/sched.lock"));
      if (pid > 0) process.kill(pid);
    }
  });
});

test("partita: two complexes of one user live side by side", async () => {
  await inComplex("user", async (one) => {
    await inComplex("user", async (other) => {
      one.must("qmgr", ["-c", "create queue only_here queue_type=execution"]);
      assert.equal(one.run("qstat", ["-Q", "only_here"]).status, 0);
      assert.notEqual(other.run("qstat", ["-Q", "only_here"]).status, 0);
      assert.equal(run(partita, ["stop", "--home", other.home]).status, 0);
      assert.equal(one.run("qstat", ["-B"]).status, 0);
    });
  });
});

test("partita: reset takes everything and kills running jobs", async () => {
  await inComplex("user", async (complex) => {
    complex.must("qmgr", ["-c", "create queue q2 queue_type=execution,enabled=True,started=True"]);
    const mark = `4${process.pid}`;
    const id = complex.must("qsub", ["--", "/bin/sleep", mark]).trim();
    await until("the job runs", () => /job_state = R/.test(complex.run("qstat", ["-f", id]).stdout));
    writeFileSync(join(complex.pbsHome, "sched_priv/sched_config"), "by_queue: False ALL\n");
    const reset = run(partita, ["reset", "--yes", "--home", complex.home]);
    assert.equal(reset.status, 0, reset.err);
    assert.deepEqual(processesLike(`/bin/sleep ${mark}`), []);
    assert.equal(complex.must("qstat", []), "");
    assert.match(complex.must("qstat", ["-Q"]), /^workq .*\n$/m);
    assert.doesNotMatch(complex.must("qstat", ["-Q"]), /^q2 /m);
    assert.match(complex.must("pbsnodes", ["-a"]), /state = free[\s\S]*resources_available\.ncpus = 16/);
    assert.match(complex.must("qmgr", ["-c", "list server job_history_enable"]), /job_history_enable = True/);
    assert.match(readFileSync(join(complex.pbsHome, "sched_priv/sched_config"), "utf8"), /^# sched_config/);
    assert.match(complex.must("qsub", ["--", "/bin/true"]), /^1\./);
  });
});

test("partita sim: the jobs of a running complex go on, from it and from a file", async () => {
  await inComplex("user", async (complex) => {
    const node = /^Name=([^|]+)/m.exec(complex.must("pbsnodes", ["-a", "-F", "dsv"]))?.[1] as string;
    complex.must("qmgr", ["-c", `set node ${node} resources_available.ncpus=2`]);
    const runs = complex.must("qsub", ["-l", "ncpus=2,walltime=1:00:00", "--", "/bin/sleep", "600"]).trim();
    await until("the job runs", () => /job_state = R/.test(complex.run("qstat", ["-f", runs]).stdout));
    const waits = complex.must("qsub", ["-l", "ncpus=2,walltime=0:10:00", "--", "/bin/sleep", "600"]).trim();
    type Played = { readonly from_s: number; readonly jobs: readonly { readonly job: string; readonly start_s: number | null }[] };
    const sim = (...args: readonly string[]): { readonly before: Played; readonly after: Played | null } => {
      const played = run(partita, ["sim", "--json", "--home", complex.home, ...args]);
      assert.equal(played.status, 0, played.err);
      return JSON.parse(played.out);
    };
    const wait = ({ from_s, jobs }: Played): number | null => {
      const start_s = jobs.find(({ job }) => job === waits)?.start_s ?? null;
      return start_s === null ? null : start_s - from_s;
    };
    const { before, after } = sim("--live");
    const asItIs = wait(before);
    assert.ok(asItIs !== null && asItIs > 0 && asItIs <= 3600, String(asItIs));
    assert.equal(after, null);
    const file = join(complex.home, "state.json");
    const saved = run(partita, ["sim", "--home", complex.home, "--save", file]);
    assert.deepEqual([saved.status, saved.out], [0, `Saved to ${file}: 2 jobs, 1 vnodes.\n`], saved.err);
    assert.equal(statSync(file).mode & 0o777, 0o600);
    assert.match(run(partita, ["sim", "--home", complex.home, "--save", file]).err, /^partita: --save: EEXIST/);
    const stopped = sim("--state", file, "--qmgr", "set queue workq started=False");
    assert.ok(wait(stopped.before) !== null);
    assert.ok(stopped.after !== null);
    assert.equal(wait(stopped.after), null);
    assert.match(complex.must("qstat", ["-Q"]), /^workq .* yes yes /m, "nothing has changed in the complex itself");
  });
});

test("partita: backup of a running and of a stopped complex; restore puts it in place of the store, which is kept", async () => {
  await inComplex("user", async (complex) => {
    const call = (...args: string[]): Ran => run(partita, [...args, "--home", complex.home]);
    const hasQueue = (): boolean => complex.run("qstat", ["-Q", "saved"]).status === 0;
    complex.must("qmgr", ["-c", "create queue saved queue_type=execution"]);
    const file = join(scratch(), "backup.db");
    assert.equal(call("backup", file).status, 0);
    assert.match(call("backup", file).err, /does not overwrite/);
    assert.match(call("backup", join(scratch(), "none/x.db")).err, /none\/x\.db: the directory does not exist\n$/);
    assert.equal(statSync(file).mode & 0o077, 0);
    complex.must("qmgr", ["-c", "delete queue saved"]);
    const later = complex.submit(["-h", "--", "/bin/true"]);
    assert.match(call("restore", file).err, /^partita: the server runs \(pid \d+\): stop it first: partita stop\n$/);
    call("stop");
    const second = join(scratch(), "second.db");
    assert.equal(call("backup", second).status, 0);
    assert.equal(statSync(second).mode & 0o077, 0);
    for (const [wrong, why] of [
      [join(complex.home, "pbs.conf"), /pbs\.conf cannot be restored, nothing was changed: the file is damaged or not a store\n$/],
      [join(complex.home, "none"), /is not a file/],
      [complex.home, /is not a file/],
    ] as const)
      assert.match(call("restore", wrong).err, why);

    // An older copy moved into place by hand is not accepted as the present store.
    const store = join(complex.pbsHome, "server_priv/partita.db");
    writeFileSync(store, readFileSync(file), { mode: 0o600 });
    assert.match(call("start").err, /the last \d+ of its commits (?:is|are) missing/);
    writeFileSync(store, readFileSync(second), { mode: 0o600 });

    const restored = call("restore", file);
    assert.match(
      restored.out,
      /^Restored \S+backup\.db\. Jobs: 0 not finished, 0 finished\.\nThe store of before: (\S+)\nStart it: {2}partita start --home \S+\n$/,
      restored.err,
    );
    assert.equal(call("start").status, 0);
    assert.ok(hasQueue());
    assert.notEqual(complex.run("qstat", [later]).status, 0);
    assert.equal(
      Number.parseInt(complex.submit(["-h", "--", "/bin/true"]), 10),
      Number.parseInt(later, 10) + 1,
      "no number is given twice",
    );
    call("stop");
    const kept = /The store of before: (\S+)/.exec(restored.out)?.[1] as string;
    assert.equal(call("restore", kept).status, 0);
    assert.equal(call("start").status, 0);
    assert.ok(!hasQueue());
    assert.equal(complex.run("qstat", [later]).status, 0);
  });
});

test("demo: two schedulers, two partitions, jobs and their output; nothing is left", () => {
  const { status, out, err } = run(partita, ["demo"]);
  assert.equal(status, 0, out + err);
  assert.match(out, /qmgr -c "create sched multi_sched_1"/);
  assert.match(out, /^ {2}default (?:idle|scheduling)\n {2}multi_sched_1 (?:idle|scheduling)$/m);
  assert.equal([...out.matchAll(/ workq +\(\S+\[0\]:ncpus=1\) +exit 0 +\d+ primes from/g)].length, 4, out);
  assert.equal([...out.matchAll(/ wq1 +\(\S+\[1\]:ncpus=1\) +exit 0 +\d+ primes from/g)].length, 4, out);
  // 2262 primes below 20000.
  assert.match(out, /2262 primes from 0 to 19999/);
  const dir = /A complex in user mode in (\S+)/.exec(out)?.[1] ?? "";
  assert.ok(dir !== "" && !existsSync(dir));
});

test("system installation: layout, owners, modes; nothing of the checkout is needed", { skip: isRoot ? false : "needs root" }, async () => {
  await inComplex("system", async (complex) => {
    const exec = join(complex.home, "..", "opt");
    for (const path of [
      "bin/qsub",
      "bin/partita",
      "sbin/pbs_server",
      "sbin/pbs_sched",
      "sbin/pbs_mom",
      "sbin/pbs_comm",
      "libexec/pbs_init.d",
      "libexec/pbs_habitat",
    ]) {
      assert.equal(statSync(join(exec, path)).mode & 0o7777, 0o755, path);
    }
    for (const name of ["pbs_sched_config", "pbs_holidays", "pbs_resource_group", "pbs_dedicated"])
      assert.equal(statSync(join(exec, "etc", name)).mode & 0o7777, 0o644);
    assert.equal(
      run("find", [exec, "(", "!", "-user", "root", "-o", "-perm", "/022", ")", "!", "-type", "l"]).out,
      "",
      "owned by root, writable by nobody else",
    );
    assert.equal(run("find", [exec, "-type", "l"]).out, "", "no links out of the installation");
    const conf = readFileSync(join(complex.home, "pbs.conf"), "utf8");
    assert.doesNotMatch(conf, /^PARTITA_MODE=/m, "keys of PBS alone");
    assert.match(conf, new RegExp(`^PBS_SERVER=${hostname().split(".")[0]}$`, "m"));
    const modes: [path: string, mode: number][] = [
      ["", 0o755],
      ["server_logs", 0o755],
      ["server_priv", 0o750],
      ["server_priv/accounting", 0o755],
      ["sched_priv", 0o750],
      ["sched_logs", 0o755],
      ["comm_logs", 0o755],
      ["mom_logs", 0o755],
      ["mom_priv", 0o751],
      ["mom_priv/jobs", 0o751],
      ["aux", 0o755],
      ["checkpoint", 0o700],
      ["spool", 0o1777],
      ["undelivered", 0o1777],
      ["sock", 0o755],
    ];
    for (const [path, mode] of modes) assert.equal(statSync(join(complex.pbsHome, path)).mode & 0o7777, mode, path);
    for (const [name, pid] of pidFiles(complex.pbsHome)) assert.match(commandOf(pid), new RegExp(name));
    for (const name of readdirSync(join(exec, "lib/partita/dist")).filter((each) => each.endsWith("js"))) {
      assert.ok(!readFileSync(join(exec, "lib/partita/dist", name), "utf8").includes(ROOT), `${name} names the checkout`);
    }
    // An ordinary user can reach the server, which knows the user's name.
    assert.match(complex.must("qstat", ["-B"], { as: "daemon" }), /Active/);
  });
});

test("init script: texts and exit statuses of start, status, stop, restart; single daemons by the environment", {
  skip: isRoot ? false : "needs root",
}, async () => {
  await inComplex("system", async (complex) => {
    const script = join(complex.home, "..", "opt", "libexec/pbs_init.d");
    const call = (action: string, env: NodeJS.ProcessEnv = {}): Ran =>
      run(script, [action], { ...process.env, PBS_CONF_FILE: join(complex.home, "pbs.conf"), ...env });
    assert.deepEqual(call("start"), {
      status: 0,
      out: "Starting PBS\nPBS comm already running.\nPBS mom already running.\nPBS Server already running.\n",
      err: "",
    });
    const [server, sched, mom, comm] = pidFiles(complex.pbsHome).map(([, pid]) => pid) as [number, number, number, number];
    // A fresh Debian machine has no ps; a ps that fails simulates that.
    const withoutPs = join(complex.home, "..", "without-ps");
    mkdirSync(withoutPs);
    writeFileSync(join(withoutPs, "ps"), "#!/bin/sh\nexit 127\n", { mode: 0o755 });
    assert.deepEqual(call("status", { PATH: `${withoutPs}:${process.env["PATH"]}` }), {
      status: 0,
      out: `pbs_server is pid ${server}\npbs_mom is pid ${mom}\npbs_comm is ${comm}\n`,
      err: "",
    });
    assert.deepEqual(call("status", { PBS_START_MOM: "0", PBS_START_COMM: "0" }).out, `pbs_server is pid ${server}\n`);
    assert.deepEqual(call("stop"), {
      status: 0,
      out: `Stopping PBS\nShutting server down with qterm.\nPBS server - was pid: ${server}\nPBS mom - was pid: ${mom}\nPBS comm - was pid: ${comm}\nWaiting for shutdown to complete\n`,
      err: "",
    });
    assert.deepEqual([server, sched, mom, comm].filter(exists), []);
    assert.deepEqual(call("status"), {
      status: 1,
      out: "pbs_server is not running\npbs_mom is not running\npbs_comm is not running\n",
      err: "",
    });
    assert.deepEqual(call("start", { PBS_START_MOM: "0" }), { status: 0, out: "Starting PBS\nPBS comm\nPBS server\n", err: "" });
    assert.deepEqual(call("start"), {
      status: 0,
      out: "Starting PBS\nPBS comm already running.\nPBS mom\nPBS Server already running.\n",
      err: "",
    });
    const restarted = call("restart");
    assert.equal(restarted.status, 0);
    assert.match(restarted.out, /^Restarting PBS\nStopping PBS\n[\s\S]*\nStarting PBS\nPBS comm\nPBS mom\nPBS server\n$/);
    const before = pidIn(join(complex.pbsHome, "server_priv/comm.lock"));
    assert.equal(call("reload").status, 0);
    await until("the comm stand-in has read the signal", () =>
      readdirSync(join(complex.pbsHome, "comm_logs")).some((name) =>
        readFileSync(join(complex.pbsHome, "comm_logs", name), "utf8").includes("Processing SIGHUP"),
      ),
    );
    const [day = ""] = readdirSync(join(complex.pbsHome, "comm_logs"));
    assert.match(readFileSync(join(complex.pbsHome, "comm_logs", day), "utf8"), /;TPP;Comm@[^;]+\(Thread 0\);Thread ready\n/);
    assert.equal(pidIn(join(complex.pbsHome, "server_priv/comm.lock")), before);
    assert.equal(call("nonsense").status, 1);
    assert.match(run(join(complex.home, "..", "opt", "sbin/pbs_comm"), [], complex.env()).err, /another pbs_comm is running \(pid \d+\)/);
  });
});

test("habitat: a PBS_HOME that is missing is made by the init script, with the texts of PBS", {
  skip: isRoot ? false : "needs root",
}, async () => {
  await inComplex("system", async (complex) => {
    const exec = join(complex.home, "..", "opt");
    const env = { ...process.env, PBS_CONF_FILE: join(complex.home, "pbs.conf") };
    assert.equal(run(join(exec, "libexec/pbs_init.d"), ["stop"], env).status, 0);
    rmSync(complex.pbsHome, { recursive: true });
    const started = run(join(exec, "libexec/pbs_init.d"), ["start"], env);
    assert.deepEqual(started, {
      status: 0,
      out: [
        "Starting PBS",
        `PBS Home directory ${complex.pbsHome} does not exist.`,
        `Running ${exec}/libexec/pbs_habitat to create it.`,
        `Home directory ${complex.pbsHome} created.`,
        "PBS comm",
        "PBS mom",
        "PBS server",
        "",
      ].join("\n"),
      err: "",
    });
    assert.match(complex.must("qstat", ["-Q"]), /^workq /m);
  });
});
