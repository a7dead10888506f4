// Jobs over several hosts (docs/reference/execution.md 3): moms with homes and names of their own on this machine.

import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { after, before, test } from "node:test";
import { type Complex, startComplex, until } from "../complex.ts";
import { addHost, type Host } from "../hosts-bed.ts";
import { HOST } from "../mom-bed.ts";
import { BEGIN, ofScript } from "../script-output.ts";

// The names of hosts must resolve; these do everywhere.
const BETA = "127.0.0.2";
const GAMMA = "127.0.0.3";

let complex: Complex;
let beta: Host;
let gamma: Host;

before(async () => {
  complex = await startComplex();
  complex.qmgr(`set node ${HOST} resources_available.ncpus = 4`, "set server job_history_enable = true");
  beta = await addHost(complex, BETA);
  gamma = await addHost(complex, GAMMA);
});
after(async () => {
  await gamma?.close();
  await beta?.close();
  await complex?.stop();
});

const place = (host: string): string => (host === HOST ? complex.pbsHome : host === BETA ? beta.home : gamma.home);

/** Files that a host has of the job: script, node file, spool. */
function filesOf(id: string, host: string): string[] {
  return ["aux", "spool", "mom_priv/jobs"].flatMap((name) => readdirSync(join(place(host), name)).filter((file) => file.startsWith(id)));
}

test("a job over three hosts: its script runs on the first, the others have joined before; node file, exec_host; nothing is left", async () => {
  const script = join(complex.work(), "three.sh");
  writeFileSync(
    script,
    `${BEGIN}\n` + 'cat "$PBS_NODEFILE"; echo "node $PBS_NODENUM task $PBS_TASKNUM"; touch "$PBS_O_WORKDIR/three.said"; exec sleep 1000\n',
  );
  const select = `1:ncpus=2:mpiprocs=2:host=${HOST}+1:ncpus=1:host=${BETA}+1:ncpus=3:mpiprocs=3:host=${GAMMA}`;
  const id = complex.submit(["-l", `select=${select}`, "-l", "place=scatter", "-o", "three.out", "-j", "oe", script]);
  const job = await until("it runs", () => {
    const seen = complex.job(id);
    return seen.job_state === "R" && seen["substate"] === 42 && existsSync(join(complex.work(), "three.said")) && seen;
  });
  assert.equal(job["exec_host"], `${HOST}/0*2+${BETA}/0+${GAMMA}/0*3`);
  assert.equal(job.exec_vnode, `(${HOST}:ncpus=2)+(${BETA}:ncpus=1)+(${GAMMA}:ncpus=3)`);
  for (const host of [HOST, BETA, GAMMA]) assert.ok(filesOf(id, host).includes(id), `${host} has its node file`);
  assert.match(beta.log(), new RegExp(`${id.replace(".", "\\.")};Started, pid = `));
  assert.deepEqual(filesOf(id, BETA).includes(`${id}.SC`), false, "only the first host has the script");
  const pids = [BETA, GAMMA].map((host) => Number(/Started, pid = (\d+)/.exec((host === BETA ? beta : gamma).log())?.[1]));
  for (const pid of pids) assert.ok(existsSync(`/proc/${pid}`));
  complex.must("qdel", [id]);
  await complex.untilJob(id, "F");
  const text = ofScript(readFileSync(join(complex.work(), "three.out"), "utf8"));
  assert.equal(text, `${HOST}\n${HOST}\n${BETA}\n${GAMMA}\n${GAMMA}\n${GAMMA}\nnode 0 task 1\n`);
  for (const pid of pids) assert.ok(!existsSync(`/proc/${pid}`), "its place is gone when the job is");
  for (const host of [BETA, GAMMA]) await until(`nothing of it is left on ${host}`, () => filesOf(id, host).length === 0);
});

