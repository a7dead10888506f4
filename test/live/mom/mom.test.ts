// A real mom with its starter and file agent, real processes, and a server that is this test. In user mode; system mode is in mom-system.test.ts.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { userInfo } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import type { MomJob } from "#protocol/mom-link.ts";
import { type Bed, HOST, makeBed } from "../mom-bed.ts";
import { BEGIN, ofScript } from "../script-output.ts";
import { ROOT } from "../shared.ts";

let bed: Bed;
before(async () => {
  bed = await makeBed();
  await bed.launch();
});
after(() => bed.close());

const out = (job: MomJob): string => readFileSync(join(bed.work, `${job.id}.out`), "utf8");
const err = (job: MomJob): string => readFileSync(join(bed.work, `${job.id}.err`), "utf8");
const sh = (script: string): { readonly argv: readonly string[] } => ({ argv: ["/bin/sh", "-c", script] });

/** Number of processes with this word among their arguments. */
const lives = (word: string): number =>
  readdirSync("/proc").filter((name) => {
    try {
      return /^\d+$/.test(name) && readFileSync(`/proc/${name}/cmdline`, "latin1").split("\0").includes(word);
    } catch {
      return false;
    }
  }).length;
const stateOf = (pid: number): string => readFileSync(`/proc/${pid}/stat`, "latin1").split(") ")[1]?.[0] ?? "?";

test("the hello names the natural vnode with what the machine has", () => {
  const [hello] = bed.said;
  assert.equal(hello?.type, "mom-hello");
  if (hello?.type !== "mom-hello") return;
  const [vnode, ...others] = hello.data.vnodes;
  assert.deepEqual(others, []);
  assert.equal(vnode?.name, HOST);
  const available = vnode?.attrs["resources_available"] as { [name: string]: unknown };
  assert.deepEqual([available["arch"], available["host"], available["vnode"]], ["linux", HOST, HOST]);
  assert.match(String(available["mem"]), /^\d{6,}kb$/);
  assert.ok(Number(available["ncpus"]) >= 1);
});

test("exit statuses: values, signals, programs and shells that cannot be executed", async () => {
  const rows: readonly (readonly [what: Parameters<Bed["job"]>[0], attrs: MomJob["attrs"], status: number, stderr: RegExp])[] = [
    [{ argv: ["/bin/true"] }, {}, 0, /^$/],
    [sh("exit 3"), {}, 3, /^$/],
    [sh("kill -9 $$"), {}, 265, /^$/],
    [sh("kill -TERM $$"), {}, 271, /^$/],
    [{ argv: ["/no/such/program"] }, {}, 254, /^pbs_mom, exec of \/no\/such\/program failed with error: No such file or directory\n$/],
    [{ argv: ["/etc/passwd"] }, {}, 254, /^pbs_mom, exec of \/etc\/passwd failed with error: Permission denied\n$/],
    // The login shell may print a greeting.
    [{ script: "exit 7\n" }, {}, 7, /^(?!.*pbs_mom)/s],
    [
      { script: "true\n" },
      { Shell_Path_List: ["/no/such/shell"] },
      254,
      /^pbs_mom, exec of \/no\/such\/shell failed with error: No such file or directory\n$/,
    ],
    [{ argv: ["true"] }, {}, 0, /^$/],
  ];
  const jobs = rows.map(([what, attrs]) => bed.job(what, { attrs }));
  bed.start(...jobs);
  for (const [at, job] of jobs.entries()) {
    const obit = await bed.obit(job);
    assert.equal(obit.exit_status, rows[at]?.[2], JSON.stringify(rows[at]?.[0]));
    assert.equal(obit.stageout_status, 1);
    assert.match(err(job), rows[at]?.[3] as RegExp);
  }
});

test("/bin/true uses nothing that can be seen", async () => {
  const job = bed.job({ argv: ["/bin/true"] });
  bed.start(job);
  assert.deepEqual((await bed.obit(job)).used, { cpupercent: 0, cput: 0, mem: "0kb", ncpus: 1, vmem: "0kb", walltime: 0 });
});

test("the memory of a job that is over before the first look is told: 300 MB in a child of its shell", async () => {
  const job = bed.job(sh("/usr/bin/env head -c 300000000 /dev/zero | tail -c 300000000 | wc -c"));
  bed.start(job);
  const { used } = await bed.obit(job);
  assert.ok(Number.parseInt(String(used["mem"]), 10) > 290_000, String(used["mem"]));
});

