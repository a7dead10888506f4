// Two servers on hosts of their own, a database on a third host, and moms (docs/standby.md). The primary is killed, stopped, and cut off from its database, from the moms
// and from both while jobs flow: the standby takes over, each job runs exactly once, and the server that was replaced starts nothing.

import assert from "node:assert/strict";
import { appendFileSync, chmodSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, type TestContext, test } from "node:test";
import { isAlive, until } from "../../complex.ts";
import { lackOfUsers } from "../../needed-users.ts";
import { LACK_OF_POSTGRES, type Postgres, startPostgres } from "../../store/postgres-bed.ts";
import { type Bed, closeBed, joins, makeBed } from "../bed.ts";
import { lackOfMunge, type Munged, startMunged } from "../munged.ts";
import { lackOfNamespaces, lackOfWeather, makeNet, type Net, type NetHost } from "../namespaces.ts";

const USER = "pbsuser1";
/** Jobs that flow while the primary fails. */
const JOBS = 700;
/** The bound on a take-over, in seconds. A machine that is ten times slower needs more for the start of the server, not for the silence. */
const TAKE_OVER_S_MAX = 60;
const lack = lackOfNamespaces() || lackOfWeather() || lackOfUsers(USER) || lackOfMunge() || LACK_OF_POSTGRES;
const how = { skip: lack };

let net: Net;
let bed: Bed;
let postgres: Postgres;
let munged: Munged | undefined;
let head: NetHost;
let spare: NetHost;
let db: NetHost;
let marks: string;
/** ids of all jobs that were acknowledged */
const ids: string[] = [];

const host = (name: string): NetHost => net.hosts.find((each) => each.name === name) as NetHost;
const pidOf = ({ name }: NetHost, lock: string): number =>
  Number.parseInt(readFileSync(join(net.dir, name, "complex/pbs/server_priv", lock), "utf8"), 10);
const leader = (): string => postgres.sql("SELECT coalesce(host, '') FROM partita.leader");
const at = (where: NetHost, ...words: readonly string[]): string => where.must(...bed.wordsAt(where, words));

before(async () => {
  if (lack !== false) return;
  net = makeNet(["head", "spare", "db", "node1", "node2"], { weather: true, home: true });
  [head, spare, db] = [host("head"), host("spare"), host("db")];
  postgres = startPostgres({
    within: db.within,
    conf: ["listen_addresses = '*'"],
    hba: [head, spare].map(({ address }) => `host all all ${address}/32 scram-sha-256`),
  });
  munged = await startMunged();
  bed = makeBed(net, head, "system", `PARTITA_MUNGE_SOCKET=${munged.socket}\n`);
  const lines = ["PARTITA_STORE=postgres", "PBS_PRIMARY=head", "PBS_SECONDARY=spare", ""];
  appendFileSync(join(bed.homeOf(head), "pbs.conf"), lines.join("\n"));
  const database = join(bed.homeOf(head), "pbs/server_priv/database.conf");
  writeFileSync(database, postgres.conf().replace(/^host = .*$/m, `host = ${db.address}\nsslmode = disable\nsettle = 10`), { mode: 0o600 });
  marks = join(net.dir, "marks");
  mkdirSync(marks);
  chmodSync(marks, 0o1777);
  writeFileSync(join(net.dir, "mark.sh"), `echo $PBS_JOBID >>${marks}/$PBS_JOBID\nexec /bin/sleep 0.2\n`);
  bed.partita(head, "start");
  joins(bed, spare, "--standby");
  for (const name of ["node1", "node2"]) {
    joins(bed, host(name));
    at(head, "qmgr", "-c", `create node ${name} resources_available.ncpus=4`);
    bed.partita(host(name), "start");
  }
  at(head, "qmgr", "-c", "set server job_history_enable = True");
  bed.partita(spare, "start");
  for (const name of ["node1", "node2"]) await until(`${name} is free`, () => bed.state(name) === "free");
});
after(async () => {
  if (net !== undefined) closeBed(net);
  postgres?.remove();
  await munged?.close();
});

/** Submits jobs, each of which leaves a mark for each of its runs. */
async function submit(count: number): Promise<void> {
  const input = `-k oe -- /bin/sh ${join(net.dir, "mark.sh")}\n`.repeat(count);
  const printed = await head.later(bed.wordsAt(head, ["qsub", "--batch", "-"], USER), { input });
  ids.push(...printed.split("\n").filter((line) => /^\d+\.head$/.test(line)));
}

const countMarks = (): number => readdirSync(marks).length;

/** Waits until another server leads. Returns after how many seconds it did. */
async function untilLeads(name: string): Promise<number> {
  const begin_ms = performance.now();
  await until(`${name} leads`, () => leader() === name);
  return (performance.now() - begin_ms) / 1000;
}

