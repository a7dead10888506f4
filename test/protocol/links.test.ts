// Clients, daemons and hostile peers over real sockets.

import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import type { Socket } from "node:net";
import { createConnection } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { connectServer, connectSocket, ServerUnreachable } from "#protocol/client.ts";
import { encodeFrame, encodePartFrame } from "#protocol/frame.ts";
import type { DaemonLink, LinkServer, ListenOptions, ServerLink } from "#protocol/ipc-transport.ts";
import { connectLink, listenLinks } from "#protocol/ipc-transport.ts";
import { serverSocketPath } from "#protocol/socket-path.ts";

type World = {
  readonly dir: string;
  readonly home: string;
  readonly path: string;
  readonly problems: string[];
  readonly links: Set<ServerLink>;
};

/** A server that answers locate-job with the peer's uid, status with many parts, and never answers wait-job. */
async function serve(world: World, options: Partial<ListenOptions> = {}): Promise<LinkServer> {
  return listenLinks({
    path: world.path,
    types: ["request", "sched-hello", "tell"],
    everyone: false,
    onLink: (link) => world.links.add(link),
    onClose: (link) => world.links.delete(link),
    onProblem: (text) => world.problems.push(text),
    onFrame(link, type, data) {
      if (type !== "request") return;
      const { id, kind } = data as { readonly id: number; readonly kind: string };
      if (kind === "wait-job") return;
      if (kind === "status") void link.sendFrames(parts(id, 80)).catch(() => undefined);
      link.reply({ id, ok: true, value: { uid: link.peer.uid, pid: link.peer.pid } });
    },
    ...options,
  });
}

const ITEM = JSON.stringify({ id: "1.svr", attrs: { text: "x".repeat(1000) } });
function* parts(id: number, frames: number): Generator<string> {
  for (let at = 0; at < frames; at++) yield encodePartFrame(id, Array<string>(50).fill(ITEM));
}

async function inWorld(work: (world: World) => Promise<void>, sub = ""): Promise<void> {
  const dir = mkdtempSync(join(tmpdir(), "partita-link-"));
  const home = join(dir, sub);
  mkdirSync(home, { recursive: true });
  try {
    await work({ dir, home, path: serverSocketPath(home), problems: [], links: new Set() });
  } finally {
    rmSync(dir, { recursive: true });
  }
}

