// A complex of a primary server and a standby, a database on a host of its own, two schedulers on other hosts, a login host and eight moms (docs/standby.md). While
// jobs flow, the primary is killed, stopped, and cut off from its database, from the moms, and from both: the standby takes over, each job runs exactly once, and the
// server that was replaced starts nothing. Schedulers of other hosts follow; one that the secondary cannot reach runs on the host of the secondary meanwhile.

import assert from "node:assert/strict";
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, type TestContext, test } from "node:test";
import { isAlive, until } from "../../complex.ts";
import { lackOfUsers } from "../../needed-users.ts";
import { type BigBed, lackOfBigBed, makeBigBed } from "../big-bed.ts";
import type { NetHost } from "../namespaces.ts";

const USER = "pbsuser1";
const QUEUES = ["workq", "q1", "q2"] as const;
/** Jobs that flow during each fault: 2,010 in all. */
const JOBS = 402;
/** The bound on a take-over, in seconds. A machine that is ten times slower needs more for the start of the server, not for the silence. */
const TAKE_OVER_S_MAX = 60;
const lack = lackOfUsers(USER) || lackOfBigBed();
const how = { skip: lack };

let bed: BigBed;
let head: NetHost;
let spare: NetHost;
let out = "";
/** ids of all jobs that were acknowledged */
const ids: string[] = [];

const pidOf = ({ name }: NetHost, lock: string): number =>
  Number.parseInt(readFileSync(join(bed.net.dir, name, "complex/pbs/server_priv", lock), "utf8"), 10);
const leader = (): string => bed.postgres.sql("SELECT coalesce(host, '') FROM partita.leader");
const at = (where: NetHost, ...words: readonly string[]): string => where.must(...bed.wordsAt(where, words));

/** O_APPEND: lines of jobs that run at the same time do not mix. */
const SCRIPT = `host=$(cat /proc/sys/kernel/hostname)
echo "$PBS_JOBID begin" >>OUT/ran-$host
sleep 0.$(( \${PBS_JOBID%%.*} % 10 ))
echo "$PBS_JOBID end" >>OUT/ran-$host
`;

before(async () => {
  if (lack !== false) return;
  const begin_ms = performance.now();
  // Moms 1 and 2 serve the default partition, 3 to 5 p1, 6 to 8 p2.
  bed = await makeBigBed((mom) => (mom < 2 ? undefined : mom < 5 ? "p1" : "p2"), { standby: true, database: ["settle = 10"] });
  [head, spare] = [bed.head, bed.host("spare")];
  out = join(bed.net.dir, "out");
  mkdirSync(join(out, "out"), { recursive: true });
  head.must("chmod", "777", out, join(out, "out"));
  writeFileSync(join(out, "job.sh"), SCRIPT.replaceAll("OUT", out));
  // However slow the machine is, no host is away for so long that its jobs run again elsewhere.
  bed.qmgr("set server node_fail_requeue = 3600");
  console.log(`# the bed of ${bed.net.hosts.length} hosts is ready after ${((performance.now() - begin_ms) / 1000).toFixed(0)} s`);
});
after(async () => {
  if (lack === false) await bed?.close();
});

/** Submits jobs from the login host, as many to each queue. Each job writes a line when it begins and when it ends. */
async function submit(): Promise<void> {
  const lines = QUEUES.map((queue) => `-q ${queue} -l select=1:ncpus=1 -koed -j oe -o ${out}/out/ ${out}/job.sh\n`).join("");
  const printed = await bed.fromLogin(["qsub", "--batch", "-"], USER, lines.repeat(JOBS / QUEUES.length));
  const given = printed.trim().split("\n");
  assert.equal(given.length, JOBS, printed.slice(0, 2000));
  ids.push(...given);
}

