// qsub -I across hosts: from a login host without daemons, and from the server's host, the job's terminal being on a third host. Each host is a network
// namespace, so that nothing but TCP can connect them.

import assert from "node:assert/strict";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { authorityFile } from "#protocol/terminal/x11.ts";
import { until } from "../complex.ts";
import { lackOfUsers } from "../needed-users.ts";
import { type Seat, takeSeat } from "../seat.ts";
import { type Bed, closeBed, joins, makeBed, tokenIn } from "./bed.ts";
import { lackOfNamespaces, makeNet, type NetHost } from "./namespaces.ts";

const USER = "pbsuser1";
const skip = lackOfNamespaces() || lackOfUsers(USER);
const SHELL = ["-S", "/bin/sh", "-l", "select=1:host=n1"];
const DISPLAY_NUMBER = 7;

let bed: Bed;
let head: NetHost;
let n1: NetHost;
let login: NetHost;
let certificate = "";
const seats: Seat[] = [];

before(async () => {
  if (skip !== false) return;
  const net = makeNet(["head", "n1", "login1"]);
  [head, n1, login] = net.hosts as [NetHost, NetHost, NetHost];
  bed = makeBed(net, head);
  bed.partita(head, "start");
  bed.pbs(["qmgr", "-c", "set server job_history_enable = True"]);
  joins(bed, n1);
  bed.partita(n1, "start");
  bed.pbs(["qmgr", "-c", "create node n1"]);
  const token = tokenIn(bed.partita(head, "cert", "token", "--host", login.name));
  bed.partita(login, "join", head.name, "--token", token, "--prefix", join(net.dir, "opt"), "--login");
  const own = tokenIn(bed.partita(head, "cert", "token", "--user", USER, "--host", login.name));
  login.must(...asUser(login, "partita"), "cert", "user", "--token", own, "--home", bed.homeOf(login));
  const [, , , , , directory = ""] = login.must("getent", "passwd", USER).split(":");
  certificate = join(directory, ".partita/identity/head@login1.pem");
  await until("n1 is free", () => bed.state("n1") === "free");
});
after(() => {
  if (skip !== false) return;
  for (const seat of seats) seat.leave();
  rmSync(certificate, { force: true });
  closeBed(bed.net);
});

/** A program of PBS as the user, with the configuration of a host. */
function asUser(host: NetHost, name: string, env: readonly string[] = []): readonly string[] {
  const become = ["setpriv", `--reuid=${USER}`, `--regid=${USER}`, "--init-groups"];
  const own = [`PBS_CONF_FILE=${join(bed.homeOf(host), "pbs.conf")}`, "PARTITA_RESIDENT=no", "TERM=xterm", ...env];
  return [...become, "env", ...own, join(bed.net.dir, "opt/bin", name)];
}

function qsub(host: NetHost, words: readonly string[], env: readonly string[] = []): Seat {
  const seat = takeSeat([...host.within, ...asUser(host, "qsub", env), "-I", ...words], { env: process.env, rows: 30, columns: 100 });
  seats.push(seat);
  return seat;
}

const ready = async (seat: Seat): Promise<string> =>
  /job (\S+) ready/.exec(await seat.see(/qsub: job \S+ ready\r\n\r\n/))?.[1] ?? assert.fail("no job");
const listening = (host: NetHost): string => host.must("cat", "/proc/net/tcp", "/proc/net/tcp6");
/** ports above 15999 on which a host listens; those of daemons are smaller */
const freePorts = (host: NetHost): readonly number[] =>
  [...listening(host).matchAll(/^ *\d+: [0-9A-F]+:([0-9A-F]{4}) [0-9A-F]+:0000 0A /gm)]
    .map(([, port = ""]) => Number.parseInt(port, 16))
    .filter((port) => port > 15_999);
const isOver = (id: string): Promise<unknown> => until(`${id} is over`, () => bed.job(id)["job_state"] === "F");

test("from a login host: the terminal is on the execution host; keys, size and the end travel", { skip }, async () => {
  const seat = qsub(login, SHELL);
  const id = await ready(seat);
  seat.type("echo '['$(cat /proc/sys/kernel/hostname) $(id -un) $(stty size) $PBS_O_HOST']'\r");
  await seat.see(new RegExp(`\\[n1 ${USER} 30 100 login1\\]`));
  assert.deepEqual(freePorts(login), [], "qsub listens no more when the job has connected");
  seat.resize(41, 132);
  await until("the new size", async () => {
    seat.type("stty size\r");
    return /41 132/.test(await seat.see(/\d+ \d+\r\n/));
  });
  // The connection carries more than its buffers hold, in both directions.
  seat.type("seq 1 200000 | tail -c 1000000 | tail -n 1; echo tail''ed\r");
  await seat.see(/200000\r\ntailed/);
  seat.type("exit 4\r");
  await seat.see(/completed/);
  assert.equal(await seat.ended, 0);
  await isOver(id);
  assert.equal(bed.job(id)["Exit_status"], 4);
});

test("from the server's host", { skip }, async () => {
  const seat = qsub(head, SHELL);
  const id = await ready(seat);
  seat.type("echo '['$(cat /proc/sys/kernel/hostname) $PBS_O_HOST']'\r");
  await seat.see(/\[n1 head\]/);
  seat.type("~.");
  seat.type("\r~.");
  await seat.see(/completed/);
  assert.equal(await seat.ended, 0);
  await isOver(id);
});

