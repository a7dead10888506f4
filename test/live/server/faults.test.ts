// Events that must not end the server: hostile bytes on its socket, clients that vanish, a full disk. And stores that it must
// not change: of a newer version, damaged, foreign.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, copyFileSync, openSync, readFileSync, rmSync, statSync, writeFileSync, writeSync } from "node:fs";
import { createConnection, type Socket } from "node:net";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { type Complex, startComplex, until } from "../complex.ts";

const asRoot = process.geteuid?.() === 0;

describe("hostile peers", () => {
  let complex: Complex;
  let server: number;
  before(async () => {
    complex = await startComplex();
    complex.qmgr("set server job_history_enable=True", "set server scheduling=False");
    server = complex.pid("server") as number;
  });
  after(() => complex.stop());

  /** The server is still the same process, and answers. */
  const serves = (): void => {
    assert.equal(complex.pid("server"), server);
    complex.must("qstat", ["-B"]);
  };
  const connect = async (): Promise<Socket> => {
    const socket = createConnection(join(complex.pbsHome, "sock", "server.sock"));
    socket.on("error", () => undefined);
    await once(socket, "connect");
    return socket;
  };
  /** Its answers until it hangs up. */
  const told = async (socket: Socket): Promise<string> => {
    let text = "";
    socket.setEncoding("utf8").on("data", (chunk) => {
      text += chunk;
    });
    await new Promise((resolve) => socket.once("close", resolve));
    return text;
  };

  const HOSTILE: readonly (readonly [what: string, bytes: string | Buffer])[] = [
    ["text that is no frame", "GET / HTTP/1.1\r\n\r\n\f"],
    ["bytes that are no text", Buffer.concat([Buffer.from(Array.from({ length: 4096 }, (_, at) => (at * 37) % 256)), Buffer.from("\f")])],
    ["JSON that is no frame", "[1,2,3]\f"],
    ["a frame of an unknown type", '{"type":"become-root","data":{}}\f'],
    ["a frame of the prototype", '{"__proto__":{"type":"request"},"data":{}}\f'],
    ["a request without an id", '{"type":"request","data":{"kind":"status"}}\f'],
    ["a scheduler that never said hello", '{"type":"sched-cycle","data":{}}\f'],
    ["a mom's obit without a hello", '{"type":"mom-obits","data":{"obits":[]}}\f'],
    ["depth without end", `{"type":"request","data":${"[".repeat(200_000)}\f`],
    ["a frame over the limit", "x".repeat(17 * 1024 * 1024)],
  ];
  for (const [what, bytes] of HOSTILE) {
    test(`${what} ends its connection and nothing else`, async () => {
      const socket = await connect();
      const answer = told(socket);
      socket.write(bytes);
      assert.doesNotMatch(await answer, /"ok":true/);
      serves();
    });
  }

  test("requests with wrong contents are refused with their id, and the connection goes on", async () => {
    const socket = await connect();
    let text = "";
    socket.setEncoding("utf8").on("data", (chunk) => {
      text += chunk;
    });
    const wrong = [
      { id: 1, kind: "no-such-kind" },
      { id: 2, kind: "status", object: "soul", ids: [] },
      { id: 3, kind: "delete-jobs", ids: [1, {}] },
      { id: 4, kind: "manager", verb: "create", object: "queue", name: { $gt: "" }, attrs: [] },
      { id: 5, kind: "status", object: "server", ids: [] },
    ];
    for (const data of wrong) socket.write(`${JSON.stringify({ type: "request", data })}\f`);
    const replies = await until("five replies", () => {
      const frames = text.split("\f").slice(0, -1);
      const found = frames.map((frame) => JSON.parse(frame) as { type: string; data: { id: number; ok: boolean } });
      const ends = found.filter(({ type }) => type === "reply");
      return ends.length === wrong.length && ends;
    });
    assert.deepEqual(
      replies.map(({ data }) => [data.id, data.ok]),
      [
        [1, false],
        [2, false],
        [3, false],
        [4, false],
        [5, true],
      ],
    );
    socket.destroy();
    serves();
  });

  test("clients that vanish in the middle of a request leave no half of it", async () => {
    for (let round = 0; round < 20; round++) {
      const socket = await connect();
      socket.write('{"type":"request","data":{"id":1,"kind":"manager","verb":"create","object":"queue","name":"half');
      socket.destroy();
    }
    serves();
    assert.equal(complex.run("qstat", ["-Q", "half"]).status, 170);
  });

  test("a qsub that is killed while it submits leaves whole jobs or none", async () => {
    const line = `${JSON.stringify({ args: ["-h", "-N", "whole", "-v", "A=b"], script: "#!/bin/sh\necho whole\n" })}\n`;
    for (let round = 0; round < 5; round++) {
      const child = spawn(complex.command("qsub"), ["--batch", "-"], {
        env: complex.env(),
        cwd: complex.work(),
        stdio: ["pipe", "ignore", "ignore"],
      });
      child.stdin.on("error", () => undefined);
      child.stdin.write(line.repeat(2000));
      child.stdin.end();
      setTimeout(() => child.kill("SIGKILL"), 60 + round * 40);
      await once(child, "close");
    }
    serves();
    const jobs = Object.values(complex.jobs());
    for (const job of jobs) assert.deepEqual([job["Job_Name"], job.job_state, job["Hold_Types"]], ["whole", "H", "u"]);
    const total = /total_jobs = (\d+)/.exec(complex.qmgr("list queue workq total_jobs"))?.[1];
    assert.equal(Number(total), jobs.length);
  });

  test("over-long and odd input is refused with PBS's errors", () => {
    const rows: readonly (readonly [command: string, args: readonly string[], status: number, stderr: RegExp])[] = [
      ["qsub", ["-N", "n".repeat(236), "--", "/bin/true"], 2, /^qsub: Job name is too long *\n/],
      ["qsub", ["-N", "a/b", "--", "/bin/true"], 2, /^qsub: illegal -N value *\n/],
      ["qsub", ["-q", "nosuch", "--", "/bin/true"], 170, /^qsub: Unknown queue\n$/],
      ["qsub", ["-l", "select=1:ncpus=x", "--", "/bin/true"], 166, /^qsub: Illegal attribute or resource value/],
      ["qsub", ["-l", "select=1:nosuch=1", "--", "/bin/true"], 187, /^qsub: Unknown resource/],
      ["qstat", ["999999999"], 153, /^qstat: Unknown Job Id 999999999\.\S+\n$/],
      ["qdel", ["0"], 153, /^qdel: Unknown Job Id/],
      ["qmgr", ["-c", `create queue ${"q".repeat(16)}`], 15028 % 256, /^qmgr: Error \(15028\) returned from server\n$/],
    ];
    for (const [command, args, status, stderr] of rows) {
      const ran = complex.run(command, args);
      const what = `${command} ${args.join(" ").slice(0, 60)}`;
      assert.match(ran.stderr, stderr, what);
      assert.equal(ran.status, status, what);
    }
    const unreadable = complex.run("qsub", [join(complex.work(), "missing.sh")]);
    assert.deepEqual([unreadable.status, unreadable.stdout], [1, ""]);
    assert.match(unreadable.stderr, /^qsub: script file:: No such file or directory\n$/);
    serves();
  });
});

