// qsub -I in system mode: everything of the job and its relay belongs to the owner, and nobody else can interfere.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { connect } from "node:net";
import { after, before, test } from "node:test";
import { systemUsers } from "#support/passwd.ts";
import { becoming, type Complex, startComplex, until } from "../complex.ts";
import { lackOfUsers } from "../needed-users.ts";
import { type Seat, takeSeat } from "../seat.ts";

const [USER, OTHER] = ["pbsuser1", "pbsuser2"];
const users = systemUsers();
const user = users.userByName(USER);
const skip = lackOfUsers(USER, OTHER);

let complex: Complex;
const seats: Seat[] = [];

before(async () => {
  if (skip !== false) return;
  complex = await startComplex({ mode: "system" });
  complex.qmgr("set server job_history_enable=True");
});
after(async () => {
  for (const seat of seats) seat.leave();
  await complex?.stop();
});

function qsub(words: readonly string[]): Seat {
  const { PATH, PBS_CONF_FILE } = complex.env();
  const own = ["env", `PATH=${PATH}`, `PBS_CONF_FILE=${PBS_CONF_FILE}`, "TERM=xterm", `HOME=${user?.home}`];
  const seat = takeSeat([...becoming(USER), ...own, complex.command("qsub"), "-I", ...words], {
    env: complex.env(),
    cwd: complex.work(USER),
  });
  seats.push(seat);
  return seat;
}

async function ready(seat: Seat): Promise<string> {
  return /job (\S+) ready/.exec(await seat.see(/qsub: job \S+ ready\r\n\r\n/))?.[1] as string;
}

type Process = { readonly pid: number; readonly words: string; readonly status: string; readonly environment: string };

function processesNamed(words: RegExp): Process[] {
  return readdirSync("/proc").flatMap((name) => {
    try {
      const read = (file: string): string => readFileSync(`/proc/${name}/${file}`, "latin1");
      const line = read("cmdline").replaceAll("\0", " ");
      return /^\d+$/.test(name) && words.test(line)
        ? [{ pid: Number(name), words: line, status: read("status"), environment: read("environ").replaceAll("\0", "\n") }]
        : [];
    } catch {
      return [];
    }
  });
}

test("the shell and its terminal are the owner's, and nothing of a daemon reaches them", { skip }, async () => {
  const seat = qsub(["-S", "/bin/sh"]);
  const id = await ready(seat);
  seat.type("echo '['$(id -u) $(id -G) $(stat -c %U $(tty)) $(grep -c '^Cap.*:.0*$' /proc/self/status) $PWD']'\r");
  const groups = spawnSync("id", ["-G", USER], { encoding: "utf8" }).stdout.trim();
  await seat.see(new RegExp(`\\[${user?.uid} ${groups} ${USER} [45] ${user?.home}\\]`));
  const session = Number((await until("its session", () => complex.job(id)["session_id"])) as number);
  const descriptors = readdirSync(`/proc/${session}/fd`).map((fd) => readlinkSync(`/proc/${session}/fd/${fd}`));
  assert.equal(descriptors.filter((path) => path.startsWith("/dev/pts/")).length >= 3, true);
  const foreign = descriptors.filter((path) => path.startsWith("socket:") || path.includes("ptmx") || path.startsWith(complex.pbsHome));
  assert.deepEqual(foreign, []);
  const pty = descriptors.find((path) => path.startsWith("/dev/pts/")) as string;
  const other = spawnSync(becoming(OTHER)[0] as string, [...becoming(OTHER).slice(1), "sh", "-c", `cat < ${pty}`], { encoding: "utf8" });
  assert.match(other.stderr, /Permission denied/);
  const relays = processesNamed(/pbs_terminal\.mjs/).filter(({ status }) => status.includes(`\nUid:\t${user?.uid}\t`));
  assert.equal(relays.length, 1);
  const [{ status, environment, words, pid }] = relays as [Process];
  assert.match(status, new RegExp(`\nUid:(\t${user?.uid}){4}\nGid:(\t${user?.gid}){4}\n`));
  assert.match(status, /\nCapEff:\t0+\n/);
  assert.doesNotMatch(`${environment}${words}`, /[0-9a-f]{32}/, "no secret where others see it");
  const held = readdirSync(`/proc/${pid}/fd`).map((fd) => readlinkSync(`/proc/${pid}/fd/${fd}`));
  assert.deepEqual(
    held.filter((path) => path.startsWith(complex.pbsHome)),
    [],
  );
  seat.type("exit\r");
  await seat.see(/completed/);
  assert.equal(await seat.ended, 0);
});

test("another user who finds qsub's socket gets nothing and stops nothing", { skip }, async () => {
  const seat = qsub(["-h", "-S", "/bin/sh"]);
  const id = /job (\S+) to/.exec(await seat.see(/waiting for job \S+ to start/))?.[1] as string;
  const name = new RegExp(`@(partita-qsub-${seat.pid}-[0-9a-f]+)`).exec(readFileSync("/proc/net/unix", "latin1"))?.[1] as string;
  assert.ok(name, "the socket is an abstract one that everybody sees");
  let got = 0;
  const strangers = [1, 2, 3].map(() => connect(`\0${name}`));
  for (const stranger of strangers) {
    stranger.on("error", () => undefined);
    stranger.on("data", (bytes) => {
      got += bytes.length;
    });
    stranger.write("hello");
  }
  complex.must("qrls", ["-h", "u", id]);
  await ready(seat);
  seat.type("echo in''side; exit\r");
  await seat.see(/inside\r\n/);
  await seat.see(/completed/);
  // A TLS alert has seven bytes and reveals nothing.
  assert.ok(got <= 7 * strangers.length, `${got} bytes`);
  for (const stranger of strangers) stranger.destroy();
});

test("the limit of a job is told on its terminal, and a message too", { skip }, async () => {
  const seat = qsub(["-l", "walltime=5", "-S", "/bin/sh"]);
  const id = await ready(seat);
  await until("its session", () => complex.job(id)["substate"] === 42);
  complex.must("qmsg", ["hello out there", id]);
  await seat.see(/hello out there\r\n/);
  await seat.see(/=>> PBS: job killed: walltime \d+ exceeded limit 5\r\n/);
  await seat.see(/completed/);
  assert.equal(await seat.ended, 0);
});

test("nobody waits any more when the job starts: it ends with -1, and the mom tells why", { skip }, async () => {
  const seat = qsub(["-h"]);
  const id = /job (\S+) to/.exec(await seat.see(/waiting for job \S+ to start/))?.[1] as string;
  process.kill(seat.pid, "SIGKILL");
  await seat.ended;
  complex.must("qrls", ["-h", "u", id]);
  assert.equal((await complex.untilJob(id, "F")).Exit_status, -1);
  assert.match(complex.log("mom_logs"), new RegExp(`;${id};cannot open interactive qsub socket: connect ECONNREFUSED`));
});
