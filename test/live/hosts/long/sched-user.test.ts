// A scheduler on another host that runs as its sched_user: it schedules without the rights of root and without the host's key.

import assert from "node:assert/strict";
import { readFileSync, statSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { until } from "../../complex.ts";
import { lackOfUsers } from "../../needed-users.ts";
import { type Bed, closeBed, joins, makeBed } from "../bed.ts";
import { lackOfNamespaces, makeNet, type NetHost } from "../namespaces.ts";

const [USER, SCHED_USER] = ["pbsuser1", "pbsuser2"];
const skip = lackOfNamespaces() || lackOfUsers(USER, SCHED_USER);

let bed: Bed;
let node7: NetHost;

before(async () => {
  if (skip !== false) return;
  const net = makeNet(["head", "node7"]);
  const [head, other] = net.hosts as [NetHost, NetHost];
  node7 = other;
  bed = makeBed(net, head);
  bed.partita(head, "start");
  joins(bed, node7);
  for (const line of [
    "create node node7",
    "set server job_history_enable = True",
    "create sched s1 partition=p1,sched_host=node7",
    `set sched s1 sched_user = ${SCHED_USER}`,
    "create queue q1 queue_type=e,partition=p1,enabled=true,started=true",
    "set node node7 partition = p1",
    "set sched s1 scheduling = True",
  ])
    bed.pbs(["qmgr", "-c", line]);
});
after(() => {
  if (skip === false) closeBed(bed.net);
});

const state = (): string => /state = (\S+)/.exec(bed.pbs(["qmgr", "-c", "list sched s1"]))?.[1] ?? "";
const untilIdle = (): Promise<unknown> => until("s1 is idle", () => state() === "idle");
/** pids of the processes of node7 with this title, and their users. */
function processes(title: string): readonly { readonly pid: string; readonly user: string }[] {
  const list = "ip netns pids $(ip netns identify $$) | xargs ps -o pid=,user:20=,args= -p";
  return node7
    .run(["sh", "-c", list])
    .stdout.split("\n")
    .map((line) => line.trim().split(/\s+/))
    .flatMap(([pid = "", user = "", ...args]) => (args.join(" ").startsWith(title) ? [{ pid, user }] : []));
}
const scheds = () => processes("pbs_sched -I s1");
const relays = () => processes("pbs_sched_relay -I s1");
const keepers = () => processes("pbs_sched_keeper -I s1");
const home = (): string => join(bed.homeOf(node7), "pbs");

async function runsJob(): Promise<void> {
  const id = bed.pbs(["qsub", "-q", "q1", "-k", "oe", "--", "/bin/true"], USER).trim();
  await until(`${id} has ended`, () => bed.job(id)["job_state"] === "F");
  assert.deepEqual([bed.job(id)["Exit_status"], bed.job(id)["run_count"]], [0, 1]);
}

test("partita start starts it as this user, and it schedules jobs", { skip }, async () => {
  bed.partita(node7, "start");
  await untilIdle();
  await until("node7 is free", () => bed.state("node7") === "free");
  await runsJob();
  const users = [scheds(), relays(), keepers()].map((list) => list.map(({ user }) => user).join());
  assert.deepEqual(users, [SCHED_USER, "root", "root"]);
  const status = readFileSync(`/proc/${scheds()[0]?.pid}/status`, "utf8");
  assert.match(status, /^CapEff:\s*0+$/m);
  const identity = join(home(), "identity/host.pem");
  assert.throws(() => node7.must("setpriv", `--reuid=${SCHED_USER}`, `--regid=${SCHED_USER}`, "--init-groups", "cat", identity));
  assert.equal(node7.must("stat", "-c", "%U", join(home(), "sched_priv_s1")).trim(), SCHED_USER);
  assert.match(bed.partita(node7, "status"), new RegExp(`scheduler s1: pid ${scheds()[0]?.pid}$`, "m"));
  assert.doesNotMatch(bed.log(bed.head, "server_logs"), /sched_user is/);
});

test("whichever of its processes is killed, it is started again, and its own log says so", { skip }, async () => {
  for (const list of [scheds, relays]) {
    const [killed] = list();
    const former = scheds()[0]?.pid;
    node7.must("kill", "-9", killed?.pid ?? "");
    await until("there is another one", () => scheds().some(({ pid }) => pid !== former));
    await untilIdle();
    await runsJob();
    assert.deepEqual([scheds().length, relays().length, keepers().length], [1, 1, 1]);
  }
  await until("the log says so", () => bed.log(node7, "sched_logs_s1").includes("it is started again"));
  assert.equal(
    node7.must("find", join(home(), "sched_logs_s1"), join(home(), "sched_priv_s1"), "!", "-user", SCHED_USER, "!", "-name", "sched_out"),
    "",
  );
});

test("another user is used after a restart on its host, and the server's log says that one is needed", { skip }, async () => {
  bed.pbs(["qmgr", "-c", "unset sched s1 sched_user"]);
  bed.pbs(["qmgr", "-c", `set sched s1 sched_user = ${USER}`]);
  const text = `sched_user is ${USER}, but the scheduler runs as ${SCHED_USER} on host node7: restart it there`;
  await until("the log says so", () => bed.log(bed.head, "server_logs").includes(text));
  bed.partita(node7, "stop");
  await until("nothing of it is left", () => scheds().length + relays().length + keepers().length === 0);
  node7.must("chown", "-R", USER, join(home(), "sched_priv_s1"), join(home(), "sched_logs_s1"));
  bed.partita(node7, "start");
  await untilIdle();
  assert.deepEqual(
    scheds().map(({ user }) => user),
    [USER],
  );
  await runsJob();
});

test("root follows no link that the user of the scheduler plants, and ends no process that the user names", { skip }, async () => {
  bed.partita(node7, "stop");
  await until("nothing of it is left", () => scheds().length + relays().length + keepers().length === 0);
  const precious = join(bed.net.dir, "precious");
  bed.head.must("sh", "-c", `echo precious >${precious}`);
  const out = join(home(), "sched_priv_s1/sched_out");
  node7.must("rm", "-f", out);
  symlinkSync(precious, out);
  const conf = `PBS_CONF_FILE=${join(bed.homeOf(node7), "pbs.conf")}`;
  const program = join(bed.net.dir, "opt/sbin/pbs_sched");
  const { status, stderr } = node7.run(["env", conf, program, "-I", "s1", "-U", USER]);
  assert.deepEqual([status, /sched_out cannot be written safely/.test(stderr)], [1, true], stderr);
  assert.equal(readFileSync(precious, "utf8"), "precious\n");
  node7.must("rm", out);
  // The user holds the lock of a scheduler and writes a pid of root's into it.
  const lock = join(home(), "sched_priv_s1/sched.lock");
  const become = ["setpriv", `--reuid=${USER}`, `--regid=${USER}`, "--init-groups"];
  const mom = processes("pbs_mom")[0]?.pid ?? "";
  assert.equal(mom, "", "the mom was stopped, too");
  node7.must("sh", "-c", `exec setsid sleep 1000 >/dev/null 2>&1 </dev/null & echo $! >${bed.net.dir}/victim`);
  const victim = readFileSync(join(bed.net.dir, "victim"), "utf8").trim();
  const holds = `exec setsid flock ${lock} sh -c "echo ${victim} >${lock}; exec sleep 1000" >/dev/null 2>&1 </dev/null &`;
  node7.must(...become, "sh", "-c", holds);
  await until("the lock names the victim", () => readFileSync(lock, "utf8").trim() === victim);
  bed.partita(node7, "stop");
  assert.ok(statSync(`/proc/${victim}`).isDirectory());
  node7.must("kill", victim, ...processes("flock").map(({ pid }) => pid), ...processes("sleep 1000").map(({ pid }) => pid));
});
