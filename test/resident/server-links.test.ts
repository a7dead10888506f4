// Connections to a server that are kept between commands, with a server that the test plays.

import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtempSync, renameSync, rmSync } from "node:fs";
import { createServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { type Flow, ServerUnreachable } from "#protocol/client.ts";
import type { Request } from "#protocol/messages.ts";
import { socketPlace } from "#protocol/server-place.ts";
import { FRAME_END } from "#protocol/wire/frame.ts";
import { serverLinks } from "#resident/server-links.ts";

const folder = mkdtempSync(join(tmpdir(), "partita-links-"));
const played: Played[] = [];
after(() => {
  for (const { server, connections } of played) {
    for (const socket of connections) socket.destroy();
    server.close();
  }
  rmSync(folder, { recursive: true });
});
let places = 0;
const place = (): string => join(folder, `${places++}.sock`);

type Played = { readonly server: Server; readonly connections: Socket[]; stop(): Promise<void> };

/** Answers every request with the number of its connections, unless silent. */
async function play(path: string, silent = false): Promise<Played> {
  const connections: Socket[] = [];
  const server = createServer((socket) => {
    connections.push(socket);
    socket.on("error", () => undefined);
    socket.setEncoding("utf8").on("data", (text) => {
      for (const frame of String(text).split(FRAME_END)) {
        const id = /"id":(\d+)/.exec(frame)?.[1];
        if (id !== undefined && !silent)
          socket.write(`{"type":"reply","data":{"id":${id},"ok":true,"value":${connections.indexOf(socket)}}}${FRAME_END}`);
      }
    });
  });
  server.listen(path);
  await once(server, "listening");
  const stop = async (): Promise<void> => {
    for (const socket of connections) socket.destroy();
    server.close();
    await once(server, "close");
  };
  played.push({ server, connections, stop });
  return { server, connections, stop };
}

const ask: Request = { kind: "status", object: "server", ids: [] };

function command(): { readonly flow: Flow; readonly gone: AbortController } {
  const gone = new AbortController();
  return { gone, flow: { ended: gone.signal, room: () => null } };
}

test("one command after another uses the connection of the one before, two at once have one each", async () => {
  const path = place();
  const { connections, stop } = await play(path);
  const links = serverLinks();
  for (let i = 0; i < 3; i++) {
    const link = await links.connect(socketPlace(path), command().flow);
    assert.deepEqual(await link.request(ask), { id: i + 1, ok: true, value: 0 });
    link.close();
    await assert.rejects(link.request(ask), ServerUnreachable, "what was given back asks nothing more");
  }
  assert.equal(connections.length, 1);
  const [a, b] = [await links.connect(socketPlace(path), command().flow), await links.connect(socketPlace(path), command().flow)];
  const values = await Promise.all([a, b].map(async (link) => ((await link.request(ask)) as { readonly value?: unknown }).value));
  assert.deepEqual(values, [0, 1]);
  a.close();
  b.close();
  await stop();
});

test("a command whose launcher never had room again holds up nobody who gets its connection", async () => {
  const path = place();
  const { connections, stop } = await play(path);
  const links = serverLinks();
  const full = await links.connect(socketPlace(path), { ...command().flow, room: () => new Promise(() => undefined) });
  assert.equal((await full.request(ask)).ok, true);
  full.close();
  const next = await links.connect(socketPlace(path), command().flow);
  assert.equal((await next.request(ask)).ok, true);
  next.close();
  assert.equal(connections.length, 1);
  await stop();
});

test("a server that has ended, or another one under the same name, is connected to anew", async () => {
  const path = place();
  const first = await play(path);
  const links = serverLinks();
  const once = async (): Promise<unknown> => {
    const link = await links.connect(socketPlace(path), command().flow);
    const reply = await link.request(ask);
    link.close();
    return reply.ok;
  };
  assert.equal(await once(), true);
  await first.stop();
  const second = await play(path);
  assert.equal(await once(), true, "the end of the first is noticed however soon the next command comes");
  renameSync(path, `${path}.old`);
  const third = await play(path);
  assert.equal(await once(), true);
  assert.deepEqual([first.connections.length, second.connections.length, third.connections.length], [1, 1, 1]);
  await third.stop();
  for (const socket of second.connections) socket.destroy();
  second.server.close();
});

test("a command that is cancelled takes its connection with it, and its requests fail", async () => {
  const path = place();
  const { connections, stop } = await play(path, true);
  const links = serverLinks();
  const { flow, gone } = command();
  const link = await links.connect(socketPlace(path), flow);
  const reply = link.request(ask);
  gone.abort();
  await assert.rejects(reply, ServerUnreachable);
  link.close();
  const next = await links.connect(socketPlace(path), command().flow);
  await until(() => connections.length === 2);
  const open = next.request(ask);
  next.close();
  await assert.rejects(open, ServerUnreachable, "closed with a request open: not kept either");
  const last = await links.connect(socketPlace(path), command().flow);
  await until(() => connections.length === 3);
  last.close();
  await stop();
});

async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await new Promise((resolve) => setImmediate(resolve));
}

test("a reader that is full stops what comes, and goes on when it has room", async () => {
  const path = place();
  const { stop } = await play(path);
  const links = serverLinks();
  let resume = (): void => undefined;
  const waits: Promise<void>[] = [];
  const { signal } = new AbortController();
  const link = await links.connect(socketPlace(path), {
    ended: signal,
    room: () => {
      if (waits.length > 0) return null;
      const wait = new Promise<void>((resolve) => {
        resume = resolve;
      });
      waits.push(wait);
      return wait;
    },
  });
  await link.request(ask);
  let second = false;
  const reply = link.request(ask).then(() => {
    second = true;
  });
  // The server answers at once; its data waits in the socket.
  const probe = await links.connect(socketPlace(path), command().flow);
  await probe.request(ask);
  await probe.request(ask);
  assert.equal(second, false);
  resume();
  await reply;
  link.close();
  probe.close();
  await stop();
});
