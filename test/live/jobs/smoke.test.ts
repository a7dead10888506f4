// The ordinary life of jobs in a complex with two schedulers: submitted, run, held, deleted, confined to their partition.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { chmodSync, existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { type Complex, isAlive, startComplex, until } from "../complex.ts";
import { BEGIN, ofScript } from "../script-output.ts";

/** vs1 stays with the default scheduler; vp1 and vp2 come to partition p1. */
const VNODES = `$configversion 2
vs1: resources_available.ncpus=4
vp1: resources_available.ncpus=4
vp2: resources_available.ncpus=4
`;

let complex: Complex;

before(async () => {
  complex = await startComplex({ conf: { PARTITA_SCHED_RESTART_DELAY: "2" } });
  const file = join(complex.work(), "vnodes");
  writeFileSync(file, VNODES);
  complex.must("pbs_mom", ["-s", "insert", "parts", file]);
  process.kill(complex.pid("mom") as number, "SIGHUP");
  await until("the mom's vnodes at the server", () => complex.run("pbsnodes", ["-v", "vs1", "vp1", "vp2"]).status === 0);
  const host = complex.must("pbsnodes", ["-a", "-F", "dsv"]).match(/Name=([^|]+)/)?.[1] as string;
  complex.qmgr(
    "set server job_history_enable=True",
    `set node ${host} resources_available.ncpus=0`,
    "create sched s1 partition=p1",
    "create queue fast queue_type=e,enabled=t,started=t,partition=p1",
    "set node vp1 partition=p1",
    "set node vp2 partition=p1",
    "set sched s1 scheduling=True",
  );
  await until("scheduler s1 idle", () => schedState("s1") === "idle");
});
after(() => complex.stop());

function schedState(name: string): string | undefined {
  return /state = (\w+)/.exec(complex.qmgr(`list sched ${name} state`))?.[1];
}

function schedComment(name: string): string | undefined {
  return /comment = (\w+)/.exec(complex.qmgr(`list sched ${name} comment`))?.[1];
}

test("a script runs in its own environment and its output comes back", async () => {
  const script = join(complex.work(), "hello.sh");
  writeFileSync(
    script,
    `#!/bin/sh\n#PBS -N hello\n#PBS -l select=1:ncpus=2\n\n${BEGIN}\n` +
      'echo "out $PBS_JOBID $PBS_JOBNAME $NCPUS $GREETING"\necho "err $(pwd)" >&2\nexit 3\n',
  );
  chmodSync(script, 0o644);
  const id = complex.submit(["-v", "GREETING=two words", script]);
  assert.match(id, /^\d+\.\S+$/);
  const job = await complex.untilJob(id, "F");
  const number = id.split(".")[0];
  assert.equal(job.Exit_status, 3);
  assert.equal(job.exec_vnode, "(vs1:ncpus=2)");
  assert.equal(ofScript(readFileSync(join(complex.work(), `hello.o${number}`), "utf8")), `out ${id} hello 2 two words\n`);
  assert.match(readFileSync(join(complex.work(), `hello.e${number}`), "utf8"), /(^|\n)err \/.*\n$/);
});

test("a script that is no UTF-8 reaches its job byte by byte", async () => {
  const script = join(complex.work(), "latin.sh");
  const bytes = Buffer.from('#!/bin/sh\n# Gr\xfc\xdfe\ncat "$0"\n', "latin1");
  writeFileSync(script, bytes);
  const out = join(complex.work(), "latin.out");
  const job = await complex.untilJob(complex.submit(["-j", "oe", "-o", out, script]), "F");
  assert.equal(job.Exit_status, 0);
  assert.deepEqual(readFileSync(out).subarray(-bytes.length), bytes);
});

test("a program runs without a shell between, output joined into the named file", async () => {
  const out = join(complex.work(), "joined");
  const id = complex.submit(["-j", "oe", "-o", out, "--", "/bin/sh", "-c", 'echo "$0"; echo later >&2', "$HOME *"]);
  const job = await complex.untilJob(id, "F");
  assert.equal(job.Exit_status, 0);
  assert.equal(readFileSync(out, "utf8"), "$HOME *\nlater\n");
});