test("a full disk: what cannot be stored is refused clearly, the server goes on, and nothing acknowledged is lost", {
  skip: asRoot ? false : "needs root: a small file system is mounted for the store",
}, async () => {
  const complex = await startComplex({ disk_mb: 100 });
  try {
    complex.qmgr("set server job_history_enable=True");
    const server = complex.pid("server");
    const batch = `${JSON.stringify({ args: ["-h", "-N", "kept"], script: `#!/bin/sh\n# ${"x".repeat(4000)}\n` })}\n`.repeat(100);
    const acknowledged: string[] = [];
    const submit = (): ReturnType<Complex["run"]> => {
      const ran = complex.run("qsub", ["--batch", "-"], { input: batch });
      acknowledged.push(...ran.stdout.split("\n").filter((line) => line !== ""));
      return ran;
    };
    assert.equal(submit().status, 0);
    const filler = join(complex.work(), "filler");
    fillDisk(filler);
    const refused = await until("a refusal", () => {
      const ran = submit();
      return ran.status !== 0 && ran;
    });
    assert.equal(refused.status, 15010 % 256);
    assert.match(refused.stderr, /^qsub: line 1: System error: .*disk.* full/m);
    // It answers questions, refuses changes, and reports this in one line.
    const present = complex.must("qselect", ["-h", "u"]).split("\n").length - 1;
    assert.equal(present, acknowledged.length);
    const change = complex.run("qmgr", ["-c", "create queue nospace"]);
    assert.equal(change.status, 15010 % 256, change.stderr);
    assert.match(change.stderr, /System error: .*disk.* full/);
    assert.equal(complex.run("qstat", ["-Q", "nospace"]).status, 170);
    assert.equal(complex.pid("server"), server);
    rmSync(filler);
    await until("room again", () => submit().status === 0);
    complex.qmgr("create queue space queue_type=e,enabled=t,started=t");
    assert.deepEqual(complex.must("qselect", ["-h", "u"]).split("\n").slice(0, -1), acknowledged);
    process.kill(server as number, "SIGKILL");
    await until("the server gone", () => complex.pid("server") === null);
    complex.start();
    assert.deepEqual(complex.must("qselect", ["-h", "u"]).split("\n").slice(0, -1), acknowledged);
    const ran = complex.submit(["-q", "space", "--", "/bin/echo", "after"]);
    assert.equal((await complex.untilJob(ran, "F")).Exit_status, 0);
  } finally {
    await complex.stop();
  }
});

