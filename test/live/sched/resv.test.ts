// Reservations over three partitions and the default scheduler's vnodes (interface 8 of the multi-scheduler design,
// docs/reference/scheduler.md 9), with real daemons and jobs.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { type Complex, startComplex, until } from "../complex.ts";

let complex: Complex;

/** v0 belongs to the default scheduler; P1 and P2 have one vnode each; P3 has two, one of which is offline until it is needed. */
const VNODES = ["v0", "v1", "v2", "v3", "v4"];
const PARTITION: Readonly<Record<string, string>> = { v1: "P1", v2: "P2", v3: "P3", v4: "P3" };

before(async () => {
  complex = await startComplex();
  const host = /^Name=([^|]+)/m.exec(complex.must("pbsnodes", ["-a", "-F", "dsv"]))?.[1] as string;
  const file = join(complex.work(), "vdef");
  writeFileSync(file, ["$configversion 2", ...VNODES.map((name) => `${name}: resources_available.ncpus = 2`), ""].join("\n"));
  complex.must("pbs_mom", ["-s", "insert", "vdef", file]);
  process.kill(complex.pid("mom") as number, "SIGHUP");
  await until("all vnodes are there", () => VNODES.every((name) => nodeState(name) === "free"));
  complex.qmgr(`set node ${host} resources_available.ncpus=0`, "set server reserve_retry_time=1", "set server job_history_enable=True");
  complex.must("pbsnodes", ["-o", "v4"]);
  for (const [name, partition] of Object.entries(PARTITION)) complex.qmgr(`set node ${name} partition=${partition}`);
  for (const at of [1, 2, 3]) {
    complex.qmgr(
      `create queue wq${at} queue_type=e,enabled=t,started=t,partition=P${at}`,
      `create sched s${at} partition=P${at},scheduling=True`,
    );
  }
  await until("all schedulers are idle", () => [1, 2, 3].every((at) => schedState(`s${at}`) === "idle"));
});
after(() => complex.stop());

const nodeState = (name: string): string | undefined => /state = (.*)/.exec(complex.run("pbsnodes", ["-v", name]).stdout)?.[1];
const schedState = (name: string): string | undefined => /state = (\w+)/.exec(complex.qmgr(`list sched ${name} state`))?.[1];

/** `202611221530.15` in the time zone of the commands. */
function at(time_ms: number): string {
  const time = new Date(time_ms);
  const two = (value: number): string => String(value).padStart(2, "0");
  const day = `${time.getFullYear()}${two(time.getMonth() + 1)}${two(time.getDate())}`;
  return `${day}${two(time.getHours())}${two(time.getMinutes())}.${two(time.getSeconds())}`;
}
const HOUR_MS = 3_600_000;
const inHours = (hours: number): string => at(Date.now() + hours * HOUR_MS);

/** pbs_rsub that waits for its answer: `R1.host CONFIRMED`. */
function reserve(...args: readonly string[]): { readonly id: string; readonly word: string } {
  const [id = "", word = ""] = complex
    .must("pbs_rsub", ["-I", "300", ...args])
    .trim()
    .split(" ");
  return { id, word };
}
function shown(id: string): Readonly<Record<string, string>> {
  const lines = complex.must("pbs_rstat", ["-f", id]).split("\n");
  return Object.fromEntries(
    lines.flatMap((line) => [...line.matchAll(/^(\S+) = (.*)$/g)].map(([, name = "", value = ""]) => [name, value])),
  );
}
const untilState = (id: string, state: string) => until(`${id} ${state}`, () => shown(id)["reserve_state"] === state && shown(id));
const queueOf = (id: string): string => id.split(".")[0] as string;

test("each of four partitions confirms a reservation, a fifth is denied", () => {
  const start = inHours(2);
  const asked = Array.from({ length: 4 }, () => reserve("-R", start, "-D", "3600", "-l", "select=1:ncpus=2"));
  assert.deepEqual(
    asked.map(({ word }) => word),
    Array(4).fill("CONFIRMED"),
  );
  assert.deepEqual(asked.map(({ id }) => shown(id)["partition"]).sort(), ["P1", "P2", "P3", "pbs-default"]);
  const fifth = reserve("-R", start, "-D", "3600", "-l", "select=1:ncpus=1");
  assert.equal(fifth.word, "DENIED");
  assert.match(complex.run("pbs_rstat", [fifth.id]).stderr, /Unknown Reservation Id/);
  for (const { id } of asked) {
    const { partition = "", resv_nodes = "" } = shown(id);
    const vnode = /\((\w+):ncpus=2\)/.exec(resv_nodes)?.[1] ?? "";
    assert.equal(PARTITION[vnode] ?? "pbs-default", partition);
    assert.match(complex.must("qstat", ["-Q", "-f", queueOf(id)]), new RegExp(`partition = ${partition}`));
    complex.must("pbs_rdel", [id]);
  }
});

test("a job submitted to a running reservation runs inside it, one outside does not take its place", async () => {
  const { id, word } = reserve("-p", "P1", "-R", at(Date.now() + 10_000), "-D", "3600", "-l", "select=1:ncpus=2");
  assert.equal(word, "CONFIRMED");
  const inside = complex.submit(["-q", queueOf(id), "-l", "select=1:ncpus=1", "--", "/bin/sleep", "1000"]);
  // First its walltime would reach into the reservation, then the reservation runs, so the job waits all the time.
  const outside = complex.submit(["-q", "wq1", "-l", "select=1:ncpus=1,walltime=1:00:00", "--", "/bin/true"]);
  await untilState(id, "RESV_RUNNING");
  const job = await complex.untilJob(inside, "R");
  assert.equal(job.exec_vnode, "(v1:ncpus=1)");
  const waits = await until(
    "the job outside is told why it waits",
    () => complex.job(outside).comment !== undefined && complex.job(outside),
  );
  assert.equal(waits.job_state, "Q");
  complex.must("pbs_rdel", [id]);
  await complex.untilJob(inside, "F");
  await complex.untilJob(outside, "F");
});