test("the environment of a program is exactly the job's, and nothing of the mom's", async () => {
  const job = bed.job({ argv: ["/usr/bin/env", "-0"] }, { attrs: { Variable_List: ["PBS_O_HOST=h", "WITH=a\\,b c"] } });
  bed.start(job);
  await bed.obit(job);
  const { username, homedir, shell } = userInfo();
  assert.deepEqual(
    out(job)
      .split("\0")
      .filter((entry) => entry !== "")
      .sort(),
    [
      "ENVIRONMENT=BATCH",
      `HOME=${homedir}`,
      `LOGNAME=${username}`,
      "NCPUS=1",
      "OMP_NUM_THREADS=1",
      "PATH=/usr/bin:/bin",
      "PBS_ENVIRONMENT=PBS_BATCH",
      `PBS_JOBCOOKIE=cookie-${job.id}`,
      `PBS_JOBDIR=${homedir}`,
      `PBS_JOBID=${job.id}`,
      "PBS_JOBNAME=job",
      "PBS_MOMPORT=15003",
      `PBS_NODEFILE=${bed.home}/aux/${job.id}`,
      "PBS_NODENUM=0",
      "PBS_O_HOST=h",
      "PBS_QUEUE=workq",
      "PBS_TASKNUM=1",
      `SHELL=${shell}`,
      `TMPDIR=${join(bed.work, "../tmp")}/pbs.${job.id}`,
      `USER=${username}`,
      "WITH=a,b c",
    ].sort(),
  );
});

test("a script runs in the home directory under its own path, with umask 077, an empty stdin, its node file and a TMPDIR that goes with it", async () => {
  const job = bed.job({
    script:
      `${BEGIN}\n` +
      `ls ${bed.home}/mom_priv/jobs/$PBS_JOBID.JB; ` +
      "echo $0; pwd; umask; cat; cat $PBS_NODEFILE; stat -c %a $TMPDIR; touch $TMPDIR/x; mkdir -m 0 $TMPDIR/closed; echo $TMPDIR\n",
  });
  bed.start(job);
  assert.equal((await bed.obit(job)).exit_status, 0);
  const tmpdir = join(bed.work, "../tmp", `pbs.${job.id}`);
  assert.deepEqual(ofScript(out(job)).trim().split("\n"), [
    `${bed.home}/mom_priv/jobs/${job.id}.JB`,
    `${bed.home}/mom_priv/jobs/${job.id}.SC`,
    userInfo().homedir,
    "0077",
    HOST,
    "700",
    tmpdir,
  ]);
  assert.equal(existsSync(tmpdir), false);
  assert.deepEqual(
    readdirSync(`${bed.home}/spool`).concat(
      readdirSync(`${bed.home}/aux`).filter((name) => name !== ".same"),
      readdirSync(`${bed.home}/mom_priv/jobs`).filter((name) => name !== ".job-file"),
    ),
    ["records"],
  );
});

