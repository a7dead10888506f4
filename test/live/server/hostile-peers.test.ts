// Hostile and slow peers over real sockets: each loses its connection in time, and the others are served.

import assert from "node:assert/strict";
import { test } from "node:test";
import { connectSocket } from "#protocol/client.ts";
import { encodeFrame } from "#protocol/wire/frame.ts";
import { ended, ITEM, inWorld, locate, open, serve, until } from "../../protocol/wire/links-bed.ts";

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
    // A chunk of 64 KiB holds about 700 requests. Without back-pressure all 20,000 would have been served.
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
    const server = await serve(world, { limits: { user_frames_per_s_max: 500 } });
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
