// Clients and daemons over real sockets.

import assert from "node:assert/strict";
import { statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { connectServer, connectSocket, ServerUnreachable } from "#protocol/client.ts";
import type { DaemonLink, ListenOptions, ServerLink } from "#protocol/wire/ipc-transport.ts";
import { connectLink } from "#protocol/wire/ipc-transport.ts";
import { ended, inWorld, locate, open, serve, until } from "./links-bed.ts";

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

test("text that waits for its turn is bounded over all connections of a user; the rest is read as requests are served", async () => {
  await inWorld(async (world) => {
    const [connections, chars] = [20, 1_000_000];
    const ready = new Set<ServerLink>();
    const server = await serve(world, {
      limits: { user_pending_chars_max: 4 * chars },
      onReady: (link) => void ready.add(link),
    });
    const clients = await Promise.all(Array.from({ length: connections }, () => connectSocket(world.path)));
    await until("all are connected", () => world.links.size === connections);
    const large_links = new Set(world.links);
    const large = { kind: "queue-job", destination: "", attrs: [{ name: "Variable_List", value: "x".repeat(chars) }], script: "" } as const;
    const answers = clients.map((client) => client.request(large));
    await until("some requests are whole", () => ready.size > 0);
    // Each of these takes the server several turns of the event loop, in which it would read data of every connection.
    for (let at = 0; at < 100; at++) {
      const small = await connectSocket(world.path);
      const asked = small.request(locate);
      const isSmall = (link: ServerLink): boolean => !large_links.has(link);
      await until("the small request has come in", () => [...ready].some(isSmall));
      for (const link of [...ready].filter(isSmall)) {
        ready.delete(link);
        link.serveNext();
      }
      assert.ok((await asked).ok);
      small.close();
    }
    assert.ok(ready.size <= 4, `${ready.size} large requests wait`);
    const over = Promise.all(answers).then((replies) => replies.every(({ ok }) => ok));
    let served = 0;
    await until("all are served", () => {
      for (const link of ready) {
        ready.delete(link);
        served++;
        link.serveNext();
      }
      return served === connections;
    });
    assert.ok(await over);
    for (const client of clients) client.close();
    await server.close();
    assert.deepEqual(world.problems, []);
  });
});

test("one incomplete request over the bound of its user is read at a time; one that stays incomplete is ended, and the next is read", async () => {
  await inWorld(async (world) => {
    const chars = 300_000;
    const server = await serve(world, { limits: { user_pending_chars_max: chars / 2, frame_ms_max: 300 } });
    const incomplete = await open(world.path);
    incomplete.write(`{"type":"request","data":{"id":1,"kind":"${"x".repeat(chars)}`);
    const client = await connectSocket(world.path);
    const large = { kind: "queue-job", destination: "", attrs: [{ name: "Variable_List", value: "x".repeat(chars) }], script: "" } as const;
    assert.ok((await client.request(large)).ok);
    await ended(incomplete);
    assert.deepEqual(world.problems, ["a frame was not completed in time"]);
    client.close();
    await server.close();
  });
});