test("a server named by the environment is the one that is meant", () => {
  const meaning = (variables: NodeJS.ProcessEnv, ...words: readonly string[]) => {
    const { status, stdout, stderr } = spawnSync(words[0] as string, words.slice(1), {
      env: { ...complex.env(), ...variables },
      encoding: "utf8",
    });
    return { status, stdout, stderr };
  };
  const refused = "Unknown Host.\nqstat: cannot connect to server nosuch.invalid (errno=15008)\n";
  for (const name of ["PBS_SERVER", "PBS_DEFAULT"]) {
    assert.deepEqual(meaning({ [name]: "nosuch.invalid" }, "qstat", "-B"), { status: 255, stdout: "", stderr: refused });
    assert.equal(meaning({ [name]: "nosuch.invalid" }, "qterm").status, 2);
    assert.equal(meaning({ [name]: "nosuch.invalid" }, "qmgr", "-c", "list server").status, 3);
  }
  const id = complex.submit(["-h", "--", "/bin/true"]);
  for (const server of ["localhost", "LOCALHOST:15001"]) {
    assert.match(meaning({ PBS_SERVER: server }, "qstat", id.split(".")[0] as string).stdout, /^\d+\.\S+ +STDIN/m);
    assert.match(meaning({}, "qmgr", "-c", "list server server_state", server).stdout, /server_state = Active/);
  }
  complex.must("qdel", [id]);
});

test("qsub -W block=true ends with the job's exit status", () => {
  const ran = complex.run("qsub", ["-W", "block=true", "--", "/bin/sh", "-c", "exit 7"]);
  assert.deepEqual([ran.status, ran.stderr], [7, ""]);
});

test("qstat -f shows a running job in full, qdel ends it and leaves nothing of it", async () => {
  const pids = join(complex.work(), "pids");
  const id = complex.submit(["-N", "long", "-l", "walltime=1:00:00", "--", "/bin/sh", "-c", `sleep 1000 & echo $$ $! > ${pids}; wait`]);
  await complex.untilJob(id, "R");
  const [pid, child] = (await until("the job's pids", () => existsSync(pids) && readFileSync(pids, "utf8").trim()))
    .split(" ")
    .map(Number) as [number, number];
  const text = complex.must("qstat", ["-f", id]);
  assert.ok(text.startsWith(`Job Id: ${id}\n    Job_Name = long\n`), text);
  assert.ok(text.endsWith("\n\n"));
  for (const line of ["job_state = R", "queue = workq", "exec_vnode = (vs1:ncpus=1)", "Resource_List.walltime = 01:00:00", "substate = 42"])
    assert.ok(text.includes(`    ${line}\n`), `${line} in\n${text}`);
  complex.must("qdel", [id]);
  const job = await complex.untilJob(id, "F");
  assert.equal(job.Exit_status, 271);
  assert.deepEqual([isAlive(pid), isAlive(child)], [false, false]);
  const again = complex.run("qdel", [id]);
  assert.deepEqual([again.status, again.stderr], [35, `qdel: Job has finished ${id}\n`]);
});

test("a held job waits until its release", async () => {
  const held = complex.submit(["-h", "--", "/bin/true"]);
  const queued = complex.submit(["-l", "select=1:ncpus=4:vnode=nosuch", "--", "/bin/true"]);
  assert.equal(complex.job(held).job_state, "H");
  complex.must("qhold", [queued]);
  assert.equal(complex.job(queued).job_state, "H");
  complex.must("qrls", [held]);
  assert.equal((await complex.untilJob(held, "F")).Exit_status, 0);
  complex.must("qdel", [queued]);
  assert.equal(complex.job(queued).job_state, "F");
});