test("the interpreter named by #! runs the script, and the shell is a login shell", async () => {
  const job = bed.job({ script: "#!/usr/bin/env -S cat\nplain\n" });
  const login = bed.job(
    { script: `${BEGIN}\n` + "cat /proc/$PPID/cmdline | tr '\\0' ' '\n" },
    { attrs: { Shell_Path_List: ["/bin/bash"] } },
  );
  bed.start(job, login);
  await bed.obit(job);
  await bed.obit(login);
  assert.match(out(job), /(^|\n)#!\/usr\/bin\/env -S cat\nplain\n$/);
  assert.equal(ofScript(out(login)), "-bash ");
});

test("output: joined, direct, in a directory, thrown away, removed", async () => {
  const directory = join(bed.work, "dir");
  mkdirSync(directory);
  const both = sh("echo out; echo err >&2");
  const at = (name: string): string => `${HOST}:${join(bed.work, name)}`;
  const oe = bed.job(both, { attrs: { Join_Path: "oe", Output_Path: at("oe.o"), Error_Path: at("oe.e") } });
  const eo = bed.job(both, { attrs: { Join_Path: "eo", Output_Path: at("eo.o"), Error_Path: at("eo.e") } });
  const slash = bed.job(both, { attrs: { Output_Path: at("dir/"), Error_Path: at("dir") } });
  const direct = bed.job(both, { attrs: { Keep_Files: "doe", Output_Path: at("direct.o"), Error_Path: at("dir/") } });
  const nothing = bed.job(both, { attrs: { Output_Path: "/dev/null", Error_Path: `${HOST}:/dev/null` } });
  const removed = bed.job(both, { attrs: { Remove_Files: "oe", Output_Path: at("removed.o"), Error_Path: at("removed.e") } });
  const failed = bed.job(sh("echo out; exit 1"), { attrs: { Remove_Files: "o", Output_Path: at("failed.o"), Error_Path: "/dev/null" } });
  const jobs = [oe, eo, slash, direct, nothing, removed, failed];
  bed.start(...jobs);
  for (const job of jobs) assert.equal((await bed.obit(job)).stageout_status, 1, job.id);
  const text = (name: string): string => readFileSync(join(bed.work, name), "utf8");
  assert.deepEqual([text("oe.o"), text("eo.e"), text("direct.o"), text("failed.o")], ["out\nerr\n", "out\nerr\n", "out\n", "out\n"]);
  assert.deepEqual([text(`dir/${slash.id}.OU`), text(`dir/${slash.id}.ER`), text(`dir/${direct.id}.ER`)], ["out\n", "err\n", "err\n"]);
  for (const name of ["oe.e", "eo.o", "removed.o", "removed.e"]) assert.equal(existsSync(join(bed.work, name)), false, name);
  assert.equal(statSync(join(bed.work, "oe.o")).mode & 0o777, 0o600);
  assert.ok(statSync("/dev/null").isCharacterDevice());
});

test("output kept with -k lies in the home directory under the job's name and number", async () => {
  const job = bed.job(sh("echo kept"), { id: `${Date.now()}.${HOST}`, attrs: { Job_Name: "partita-kept", Keep_Files: "oe" } });
  const kept = join(userInfo().homedir, `partita-kept.o${job.id.split(".")[0]}`);
  try {
    bed.start(job);
    await bed.obit(job);
    assert.equal(readFileSync(kept, "utf8"), "kept\n");
  } finally {
    rmSync(kept, { force: true });
    rmSync(kept.replace("partita-kept.o", "partita-kept.e"), { force: true });
  }
});

test("delivery onto something that exists keeps its mode, its links and what a symbolic link points to", async () => {
  const target = join(bed.work, "real");
  writeFileSync(target, "a longer old text\n", { mode: 0o644 });
  symlinkSync(target, join(bed.work, "link"));
  const job = bed.job(sh("echo new"), { attrs: { Output_Path: `${HOST}:${join(bed.work, "link")}` } });
  bed.start(job);
  await bed.obit(job);
  assert.equal(readFileSync(target, "utf8"), "new\n");
  assert.equal(statSync(target).mode & 0o777, 0o644);
});

/** File agents of the mom. */
function agents(): number {
  const children = readFileSync(`/proc/${bed.pid}/task/${bed.pid}/children`, "latin1").trim().split(" ");
  return children.filter((pid) => commandLine(pid).includes("file-agent")).length;
}

function commandLine(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "latin1");
  } catch {
    return "";
  }
}

test("big output that must be copied arrives whole, by an agent of its own", async () => {
  const target = join(bed.work, "big");
  writeFileSync(target, "old");
  const big = bed.job(sh("head -c 20000000 /dev/zero; echo end"), { attrs: { Output_Path: `${HOST}:${target}` } });
  const small = bed.job({ argv: ["/bin/true"] });
  bed.start(big);
  assert.equal((await bed.obit(big)).stageout_status, 1);
  bed.start(small);
  await bed.obit(small);
  assert.equal(statSync(target).size, 20000004);
  assert.equal(existsSync(`${bed.home}/spool/${big.id}.OU`), false);
  await bed.until("the agent that copied has ended", () => agents() === 1);
});

test("output that cannot be delivered is in undelivered; the exit status stays", async () => {
  const nowhere = bed.job(sh("echo lost"), { attrs: { Output_Path: `${HOST}:${bed.work}/no/such/place`, umask: 22 } });
  const remote = bed.job(sh("echo far"), { attrs: { Output_Path: "far.example.org:/tmp/x" } });
  bed.start(nowhere, remote);
  for (const [job, text, why] of [
    [nowhere, "lost\n", /ENOENT/],
    [remote, "far\n", /to far\.example\.org:\/tmp\/x: false ended with 1; it is in/],
  ] as const) {
    const obit = await bed.obit(job);
    assert.deepEqual([obit.exit_status, obit.stageout_status], [0, 0]);
    assert.match(obit.message ?? "", why);
    assert.equal(readFileSync(`${bed.home}/undelivered/${job.id}.OU`, "utf8"), text);
  }
  assert.equal(statSync(`${bed.home}/undelivered/${nowhere.id}.OU`).mode & 0o777, 0o644);
});