test("a standing reservation whose second occurrence cannot be is denied, one whose every occurrence can be is confirmed", () => {
  const start_ms = Date.now() + 3 * HOUR_MS;
  const blocker = reserve("-p", "P2", "-R", at(start_ms + 24 * HOUR_MS), "-D", "1800", "-l", "select=1:ncpus=1");
  assert.equal(blocker.word, "CONFIRMED");
  const start = new Date(start_ms).toISOString().replaceAll(/[-:T]/g, "").slice(0, 12);
  const standing = (ncpus: number): readonly string[] => {
    const args = ["-I", "300", "-p", "P2", "-R", start, "-D", "1800", "-r", "FREQ=DAILY;COUNT=3", "-l", `select=1:ncpus=${ncpus}`];
    const env = { ...complex.env(), PBS_TZID: "UTC" };
    return spawnSync(complex.command("pbs_rsub"), args, { env, encoding: "utf8", cwd: complex.work() }).stdout.trim().split(" ");
  };
  assert.equal(standing(2)[1], "DENIED");
  const [id = "", word] = standing(1);
  assert.equal(word, "CONFIRMED");
  assert.equal(shown(id)["reserve_count"], "3");
  for (const each of [id, blocker.id]) complex.must("pbs_rdel", [each]);
});

test("-p to a scheduler that is down stays UNCONFIRMED, and is confirmed when it comes back", async () => {
  complex.qmgr("set sched s2 scheduling=False");
  process.kill(complex.schedPid("s2") as number, "SIGKILL");
  await until("s2 is down", () => schedState("s2") === "down");
  const [id = "", word] = complex
    .must("rsub", ["-p", "P2", "-R", inHours(5), "-D", "3600", "-l", "select=1:ncpus=2"])
    .trim()
    .split(" ");
  assert.equal(word, "UNCONFIRMED");
  // Other schedulers have answered a later question by now, so none has taken this one.
  const other = reserve("-p", "P3", "-R", inHours(5), "-D", "3600", "-l", "select=1:ncpus=2");
  assert.equal(other.word, "CONFIRMED");
  assert.equal(shown(id)["reserve_state"], "RESV_UNCONFIRMED");
  complex.qmgr("set sched s2 scheduling=True");
  const { partition, resv_nodes } = await untilState(id, "RESV_CONFIRMED");
  assert.deepEqual([partition, resv_nodes], ["P2", "(v2:ncpus=2)"]);
  for (const each of [id, other.id]) complex.must("pbs_rdel", [each]);
});

test("a reservation that loses its vnode is degraded and confirmed elsewhere; what it was promised then is kept", async () => {
  const { id, word } = reserve("-p", "P3", "-R", inHours(4), "-D", "3600", "-l", "select=1:ncpus=2");
  assert.equal(word, "CONFIRMED");
  complex.must("pbsnodes", ["-r", "v4"]);
  const before = /\((\w+):/.exec(shown(id)["resv_nodes"] ?? "")?.[1] as string;
  const elsewhere = before === "v3" ? "v4" : "v3";
  complex.must("pbsnodes", ["-o", before]);
  await until("it is confirmed elsewhere", () => shown(id)["resv_nodes"] === `(${elsewhere}:ncpus=2)`);
  assert.equal(shown(id)["reserve_state"], "RESV_CONFIRMED");
  complex.must("pbsnodes", ["-r", before]);
  const second = reserve("-p", "P3", "-R", inHours(4), "-D", "3600", "-l", "select=1:ncpus=2");
  assert.equal(second.word, "CONFIRMED");
  assert.equal(shown(second.id)["resv_nodes"], `(${before}:ncpus=2)`);
  assert.equal(reserve("-p", "P3", "-R", inHours(4), "-D", "3600", "-l", "select=1:ncpus=1").word, "DENIED");
  for (const each of [id, second.id]) complex.must("pbs_rdel", [each]);
});

test("a scheduler that is lost while it is asked is asked again when it is back", async () => {
  const pid = complex.schedPid("s2") as number;
  process.kill(pid, "SIGSTOP");
  const [id = ""] = complex
    .must("pbs_rsub", ["-p", "P2", "-R", inHours(6), "-D", "3600", "-l", "select=1:ncpus=2"])
    .trim()
    .split(" ");
  assert.equal(shown(id)["reserve_state"], "RESV_UNCONFIRMED");
  process.kill(pid, "SIGKILL");
  assert.equal((await untilState(id, "RESV_CONFIRMED"))["resv_nodes"], "(v2:ncpus=2)");
  complex.must("pbs_rdel", [id]);
});

test("reservations whose execution host is lost are degraded, and confirmed again when it is back", async () => {
  const { id, word } = reserve("-p", "P2", "-R", inHours(4), "-D", "3600", "-l", "select=1:ncpus=2");
  assert.equal(word, "CONFIRMED");
  process.kill(complex.pid("mom") as number, "SIGKILL");
  const lost = await untilState(id, "RESV_DEGRADED");
  assert.equal(lost["resv_nodes"], "(v2:ncpus=2)");
  assert.match(lost["reserve_retry"] ?? "", /\d\d:\d\d:\d\d \d{4}$/);
  assert.match(complex.must("partita", ["top", "--home", complex.home]), new RegExp(`\n  ${id} is degraded, from `));
  complex.start();
  assert.equal((await untilState(id, "RESV_CONFIRMED"))["resv_nodes"], "(v2:ncpus=2)");
  complex.must("pbs_rdel", [id]);
});