test("qsub is killed on its host: the job on the other one is hung up and ends", { skip }, async () => {
  const seat = qsub(login, SHELL);
  const id = await ready(seat);
  await until("its session", () => Number(bed.job(id)["session_id"]) > 0);
  seat.hangUp();
  await isOver(id);
});

test("who connects to qsub's port without the secret gets nothing, and does not keep the job out", { skip }, async () => {
  const seat = qsub(login, ["-h", ...SHELL]);
  const id = /job (\S+) to/.exec(await seat.see(/waiting for job \S+ to start/))?.[1] ?? "";
  const [port] = await until("qsub's port", () => (freePorts(login).length === 1 ? freePorts(login) : undefined));
  const stranger = `
    const { connect } = require("node:net");
    let got = 0, open = 40;
    for (let at = 0; at < 40; at++) {
      const socket = connect(${port}, "${login.address}", () => socket.write("hello"));
      socket.on("data", (bytes) => { got += bytes.length; });
      socket.on("error", () => undefined);
      socket.on("close", () => { if (--open === 0) console.log("got " + got); });
    }
    setTimeout(() => process.exit(0), 30000).unref();`;
  // A TLS alert has seven bytes and reveals nothing.
  const [, got = "none"] = /got (\d+)/.exec(n1.must(process.execPath, "-e", stranger)) ?? [];
  assert.ok(Number(got) <= 40 * 7, `${got} bytes`);
  bed.pbs(["qrls", "-h", "u", id]);
  await ready(seat);
  seat.type("echo in''side; exit\r");
  await seat.see(/inside\r\n/);
  assert.equal(await seat.ended, 0);
});

test("a short cut of the link delays the session and does not end it", { skip }, async () => {
  const seat = qsub(login, SHELL);
  const id = await ready(seat);
  seat.type("echo be''fore\r");
  await seat.see(/before\r\n/);
  login.cable("down");
  seat.type("echo mean''while\r");
  let looks = 0;
  await until("the kernel keeps what was typed", () => {
    looks = holdsData(login) ? looks + 1 : 0;
    return looks >= 5;
  });
  login.cable("up");
  await seat.see(/meanwhile\r\n/);
  seat.type("exit\r");
  await seat.see(/completed/);
  assert.equal(await seat.ended, 0);
  await isOver(id);
});

/** Whether the kernel of a host holds data that the other end of a connection has not acknowledged. */
const holdsData = (host: NetHost): boolean =>
  /^ *\d+: \S+ \S+ 01 (?!0{8}:)\S+ 0[14]:/m.test(host.must("cat", "/proc/net/tcp", "/proc/net/tcp6"));

test("-X: an X client on the execution host reaches the display of the login host", { skip }, async () => {
  const directory = join(bed.net.dir, "x");
  mkdirSync(directory);
  const real = Buffer.alloc(16, 0x5e);
  writeFileSync(join(directory, "authority"), authorityFile(DISPLAY_NUMBER, real));
  writeFileSync(join(directory, "client.mjs"), CLIENT);
  login.must("chown", "-R", USER, directory);
  const display = `require("node:net").createServer((s) => s.on("data", (b) => s.write(b)).on("error", () => 0)).listen(${6000 + DISPLAY_NUMBER}, "127.0.0.1")`;
  login.must("sh", "-c", '"$@" >/dev/null 2>&1 </dev/null &', "sh", process.execPath, "-e", display);
  await until("the display", () => listening(login).includes(`:${(6000 + DISPLAY_NUMBER).toString(16).toUpperCase()} `));
  const env = [`DISPLAY=127.0.0.1:${DISPLAY_NUMBER}`, `XAUTHORITY=${join(directory, "authority")}`];
  const seat = qsub(login, ["-X", ...SHELL], env);
  const id = await ready(seat);
  seat.type("echo $DISPLAY; cat /proc/sys/kernel/hostname\r");
  await seat.see(/localhost:\d+\.0\r\nn1\r\n/);
  seat.type(`${process.execPath} ${directory}/client.mjs; ${process.execPath} ${directory}/client.mjs wrong\r`);
  await seat.see(new RegExp(`shown ${real.toString("hex")} and 200000 bytes\r\nturned away\r\n`));
  seat.type("exit\r");
  await seat.see(/completed/);
  assert.equal(await seat.ended, 0);
  await isOver(id);
});

/** An X client that prints the replies to its first message and to its later data. */
const CLIENT = `
import { readFileSync } from "node:fs";
import { connect } from "node:net";
const number = Number(/:(\\d+)/.exec(process.env.DISPLAY)[1]);
const file = readFileSync(process.env.XAUTHORITY);
const cookie = process.argv[2] === "wrong" ? Buffer.alloc(16, 1) : file.subarray(-16);
const name = "MIT-MAGIC-COOKIE-1";
const head = Buffer.from([0x6c, 0, 11, 0, 0, 0, name.length, 0, 16, 0, 0, 0]);
const hello = Buffer.concat([head, Buffer.from(name + "\\0\\0"), cookie]);
const socket = connect(6000 + number, "127.0.0.1");
let got = Buffer.alloc(0);
socket.on("data", (bytes) => {
  got = Buffer.concat([got, bytes]);
  if (got.length < hello.length + 200000) return;
  console.log("shown", got.subarray(32, 48).toString("hex"), "and " + (got.length - hello.length) + " bytes");
  socket.end();
  process.exit(0);
});
socket.on("close", () => { console.log("turned away"); process.exit(0); });
socket.write(hello);
socket.write(Buffer.alloc(200000, 7));
`;