test("limits the kernel keeps: file size; nice value", async () => {
  const big = bed.job(sh("ulimit -f; ulimit -v; head -c 1000000 /dev/zero > $TMPDIR/x"), {
    attrs: { Resource_List: { ncpus: 1, file: "100kb", pvmem: "800mb" } },
  });
  const nice = bed.job(sh("nice"), { attrs: { Resource_List: { ncpus: 1, nice: 7 } } });
  bed.start(big, nice);
  assert.notEqual((await bed.obit(big)).exit_status, 0);
  await bed.obit(nice);
  assert.equal(out(big), "200\n819200\n");
  assert.equal(Number(out(nice)), 7 + Number(spawnSync("nice", { encoding: "utf8" }).stdout));
});

test("walltime: killed with PBS's text on stderr and code -29", async () => {
  const job = bed.job({ argv: ["/bin/sleep", "1000"] }, { attrs: { Resource_List: { ncpus: 1, walltime: 1 } } });
  bed.start(job);
  const obit = await bed.obit(job);
  assert.equal(obit.exit_status, -29);
  assert.ok(Number(obit.used["walltime"]) >= 2);
  assert.match(err(job), /^=>> PBS: job killed: walltime \d+ exceeded limit 1\n$/);
});

test("cput: a job that burns more than its limit is killed with code -28, and its use is known", async () => {
  const job = bed.job(sh("while :; do :; done"), { attrs: { Resource_List: { ncpus: 1, cput: 1 } } });
  bed.start(job);
  const obit = await bed.obit(job);
  assert.equal(obit.exit_status, -28);
  assert.ok(Number(obit.used["cput"]) >= 1);
  assert.notEqual(obit.used["mem"], "0kb");
  assert.match(err(job), /^=>> PBS: job killed: cput \d+ exceeded limit 1\n/);
});

test("signals reach the job; suspend stops all of it and resume lets it go on", async () => {
  const ready = join(bed.work, "ready");
  const job = bed.job({ argv: ["/bin/bash", "-c", `trap 'echo got; exit 5' USR1; touch ${ready}; while :; do sleep 0.1; done`] });
  bed.start(job);
  const { session_id } = await bed.started(job);
  await bed.until("the script is ready", () => existsSync(ready));
  const answer = async (token: number, signal: string) => {
    bed.send("mom-signal", { token, job: job.id, signal });
    const said = await bed.until(`answer ${token}`, () => bed.said.find((each) => each.type === "mom-result" && each.data.token === token));
    return said.type === "mom-result" ? (said.data.ok ? "ok" : said.data.code) : null;
  };
  assert.equal(await answer(1, "suspend"), "ok");
  await bed.until("it is stopped", () => stateOf(session_id) === "T");
  assert.equal(await answer(2, "suspend"), "ok", "asked again: the answer may have been lost");
  assert.equal(await answer(3, "resume"), "ok");
  await bed.until("it goes on", () => stateOf(session_id) !== "T");
  assert.equal(await answer(4, "NOSUCH"), 15013);
  assert.equal(await answer(5, "SIGUSR1"), "ok");
  const obit = await bed.obit(job);
  assert.deepEqual([obit.exit_status, out(job)], [5, "got\n"]);
});

/** A program that ignores SIGTERM and stays; its argument identifies its processes. */
function stayer(): string {
  const path = join(bed.work, "stay.sh");
  writeFileSync(path, "#!/bin/bash\ntrap '' TERM\nwhile :; do sleep 0.2; done\n", { mode: 0o755 });
  return path;
}

test("a deleted job that ignores SIGTERM is killed after its delay, and nothing of it remains", async () => {
  const word = `stay-${process.pid}`;
  const stay = `${stayer()} ${word}`;
  // Three processes: in the session; in a separate session; with a parent that ends at once.
  const job = bed.job({
    argv: ["/bin/bash", "-c", `trap '' TERM; ${stay} & setsid ${stay} & (setsid ${stay} & ) ; (${stay} &) ; exec ${stay}`],
  });
  bed.start(job);
  await bed.started(job);
  await bed.until("its processes run", () => lives(word) === 5);
  bed.send("mom-terminate", { job: job.id, run_count: 1, why: "delete", kill_delay_s: 1 });
  assert.equal((await bed.obit(job)).exit_status, 265);
  assert.equal(lives(word), 0);
});