/** Each acknowledged job has run once, as its own mark, its record in the accounting files and the server say. */
async function allRanOnce(where: NetHost): Promise<void> {
  const ended = (): number =>
    at(where, "qselect", "-x", "-s", "F")
      .split("\n")
      .filter((line) => line !== "").length;
  await until("all jobs have ended", () => ended() >= ids.length);
  assert.deepEqual(
    ids.filter((id) => readFileSync(join(marks, id), "utf8") !== `${id}\n`),
    [],
    "each job ran once",
  );
  const records = ["head", "spare"].flatMap((name) => accounting(name));
  const ends = new Map<string, number>();
  for (const line of new Set(records)) {
    const [, type, id] = line.split(";");
    if (type === "E" && id !== undefined) ends.set(id, (ends.get(id) ?? 0) + 1);
  }
  assert.deepEqual(
    ids.filter((id) => ends.get(id) !== 1),
    [],
    "each job was accounted for once",
  );
}

function accounting(name: string): readonly string[] {
  const directory = join(net.dir, name, "complex/pbs/server_priv/accounting");
  return readdirSync(directory).flatMap((file) => readFileSync(join(directory, file), "utf8").split("\n"));
}

/** The secondary has taken over; the primary takes the lead back when it runs again. */
async function takesBack(): Promise<void> {
  await untilLeads("head");
  await until("the head answers", () => head.run(bed.wordsAt(head, ["qstat", "-B"])).status === 0);
  for (const name of ["node1", "node2"]) await until(`${name} is free`, () => bed.state(name) === "free");
  await until("the secondary waits", () => isAlive(pidOf(spare, "server.lock.secondary")));
}

/** The log of the server on that host has such a line. */
function loggedAt(where: NetHost, line: RegExp): void {
  const log = bed.log(where, "server_logs");
  assert.ok(line.test(log), `${line.source} is missing:\n${log.slice(-5000)}`);
}

function tellTime(t: TestContext, what: string, seconds: number): void {
  t.diagnostic(`${what}: the standby led after ${seconds.toFixed(1)} s`);
  assert.ok(seconds <= TAKE_OVER_S_MAX, `${what}: take-over took ${seconds} s`);
}

test("standby: the primary is killed while jobs flow", how, async (t) => {
  const submitting = submit(JOBS);
  await until("jobs flow", () => countMarks() > JOBS / 10);
  await submitting;
  process.kill(pidOf(head, "server.lock"), "SIGKILL");
  tellTime(t, "killed", await untilLeads("spare"));
  await allRanOnce(spare);
  assert.match(at(spare, "qstat", "-Bf"), /server_host = spare/);
  assert.match(at(spare, "qmgr", "-c", "list sched default"), /sched_host = spare/);
  bed.partita(head, "start");
  await takesBack();
  assert.match(at(head, "qmgr", "-c", "list sched default"), /sched_host = head/);
});

test("standby: the primary is stopped while jobs flow, and goes on later", how, async (t) => {
  await submit(JOBS);
  await until("jobs flow", () => countMarks() > ids.length - JOBS * 0.9);
  const primary = pidOf(head, "server.lock");
  process.kill(primary, "SIGSTOP");
  tellTime(t, "stopped", await untilLeads("spare"));
  await until("jobs end under the new server", () => countMarks() > ids.length - JOBS * 0.5);
  process.kill(primary, "SIGCONT");
  await until("the replaced server has ended", () => !isAlive(primary));
  loggedAt(head, /the server ends at once: .*(the server on spare .*|another server )has taken this database/);
  await takesBack();
  await allRanOnce(head);
});

test("standby: the primary is cut off from its database while jobs flow", how, (t) => cutOff(t, "cut off from the database", [db]));

test("standby: the primary is cut off from its database and the moms while jobs flow", how, (t) =>
  cutOff(t, "cut off from database and moms", [db, host("node1"), host("node2")]),
);

test("standby: the primary is cut off from the moms only while jobs flow", how, (t) =>
  cutOff(t, "cut off from the moms", [host("node1"), host("node2")]),
);

/** The primary is cut off from these hosts while jobs flow, and leads again afterwards. */
async function cutOff(t: TestContext, what: string, hosts: readonly NetHost[]): Promise<void> {
  await submit(JOBS);
  await until("jobs flow", () => countMarks() > ids.length - JOBS * 0.9);
  const primary = pidOf(head, "server.lock");
  await head.weather(...hosts.map(({ address }) => ({ peer: address, lost: 1 })));
  tellTime(t, what, await untilLeads("spare"));
  if (hosts.includes(db)) {
    const asked = head.run(["timeout", "2", ...bed.wordsAt(head, ["qstat", "-B"])]);
    assert.notEqual(asked.status, 0, `a server that may have been replaced answers nobody: ${asked.stdout}`);
  } else
    assert.match(bed.log(head, "server_logs"), /of 2 hosts this server reaches 0, the server on spare \(pid \d+\) 2: that server leads/);
  await allRanOnce(spare);
  assert.equal(leader(), "spare", "the primary does not take the lead back while it is cut off");
  await head.weather();
  await until("the replaced server has ended", () => !isAlive(primary));
  await takesBack();
}
