// A scheduler on another host than the server: started there, dialled, cut off, delayed, stopped; another host cannot take its place.

import assert from "node:assert/strict";
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { test } from "node:test";
import { until } from "../../complex.ts";
import { lackOfUsers } from "../../needed-users.ts";
import { ROOT } from "../../shared.ts";
import { type Bed, closeBed, joins, makeBed } from "../bed.ts";
import { lackOfNamespaces, makeNet, type NetHost } from "../namespaces.ts";
import type { RelayOrder } from "../relay.ts";

const USER = "pbsuser1";
const skip = lackOfNamespaces() || lackOfUsers(USER);

type Far = Bed & { readonly node7: NetHost; readonly node8: NetHost };

const qmgr = (bed: Bed, ...lines: readonly string[]): void => {
  for (const line of lines) bed.pbs(["qmgr", "-c", line]);
};
const sched = (bed: Bed): Readonly<Record<string, string>> => {
  const lines = bed.pbs(["qmgr", "-c", "list sched s1"]).replaceAll("\n\t", " ").split("\n");
  return Object.fromEntries(lines.flatMap((line) => (line.includes(" = ") ? [line.trim().split(/ = (.*)/s) as [string, string]] : [])));
};
const untilState = (bed: Bed, ...states: readonly string[]): Promise<unknown> =>
  until(`s1 is ${states.join(" or ")}: ${JSON.stringify(sched(bed))}`, () => states.includes(sched(bed)["state"] ?? ""));
const submit = (bed: Bed, ...command: readonly string[]): string =>
  bed.pbs(["qsub", "-q", "q1", "-k", "oe", "--", ...command], USER).trim();
const untilEnd = (bed: Bed, id: string): Promise<unknown> => until(`${id} has ended`, () => bed.job(id)["job_state"] === "F");
/** pids of the processes of a host whose command line has these words. */
const pidsOf = (host: NetHost, words: string): string[] =>
  host
    .run([
      "sh",
      "-c",
      `ip netns pids $(ip netns identify $$) | xargs ps -o pid=,args= -p | awk '/[${words[0]}]${words.slice(1)}/ {print $1}'`,
    ])
    .stdout.split("\n")
    .filter((line) => line !== "");
const schedPids = (host: NetHost): string[] => pidsOf(host, "pbs_sched -I s1");
const keepers = (host: NetHost): number => pidsOf(host, "pbs_sched_keeper -I s1").length;
const schedLog = (bed: Far): string => bed.log(bed.node7, "sched_logs_s1");

test("a scheduler on another host", { skip }, async () => {
  const net = makeNet(["head", "node7", "node8"]);
  const [head, node7, node8] = net.hosts as readonly [NetHost, NetHost, NetHost];
  try {
    const bed: Far = { ...makeBed(net, head), node7, node8 };
    bed.partita(head, "start");
    for (const host of [node7, node8]) joins(bed, host);
    await isMissed(bed);
    await works(bed);
    await comesBack(bed);
    await survivesCuts(bed);
    await isSlow(bed);
    await keepsItsPlace(bed);
    await endsWithServer(bed);
  } finally {
    closeBed(net);
  }
});

/** Nobody has started it: it is down and says so. */
async function isMissed(bed: Far): Promise<void> {
  qmgr(
    bed,
    "create node node7",
    "set server job_history_enable = True",
    "set server sched_silence_timeout = 3",
    "create sched s1 partition=p1,sched_host=node7",
    "set sched s1 scheduling = True,sched_cycle_length = 3",
    "create queue q1 queue_type=e,partition=p1,enabled=true,started=true",
    "set node node7 partition = p1",
  );
  const comment = "Not reached: no scheduler s1 listens on ports 15050 to 15069 of node7";
  await until("the comment says why", () => sched(bed)["comment"] === comment);
  const { state, sched_host, sched_port } = sched(bed);
  assert.deepEqual([state, sched_host, sched_port], ["down", "node7", undefined]);
  const id = submit(bed, "/bin/true");
  // The lines of a log are not written at once.
  await until("the log says so", () => bed.log(bed.head, "server_logs").includes(`Unable to reach scheduler associated with job ${id}`));
  assert.throws(() => bed.pbs(["qrun", id]), /Could not contact Scheduler/);
  assert.match(bed.partita(bed.head, "explain", id), /Scheduler s1 on host node7 cannot be reached/);
  bed.pbs(["qdel", id]);
}

