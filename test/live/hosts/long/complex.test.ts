// A complex of many hosts: users submit from the login host, three schedulers on three hosts start jobs and MPI programs on eight hosts, the state is in a database
// on a host of its own. While jobs flow, links between the hosts are slow, lossy, one-way and cut. Every job is accounted for exactly once: it writes its id to a
// file of its host when it begins and when it ends.

import assert from "node:assert/strict";
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { until } from "../../complex.ts";
import { lackOfUsers } from "../../needed-users.ts";
import { type BigBed, lackOfBigBed, makeBigBed } from "../big-bed.ts";
import type { NetHost } from "../namespaces.ts";

const USER = "pbsuser1";
const MPIEXEC = "/usr/bin/mpiexec.openmpi";
const QUEUES = ["workq", "q1", "q2"] as const;
const skip = lackOfUsers(USER) || lackOfBigBed();

type Beginning = { readonly host: string; readonly what: "begin" | "end" };

let bed: BigBed;
let out = "";

before(async () => {
  if (skip !== false) return;
  const begin_ms = performance.now();
  // Moms 1 and 2 serve the default partition, 3 to 5 p1, 6 to 8 p2.
  bed = await makeBigBed((at) => (at < 2 ? undefined : at < 5 ? "p1" : "p2"));
  out = join(bed.net.dir, "out");
  mkdirSync(join(out, "out"), { recursive: true });
  bed.head.must("chmod", "777", out, join(out, "out"));
  bed.qmgr("set server node_silence_timeout = 10", "set server sched_silence_timeout = 6");
  writeFileSync(join(out, "job.sh"), SCRIPT.replaceAll("OUT", out));
  console.log(`# the bed of ${bed.net.hosts.length} hosts is ready after ${((performance.now() - begin_ms) / 1000).toFixed(0)} s`);
});
after(async () => {
  if (skip === false) await bed?.close();
});

/** O_APPEND: lines of jobs that run at the same time do not mix. */
const SCRIPT = `host=$(cat /proc/sys/kernel/hostname)
echo "$PBS_JOBID begin" >>OUT/ran-$host
sleep $(( \${PBS_JOBID%%.*} % 3 )).$(( \${PBS_JOBID%%.*} % 10 ))
echo "$PBS_JOBID end" >>OUT/ran-$host
`;

/** Submits as many jobs to each queue, from the login host. */
async function submit(count: number): Promise<string[]> {
  const lines = Array.from({ length: count }, () =>
    QUEUES.map((queue) => `-q ${queue} -l select=1:ncpus=1 -koed -j oe -o ${out}/out/ ${out}/job.sh\n`),
  );
  const said = await bed.fromLogin(["qsub", "--batch", "-"], USER, lines.flat().join(""));
  const ids = said.trim().split("\n");
  assert.equal(ids.length, count * QUEUES.length, said.slice(0, 2000));
  return ids;
}

/** What the jobs have written, by id. */
function written(): ReadonlyMap<string, readonly Beginning[]> {
  const all = new Map<string, Beginning[]>();
  for (const file of readdirSync(out).filter((name) => name.startsWith("ran-")))
    for (const line of readFileSync(join(out, file), "utf8").split("\n").filter(Boolean)) {
      const [id = "", what] = line.split(" ");
      all.set(id, [...(all.get(id) ?? []), { host: file.slice("ran-".length), what: what === "begin" ? "begin" : "end" }]);
    }
  return all;
}

type Record = { readonly job_state: string; readonly Exit_status?: number; readonly exec_host?: string };

function records(): Readonly<{ [id: string]: Record }> {
  const text = bed.pbs(["qstat", "-x", "-f", "-F", "json"]);
  return (JSON.parse(text) as { readonly Jobs: { [id: string]: Record } }).Jobs;
}

const untilAllEnded = (ids: readonly string[]): Promise<unknown> =>
  until(
    "all jobs have ended",
    () => {
      const shown = records();
      return ids.every((id) => shown[id]?.job_state === "F");
    },
    900,
  );

/** Each job has run once, on the host that the server names, and has succeeded. */
function accountedOnce(ids: readonly string[]): void {
  const shown = records();
  const all = written();
  const wrong = ids.filter((id) => {
    const [begin, end, ...more] = all.get(id) ?? [];
    const host = shown[id]?.exec_host?.split("/")[0];
    const is_right = begin?.what === "begin" && end?.what === "end" && more.length === 0 && begin.host === host && end.host === host;
    return !is_right || shown[id]?.Exit_status !== 0;
  });
  assert.deepEqual(
    wrong.map((id) => ({ id, wrote: all.get(id), record: shown[id] })),
    [],
  );
}

