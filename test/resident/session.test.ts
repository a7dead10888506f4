// A session with a launcher that the test plays: the resident's frames, and the fate of a command when errors occur.

import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createConnection, createServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { type Command, type CommandIo, NeedsOwnProcess } from "#cli/command.ts";
import { HEADER_BYTES } from "#resident/frame.ts";
import { type Session, type SessionWorld, serve } from "#resident/session.ts";

const folder = mkdtempSync(join(tmpdir(), "partita-session-"));
const servers: Server[] = [];
after(() => {
  for (const server of servers) server.close();
  rmSync(folder, { recursive: true });
});
let sockets = 0;

type Play = {
  readonly launcher: Socket;
  /** letters and payloads up to the end of the connection */
  readonly told: Promise<readonly string[]>;
  readonly live: Set<Session>;
  /** resolves when the resident's side has ended */
  readonly over: Promise<void>;
};

async function play(run: Command, world: Partial<SessionWorld> = {}): Promise<Play> {
  const path = join(folder, `${sockets++}.sock`);
  const live = new Set<Session>();
  const server = createServer();
  servers.push(server);
  server.listen(path);
  await once(server, "listening");
  const accepted = once(server, "connection");
  const launcher = createConnection(path);
  const pieces: Buffer[] = [];
  launcher.on("data", (bytes) => pieces.push(bytes));
  launcher.on("error", () => undefined);
  const told = new Promise<void>((resolve) => launcher.once("close", () => resolve())).then(() => taken(Buffer.concat(pieces)));
  const [socket] = (await accepted) as [Socket];
  const over = new Promise<void>((resolve) => socket.once("close", resolve)).then(() => void server.close());
  serve(socket, {
    circumstances: "here",
    admits: () => true,
    load: async () => run,
    links: { connect: () => Promise.reject(new Error("no server in this test")) },
    within: (_, action) => action(),
    began: (session) => live.add(session),
    ended: (session) => live.delete(session),
    ...world,
  });
  return { launcher, told, live, over };
}

function taken(bytes: Buffer): readonly string[] {
  const frames: string[] = [];
  for (let at = 0; at < bytes.length; ) {
    const length = bytes.readUInt32BE(at);
    const payload = bytes.subarray(at + HEADER_BYTES, at + HEADER_BYTES + length);
    const letter = String.fromCharCode(bytes[at + 4] as number);
    frames.push(letter === "X" ? `X${payload[0]}` : `${letter}${payload}`);
    at += HEADER_BYTES + length;
  }
  return frames;
}

function frame(letter: string, text: string): Buffer {
  const head = Buffer.alloc(HEADER_BYTES);
  head.writeUInt32BE(Buffer.byteLength(text), 0);
  head.write(letter, 4);
  return Buffer.concat([head, Buffer.from(text)]);
}

const request = (program: string, circumstances = "here"): Buffer =>
  frame("Q", [circumstances, "0", program, "/", "0", "1", "A=1"].map((text) => `${text}\0`).join(""));

test("output, errors and status come in order, and the session is over when the launcher has taken them", async () => {
  const { launcher, told, live, over } = await play(async (io) => {
    io.out(`${io.cwd} ${io.env["A"]}\n`);
    io.err("not well\n");
    return 258;
  });
  launcher.write(request("qstat"));
  assert.deepEqual(await told, ["A", "O/ 1\n", "Enot well\n", "X2"]);
  await over;
  assert.equal(live.size, 0);
});

test("input is asked for a piece at a time and ends with an empty one", async () => {
  const { launcher, told } = await play(async (io) => {
    for await (const piece of io.stdin) io.out(`[${piece}]`);
    return 0;
  });
  launcher.write(request("qsub"));
  let wants = 0;
  launcher.on("data", (bytes) => {
    for (const letter of taken(bytes)) if (letter === "W") launcher.write(frame("I", wants++ < 2 ? `piece ${wants}` : ""));
  });
  const frames = await told;
  assert.deepEqual(frames.slice(0, 2), ["A", "W"]);
  assert.deepEqual(
    frames.filter((each) => each !== "W"),
    ["A", "O[piece 1]", "O[piece 2]", "X0"],
  );
  assert.equal(frames.length, 7);
});