test("a sister's mom that is started again goes on with the job; one killed with its starter costs the job its run", async () => {
  const id = complex.submit([
    "-l",
    `select=1:ncpus=1:host=${BETA}+1:ncpus=1:host=${GAMMA}`,
    "-l",
    "place=scatter",
    "--",
    "/bin/sleep",
    "1000",
  ]);
  await until("it runs", () => complex.job(id)["substate"] === 42);
  await gamma.end("SIGINT");
  await gamma.start();
  assert.equal(complex.job(id).run_count, 1);
  const starter = Number(readFileSync(join(gamma.home, "mom_priv", "starter.lock"), "utf8"));
  process.kill(starter, "SIGKILL");
  await until("it runs again", () => complex.job(id).run_count === 2 && complex.job(id)["substate"] === 42);
  assert.match(complex.log("server_logs"), /Job is ended, its sister 127\.0\.0\.3 was lost/);
  complex.must("qdel", [id]);
  await complex.untilJob(id, "F");
});

test("a sister that cannot make the job's files refuses it: the job goes back to its queue and nobody has started it", async () => {
  const aux = join(gamma.home, "aux");
  const { chmodSync, rmSync, mkdirSync } = await import("node:fs");
  rmSync(aux, { recursive: true });
  const id = complex.submit([
    "-l",
    `select=1:ncpus=1:host=${BETA}+1:ncpus=1:host=${GAMMA}`,
    "-l",
    "place=scatter",
    "--",
    "/bin/sleep",
    "1000",
  ]);
  await until("refused", () => complex.log("server_logs").includes("Mom rejected job due to join job error"));
  assert.ok(!beta.log().includes(`${id};Started`));
  mkdirSync(aux);
  chmodSync(aux, 0o755);
  await until("it runs after all", () => complex.job(id)["substate"] === 42);
  complex.must("qdel", [id]);
  await complex.untilJob(id, "F");
});

/** Runs a script as a job over all three hosts (two places on the first) and returns what it wrote. */
async function runScript(
  name: string,
  text: string,
  select = `1:ncpus=2:mpiprocs=2:host=${HOST}+1:ncpus=1:host=${BETA}+1:ncpus=1:host=${GAMMA}`,
) {
  const script = join(complex.work(), `${name}.sh`);
  // A login shell may reset PATH.
  writeFileSync(script, `${BEGIN}\nexport PATH="${dirname(complex.command("qsub"))}:$PATH"\ncd "$PBS_O_WORKDIR"\n${text}\n`);
  const id = complex.submit(["-l", `select=${select}`, "-l", "place=scatter", "-o", `${name}.out`, "-e", `${name}.err`, script]);
  const job = await complex.untilJob(id, "F");
  const read = (suffix: string): string => readFileSync(join(complex.work(), `${name}.${suffix}`), "utf8");
  return { id, job, out: ofScript(read("out")), err: read("err") };
}

test("pbsdsh: one task for each line of the node file, with its numbers, its output in the job's, the highest status", async () => {
  const { out, err, id } = await runScript(
    "dsh",
    `pbsdsh -v -- sh -c 'echo "$PBS_NODENUM $PBS_JOBID $PWD"; echo e$PBS_NODENUM >&2; test -d "$TMPDIR" && test -s "$PBS_NODEFILE" && exit $PBS_NODENUM'
echo "status $?"
pbsdsh -s -c 5 -- echo round; pbsdsh -n 2 -- sh -c 'echo only $PBS_NODENUM'; pbsdsh -h ${GAMMA} -- sh -c 'echo on $PBS_NODENUM; kill -9 $$'
echo "killed $?"; pbsdsh -n 9 -- true; echo "none $?"; pbsdsh -- /no/such/program; echo "unknown $?"`,
  );
  const home = process.env["HOME"];
  const lines = out.split("\n");
  assert.deepEqual(
    lines.slice(0, 4).sort(),
    [0, 0, 1, 2].map((node) => `${node} ${id} ${home}`),
    out,
  );
  assert.equal(lines.slice(4).join("\n"), `status 2\n${"round\n".repeat(5)}only 1\non 2\nkilled 137\nnone 1\nunknown 1\n`, out);
  for (const node of [0, 1, 2]) assert.ok(err.includes(`e${node}\n`), err);
  assert.match(err, /pbsdsh: task 0x00000002 exit status [012]\n/);
  assert.match(err, /pbsdsh: the job has no node number 9\n/);
  assert.match(err, /exec of \/no\/such\/program failed/);
});