test("jobs of the login host run on eight hosts, by three schedulers on three hosts", { skip }, async () => {
  const ids = await submit(40);
  await untilAllEnded(ids);
  accountedOnce(ids);
  const hosts = new Set(readdirSync(out).filter((name) => name.startsWith("ran-")));
  assert.equal(hosts.size, bed.moms.length, "every host has run jobs");
  assert.equal(
    bed.postgres.sql("SELECT count(*) >= 120 FROM (SELECT id FROM partita.jobs UNION SELECT id FROM partita.history) AS jobs"),
    "t",
    "the state is in the database",
  );
});

/** The sum of all ranks + 1, by MPI_Allreduce, and the host of each. Python calls the library directly, so no compiler is needed. */
const PROGRAM = `import ctypes, os
mpi = ctypes.CDLL("libmpi.so.40", ctypes.RTLD_GLOBAL)
handle = lambda name: ctypes.c_void_p(ctypes.addressof(ctypes.c_char.in_dll(mpi, name)))
world = handle("ompi_mpi_comm_world")
mpi.MPI_Init(None, None)
rank, total = ctypes.c_int(), ctypes.c_int()
mpi.MPI_Comm_rank(world, ctypes.byref(rank))
own = ctypes.c_int(rank.value + 1)
mpi.MPI_Allreduce(ctypes.byref(own), ctypes.byref(total), 1, handle("ompi_mpi_int"), handle("ompi_mpi_op_sum"), world)
print("rank", rank.value, "of", total.value, "on", open("/proc/sys/kernel/hostname").read().strip(), flush=True)
mpi.MPI_Finalize()
`;

test("Open MPI programs over the three hosts of each partition, submitted on the login host", {
  skip: skip || (existsSync(MPIEXEC) ? false : `${MPIEXEC} is not installed (scripts/test-host.sh installs it)`),
}, async () => {
  writeFileSync(join(out, "sum.py"), PROGRAM);
  const settings = {
    OMPI_MCA_plm_rsh_agent: join(bed.net.dir, "opt/bin/pbs_tmrsh"),
    OMPI_MCA_plm_rsh_no_tree_spawn: "1",
    OMPI_MCA_oob_tcp_if_include: "eth0",
    OMPI_MCA_btl: "tcp,self",
    OMPI_MCA_btl_tcp_if_include: "eth0",
    OMPI_MCA_rmaps_base_oversubscribe: "1",
  };
  const exports = Object.entries(settings).map(([name, value]) => `export ${name}=${value}\n`);
  writeFileSync(join(out, "mpi.sh"), `${exports.join("")}${MPIEXEC} --hostfile $PBS_NODEFILE python3 ${out}/sum.py; echo status $?\n`);
  const runs = [
    { queue: "q1", hosts: ["node3", "node4", "node5"] },
    { queue: "q2", hosts: ["node6", "node7", "node8"] },
  ];
  const ids: string[] = [];
  for (const { queue } of runs) {
    const words = [
      "qsub",
      "-q",
      queue,
      "-l",
      "select=3:ncpus=2:mpiprocs=2",
      "-l",
      "place=scatter",
      "-koed",
      "-j",
      "oe",
      "-o",
      `${out}/mpi-${queue}`,
    ];
    ids.push((await bed.fromLogin([...words, join(out, "mpi.sh")], USER)).trim());
  }
  await untilAllEnded(ids);
  for (const { queue, hosts } of runs) {
    const said = readFileSync(join(out, `mpi-${queue}`), "utf8");
    const ranks = said.match(/^rank \d of 21 on \S+$/gm) ?? [];
    assert.equal(ranks.length, 6, said);
    assert.deepEqual([...new Set(ranks.map((line) => line.split(" ").at(-1)))].sort(), hosts, said);
    assert.match(said, /^status 0$/m);
  }
});

/** Waits until jobs flow on: of those submitted, so many more have ended. */
async function flow(ids: readonly string[], more: number): Promise<void> {
  const ended = (): number => {
    const all = written();
    return ids.filter((id) => all.get(id)?.some(({ what }) => what === "end") === true).length;
  };
  const goal = Math.min(ids.length, ended() + more);
  await until(`${goal} jobs have run`, () => ended() >= goal, 900);
}