/** `partita start` on its host starts it. Jobs, qrun, explain and reservations as with a local scheduler. */
async function works(bed: Far): Promise<void> {
  assert.match(bed.partita(bed.node7, "start"), /pbs_sched -I s1/);
  await untilState(bed, "idle");
  assert.equal(sched(bed)["comment"], undefined);
  await until("node7 is free", () => bed.state("node7") === "free");
  const id = submit(bed, "/bin/true");
  await untilEnd(bed, id);
  assert.deepEqual([bed.job(id)["Exit_status"], bed.job(id)["exec_host"]], [0, "node7/0"]);

  qmgr(bed, "set sched s1 scheduling = False");
  const waiting = submit(bed, "/bin/true");
  bed.pbs(["qrun", waiting]);
  await untilEnd(bed, waiting);
  qmgr(bed, "set sched s1 scheduling = True");

  const large = bed.pbs(["qsub", "-q", "q1", "-l", "ncpus=1000", "--", "/bin/true"], USER).trim();
  await until("the comment says why", () => /^Can Never Run: /.test(String(bed.job(large)["comment"])));
  assert.match(bed.partita(bed.head, "explain", large), /ncpus/);
  bed.pbs(["qdel", large]);
  const said = bed.pbs(["pbs_rsub", "-p", "p1", "-I", "60", "-R", "2330", "-D", "60", "-l", "select=1:ncpus=1"], USER);
  assert.match(said, /^R\d+\.head CONFIRMED/);
  bed.pbs(["pbs_rdel", said.split(" ")[0] ?? ""], USER);
}

/** Killed on its host, it is started again there: twice at once, then after a while, or when `partita start` is called. */
async function comesBack(bed: Far): Promise<void> {
  for (let crash = 1; crash <= 2; crash++) {
    const [pid = ""] = schedPids(bed.node7);
    bed.node7.must("kill", "-9", pid);
    await until("there is another one", () => schedPids(bed.node7).some((other) => other !== pid));
    const id = submit(bed, "/bin/true");
    await untilEnd(bed, id);
    assert.equal(bed.job(id)["run_count"], 1);
  }
  const [pid = ""] = schedPids(bed.node7);
  const status = (): string => bed.node7.run([join(bed.net.dir, "opt/bin/partita"), "status", "--home", bed.homeOf(bed.node7)]).stdout;
  assert.match(status(), new RegExp(`scheduler s1: pid ${pid}$`, "m"));
  bed.node7.must("kill", "-9", pid);
  await until("the keeper waits", () => schedLog(bed).includes("was ended by SIGKILL: it is started again in 10 seconds"));
  // On a slow machine the keeper may have started it again already.
  assert.match(status(), /scheduler s1: (?:has crashed and is started again later|pid \d+$)/m);
  bed.partita(bed.node7, "start");
  const id = submit(bed, "/bin/true");
  await untilEnd(bed, id);
  assert.deepEqual([bed.job(id)["run_count"], sched(bed)["comment"]], [1, undefined]);

  // `partita stop` ends the keeper, too; a scheduler with -n has none.
  bed.partita(bed.node7, "stop");
  await until("nothing of it is left", () => schedPids(bed.node7).length + keepers(bed.node7) === 0);
  const conf = `PBS_CONF_FILE=${join(bed.homeOf(bed.node7), "pbs.conf")}`;
  bed.node7.must("env", conf, join(bed.net.dir, "opt/sbin/pbs_sched"), "-I", "s1", "-n");
  await untilState(bed, "idle");
  assert.equal(keepers(bed.node7), 0);
  bed.node7.must("kill", "-9", schedPids(bed.node7)[0] ?? "");
  await until("the comment says why", () => sched(bed)["comment"]?.startsWith("Not reached: no scheduler s1") === true);
  bed.partita(bed.node7, "start");
  await untilState(bed, "idle");
  assert.equal(keepers(bed.node7), 1);
}

/** The cable is pulled: the connection ends in time, and a job of meanwhile runs once afterwards. */
async function survivesCuts(bed: Far): Promise<void> {
  bed.node7.cable("down");
  await untilState(bed, "down");
  const id = submit(bed, "/bin/true");
  bed.node7.cable("up");
  await untilEnd(bed, id);
  assert.equal(bed.job(id)["run_count"], 1);
}