test("pbs_tmrsh runs a shell's command on a host of the job, and no other", async () => {
  const { out, err, id } = await runScript(
    "tmrsh",
    `pbs_tmrsh ${BETA} -n 'echo one; echo' two '$PBS_NODENUM' "> $PBS_O_WORKDIR/tmrsh.file; exit 7"; echo "status $?"; pbs_tmrsh elsewhere true; echo "status $?"
env -u PBS_JOBCOOKIE pbsdsh true; echo "status $?"; PBS_JOBCOOKIE=wrong pbsdsh true; echo "status $?"`,
  );
  assert.equal(out, "one\nstatus 7\nstatus 255\nstatus 1\nstatus 1\n");
  assert.equal(readFileSync(join(complex.work(), "tmrsh.file"), "utf8"), "two 1\n");
  assert.ok(err.includes(`pbs_tmrsh: host "elsewhere" is not a node in job <${id}>\n`), err);
  assert.match(err, /pbsdsh: not executing under PBS\n/);
  assert.match(err, /pbsdsh: job .* does not run on /);
});

test("nothing of a job survives it on any host: tasks, what they left in the background, what was attached", async () => {
  const left = join(complex.work(), "left");
  const { out } = await runScript(
    "left",
    `pbsdsh -- sh -c 'setsid sleep 987654 & echo $! >> ${left}; echo $$ >> ${left}.shells'; pbsdsh -o -- sh -c 'echo $$ >> ${left}; exec sleep 987654'
setsid sh -c 'echo $$ > ${left}.attached; exec env -i sleep 987654' & until [ -s ${left}.attached ]; do sleep 0.1; done
env -u PBS_JOBCOOKIE pbs_attach -j $PBS_JOBID -p $(cat ${left}.attached); echo "attached $?"; cat ${left}.attached >> ${left}
while [ "$(wc -l < ${left})" -lt 9 ]; do sleep 0.1; done
for pid in $(cat ${left}); do kill -0 $pid || echo "gone $pid"; done`,
  );
  assert.equal(out, "attached 0\n");
  for (const pid of readFileSync(left, "utf8").trim().split("\n")) await until(`${pid} is gone`, () => !isRunning(Number(pid)));
});

const isRunning = (pid: number): boolean => {
  try {
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, "utf8"));
  } catch {
    return false;
  }
};

test("cpu time and memory of all hosts count as the job's", async () => {
  const { job } = await runScript("cput", `pbsdsh -h ${BETA} -- sh -c 'ulimit -S -t 2; while :; do :; done'`);
  const { cput } = job["resources_used"] as { cput: string };
  assert.notEqual(cput, "00:00:00");
});