test("processes a job leaves behind end with it", async () => {
  const word = `left-${process.pid}`;
  const stay = `${stayer()} ${word}`;
  const job = bed.job({
    argv: ["/bin/bash", "-c", `${stay} & setsid ${stay} & while ! [ -e ${bed.work}/go ]; do sleep 0.1; done; exit 0`],
  });
  bed.start(job);
  await bed.until("its processes run", () => lives(word) === 2);
  writeFileSync(join(bed.work, "go"), "");
  assert.equal((await bed.obit(job)).exit_status, 0);
  assert.equal(lives(word), 0);
});

test("a stale start is refused, the same one is told again", async () => {
  const job = bed.job({ argv: ["/bin/true"] }, { run_count: 5 });
  bed.start(job);
  await bed.obit(job, { acknowledge: false });
  const obits = (): number => bed.said.filter((each) => each.type === "mom-obit" && each.data.job === job.id).length;
  bed.start(job);
  await bed.until("the obit again", () => obits() === 2);
  bed.send("mom-obit-ack", { jobs: [{ job: job.id, run_count: 5 }] });
  bed.start(job, { ...job, run_count: 4 });
  const later = bed.job({ argv: ["/bin/true"] }, { id: job.id, run_count: 6 });
  bed.start(later);
  await bed.obit(later);
  assert.equal(obits(), 3);
});

test("a job that is rerun goes on with the output of its first run", async () => {
  const first = bed.job(sh("echo one; exec sleep 1000"));
  bed.start(first);
  await bed.started(first);
  await bed.until("its output", () => readFileSync(`${bed.home}/spool/${first.id}.OU`, "utf8") === "one\n");
  bed.send("mom-terminate", { job: first.id, run_count: 1, why: "rerun", kill_delay_s: 10 });
  assert.equal((await bed.obit(first)).exit_status, -11);
  const second = bed.job(sh("echo two"), { id: first.id, run_count: 2 });
  bed.start(second);
  assert.equal((await bed.obit(second)).exit_status, 0);
  assert.equal(out(second), "one\ntwo\n");
});

test("output kept for another run goes with its note when nobody waits for it any more", async () => {
  const job = bed.job(sh("echo one; exec sleep 1000"));
  const output = `${bed.home}/spool/${job.id}.OU`;
  const note = `${bed.home}/mom_priv/jobs/${job.id}.KP`;
  bed.start(job);
  await bed.until("its output", () => existsSync(output) && readFileSync(output, "utf8") === "one\n");
  bed.send("mom-terminate", { job: job.id, run_count: 1, why: "rerun", kill_delay_s: 10 });
  await bed.obit(job);
  assert.deepEqual([existsSync(output), existsSync(note)], [true, true]);
  bed.send("mom-discard", { job: job.id });
  await bed.until("nothing left", () => !existsSync(output) && !existsSync(note));
});

test("vnode definition files: inserted by pbs_mom -s, reported after SIGHUP, kept after removal until the mom restarts", async () => {
  const file = join(bed.work, "vdef");
  writeFileSync(file, "$configversion 2\nva[0]: resources_available.ncpus=4\nva[1]: resources_available.ncpus=4\n");
  const mom = (...args: string[]) =>
    spawnSync(process.execPath, [join(ROOT, "src/mom/main.ts"), ...args], {
      encoding: "utf8",
      env: { ...process.env, PBS_CONF_FILE: join(bed.home, "../pbs.conf") },
    });
  assert.deepEqual(
    [mom("-s", "insert", "vdef", file).status, mom("-s", "insert", "vdef", file).status, mom("-s", "insert", "PBSx", file).status],
    [0, 1, 1],
  );
  assert.equal(mom("-s", "list").stdout, "vdef\n");
  assert.equal(mom("-s", "show", "vdef").stdout, readFileSync(file, "utf8"));
  const reports = () => bed.said.flatMap((each) => (each.type === "mom-vnodes" ? [each.data.vnodes] : []));
  process.kill(bed.pid, "SIGHUP");
  const [first] = await bed.until("a report", () => reports().length === 1 && reports());
  assert.deepEqual(
    first?.map((vnode) => vnode.name),
    [HOST, "va[0]", "va[1]"],
  );
  assert.partialDeepStrictEqual(first?.[1]?.attrs["resources_available"], { ncpus: 4, host: HOST, vnode: "va[0]" });
  assert.equal(mom("-s", "remove", "vdef").status, 0);
  assert.equal(mom("-s", "show", "vdef").status, 1);
  process.kill(bed.pid, "SIGHUP");
  const second = await bed.until("a second report", () => reports()[1]);
  assert.deepEqual(
    second.map((vnode) => vnode.name),
    [HOST, "va[0]", "va[1]"],
  );
});