test("other circumstances, commands that are not taken, and one too many are handed back without being loaded", async () => {
  const never: Partial<SessionWorld> = { load: () => Promise.reject(new Error("loaded")) };
  for (const [asked, world] of [
    [request("qstat", "elsewhere"), never],
    [request("tracejob"), never],
    [request("qstat"), { ...never, admits: () => false }],
    [request("qstat"), never],
  ] as const) {
    const { launcher, told } = await play(async () => 0, world);
    launcher.write(asked);
    assert.deepEqual(await told, ["N"]);
  }
});

test("a command that needs a process of its own is handed back late, unless it has done something", async () => {
  const quiet = await play(async (io) => ((await io.terminal?.()) === undefined ? 1 : 0));
  quiet.launcher.write(request("qsub"));
  assert.deepEqual(await quiet.told, ["A", "N"]);
  const printed = await play(async (io) => {
    io.out("something");
    throw new NeedsOwnProcess();
  });
  printed.launcher.write(request("qsub"));
  const [accepted, out, error, status] = await printed.told;
  assert.deepEqual([accepted, out, status], ["A", "Osomething", "X255"]);
  assert.match(error ?? "", /^Eqsub: internal error: NeedsOwnProcess/);
});

test("a command that throws, or breaks down beside its promise, ends with 255 and its error", async () => {
  const thrown = await play(async () => {
    throw new Error("unthought of");
  });
  thrown.launcher.write(request("qdel"));
  const told = await thrown.told;
  assert.match(told[1] ?? "", /^Eqdel: internal error: Error: unthought of\n/);
  assert.equal(told.at(-1), "X255");
  const stuck = await play(() => new Promise(() => undefined));
  stuck.launcher.write(request("qdel"));
  await once(stuck.launcher, "data");
  for (const session of stuck.live) session.fail(new Error("from a timer"));
  assert.match((await stuck.told).join(" "), /^A Eqdel: internal error: Error: from a timer[\s\S]* X255$/);
});

test("when the launcher goes, input fails instead of ending and the command's links end", async () => {
  let seen: CommandIo | undefined;
  let fault: unknown;
  const failed = new Promise<void>((resolve) => {
    void play(async (io) => {
      seen = io;
      try {
        for await (const piece of io.stdin) assert.equal(String(piece), "half");
        fault = "ended";
      } catch (error) {
        fault = error;
      }
      resolve();
      return 0;
    }).then(async ({ launcher }) => {
      launcher.write(request("qsub"));
      for await (const _ of on(launcher)) {
        launcher.write(frame("I", "half"));
        break;
      }
      launcher.destroy();
    });
  });
  await failed;
  assert.match(String(fault), /launcher has gone/);
  assert.equal(seen?.flow?.ended.aborted, true);
});

/** Yields once, when input is wanted. */
async function* on(launcher: Socket): AsyncGenerator<void> {
  for (;;) {
    const [bytes] = (await once(launcher, "data")) as [Buffer];
    if (taken(bytes).includes("W")) yield;
  }
}

test("a launcher that has gone before it could take the acceptance has nothing carried out", async () => {
  let ran = false;
  let admit = (): void => undefined;
  const loading = new Promise<void>((resolve) => {
    admit = resolve;
  });
  const { launcher, over, live } = await play(async () => 0, {
    load: async () => {
      await loading;
      return async () => {
        ran = true;
        return 0;
      };
    },
  });
  launcher.write(request("qsub"));
  launcher.destroy();
  await over;
  admit();
  await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual([ran, live.size], [false, 0]);
});

test("what does not keep to the frames is cut off without an answer", async () => {
  for (const bytes of [frame("I", "unasked"), frame("A", ""), frame("Q", "no request"), Buffer.from("GET / HTTP/1.0\r\n\r\n")]) {
    const { launcher, told } = await play(async () => 0);
    launcher.write(bytes);
    assert.deepEqual(await told, []);
  }
});