/** What the jobs have written, by id: `HOST begin`, `HOST end`. */
function written(): ReadonlyMap<string, readonly string[]> {
  const all = new Map<string, string[]>();
  for (const file of readdirSync(out).filter((name) => name.startsWith("ran-")))
    for (const line of readFileSync(join(out, file), "utf8").split("\n").filter(Boolean)) {
      const [id = "", what] = line.split(" ");
      all.set(id, [...(all.get(id) ?? []), `${file.slice("ran-".length)} ${what}`]);
    }
  return all;
}

const countBegun = (): number => written().size;

/** Submits jobs, and waits until a tenth of them have begun. */
async function jobsFlow(): Promise<void> {
  await submit();
  await until("jobs flow", () => countBegun() > ids.length - JOBS * 0.9);
}

/** Waits until another server leads, and until it answers a command on the login host. */
async function untilTakenOver(t: TestContext, what: string): Promise<void> {
  const begin_ms = performance.now();
  const passed_s = (): number => (performance.now() - begin_ms) / 1000;
  await until(`${what}: the standby leads`, () => leader() === "spare");
  const led_s = passed_s();
  const shown = await bed.fromLogin(["qstat", "-Bf"], USER);
  t.diagnostic(`${what}: the standby led after ${led_s.toFixed(1)} s, and answered after ${passed_s().toFixed(1)} s`);
  assert.match(shown, /server_host = spare/);
  assert.ok(led_s <= TAKE_OVER_S_MAX, `${what}: take-over took ${led_s} s`);
}

/** Each acknowledged job has run once, as its own lines, the records in the accounting files and the server say. */
async function allRanOnce(): Promise<void> {
  const ended = async (): Promise<number> =>
    (await bed.fromLogin(["qselect", "-x", "-s", "F"], USER)).split("\n").filter((line) => line !== "").length;
  await until("all jobs have ended", async () => (await ended()) >= ids.length, 900);
  const all = written();
  const records = new Map<string, string[]>();
  for (const line of new Set(["head", "spare"].flatMap(accounting))) {
    const [, type, id, text = ""] = line.split(";");
    if (type === "S" || type === "E" || type === "R")
      records.set(id ?? "", [...(records.get(id ?? "") ?? []), `${type} ${/exec_host=([^/]*)/.exec(text)?.[1]}`]);
  }
  const wrong = ids.filter((id) => {
    const [begin, end, ...more] = all.get(id) ?? [];
    const host = begin?.split(" ")[0];
    const accounted = records.get(id)?.sort().join();
    return begin !== `${host} begin` || end !== `${host} end` || more.length > 0 || accounted !== `E ${host},S ${host}`;
  });
  assert.deepEqual(
    wrong.map((id) => ({ id, wrote: all.get(id), records: records.get(id) })),
    [],
    "each job ran once, and was accounted for once, on the host where it ran",
  );
}

function accounting(name: string): readonly string[] {
  const directory = join(bed.net.dir, name, "complex/pbs/server_priv/accounting");
  return readdirSync(directory).flatMap((file) => readFileSync(join(directory, file), "utf8").split("\n"));
}

/** The secondary has taken over; the primary takes the lead back. */
async function takesBack(): Promise<void> {
  await until("the primary leads", () => leader() === "head");
  await until("the head answers", () => head.run(bed.wordsAt(head, ["qstat", "-B"])).status === 0);
  for (const { name } of bed.moms) await until(`${name} is free`, () => bed.state(name) === "free");
  await until("the secondary waits", () => isAlive(pidOf(spare, "server.lock.secondary")));
  for (const sched of ["s1", "s2"]) await until(`${sched} is idle`, () => /state = idle/.test(placeOf(head, sched, "state")));
}

/** The log of the server on that host has such a line. */
function loggedAt(where: NetHost, line: RegExp): void {
  const log = bed.log(where, "server_logs");
  assert.ok(line.test(log), `${line.source} is missing:\n${log.slice(-5000)}`);
}