/** Over a relay that delays, and that loses everything of one direction or both. */
async function isSlow(bed: Far): Promise<void> {
  const control = join(bed.net.dir, "relay.sock");
  const node = join(ROOT, "node_modules/node/bin/node");
  const relay = `exec setsid "$@" </dev/null >${bed.net.dir}/relay.out 2>&1 &`;
  bed.node8.must("sh", "-c", relay, "sh", node, join(import.meta.dirname, "../relay.ts"), "15050", `${bed.node7.address}:15050`, control);
  await until("the relay listens", () => readFileSync(join(bed.net.dir, "relay.out"), "utf8").includes("ready"));
  const orders = async (order: RelayOrder): Promise<void> => {
    const socket = connect(control);
    socket.end(`${JSON.stringify(order)}\n`);
    await once(socket.resume(), "close");
  };
  nameAddress(bed, bed.node8.address);
  // Another port: the server dials anew.
  qmgr(bed, "set sched s1 sched_port = 15050");
  await untilState(bed, "idle");

  await orders({ delay_ms: 300, there: true, back: true });
  const slow = Array.from({ length: 5 }, () => submit(bed, "/bin/true"));
  for (const id of slow) await untilEnd(bed, id);

  for (const [there, back] of [
    [true, false],
    [false, true],
    [false, false],
  ] as const) {
    await orders({ delay_ms: 0, there, back });
    const id = submit(bed, "/bin/true");
    await untilState(bed, "down");
    await orders({ delay_ms: 0, there: true, back: true });
    await untilEnd(bed, id);
    assert.equal(bed.job(id)["run_count"], 1, `there ${there}, back ${back}`);
  }
  for (const id of slow) assert.equal(bed.job(id)["run_count"], 1);
  bed.node8.run([
    "sh",
    "-c",
    "ip netns pids $(ip netns identify $$) | xargs ps -o pid=,args= -p | awk '/[r]elay.ts/ {print $1}' | xargs kill",
  ]);
  nameAddress(bed, bed.node7.address);
  await untilState(bed, "idle");
}

/** What the head takes for the address of node7. */
function nameAddress({ net, head }: Bed, address: string): void {
  const file = join(net.dir, head.name, "etc/hosts");
  writeFileSync(file, readFileSync(file, "utf8").replace(/^\S+ node7$/m, `${address} node7`));
}

/** node8 has a certificate of the complex and a scheduler of that name: at node7's address it is not taken for node7's. */
async function keepsItsPlace(bed: Far): Promise<void> {
  qmgr(bed, "set sched s1 sched_host = node8", "unset sched s1 sched_port");
  await until("the scheduler on node7 has ended", () => schedPids(bed.node7).length === 0);
  assert.match(bed.partita(bed.node8, "start"), /pbs_sched -I s1/);
  await untilState(bed, "idle");
  nameAddress(bed, bed.node8.address);
  qmgr(bed, "set sched s1 sched_host = node7");
  await until("the scheduler on node8 has ended", () => schedPids(bed.node8).length === 0);
  const conf = `PBS_CONF_FILE=${join(bed.homeOf(bed.node8), "pbs.conf")}`;
  bed.node8.must("env", conf, join(bed.net.dir, "opt/sbin/pbs_sched"), "-I", "s1");
  await until("it is refused", () => sched(bed)["comment"]?.endsWith("the peer is the host node8, not node7") === true);
  assert.equal(sched(bed)["state"], "down");
  nameAddress(bed, bed.node7.address);
  bed.partita(bed.node7, "start");
  await untilState(bed, "idle");
}

/** qterm leaves it alone, and the server finds it again; qterm -s ends it. An upgrade of its host restarts it. */
async function endsWithServer(bed: Far): Promise<void> {
  bed.pbs(["qterm"]);
  bed.partita(bed.head, "start");
  await untilState(bed, "idle");
  bed.pbs(["qterm", "-s"]);
  await until("it has ended", () => schedPids(bed.node7).length === 0);
  const { status, stderr } = bed.head.run([join(bed.net.dir, "opt/bin/partita"), "start", "--home", bed.homeOf(bed.head)]);
  assert.deepEqual([status, /scheduler s1 is down: Not reached: no scheduler s1 listens/.test(stderr)], [0, true], stderr);
  bed.partita(bed.node7, "start");
  await untilState(bed, "idle");
  const before = schedPids(bed.node7);
  assert.match(
    bed.node7.must(join(ROOT, "bin/partita"), "upgrade", "--home", bed.homeOf(bed.node7)),
    /Restarted pbs_mom, pbs_sched -I s1\./,
  );
  await untilState(bed, "idle");
  assert.notDeepEqual(schedPids(bed.node7), before);
}
