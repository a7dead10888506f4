// Jobs that span hosts with addresses, names and /etc of their own: their tasks, the output of these, MPI, and what happens when a host is cut off. The head runs a
// server and a mom; n1, n2 and n3 have joined.

import assert from "node:assert/strict";
import { appendFileSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { until } from "../../complex.ts";
import { lackOfUsers } from "../../needed-users.ts";
import { type Bed, closeBed, joins, makeBed } from "../bed.ts";
import { lackOfNamespaces, makeNet, type NetHost } from "../namespaces.ts";

const USER = "pbsuser1";
const MPIEXEC = "/usr/bin/mpiexec.openmpi";
const CLAIM = join(dirname(fileURLToPath(import.meta.url)), "../claim.ts");
const skip = lackOfNamespaces() || lackOfUsers(USER);

let bed: Bed;
let out: string;
const hostOf = (name: string): NetHost => bed.net.hosts.find((host) => host.name === name) as NetHost;

before(async () => {
  if (skip !== false) return;
  const net = makeNet(["head", "n1", "n2", "n3"]);
  const head = net.hosts[0] as NetHost;
  bed = makeBed(net, head);
  appendFileSync(join(bed.homeOf(head), "pbs.conf"), "PBS_START_MOM=1\n");
  out = join(net.dir, "out");
  mkdirSync(out);
  head.must("chmod", "1777", out);
  bed.partita(head, "start");
  bed.pbs(["qmgr", "-c", "set server job_history_enable = True"]);
  bed.pbs(["qmgr", "-c", "set server node_silence_timeout = 4"]);
  for (const { name } of net.hosts.slice(1)) {
    joins(bed, hostOf(name));
    // The first host of a job says how long a host may be away. A host that is cut off ends its part of a job 10 s before that time is over. The server must have
    // noticed the cut before then, so moms report often.
    appendFileSync(join(bed.homeOf(hostOf(name)), "pbs/mom_priv/config"), "$status_interval 2\n$max_poll_downtime 40\n");
    bed.partita(hostOf(name), "start");
    bed.pbs(["qmgr", "-c", `create node ${name}`]);
  }
  for (const { name } of net.hosts) {
    await until(`${name} is free`, () => bed.state(name) === "free");
    bed.pbs(["qmgr", "-c", `set node ${name} resources_available.ncpus = 4`]);
  }
});
after(() => {
  if (skip === false) closeBed(bed.net);
});

/** Submits a job on these hosts, one chunk on each, for so many processes. Its output goes to NAME.out on the first of them. */
function submit(name: string, hosts: readonly string[], text: string, processes = 1): string {
  const script = join(out, `${name}.sh`);
  writeFileSync(script, `cd ${out}\n${text}\n`);
  const select = hosts.map((host) => `1:ncpus=${processes}:mpiprocs=${processes}:host=${host}`).join("+");
  const words = ["qsub", "-l", `select=${select}`, "-l", "place=scatter", "-j", "oe", "-o", `${hosts[0]}:${out}/${name}.out`];
  return bed.pbs([...words, script], USER).trim();
}
/** Waits until a sister knows for how long its part of a job may go on without the server. The server waits for the longest time that it has told the host. */
const knowsItsTime = (name: string): Promise<unknown> =>
  until(`${name} knows its time`, () =>
    /parts of jobs of other hosts within 40 s/.test(
      bed
        .log(hostOf(name), "mom_logs")
        .split("\n")
        .findLast((line) => line.includes("parts of jobs")) ?? "",
    ),
  );
const read = (name: string): string => (existsSync(join(out, name)) ? readFileSync(join(out, name), "utf8") : "");
const stateOf = (id: string): unknown => bed.job(id)["job_state"];
const ends = (id: string): Promise<unknown> => until(`${id} has ended`, () => stateOf(id) === "F");
/** What a job has left on a host. */
const left = (host: string, id: string): readonly string[] =>
  ["aux", "spool", "mom_priv/jobs", "undelivered"].flatMap((name) =>
    readdirSync(join(bed.homeOf(hostOf(host)), "pbs", name)).filter((entry) => entry.startsWith(id)),
  );

const WHO = 'echo "$PBS_NODENUM $(cat /proc/sys/kernel/hostname) $(id -un) $(wc -l <"$PBS_NODEFILE")"';

test("tasks run on all hosts of a job, and their output arrives in that of the job", { skip }, async () => {
  const far = submit("far", ["n1", "n2"], `pbsdsh -s -- sh -c '${WHO}'\npbs_tmrsh n2 'exit 7'; echo "tmrsh $?"`, 2);
  // The first host is the server's, or the server's is a sister.
  const near = submit("near", ["head", "n3"], `pbsdsh -s -- sh -c '${WHO}'`);
  const last = submit("last", ["n3", "n2", "head"], `pbsdsh -s -- sh -c '${WHO}'`);
  for (const id of [far, near, last]) await ends(id);
  const expected = [`0 n1 ${USER} 4`, `0 n1 ${USER} 4`, `1 n2 ${USER} 4`, `1 n2 ${USER} 4`, "tmrsh 7", ""];
  assert.deepEqual(read("far.out").split("\n"), expected);
  assert.deepEqual(read("near.out").split("\n"), [`0 head ${USER} 2`, `1 n3 ${USER} 2`, ""]);
  assert.deepEqual(read("last.out").split("\n"), [`0 n3 ${USER} 3`, `1 n2 ${USER} 3`, `2 head ${USER} 3`, ""]);
  for (const id of [far, near, last]) assert.equal(bed.job(id)["Exit_status"], 0);
  for (const host of ["n1", "n2", "n3", "head"])
    await until(`nothing is left on ${host}`, () => [far, near, last].every((id) => left(host, id).length === 0));
});

test("no task survives its job on any host", { skip }, async () => {
  const task = `trap "" TERM; echo $$ >>${out}/pids; while :; do sleep 0.1; done`;
  const id = submit("stubborn", ["n1", "n2"], `pbsdsh -o -- sh -c '${task}'\nexec sleep 1000`);
  await until("both tasks run", () => read("pids").trim().split("\n").length === 2);
  const pids = read("pids").trim().split("\n").map(Number);
  bed.pbs(["qdel", id], USER);
  await ends(id);
  assert.ok(pids.every((pid) => !existsSync(`/proc/${pid}`)));
});

test("Open MPI over two hosts", { skip: skip || (existsSync(MPIEXEC) ? false : `${MPIEXEC} is not installed`) }, async () => {
  const settings = {
    OMPI_MCA_plm_rsh_agent: join(bed.net.dir, "opt/bin/pbs_tmrsh"),
    OMPI_MCA_plm_rsh_no_tree_spawn: "1",
    OMPI_MCA_oob_tcp_if_include: "eth0",
    OMPI_MCA_btl: "tcp,self",
    OMPI_MCA_btl_tcp_if_include: "eth0",
    OMPI_MCA_rmaps_base_oversubscribe: "1",
  };
  const exports = Object.entries(settings).map(([name, value]) => `export ${name}=${value}`);
  const program = `${MPIEXEC} --hostfile $PBS_NODEFILE sh -c 'echo "rank $OMPI_COMM_WORLD_RANK of $OMPI_COMM_WORLD_SIZE on $(cat /proc/sys/kernel/hostname)"'`;
  const id = submit("mpi", ["n1", "n2"], [...exports, program, "echo status $?"].join("\n"), 2);
  await ends(id);
  const lines = read("mpi.out").split("\n");
  for (const [rank, host] of ["n1", "n1", "n2", "n2"].entries()) assert.ok(lines.includes(`rank ${rank} of 4 on ${host}`), read("mpi.out"));
  assert.ok(lines.includes("status 0"));
});

test("a host that joined, but has no part in the job, gets nothing of it, even if it knows the secret", { skip }, async () => {
  const id = submit("closed", ["n1", "n2"], "touch closed.runs; exec sleep 1000");
  await until("it runs", () => existsSync(join(out, "closed.runs")));
  const records = readFileSync(join(bed.homeOf(hostOf("n2")), "pbs/mom_priv/jobs/records"), "utf8");
  const record = records.split("\n").find((line) => line.includes(id)) ?? "";
  const [, secret = ""] = /"secret":"([0-9a-f]{64})"/.exec(record) ?? [];
  assert.notEqual(secret, "");
  const wanted = { job: id, run_count: 1, cookie: secret, host: "n2", argv: ["/bin/touch", join(out, "claimed")], env: [], shell: false };
  const claim = (by: string, data: object): string => {
    const home = join(bed.homeOf(hostOf(by)), "pbs");
    return hostOf(by).must(process.execPath, CLAIM, home, "n2", hostOf("n2").address, "15002", JSON.stringify(data)).trim();
  };
  const no = `task-refused {"token":1,"text":"job ${id} does not run on n2"}`;
  assert.equal(claim("n3", wanted), no);
  assert.equal(claim("n1", { ...wanted, cookie: "0".repeat(64) }), no);
  assert.equal(claim("n1", { ...wanted, host: "n1" }), no);
  assert.equal(existsSync(join(out, "claimed")), false);
  // The same question is granted to the host of the job that it belongs to.
  assert.match(claim("n1", wanted), /^task-started /);
  await until("the task has run", () => existsSync(join(out, "claimed")));
  bed.pbs(["qdel", id], USER);
  await ends(id);
});

test("a host is cut off while a task runs and writes: the task goes on, and nothing of its output is lost or doubled", {
  skip,
}, async () => {
  const task = `i=0; while [ $i -lt 20000 ]; do echo "line $i"; i=$((i+1)); [ $i = 10000 ] && touch ${out}/half && while [ ! -e ${out}/go ]; do sleep 0.1; done; done; exit 3`;
  const id = submit("cut", ["n1", "n2"], `pbs_tmrsh n2 '${task}'; echo "status $?"`);
  await until("half of it is written", () => existsSync(join(out, "half")));
  await knowsItsTime("n2");
  hostOf("n2").cable("down");
  await until("n2 is lost", () => /state-unknown|down/.test(bed.state("n2")));
  // The task ends while its host is cut off.
  writeFileSync(join(out, "go"), "");
  hostOf("n2").cable("up");
  await ends(id);
  const lines = read("cut.out").split("\n");
  const expected = [...Array.from({ length: 20_000 }, (_, line) => `line ${line}`), "status 3", ""];
  assert.deepEqual([lines.length, lines.findIndex((line, at) => line !== expected[at])], [expected.length, -1]);
  assert.deepEqual([bed.job(id)["Exit_status"], bed.job(id)["run_count"]], [0, 1]);
});

test("a host that stays away ends the run, and ends its own part of it when it is back", { skip }, async () => {
  const task = `echo "early"; touch ${out}/runs.$PBS_NODENUM; while [ ! -e ${out}/late ]; do sleep 0.1; done; echo "late"; touch ${out}/said; exec sleep 1000`;
  const id = submit("away", ["n1", "n2"], `pbs_tmrsh n2 '${task}'`);
  await until("the task runs", () => existsSync(join(out, "runs.1")));
  await knowsItsTime("n2");
  hostOf("n2").cable("down");
  await until("n2 is lost", () => /state-unknown|down/.test(bed.state("n2")));
  writeFileSync(join(out, "late"), "");
  await until("the task has written more", () => existsSync(join(out, "said")));
  await until("the job waits to run again", () => stateOf(id) === "Q");
  bed.pbs(["qdel", id], USER);
  hostOf("n2").cable("up");
  await until("n2 is back", () => bed.state("n2") === "free");
  // The host has ended its part while it was away, and keeps the output that it could not send.
  await until("nothing else of it is left on n2", () => left("n2", id).every((name) => name === `${id}.OU`));
  assert.match(readFileSync(join(bed.homeOf(hostOf("n2")), "pbs/undelivered", `${id}.OU`), "utf8"), /late/);
  assert.equal(stateOf(id), "F");
});
