// qsub -I: a terminal on the execution host for the user at qsub, and all the ways in which it can end.

import assert from "node:assert/strict";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { authorityFile } from "#protocol/terminal/x11.ts";
import { type Complex, isAlive, startComplex, until } from "../complex.ts";
import { type Seat, takeSeat } from "../seat.ts";

let complex: Complex;
const seats: Seat[] = [];

before(async () => {
  complex = await startComplex();
  complex.qmgr("set server job_history_enable=True");
});
after(async () => {
  for (const seat of seats) seat.leave();
  await complex?.stop();
});

function qsub(words: readonly string[], size: { readonly rows?: number; readonly columns?: number } = {}): Seat {
  const env = { ...complex.env(), TERM: "xterm-256color", PS1: "" };
  const seat = takeSeat([complex.command("qsub"), "-I", ...words], { env, cwd: complex.work(), ...size });
  seats.push(seat);
  return seat;
}

/** A plain shell, so that no profile affects what the terminal shows. */
const SHELL = ["-S", "/bin/sh"];

async function idOf(seat: Seat): Promise<string> {
  const line = await seat.see(/qsub: waiting for job (\S+) to start\r\n/);
  return /job (\S+) to/.exec(line)?.[1] as string;
}

async function ready(seat: Seat): Promise<string> {
  const id = await idOf(seat);
  await seat.see(new RegExp(`qsub: job ${id.replace(".", "\\.")} ready\r\n\r\n`));
  return id;
}

/** qsub prints its last message, restores the terminal, and ends. */
async function over(seat: Seat, id: string, status: number): Promise<void> {
  await seat.see(new RegExp(`\r\nqsub: job ${id.replace(".", "\\.")} completed\r\n`));
  assert.equal(await seat.ended, status);
  assert.equal(seat.restored, true, "the modes of the terminal");
}

test("a shell at a terminal: environment, size, interrupt, exit", async () => {
  const seat = qsub([...SHELL, "-z", "-N", "talk"], { rows: 31, columns: 99 });
  const id = await ready(seat);
  seat.type("stty size; echo $PBS_ENVIRONMENT $TERM $PBS_JOBNAME $PBS_JOBID.; test -t 0 -a -t 1 -a -t 2 && echo all; tty\r");
  await seat.see(/31 99\r\n/);
  await seat.see(new RegExp(`PBS_INTERACTIVE xterm-256color talk ${id}\\.\r\nall\r\n/dev/pts/\\d+\r\n`));
  const shown = complex.job(id);
  assert.equal(shown["interactive"], "True");
  assert.equal(shown["Rerunable"], "False");
  assert.doesNotMatch(complex.must("qstat", ["-f", id]), /partita-qsub|terminal =/);
  seat.resize(45, 132);
  await until("the new size", async () => {
    seat.type("stty size\r");
    return /45 132/.test(await seat.see(/\d+ \d+\r\n/));
  });
  seat.type("sleep 1000\r");
  await until("sleep runs", () => /sleep 1000/.test(processesOf(Number(complex.job(id)["session_id"]))));
  seat.type("\x03");
  seat.type("echo status $((100 + $?))\r");
  await seat.see(/status 230\r\n/);
  seat.type("exit 7\r");
  await over(seat, id, 0);
  assert.equal((await complex.untilJob(id, "F")).Exit_status, 7);
});

test("all that is written arrives, and what is typed passes byte by byte", async () => {
  const seat = qsub(["--", "/bin/sh", "-c", "stty raw -echo; echo go; head -c 300 | od -An -v -tx1; yes | head -c 400000; echo; echo end"]);
  const id = await ready(seat);
  await seat.see(/go\n/);
  const bytes = Array.from({ length: 300 }, (_, at) => (at === 0 ? 0 : at < 128 ? at : 128 + (at % 64)));
  // Input to this terminal is UTF-8, so the test uses only bytes that are one character each.
  seat.type(bytes.map((byte) => String.fromCharCode(byte & 0x7f)).join(""));
  await seat.see(/end\n/);
  await over(seat, id, 0);
  const dump = [...seat.text.matchAll(/(?:^|\n)((?: [0-9a-f]{2})+)/g)].map((match) => match[1]).join("");
  assert.equal(dump, bytes.map((byte) => ` ${(byte & 0x7f).toString(16).padStart(2, "0")}`).join(""));
  assert.equal([...seat.text.matchAll(/y\n/g)].length, 200_000);
});

