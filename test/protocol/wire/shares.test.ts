// What the users of one other host hold together, over all listeners of a server: connections, requests a second, text of requests and of replies.

import assert from "node:assert/strict";
import { test } from "node:test";
import { connect, type TLSSocket } from "node:tls";
import type { Credentials } from "#identity/files/credentials.ts";
import { connectSocket } from "#protocol/client.ts";
import { userProofs } from "#protocol/proof/user-proof.ts";
import { encodeFrame, frameDecoder } from "#protocol/wire/frame.ts";
import type { Limits } from "#protocol/wire/limits.ts";
import type { Shares } from "#protocol/wire/share.ts";
import type { TlsListenOptions } from "#protocol/wire/tls-listener.ts";
import { inWorld, serve, until } from "./links-bed.ts";
import { authority, inTlsWorld, member, type TlsWorld } from "./tls-bed.ts";

const CA = authority();
const LOGIN1 = member(CA, "login1", "login");
const LOGIN2 = member(CA, "login2", "login");

/** Users are known by their uid, whatever they claim. Each request is answered at once, with a value of that length. */
function options(limits: Partial<Limits>, shares: Shares = new Map(), chars = 0): Partial<TlsListenOptions> {
  return {
    limits,
    shares,
    onReady: (link) => {
      while (link.serveNext());
    },
    onFrame: (link, type, data) => {
      if (type === "request") link.reply({ id: (data as { readonly id: number }).id, ok: true, value: "x".repeat(chars) });
    },
    proofs: (all, hooks) => userProofs(all, async (_identity, credential) => ({ ok: true, uid: Number(credential), gid: 100 }), hooks),
  };
}

type Client = { readonly socket: TLSSocket; readonly answered: Set<number>; readonly heard: string[] };

/** A user's client, proved. */
async function client({ port, closing }: TlsWorld, { key, certificate, authority: ca }: Credentials, uid: number): Promise<Client> {
  const trusts = { key, cert: certificate, ca: [ca], checkServerIdentity: () => undefined };
  const socket = connect({ host: "127.0.0.1", port, ALPNProtocols: ["partita-user/1"], ...trusts });
  const made: Client = { socket, answered: new Set(), heard: [] };
  const decoder = frameDecoder(1 << 24);
  socket.on("error", () => undefined);
  socket.on("secureConnect", () => void socket.write(encodeFrame("prove", { credential: String(uid) })));
  socket.setEncoding("utf8").on("data", (chunk) =>
    decoder.push(String(chunk), ({ type, data }) => {
      made.heard.push(type);
      if (type === "reply") made.answered.add((data as { readonly id: number }).id);
    }),
  );
  closing.push(() => socket.destroy());
  await until("it is proved or refused", () => made.heard.length > 0);
  return made;
}

const request = (id: number, chars = 0): string => encodeFrame("request", { id, text: "x".repeat(chars) });
const begun = (id: number, chars: number): string => request(id, chars).slice(0, -2);

test("shares: connections of a user count over all listeners, those of a host's users over all users", async () => {
  const shares: Shares = new Map();
  const own_uid = process.getuid?.() ?? 0;
  await inWorld(async (world) => {
    const local = await serve(world, { shares });
    const two = [await connectSocket(world.path), await connectSocket(world.path)];
    await until("both are in", () => world.links.size === 2);
    await inTlsWorld(
      CA,
      async (far) => {
        const third = await client(far, LOGIN1, own_uid);
        const fourth = await client(far, LOGIN2, own_uid);
        assert.deepEqual([third.heard, fourth.heard], [["proved"], ["refused"]], "the user has three, wherever they come from");
        const others = [await client(far, LOGIN1, 5001), await client(far, LOGIN1, 5002)];
        assert.deepEqual(
          others.map(({ heard }) => heard),
          [["proved"], ["refused"]],
          "the host has two",
        );
        assert.deepEqual((await client(far, LOGIN2, 5002)).heard, ["proved"]);
      },
      options({ user_connections_max: 3, host_users_connections_max: 2 }, shares),
    );
    for (const each of two) each.close();
    await until("nobody is counted any more", () => shares.size === 0);
    await local.close();
  });
});

test("shares: requests of a host that are not complete are bounded for all its users together, and those of others are read", async () => {
  const shares: Shares = new Map();
  await inTlsWorld(
    CA,
    async (world) => {
      const mine = await Promise.all([5001, 5002, 5003, 5004].map((uid) => client(world, LOGIN1, uid)));
      for (const { socket } of mine) socket.write(begun(1, 900_000));
      await until("they fill their share", () => (shares.get("host login1")?.pending_chars ?? 0) > 1_000_000);
      const other = await client(world, LOGIN2, 5001);
      other.socket.write(request(1, 900_000));
      await until("another host's is answered", () => other.answered.size === 1);
      const held = shares.get("host login1")?.pending_chars ?? 0;
      assert.ok(held < 1_000_000 + 900_000 + 4 * 70_000, `${held} characters`);
      for (const { socket } of mine) socket.write("}\f");
      await until("at last all are answered", () => mine.every(({ answered }) => answered.size === 1));
    },
    options({ host_pending_chars_max: 1_000_000 }, shares),
  );
});