/** Waits for a state, however slow the machine. */
async function until(what: string, holds: () => boolean): Promise<void> {
  const limit_ms = performance.now() + 60_000;
  while (!holds()) {
    if (performance.now() > limit_ms) throw new Error(`not within a minute: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

const open = (path: string): Promise<Socket> =>
  new Promise((resolve, reject) => {
    const socket = createConnection(path, () => resolve(socket));
    socket.on("error", reject);
  });
/** Resolves when the peer has ended the connection. */
const ended = (socket: Socket): Promise<void> =>
  new Promise((resolve) => (socket.destroyed ? resolve() : socket.resume().on("close", () => resolve())));
const locate = { kind: "locate-job", job: "1" } as const;

for (const [length, sub] of [
  ["short", ""],
  ["over 107 bytes", "x".repeat(140)],
] as const) {
  test(`client and server over a socket path ${length}: identity from the kernel, requests in flight, parts before the reply`, async () => {
    await inWorld(async (world) => {
      const server = await serve(world);
      const client = await connectServer({ home: world.home });
      const me = { uid: process.getuid?.(), pid: process.pid };
      const replies = await Promise.all(Array.from({ length: 500 }, () => client.request(locate)));
      assert.deepEqual(new Set(replies.map((reply) => reply.id)).size, 500);
      assert.ok(replies.every((reply) => reply.ok));
      assert.deepEqual(replies[0], { id: 1, ok: true, value: me });
      let items = 0;
      const status = client.request({ kind: "status", object: "job", ids: [] }, { onPart: (part) => (items += part.length) });
      const after = client.request(locate);
      assert.ok((await status).ok && (await after).ok);
      assert.equal(items, 4000);
      client.close();
      await until("the link is gone", () => world.links.size === 0);
      await server.close();
      assert.deepEqual(world.problems, []);
    }, sub);
  });
}

test("socket: owner alone in user mode, everybody in system mode; a left-over socket is replaced, anything else is not", async () => {
  await inWorld(async (world) => {
    const modes = (): number[] => [join(world.home, "sock"), world.path].map((path) => statSync(path).mode & 0o777);
    const alone = await serve(world);
    assert.deepEqual(modes(), [0o700, 0o600]);
    const everyone = await serve(world, { everyone: true });
    assert.deepEqual(modes(), [0o755, 0o666]);
    await everyone.close();
    await alone.close();
    writeFileSync(world.path, "precious");
    await assert.rejects(serve(world), { code: "ERR_IPC_UNLINK_NOT_SOCKET" });
  });
});

test("client: no server, a server that goes away, a server that turns it away", async () => {
  await inWorld(async (world) => {
    const unreachable = (line: string, pbse: number) => (error: unknown) =>
      error instanceof ServerUnreachable && error.line === line && error.pbse === pbse;
    await assert.rejects(connectSocket(world.path), unreachable("Connection refused", 15010));
    const server = await serve(world, { limits: { user_connections_max: 1, reserved_connections: 0, connections_max: 10 } });
    const client = await connectSocket(world.path);
    const waiting = client.request({ kind: "wait-job", job: "1" });
    await until("the request arrived", () => [...world.links].some((link) => link.open_requests === 1));
    await server.close();
    await assert.rejects(waiting, unreachable("Communication failure.", 15010));
    await assert.rejects(client.request(locate), ServerUnreachable);
    await assert.rejects(connectSocket(world.path), unreachable("Connection refused", 15010));
  });
});

test("daemon link: hello at every connection, frames both ways, again after the server was away", async () => {
  await inWorld(async (world) => {
    const seen: string[] = [];
    let hellos = 0;
    const onFrame: ListenOptions["onFrame"] = (link, type, data) => {
      if (type === "sched-hello") {
        hellos++;
        link.welcome();
        link.send("sched-snapshot", { text: "x".repeat(20_000_000) });
      } else seen.push(`${type} ${JSON.stringify(data)}`);
    };
    const lengths: number[] = [];
    const link: DaemonLink = connectLink({
      path: world.path,
      types: ["sched-snapshot"],
      retry_ms: 20,
      onOpen: (opened) => opened.send("sched-hello", { name: "default" }),
      onFrame(_type, data) {
        lengths.push((data as { readonly text: string }).text.length);
        link.send("tell", { at: lengths.length });
      },
    });
    const first = await serve(world, { onFrame });
    await until("the first tell", () => seen.length === 1);
    await first.close();
    await until("the link noticed", () => !link.connected);
    const second = await serve(world, { onFrame });
    await until("the second tell", () => seen.length === 2);
    link.reconnect();
    await until("the third tell", () => seen.length === 3);
    assert.deepEqual([hellos, lengths], [3, [20_000_000, 20_000_000, 20_000_000]]);
    link.close();
    await until("the link is gone", () => world.links.size === 0);
    await second.close();
    assert.deepEqual(seen, ['tell {"at":1}', 'tell {"at":2}', 'tell {"at":3}']);
  });
});

test("hostile peers: each loses its connection, and the others are served", async () => {
  await inWorld(async (world) => {
    const server = await serve(world, { limits: { request_frame_chars_max: 10_000, frame_ms_max: 100 } });
    const good = await connectSocket(world.path);
    const rows: [bytes: string | Buffer, problem: RegExp][] = [
      ["garbage\f", /not JSON/],
      [Buffer.from([0xff, 0xfe, 0x00, 0x0c]), /not JSON/],
      ["x".repeat(20_000), /longer than 10000/],
      [`{"type":"request","data":"${"x".repeat(20_000)}"}\f`, /longer than 10000/],
      [`${"[".repeat(9_000)}\f`, /not JSON/],
      ['{"type":"close","data":{}}\f', /not taken here/],
      ['{"type":"socket.disconnected","data":{}}\f', /not taken here/],
      ['{"type":"hasOwnProperty","data":{}}\f', /not taken here/],
      ['{"type":"request"', /not completed in time/],
    ];
    for (const [bytes, problem] of rows) {
      world.problems.length = 0;
      const socket = await open(world.path);
      socket.on("error", () => undefined);
      socket.write(bytes);
      await ended(socket);
      assert.equal(world.problems.length, 1);
      assert.match(world.problems[0] ?? "", problem);
      assert.ok((await good.request(locate)).ok);
    }
    good.close();
    await server.close();
  });
});

test("hostile peers: garbage after a good frame stops everything behind it; vanishing in the middle of a request harms nothing", async () => {
  await inWorld(async (world) => {
    const told: unknown[] = [];
    const server = await serve(world, { onFrame: (_link, _type, data) => void told.push(data) });
    const socket = await open(world.path);
    socket.on("error", () => undefined);
    socket.write(`${encodeFrame("tell", 1)}garbage\f${encodeFrame("tell", 2)}`);
    await ended(socket);
    assert.deepEqual(told, [1]);
    for (let at = 0; at < 50; at++) {
      const vanishing = await open(world.path);
      vanishing.on("error", () => undefined);
      vanishing.write(`${encodeFrame("tell", "x")}{"type":"req`);
      vanishing.destroy();
    }
    await until("all are gone", () => world.links.size === 0 && told.length === 51);
    await server.close();
  });
});