test("pbs_release_nodes: a sister's vnodes are free when nothing is left there, the job goes on; accounting tells the phases", async () => {
  const place = ["-l", `select=1:ncpus=1:host=${HOST}+1:ncpus=2:host=${BETA}+1:ncpus=3:host=${GAMMA}`, "-l", "place=scatter"];
  const id = complex.submit([...place, "--", "/bin/sleep", "1000"]);
  await until("it runs", () => complex.job(id)["substate"] === 42);
  const refused = (...args: readonly string[]): string => complex.run("pbs_release_nodes", args).stderr;
  assert.equal(refused("-j", id, HOST), `pbs_release_nodes: Can't free '${HOST}' since it's on a primary execution host\n`);
  assert.equal(refused("-j", id, "nowhere"), "pbs_release_nodes: node(s) requested to be released not part of the job: nowhere\n");
  assert.equal(refused("-a"), "pbs_release_nodes: No jobid given\n");
  assert.equal(refused("-j", id, "-a", "-k", "1"), "pbs_release_nodes: -a and -k options cannot be used together\n");
  complex.must("pbs_release_nodes", ["-j", id, BETA]);
  const left = await until("beta is released", () => {
    const seen = complex.job(id);
    return seen.exec_vnode === `(${HOST}:ncpus=1)+(${GAMMA}:ncpus=3)` && seen;
  });
  assert.equal(left["exec_host"], `${HOST}/0+${GAMMA}/0*3`);
  const { select, ncpus, nodect } = left["Resource_List"] as Record<string, unknown>;
  assert.deepEqual([select, ncpus, nodect], [`1:ncpus=1:host=${HOST}+1:ncpus=3:host=${GAMMA}`, 4, 2]);
  assert.deepEqual(filesOf(id, BETA), []);
  complex.must("pbs_release_nodes", ["-j", id, "-k", "select=ncpus=3"]);
  assert.equal(complex.job(id).exec_vnode, left.exec_vnode);
  complex.must("pbs_release_nodes", ["-j", id, "-a"]);
  await until("gamma is released", () => complex.job(id).exec_vnode === `(${HOST}:ncpus=1)`);
  assert.equal(complex.job(id).job_state, "R");
  complex.must("qdel", [id]);
  await complex.untilJob(id, "F");
  const records = complex
    .log("server_priv/accounting")
    .split("\n")
    .filter((line) => line.split(";")[2] === id);
  assert.equal(records.map((line) => line.split(";")[1]).join(""), "QSucucDeE");
  assert.ok(records.at(-1)?.includes(`exec_vnode=(${HOST}:ncpus=1)+(${BETA}:ncpus=2)+(${GAMMA}:ncpus=3) `));
});

test("tolerate_node_failures: a job starts without a host that refuses it, and goes on without one that is lost", async () => {
  const aux = join(gamma.home, "aux");
  renameSync(aux, `${aux}.away`);
  const select = ["-l", `select=1:ncpus=1:host=${HOST}+1:ncpus=1:host=${BETA}+1:ncpus=1:host=${GAMMA}`, "-l", "place=scatter"];
  const id = complex.submit([...select, "-W", "tolerate_node_failures=all", "--", "/bin/sleep", "1000"]);
  const job = await until("it runs", () => complex.job(id)["substate"] === 42 && complex.job(id));
  renameSync(`${aux}.away`, aux);
  assert.equal(job.exec_vnode, `(${HOST}:ncpus=1)+(${BETA}:ncpus=1)`);
  process.kill(Number(readFileSync(join(beta.home, "mom_priv", "starter.lock"), "utf8")), "SIGKILL");
  await until("it goes on", () => complex.log("server_logs").includes(`${id};Job goes on without its sister ${BETA}`));
  assert.deepEqual([complex.job(id).job_state, complex.job(id).run_count], ["R", 1]);
  complex.must("qdel", [id]);
  await complex.untilJob(id, "F");
});

/** mom_priv/config of the first host, which is the mother superior's host here. */
async function configure(text: string): Promise<void> {
  writeFileSync(join(complex.pbsHome, "mom_priv", "config"), text);
  const before = complex.log("mom_logs").split("re-read configuration").length;
  process.kill(complex.pid("mom") as number, "SIGHUP");
  await until("the mom has read it", () => complex.log("mom_logs").split("re-read configuration").length > before);
}
const TWO = ["-l", `select=1:ncpus=1:host=${HOST}+1:ncpus=1:host=${GAMMA}`, "-l", "place=scatter"];