test("a job that cannot run yet says why and runs once it can", async () => {
  const big = complex.submit(["-l", "select=1:ncpus=4", "--", "/bin/sleep", "1000"]);
  await complex.untilJob(big, "R");
  const waiting = complex.submit(["-l", "select=1:ncpus=4", "--", "/bin/true"]);
  await until("a comment", () => complex.job(waiting).comment?.startsWith("Not Running: "));
  const never = complex.submit(["-l", "select=1:ncpus=5", "--", "/bin/true"]);
  await until("a comment", () => complex.job(never).comment?.startsWith("Can Never Run: Insufficient amount of resource: ncpus (R: 5 A: "));
  complex.must("qdel", [big, never]);
  await complex.untilJob(waiting, "F");
});

test("jobs of a partition's queue run only on its vnodes, under its scheduler", async () => {
  const ids = Array.from({ length: 12 }, () => complex.submit(["-q", "fast", "-l", "select=1:ncpus=2", "--", "/bin/sleep", "0.3"]));
  const others = Array.from({ length: 4 }, () => complex.submit(["--", "/bin/sleep", "0.3"]));
  for (const id of ids) {
    const job = await complex.untilJob(id, "F");
    assert.match(job.exec_vnode ?? "", /^\(vp[12]:ncpus=2\)$/);
    assert.ok(complex.log("sched_logs_s1").includes(`;0040;pbs_sched;Job;${id};Job run\n`), `${id} in the log of s1`);
    assert.ok(!complex.log("sched_logs").includes(`;${id};`), `${id} not in the log of default`);
  }
  for (const id of others) assert.equal((await complex.untilJob(id, "F")).exec_vnode, "(vs1:ncpus=1)");
});

test("with a partition's scheduler stopped its jobs wait and the others go on", async () => {
  complex.qmgr("set sched s1 scheduling=False");
  const pid = complex.schedPid("s1") as number;
  process.kill(pid, "SIGTERM");
  await until("scheduler s1 down", () => schedState("s1") === "down");
  const waiting = complex.submit(["-q", "fast", "--", "/bin/true"]);
  const other = complex.submit(["--", "/bin/true"]);
  await complex.untilJob(other, "F");
  assert.equal(complex.job(waiting).job_state, "Q");
  assert.equal(schedState("s1"), "down");
  complex.qmgr("set sched s1 scheduling=True");
  assert.match((await complex.untilJob(waiting, "F")).exec_vnode ?? "", /^\(vp/);
});

test("a killed scheduler runs again within seconds; after the third time it needs attention, then it is ready to use", async () => {
  for (const round of [1, 2, 3]) {
    const pid = await until("scheduler s1 runs", () => complex.schedPid("s1") ?? undefined);
    await until("scheduler s1 idle", () => schedState("s1") === "idle");
    process.kill(pid, "SIGKILL");
    if (round < 3) {
      await until("another process", () => complex.schedPid("s1") !== null && complex.schedPid("s1") !== pid, 30);
      await until("scheduler s1 idle", () => schedState("s1") === "idle");
      assert.equal(schedComment("s1"), undefined);
    }
  }
  await until("the comment", () => schedComment("s1") === "NEEDS_ATTENTION");
  await until("the comment", () => schedComment("s1") === "READY_TO_USE");
  assert.equal((await complex.untilJob(complex.submit(["-q", "fast", "--", "/bin/true"]), "F")).Exit_status, 0);
});

test("scheduling=True starts a scheduler that waits for its next try at once, and an administrator's comment stays", async () => {
  complex.qmgr('set sched s1 comment="mine"');
  const pid = await until("scheduler s1 runs", () => complex.schedPid("s1") ?? undefined);
  process.kill(pid, "SIGKILL");
  await until("scheduler s1 down", () => schedState("s1") === "down");
  complex.qmgr("set sched s1 scheduling=True");
  await until("scheduler s1 idle", () => schedState("s1") === "idle", 60);
  assert.equal(schedComment("s1"), "mine");
});