const nodeIs = (name: string, pattern: RegExp): Promise<unknown> =>
  until(`${name} is ${pattern.source}`, () => pattern.test(bed.state(name)));

test("slow and lossy links: every job runs once, and no host is lost", { skip }, async () => {
  const { host } = bed;
  const lost_before = lostNodes();
  const bad: readonly NetHost[] = [host("node1"), host("node3"), host("node6"), host("sched1")];
  for (const each of bad) await each.weather({ lost: 0.1 });
  await host("node4").weather({ delay_ms: 150 });
  await host("sched2").weather({ delay_ms: 100 });
  await host("login1").weather({ delay_ms: 50, lost: 0.05 });
  await bed.db.weather({ delay_ms: 10 });
  const ids = await submit(40);
  await untilAllEnded(ids);
  for (const each of bed.net.hosts) await each.weather();
  accountedOnce(ids);
  assert.equal(lostNodes(), lost_before, "no node was unknown or down");
});

const lostNodes = (): number => (bed.log(bed.head, "server_logs").match(/node (?:unknown|down): /g) ?? []).length;

test("a login host that hears nothing, is not heard, or is unplugged: its commands go on afterwards, and each job runs once", {
  skip,
}, async () => {
  const { login } = bed;
  const words = ["-koed", "-j", "oe", "-o", `${out}/out/`, join(out, "job.sh")];
  const ids: string[] = [];
  for (const way of ["in", "out"] as const) {
    // A command that begins now cannot connect before the link is good again.
    const { lost: before } = await login.weather({ way, lost: 1 });
    const asked = bed.fromLogin(["qsub", ...words], USER);
    await until("frames are lost", async () => (await login.weather({ way, lost: 1 })).lost >= before + 3);
    await login.weather();
    ids.push((await asked).trim());
  }
  for (const [cut, mend] of [
    [() => login.weather({ way: "in", lost: 1 }), () => login.weather()],
    [() => login.weather({ way: "out", lost: 1 }), () => login.weather()],
    [() => login.cable("down"), () => login.cable("up")],
  ] as const) {
    // A command that waits for its job is told of the end that it has missed.
    const known = new Set(Object.keys(records()));
    const waits = bed.fromLogin(["qsub", "-W", "block=true", ...words], USER);
    const own = (): string | undefined => Object.keys(records()).find((id) => !known.has(id));
    await until("the job is there", () => own() !== undefined);
    await cut();
    const id = own() ?? "";
    await untilAllEnded([id]);
    await mend();
    assert.equal((await waits).trim(), id);
    ids.push(id);
  }
  login.cable("down");
  await assert.rejects(bed.fromLogin(["qsub", ...words], USER), /cannot connect to server head/);
  login.cable("up");
  ids.push((await bed.fromLogin(["qsub", ...words], USER)).trim());
  await untilAllEnded(ids);
  accountedOnce(ids);
});

test("links cut, one-way and unplugged while jobs flow: every job runs once", { skip }, async () => {
  const { host } = bed;
  // However slow the machine is, no host is away for so long that its jobs run again elsewhere.
  bed.qmgr("set server node_fail_requeue = 3600");
  const ids = await submit(60);
  await flow(ids, 20);
  // Of each partition one host goes: one hears nothing, one is not heard, of one the cable is pulled.
  await host("node2").weather({ way: "in", lost: 1 });
  await host("node5").weather({ way: "out", lost: 1 });
  host("node8").cable("down");
  ids.push(...(await submit(20)));
  for (const name of ["node2", "node5", "node8"]) await nodeIs(name, /state-unknown|down/);
  // A scheduler and the database are away for a while.
  await host("sched1").weather({ lost: 1 });
  await until("s1 is down", () => /state = down/.test(bed.pbs(["qmgr", "-c", "list sched s1 state"])));
  ids.push(...(await submit(10)));
  await bed.db.weather({ peer: bed.head.address, lost: 1 });
  const asked = bed.fromLogin(["qsub", "-q", "q2", "-koed", "-j", "oe", "-o", `${out}/out/`, join(out, "job.sh")], USER);
  await until("the server misses its database", () => /waiting for the database/.test(bed.log(bed.head, "server_logs")));
  await bed.db.weather();
  ids.push((await asked).trim());
  await host("sched1").weather();
  for (const name of ["node2", "node5"]) await host(name).weather();
  host("node8").cable("up");
  for (const { name } of bed.moms) await nodeIs(name, /^(free|job-busy)$/);
  await untilAllEnded(ids);
  accountedOnce(ids);
});