test("$max_poll_downtime: a host that is away longer costs the job its run, whatever node_fail_requeue is", async () => {
  await configure("$max_poll_downtime 1\n");
  complex.qmgr("set server node_fail_requeue = 0");
  const id = complex.submit([...TWO, "--", "/bin/sleep", "1000"]);
  await until("it runs", () => complex.job(id)["substate"] === 42);
  // The server waits for the time that the host was told last. The host learns the shorter time when it asks next.
  await until("the host knows the shorter time", () => /parts of jobs of other hosts within 10 s/.test(gamma.log()));
  await gamma.end("SIGINT");
  await complex.untilJob(id, "Q");
  assert.match(complex.log("server_logs"), new RegExp(`;${id.replace(".", "\\.")};Job given up on execution node 127\\.0\\.0\\.3 down`));
  await gamma.start();
  await until("it runs again", () => {
    const { job_state, run_count, substate } = complex.job(id);
    // The return of a host starts no cycle by itself (docs/reference/scheduler.md 1). A cycle that comes too early finds no place.
    if (job_state === "Q") complex.qmgr("set server scheduling = true");
    return run_count === 2 && substate === 42;
  });
  complex.must("qdel", [id]);
  await complex.untilJob(id, "F");
  complex.qmgr("unset server node_fail_requeue");
  await configure("");
});

test("$job_launch_delay: a host whose execjob_prologue hook has no end is left out of a job that tolerates that", async () => {
  await configure("$job_launch_delay 1\n");
  const script = join(complex.work(), "slow.py");
  writeFileSync(script, `import pbs, time\nif pbs.get_local_nodename() == "${GAMMA}":\n    time.sleep(1000)\n`);
  complex.qmgr("create hook slow event=execjob_prologue,alarm=600", `import hook slow application/x-python default ${script}`);
  const id = complex.submit([...TWO, "-W", "tolerate_node_failures=job_start", "--", "/bin/sleep", "1000"]);
  const job = await until("it runs", () => complex.job(id)["substate"] === 42 && complex.job(id));
  assert.equal(job.exec_vnode, `(${HOST}:ncpus=1)`);
  assert.ok(complex.log("server_logs").includes(`${id};Job is started without ${GAMMA}: no answer of ${GAMMA} in time`));
  complex.must("qdel", [id]);
  await complex.untilJob(id, "F");
  complex.qmgr("delete hook slow");
  await configure("");
});

test("a mom that is stopped: its vnode is unknown, the start goes elsewhere, and it starts nothing when it goes on", async () => {
  complex.qmgr("set server node_silence_timeout = 4", "set server scheduling = false");
  const stateOf = (host: string): string =>
    (JSON.parse(complex.must("pbsnodes", ["-F", "json", host])) as { nodes: Record<string, { state: string }> }).nodes[host]?.state ?? "";
  const count = join(complex.home, "..", "stopped-starts");
  const id = complex.submit(["--", "/bin/sh", "-c", `echo begun >> ${count}; sleep 1000`]);
  process.kill(gamma.pid, "SIGSTOP");
  complex.must("qrun", ["-a", "-H", GAMMA, id]);
  await until("it is sent", () => complex.job(id)["substate"] === 41);
  await complex.untilJob(id, "Q");
  assert.match(stateOf(GAMMA), /state-unknown/);
  assert.match(
    complex.log("server_logs"),
    new RegExp(`;${id.replace(".", "\\.")};Start taken back, execution node 127\\.0\\.0\\.3 does not answer`),
  );
  complex.must("qrun", ["-H", BETA, id]);
  await until("it runs on the other host", () => complex.job(id)["substate"] === 42 && existsSync(count));
  await until("down", () => /down/.test(stateOf(GAMMA)));
  process.kill(gamma.pid, "SIGCONT");
  await until("it is back", () => stateOf(GAMMA) === "free");
  assert.match(gamma.log(), /this mom stood still for \d+ seconds: the server is asked what it still wants/);
  assert.equal(complex.job(id).run_count, 2);
  assert.equal(readFileSync(count, "utf8"), "begun\n");
  complex.must("qdel", [id]);
  await complex.untilJob(id, "F");
  complex.qmgr("unset server node_silence_timeout", "set server scheduling = true");
});
