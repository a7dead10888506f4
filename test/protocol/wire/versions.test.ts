// Programs of different releases: which talk to each other, and what both ends say if they cannot.

import assert from "node:assert/strict";
import { createServer, type Socket } from "node:net";
import { join } from "node:path";
import { test } from "node:test";
import { connectSocket, ServerUnreachable } from "#protocol/client.ts";
import { decodeFrame, encodeFrame } from "#protocol/wire/frame.ts";
import { connectLink } from "#protocol/wire/ipc-transport.ts";
import { commonVersion, SPOKEN, type Versions, versionTalk } from "#protocol/wire/versions.ts";
import { PARTITA_VERSION } from "#support/version.ts";
import { ended, inWorld, locate, open, serve, until } from "./links-bed.ts";

const range = (oldest: number, newest: number): Versions => ({ oldest, newest });
const NEXT = SPOKEN.newest + 1;
const spoken = `partita ${PARTITA_VERSION} speaks protocol versions ${SPOKEN.oldest} to ${SPOKEN.newest}`;

test("versions: the newest that both speak", () => {
  const rows: readonly (readonly [own: Versions, theirs: Versions, common: number | null])[] = [
    [range(1, 2), range(1, 2), 2],
    [range(1, 2), range(1, 1), 1],
    [range(2, 3), range(1, 2), 2],
    [range(2, 5), range(3, 4), 4],
    [range(3, 4), range(1, 2), null],
    [range(1, 1), range(2, 3), null],
  ];
  for (const [own, theirs, common] of rows) {
    assert.equal(commonVersion(own, theirs), common);
    assert.equal(commonVersion(theirs, own), common);
  }
});

test("versions: the first frame of each end says them, an end that says nothing speaks version 1", () => {
  const frame = encodeFrame("tell", { n: 1 });
  const talks: readonly Versions[] = [range(1, 1), range(1, 2), range(2, 3), range(3, 3)];
  for (const own of talks)
    for (const theirs of talks) {
      const here = versionTalk({ own });
      const there = versionTalk({ own: theirs, reserved: true });
      assert.equal(there.outgoing(frame), frame, "nothing is said to an end that has said nothing");
      const first = decodeFrame(here.outgoing(frame).slice(0, -1));
      assert.deepEqual([first.type, first.data, first.protocol], ["tell", { n: 1 }, [own.oldest, own.newest]]);
      assert.equal(here.outgoing(frame), frame, "it is said once");
      const fault = there.incoming(first);
      const answer = here.incoming(decodeFrame(there.outgoing(frame).slice(0, -1)));
      const can = commonVersion(own, theirs) !== null;
      assert.deepEqual([fault === null, answer === null], [can, can]);
      if (fault !== null) assert.match(fault, /^no common protocol version: partita .* speaks .*; upgrade (the other program|partita .*)$/);
    }
  const silent = { type: "tell", data: {} };
  assert.equal(versionTalk({ own: range(1, 2) }).incoming(silent), null);
  assert.match(
    versionTalk({ own: range(2, 3) }).incoming(silent) ?? "",
    /the other program speaks protocol version 1; upgrade the other program$/,
  );
  for (const protocol of [7, [], [1], [2, 1], ["1", 2], [0, 1], [1, 1e9], { oldest: 1 }, null])
    assert.match(versionTalk().incoming({ ...silent, protocol }) ?? "", /in a form that is not understood/);
});

test("versions: a client and a daemon that the server cannot serve are told so, and the log of the server says so too", async () => {
  await inWorld(async (world) => {
    const frames: string[] = [];
    const server = await serve(world, { onFrame: (_link, type) => void frames.push(type) });
    const text = `no common protocol version: ${spoken}, the other program speaks protocol versions ${NEXT} to ${NEXT + 1}; upgrade partita ${PARTITA_VERSION}`;
    for (const type of ["request", "sched-hello"]) {
      world.problems.length = 0;
      const socket = await open(world.path);
      let heard = "";
      socket.on("data", (chunk: Buffer) => (heard += chunk.toString()));
      const talk = versionTalk({ own: range(NEXT, NEXT + 1) });
      socket.write(talk.outgoing(encodeFrame(type, { id: 1, ...locate })) + encodeFrame(type, { id: 2, ...locate }));
      await ended(socket);
      assert.deepEqual([heard, world.problems], [encodeFrame("refused", { code: 15031, text }), [text]]);
    }
    assert.deepEqual(frames, [], "nothing was served");
    await server.close();
  });
});

/** A server of another release: answers each connection with one frame that says its versions. */
async function foreignServer(path: string, own: Versions, answer: string): Promise<{ readonly dials: () => number; close(): void }> {
  let dials = 0;
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    dials++;
    sockets.add(socket.on("error", () => undefined));
    socket.once("data", () => void socket.write(versionTalk({ own }).outgoing(answer)));
  });
  await new Promise<void>((resolve) => server.listen(path, resolve));
  return {
    dials: () => dials,
    close() {
      for (const socket of sockets) socket.destroy();
      server.close();
    },
  };
}

test("versions: a client and a daemon say why they cannot use a server of another release; the daemon comes back after a while only", async () => {
  await inWorld(async ({ dir }) => {
    const path = join(dir, "sock");
    const own = range(NEXT, NEXT);
    const reply = await foreignServer(path, own, encodeFrame("reply", { id: 1, ok: true }));
    const why = /^no common protocol version: .*the other program speaks protocol version \d+; upgrade partita/;
    const client = await connectSocket(path);
    await assert.rejects(
      client.request(locate),
      (error: unknown) => error instanceof ServerUnreachable && why.test(error.line) && error.pbse === 15031,
    );
    reply.close();

    for (const answer of [encodeFrame("told", {}), encodeFrame("refused", { code: 15031, text: "no common protocol version" })]) {
      const server = await foreignServer(path, own, answer);
      const closed: string[] = [];
      const heard: string[] = [];
      const link = connectLink({
        path,
        types: ["told"],
        retry_ms: 5,
        limits: { refused_retry_ms: 300 },
        onOpen: (open) => open.send("hello", {}),
        onFrame: (type, data) => {
          heard.push(type);
          if (type === "refused") closed.push((data as { readonly text: string }).text);
          if (type === "refused") link.reconnect();
        },
        onClose: (text) => void closed.push(text),
      });
      await until("it knows why", () => closed.length > 0);
      assert.match(closed[0] ?? "", /^no common protocol version/);
      assert.ok(!heard.includes("told"), "nothing of that server is taken");
      const begin_ms = performance.now();
      const before = server.dials();
      await until("it comes back", () => server.dials() > before);
      assert.ok(performance.now() - begin_ms > 200, "after refused_retry_ms");
      link.close();
      server.close();
    }
  });
});