test("what is typed and not read stops nobody: the job's output still comes, and it can be ended", async () => {
  const wait = "until [ -e go-on ]; do sleep 0.1; done";
  const seat = qsub([
    "--",
    "/bin/sh",
    "-c",
    `stty raw -echo; cd '${complex.work()}'; echo deaf; ${wait}; echo still; head -c 300000 | wc -c; sleep 1000`,
  ]);
  const id = await ready(seat);
  await seat.see(/deaf\n/);
  seat.type("x".repeat(300_000));
  writeFileSync(join(complex.work(), "go-on"), "");
  await seat.see(/still\n/);
  await seat.see(/300000\n/);
  seat.type("y".repeat(300_000));
  complex.must("qdel", [id]);
  await over(seat, id, 0);
});

test("the interrupt key while it waits: stay, or take the job along", async () => {
  const seat = qsub(["-h"]);
  const id = await idOf(seat);
  await complex.untilJob(id, "H");
  seat.type("\x1a");
  await seat.see(/Sorry, you cannot suspend qsub until the job is started\r\n/);
  seat.type("\x03");
  await seat.see(/Do you wish to terminate the job and exit \(y\|\[n\]\)\? /);
  seat.type("perhaps\n");
  await seat.see(/yes or no please\r\n/);
  // Nothing echoes the answer, and the interrupt key discards earlier unread input.
  let turn = 0;
  await until("the question again", () => {
    if (seat.text.split("Do you wish").length === 3) return true;
    seat.type(turn++ % 2 === 0 ? "n\n" : "\x03");
    return false;
  });
  await seat.see(/Do you wish to terminate the job and exit \(y\|\[n\]\)\? /);
  seat.type("y\n");
  await seat.see(new RegExp(`Job ${id} is being deleted\r\n`));
  assert.equal(await seat.ended, 2);
  await complex.untilJob(id, "F");
});

test("a job that is deleted while it waits", async () => {
  const seat = qsub(["-h"]);
  const id = await idOf(seat);
  complex.must("qdel", [id]);
  await seat.see(new RegExp(`qsub: job ${id} apparently deleted\r\n`));
  assert.equal(await seat.ended, 1);
  assert.equal(seat.restored, true);
});

test("a job that is deleted while it runs, though its shell takes no notice of SIGTERM", async () => {
  const seat = qsub(["-S", "/bin/bash"]);
  const id = await ready(seat);
  complex.must("qdel", [id]);
  await over(seat, id, 0);
  await complex.untilJob(id, "F");
});

test("a tilde and a dot at the beginning of a line end qsub and the job", async () => {
  const seat = qsub(["--", "/bin/cat"]);
  const id = await ready(seat);
  seat.type("a~.b\r");
  await seat.see(/a~\.b\r\na~\.b\r\n/);
  seat.type("~.");
  await over(seat, id, 0);
  await complex.untilJob(id, "F");
});

for (const [how, end] of [
  ["killed", (seat: Seat) => process.kill(seat.pid, "SIGKILL")],
  ["told to end", (seat: Seat) => process.kill(seat.pid, "SIGTERM")],
  ["left without its terminal", (seat: Seat) => seat.hangUp()],
] as const) {
  test(`qsub is ${how}: nothing of the job remains`, async () => {
    const seat = qsub(SHELL);
    const id = await ready(seat);
    seat.type("trap '' HUP TERM; (trap '' HUP TERM; sleep 4000) & sleep 4001; sleep 4002\r");
    const { session_id } = await until("its session", () => complex.job(id)["session_id"] !== undefined && complex.job(id));
    const session = Number(session_id);
    await until("the programs", () => [4000, 4001].every((n) => processesOf(session).includes(`sleep ${n}`)));
    complex.qmgr("set queue workq kill_delay=1");
    end(seat);
    await complex.untilJob(id, "F");
    assert.equal(processesOf(session), "");
    if (how === "told to end") await over(seat, id, 143);
  });
}