const placeOf = (where: NetHost, sched: string, attribute = "sched_host"): string =>
  at(where, "qmgr", "-c", `list sched ${sched} ${attribute}`);
const storedHost = (sched: string): string =>
  bed.postgres.sql(`SELECT data::json->'attrs'->>'sched_host' FROM partita.scheds WHERE name = '${sched}'`);

test("standby: the primary is killed while jobs flow, and a scheduler cannot be reached from the secondary", how, async (t) => {
  const sched1 = bed.host("sched1");
  assert.match(placeOf(head, "default"), /sched_host = head/);
  assert.match(placeOf(head, "s1"), /sched_host = sched1/);
  await spare.weather({ peer: sched1.address, lost: 1 });
  await jobsFlow();
  process.kill(pidOf(head, "server.lock"), "SIGKILL");
  await untilTakenOver(t, "killed");
  await until("the secondary has started s1 on its own host", () => /sched_host = spare/.test(placeOf(spare, "s1")));
  assert.match(placeOf(spare, "default"), /sched_host = spare/);
  assert.match(placeOf(spare, "s2"), /sched_host = sched2/, "a scheduler that can be reached stays where it is");
  assert.equal(storedHost("s1"), "sched1", "the value of the administrator is kept");
  await allRanOnce();
  loggedAt(spare, /;Sched;s1;runs on host spare until the primary server leads again/);
  bed.partita(head, "start");
  await takesBack();
  assert.match(placeOf(head, "s1"), /sched_host = sched1/, "the primary dials the scheduler at its own host again");
  assert.match(placeOf(head, "s2"), /sched_host = sched2/);
  assert.match(placeOf(head, "default"), /sched_host = head/);
  await until(
    "the schedulers of the secondary have ended",
    () => spare.run(["sh", "-c", "ps -eo pid=,args= | grep '[p]bs_sched'"]).status !== 2,
  );
  await spare.weather();
});

test("standby: the primary is stopped while jobs flow, and goes on later", how, async (t) => {
  await jobsFlow();
  const primary = pidOf(head, "server.lock");
  process.kill(primary, "SIGSTOP");
  await untilTakenOver(t, "stopped");
  assert.match(at(head, "qstat", "-Bf"), /server_host = spare/, "a command beside the stopped server finds the other one");
  await until("jobs end under the new server", () => countBegun() > ids.length - JOBS * 0.5);
  process.kill(primary, "SIGCONT");
  await until("the replaced server has ended", () => !isAlive(primary));
  loggedAt(head, /the server ends at once: .*(the server on spare .*|another server )has taken this database/);
  await takesBack();
  await allRanOnce();
});

test("standby: the primary is cut off from its database while jobs flow", how, (t) =>
  cutOff(t, "cut off from the database", () => [bed.db]),
);

test("standby: the primary is cut off from its database and the moms while jobs flow", how, (t) =>
  cutOff(t, "cut off from the database and the moms", () => [bed.db, ...bed.moms]),
);

test("standby: the primary is cut off from the moms only while jobs flow", how, (t) => cutOff(t, "cut off from the moms", () => bed.moms));

/** The primary is cut off from these hosts while jobs flow, and leads again afterwards. */
async function cutOff(t: TestContext, what: string, hostsOf: () => readonly NetHost[]): Promise<void> {
  const hosts = hostsOf();
  await jobsFlow();
  const primary = pidOf(head, "server.lock");
  await head.weather(...hosts.map(({ address }) => ({ peer: address, lost: 1 })));
  await untilTakenOver(t, what);
  if (!hosts.includes(bed.db)) loggedAt(head, /of 8 hosts this server reaches 0, the server on spare \(pid \d+\) 8: that server leads/);
  await allRanOnce();
  assert.equal(leader(), "spare", "the primary does not take the lead back while it is cut off");
  await head.weather();
  await until("the replaced server has ended", () => !isAlive(primary));
  await takesBack();
}