test("shares: replies that users of a host do not read stop those who do not read, not the others of the host", async () => {
  const shares: Shares = new Map();
  await inTlsWorld(
    CA,
    async (world) => {
      const deaf = await Promise.all([5001, 5002, 5003].map((uid) => client(world, LOGIN1, uid)));
      for (const { socket } of deaf) {
        socket.pause();
        for (let id = 1; id <= 40; id++) socket.write(request(id));
      }
      await until("there is much to read", () => (shares.get("host login1")?.unread_chars ?? 0) > 3_000_000);
      const reader = await client(world, LOGIN1, 5004);
      for (let id = 1; id <= 20; id++) {
        reader.socket.write(request(id));
        await until("one who reads is answered", () => reader.answered.has(id));
      }
      for (const { socket } of deaf) socket.resume();
      await until("the others get all when they read", () => deaf.every(({ answered }) => answered.size === 40));
      assert.ok((shares.get("host login1")?.unread_chars ?? 0) < 3_000_000);
    },
    options({ host_unread_chars_max: 3_000_000, write_ahead_bytes: 100_000 }, shares, 500_000),
  );
});

test("shares: a user who connects anew has the rest of the rate, not a new one", async () => {
  const shares: Shares = new Map();
  await inTlsWorld(
    CA,
    async (world) => {
      const first = await client(world, LOGIN1, 5001);
      for (let id = 1; id <= 300; id++) first.socket.write(request(id));
      await until("the rate is used up", () => first.answered.size >= 200);
      const used = shares.get("user 5001");
      first.socket.destroy();
      await until("no connection is left", () => used?.connections === 0);
      await client(world, LOGIN1, 5001);
      assert.equal(shares.get("user 5001"), used);
    },
    options({ user_frames_per_s_max: 200 }, shares),
  );
  await until("nobody is counted any more", () => shares.size === 0);
});

test("shares: requests a second of a user and of a host's users are limited by waiting, not by losing; other hosts do not wait", async () => {
  const rows: readonly (readonly [what: string, uids: readonly number[], limits: Partial<Limits>])[] = [
    ["one user over two connections", [5001, 5001], { user_frames_per_s_max: 200 }],
    ["two users of a host", [5001, 5002], { host_frames_per_s_max: 200 }],
  ];
  for (const [what, uids, limits] of rows)
    await inTlsWorld(
      CA,
      async (world) => {
        const clients = await Promise.all(uids.map((uid) => client(world, LOGIN1, uid)));
        const begin_ms = performance.now();
        for (const { socket } of clients) for (let id = 1; id <= 250; id++) socket.write(request(id));
        const other = await client(world, LOGIN2, 5009);
        for (let id = 1; id <= 20; id++) other.socket.write(request(id));
        await until("another is answered", () => other.answered.size === 20);
        assert.ok(
          clients.some(({ answered }) => answered.size < 250),
          `${what}: they still wait`,
        );
        await until(`${what}: all are answered`, () => clients.every(({ answered }) => answered.size === 250));
        assert.ok(performance.now() - begin_ms > 1200, `${what}: 500 requests at 200 a second after a burst of 200`);
      },
      options(limits),
    );
});

test("shares: whatever limits of users and of hosts are reached together, no connection waits for ever", async () => {
  await inTlsWorld(
    CA,
    async (world) => {
      const places = [LOGIN1, LOGIN2].flatMap((login) => [5001, 5002, 5003].flatMap((uid) => [1, 2, 3].map(() => ({ login, uid }))));
      const clients = await Promise.all(places.map(({ login, uid }) => client(world, login, uid)));
      const COUNT = 8;
      const parts: [socket: TLSSocket, text: string][] = [];
      for (const [at, { socket }] of clients.entries())
        for (let id = 1; id <= COUNT; id++) {
          const text = request(id, 40_000 + 5000 * ((at * 7 + id * 3) % 8));
          const cut = (at * 9973 + id * 7919) % text.length;
          parts.push([socket, text.slice(0, cut)], [socket, text.slice(cut)]);
        }
      // The connections take turns, piece by piece, so that all have half a request at the same time again and again.
      const pieces = 2 * COUNT;
      for (let turn = 0; turn < pieces; turn++) {
        for (let at = 0; at < clients.length; at++) {
          const [socket, text] = parts[at * pieces + turn] as [TLSSocket, string];
          socket.write(text);
        }
        await new Promise((resolve) => setImmediate(resolve));
      }
      await until("all are answered", () => clients.every(({ answered }) => answered.size === COUNT));
    },
    options({ user_pending_chars_max: 60_000, host_pending_chars_max: 90_000 }),
  );
});