test("-X: an X client of the job reaches the submitter's display with the real cookie; who shows another one does not", async (t) => {
  const directory = complex.work();
  const real = Buffer.alloc(16, 0x5e);
  /** An X server that sends back what it receives. */
  const server = createServer((socket) => socket.on("data", (bytes) => socket.write(bytes)));
  let number = 20;
  for (let listens = false; !listens; number++)
    listens = await new Promise<boolean>((resolve) =>
      server.once("error", () => resolve(false)).listen(6000 + number, "127.0.0.1", () => resolve(true)),
    );
  number--;
  t.after(() => server.close());
  writeFileSync(join(directory, "authority"), authorityFile(number, real));
  writeFileSync(join(directory, "client.mjs"), CLIENT);
  const env = { ...complex.env(), TERM: "xterm", DISPLAY: `127.0.0.1:${number}.1`, XAUTHORITY: join(directory, "authority") };
  const seat = takeSeat([complex.command("qsub"), "-I", "-X", ...SHELL], { env, cwd: directory });
  seats.push(seat);
  const id = await ready(seat);
  seat.type("echo $DISPLAY; stat -c %a $XAUTHORITY\r");
  await seat.see(/localhost:\d+\.1\r\n600\r\n/);
  seat.type(`${process.execPath} ${directory}/client.mjs; ${process.execPath} ${directory}/client.mjs wrong\r`);
  await seat.see(new RegExp(`shown ${real.toString("hex")} and 200000 bytes\r\nturned away\r\n`));
  seat.type("exit\r");
  await over(seat, id, 0);
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
socket.write(hello.subarray(0, 20));
setTimeout(() => { socket.write(hello.subarray(20)); socket.write(Buffer.alloc(200000, 7)); }, 50);
`;

test("the mom is killed and comes back: the session goes on", async () => {
  const seat = qsub(SHELL);
  const id = await ready(seat);
  seat.type("echo be''fore\r");
  await seat.see(/before\r\n/);
  const mom = complex.pid("mom") as number;
  process.kill(mom, "SIGKILL");
  await until("the mom's end", () => !isAlive(mom));
  seat.type("echo mean''while\r");
  await seat.see(/meanwhile\r\n/);
  complex.start();
  seat.type("echo after''wards; exit 3\r");
  await seat.see(/afterwards\r\n/);
  await over(seat, id, 0);
  assert.equal((await complex.untilJob(id, "F")).Exit_status, 3);
});

test("the starter is killed: the job is lost and its terminal with it", async () => {
  const seat = qsub(SHELL);
  const id = await ready(seat);
  process.kill(complex.pid("starter") as number, "SIGKILL");
  await over(seat, id, 0);
  await complex.untilJob(id, "F");
});

/** Command lines of the processes of a session that live. */
function processesOf(session: number): string {
  return allProcesses()
    .filter((each) => each.session === session)
    .map((each) => each.words)
    .join("\n");
}

function allProcesses(): { readonly session: number; readonly words: string }[] {
  return readdirSync("/proc").flatMap((name) => {
    if (!/^\d+$/.test(name)) return [];
    try {
      const stat = readFileSync(`/proc/${name}/stat`, "latin1");
      const [state, , , session] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
      const words = readFileSync(`/proc/${name}/cmdline`, "latin1").replaceAll("\0", " ").trim();
      return state === "Z" ? [] : [{ session: Number(session), words }];
    } catch {
      return [];
    }
  });
}