function fillDisk(file: string): void {
  const fd = openSync(file, "w");
  for (let size = 1 << 20; size > 0; size >>= 1) {
    try {
      for (;;) writeSync(fd, Buffer.alloc(size));
    } catch (error) {
      assert.equal((error as NodeJS.ErrnoException).code, "ENOSPC");
    }
  }
  closeSync(fd);
}

test("a store of a newer version, a damaged and a foreign one are named and left as they are", async () => {
  const complex = await startComplex();
  try {
    complex.must("qterm", ["-s"]);
    await until("the server gone", () => complex.pid("server") === null);
    const file = join(complex.pbsHome, "server_priv", "partita.db");
    const good = join(complex.work(), "good.db");
    copyFileSync(file, good);
    const patch = (at: number, bytes: Buffer): void => {
      const fd = openSync(file, "r+");
      writeSync(fd, bytes, 0, bytes.length, at);
      closeSync(fd);
    };
    const number = (value: number): Buffer => {
      const bytes = Buffer.alloc(4);
      bytes.writeUInt32BE(value);
      return bytes;
    };
    // Offsets of the SQLite file header: user_version 60, application_id 68.
    const rows: readonly (readonly [what: string, spoil: () => void, said: RegExp])[] = [
      ["newer", () => patch(60, number(9999)), /partita\.db: the store is of version 9999, this program knows versions up to \d+/],
      ["foreign", () => patch(68, number(42)), /partita\.db: a database of another program/],
      ["damaged", () => patch(8192, Buffer.alloc(statSync(good).size - 8192, 0x5a)), /partita\.db: .*(corrupt|damaged|malformed)/],
      ["no database", () => writeFileSync(file, "something else entirely\n".repeat(100)), /partita\.db: .*(corrupt|not a database)/],
    ];
    for (const [what, spoil, said] of rows) {
      copyFileSync(good, file);
      spoil();
      const before = readFileSync(file);
      const ran = complex.run("pbs_server", []);
      assert.equal(ran.status, 1, what);
      assert.match(ran.stderr, said, what);
      assert.match(complex.log("server_logs"), said, what);
      assert.ok(before.equals(readFileSync(file)), `${what}: untouched`);
    }
    copyFileSync(good, file);
    complex.start();
    complex.must("qstat", ["-Q", "workq"]);
  } finally {
    await complex.stop();
  }
});