test("hostile peers: who does not read his replies is not read from, and at last given up", async () => {
  await inWorld(async (world) => {
    let served = 0;
    const server = await serve(world, {
      limits: { unread_reply_chars_max: 1_000_000, stalled_reader_ms: 300 },
      onFrame(link, _type, data) {
        const { id } = data as { readonly id: number };
        served++;
        link.part(id, Array<string>(500).fill(ITEM));
        link.reply({ id, ok: true });
      },
    });
    const socket = await open(world.path);
    socket.on("error", () => undefined);
    socket.pause();
    let sent = 0;
    const more = (): void => {
      while (sent < 20_000 && socket.write(encodeFrame("request", { id: sent, kind: "status", object: "job", ids: [] }))) sent++;
    };
    socket.on("drain", more);
    more();
    await until("the reader is given up", () => world.problems.length > 0);
    assert.deepEqual(world.problems, ["the reader takes nothing"]);
    // A chunk of 64 KiB holds about 700 requests; without back-pressure all 20,000 would have been served.
    assert.ok(served < 3000, `${served} served`);
    socket.destroy();
    await until("it is gone", () => world.links.size === 0);
    await server.close();
  });
});

test("hostile peers: a reader that is only slow gets everything", async () => {
  await inWorld(async (world) => {
    const server = await serve(world, { limits: { stalled_reader_ms: 200 } });
    const socket = await open(world.path);
    socket.write(encodeFrame("request", { id: 1, kind: "status", object: "job", ids: [] }));
    let bytes = 0;
    let done = false;
    let end = "";
    socket.on("data", (chunk) => {
      bytes += chunk.length;
      end = (end + chunk.toString("latin1")).slice(-200);
      done ||= end.includes('"type":"reply"') && end.endsWith("\f");
      socket.pause();
      setTimeout(() => socket.resume(), 5);
    });
    await until("the reply came, or the reader was given up", () => done || world.problems.length > 0);
    assert.ok(bytes > 80 * 50 * ITEM.length);
    assert.deepEqual(world.problems, []);
    socket.destroy();
    await server.close();
  });
});

test("hostile peers: too many open requests wait, and none is lost", async () => {
  await inWorld(async (world) => {
    const held: (() => void)[] = [];
    let most = 0;
    const server = await serve(world, {
      limits: { open_requests_max: 10 },
      onFrame(link, _type, data) {
        most = Math.max(most, link.open_requests);
        held.push(() => link.reply({ id: (data as { readonly id: number }).id, ok: true }));
      },
    });
    const client = await connectSocket(world.path);
    // Large enough that few fit into one chunk of the stream.
    const requests = Array.from({ length: 100 }, () =>
      client.request({ kind: "queue-job", destination: "", attrs: [], script: "x".repeat(30_000) }),
    );
    const answering = setInterval(() => {
      for (const answer of held.splice(0)) answer();
    }, 5);
    assert.ok((await Promise.all(requests)).every((reply) => reply.ok));
    clearInterval(answering);
    assert.ok(most >= 10 && most < 20, String(most));
    client.close();
    await server.close();
  });
});

test("hostile peers: frames a second are limited by waiting, not by losing", async () => {
  await inWorld(async (world) => {
    const server = await serve(world, { limits: { frames_per_s_max: 500 } });
    const client = await connectSocket(world.path);
    const begin_ms = performance.now();
    for (let round = 0; round < 5; round++) {
      const replies = await Promise.all(Array.from({ length: 200 }, () => client.request(locate)));
      assert.ok(replies.every((reply) => reply.ok));
    }
    assert.ok(performance.now() - begin_ms > 500, "1,000 frames at 500 a second after a burst of 500, the last 200 in one chunk");
    client.close();
    await server.close();
  });
});

test("hostile peers: a thousand connections that say nothing, come and go, leave nothing behind", async () => {
  await inWorld(async (world) => {
    const server = await serve(world);
    const good = await connectSocket(world.path);
    const sockets = await Promise.all(Array.from({ length: 400 }, () => connectSocket(world.path)));
    await until("all are in", () => world.links.size === 401);
    assert.ok((await good.request(locate)).ok);
    for (const socket of sockets) socket.close();
    await until("all are out", () => world.links.size === 1);
    assert.equal(server.links.size, 1);
    good.close();
    await server.close();
    assert.deepEqual(world.problems, []);
  });
});
