// Users over TLS: who gets a link, as whom, and what a client can do that has not proved its user (docs/identity.md).

import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { connect, type TLSSocket } from "node:tls";
import type { Credentials } from "#identity/files/credentials.ts";
import { writeLogin } from "#identity/files/user-credentials.ts";
import { connectPlace, ServerUnreachable } from "#protocol/client.ts";
import { bindingOf } from "#protocol/proof/exchange.ts";
import { type UserVerdict, userProofs } from "#protocol/proof/user-proof.ts";
import { serverPlace } from "#protocol/server-place.ts";
import { encodeFrame, frameDecoder } from "#protocol/wire/frame.ts";
import type { Limits } from "#protocol/wire/limits.ts";
import type { TlsListenOptions } from "#protocol/wire/tls-listener.ts";
import { ended, until } from "../wire/links-bed.ts";
import { authority, dial, inTlsWorld, member, type TlsWorld } from "../wire/tls-bed.ts";

const CA = authority();
const ALICE = { ok: true, uid: 1000, gid: 100 } as const;

type Asked = { readonly host: string; readonly user: string | undefined; readonly credential: string | null; readonly binding: string };

/** A listener whose prover knows the credential `alice`, and every certificate of a user. */
function withUsers(asked: Asked[], limits: Partial<Limits> = {}, prove?: () => Promise<UserVerdict>): Partial<TlsListenOptions> {
  return {
    limits,
    onFrame: (link, type, data) => {
      if (type !== "request") return;
      const { id } = data as { readonly id: number };
      link.reply({ id, ok: true, value: [link.peer.uid, link.peer.gid, link.peer.host?.host] });
    },
    onReady: (link) => {
      while (link.serveNext());
    },
    proofs: (all, hooks) =>
      userProofs(
        all,
        async ({ host, user }, credential, binding) => {
          asked.push({ host, user, credential, binding });
          if (prove !== undefined) return prove();
          return user !== undefined || credential === "alice" ? ALICE : { ok: false, fault: "the munge credential is refused" };
        },
        hooks,
      ),
  };
}

type Client = { readonly socket: TLSSocket; readonly heard: { readonly type: string; readonly data: unknown }[]; binding: string };

/** A client that sends these frames after its handshake. */
function client(world: TlsWorld, credentials: Credentials, frames: readonly string[], protocol = "partita-user/1"): Client {
  const { key, certificate, authority: ca } = credentials;
  const options = { key, cert: certificate, ca: [ca], checkServerIdentity: () => undefined };
  const socket = connect({ host: "127.0.0.1", port: world.port, ALPNProtocols: [protocol], ...options });
  const state: Client = { socket, heard: [], binding: "" };
  const decoder = frameDecoder(1 << 20);
  socket.on("error", () => undefined);
  socket.on("secureConnect", () => {
    state.binding = bindingOf(socket);
    for (const frame of frames) socket.write(frame);
  });
  socket.setEncoding("utf8").on("data", (chunk) => decoder.push(String(chunk), (frame) => void state.heard.push(frame)));
  world.closing.push(() => socket.destroy());
  return state;
}

const proof = (credential: unknown): string => encodeFrame("prove", { credential });
const REQUEST = encodeFrame("request", { id: 1 });

test("user link: a user is proved before a request is served, by a credential bound to the connection or by a certificate", async () => {
  const asked: Asked[] = [];
  await inTlsWorld(
    CA,
    async (world) => {
      const users = [
        client(world, member(CA, "login1", "login"), [proof("alice")]),
        client(world, member(CA, "login2", "user", 1000, -2000, "alice"), [proof(null)]),
      ];
      for (const [at, each] of users.entries()) {
        await until("the answer to the proof", () => each.heard.length === 1);
        assert.equal(each.heard[0]?.type, "proved");
        each.socket.write(REQUEST);
        await until("the reply", () => each.heard.length === 2);
        assert.deepEqual(each.heard[1]?.data, { id: 1, ok: true, value: [1000, 100, `login${at + 1}`] });
      }
      assert.deepEqual(asked.map(({ host, user, credential }) => [host, user, credential]).sort(), [
        ["login1", undefined, "alice"],
        ["login2", "alice", null],
      ]);
      const bindings = users.map(({ binding }) => binding);
      assert.deepEqual(asked.map(({ binding }) => binding).sort(), [...bindings].sort(), "both ends name a connection alike");
      assert.notEqual(bindings[0], bindings[1], "and no two connections");
      assert.deepEqual(world.problems, []);
    },
    withUsers(asked),
  );
});

test("user link: whoever does not prove a user gets none, and no request is served", async () => {
  const foreign = authority("Another CA");
  const login = member(CA, "login1", "login");
  const proof_ms_max = 300;
  // biome-ignore format: a table
  const rows: readonly (readonly [what: string, credentials: Credentials, frames: readonly string[], problem: RegExp])[] = [
    ["a host's certificate",     member(CA, "node7"),                       [proof("alice"), REQUEST], /^the certificate of node7 with the role host cannot be used/],
    ["a server's certificate",   member(CA, "head", "server"),              [proof("alice"), REQUEST], /^the certificate of head with the role server cannot be used/],
    ["a foreign authority",      { ...member(foreign, "login1", "login"), authority: CA.certificate }, [proof("alice")], /the certificate is not one of this complex/],
    ["an expired certificate",   member(CA, "login1", "login", -1),         [proof("alice")],          /^the certificate has expired by the clock of the server/],
    ["a revoked one",            member(CA, "gone", "login"),               [proof("alice")],          /^gone was revoked/],
    ["a refused credential",     login,                                     [proof("bob")],            /^the munge credential is refused, from host login1$/],
    ["no credential",            login,                                     [proof(null)],             /^the munge credential is refused/],
    ["another kind of proof",    login,                                     [proof(7)],                /^the first frame is no proof/],
    ["a request at once",        login,                                     [REQUEST],                 /^the first frame is no proof/],
    ["a request with the proof", login,                                     [proof("alice") + REQUEST], /^the first frame is no proof/],
    ["no JSON",                  login,                                     ["GET /\f"],               /^the first frame is no proof/],
    ["an endless proof",         login,                                     ["x".repeat(1001)],        /^the proof is too long/],
    ["a long proof",             login,                                     [proof("x".repeat(1000))], /^the proof is too long/],
    ["half a proof",             login,                                     [proof("alice").slice(0, 9)], /^the proof took too long/],
    ["silence",                  login,                                     [],                        /^the proof took too long/],
  ];
  for (const [what, credentials, frames, problem] of rows) {
    await inTlsWorld(
      CA,
      async (world) => {
        world.refused.add("gone");
        const each = client(world, credentials, frames);
        await ended(each.socket);
        await until(`${what} is in the log`, () => world.problems.length > 0);
        assert.match(world.problems[0] ?? "", problem, what);
        assert.ok(
          each.heard.every(({ type }) => type === "refused"),
          what,
        );
        assert.equal(world.links.size, 0, what);
      },
      withUsers([], { proof_ms_max, proof_chars_max: 1000 }),
    );
  }
});

test("user link: a second frame before the answer ends the connection, and a client that leaves is forgotten", async () => {
  const waiting: ((verdict: UserVerdict) => void)[] = [];
  await inTlsWorld(
    CA,
    async (world) => {
      const hasty = client(world, member(CA, "login1", "login"), [proof("alice")]);
      await until("the proof is judged", () => waiting.length === 1);
      hasty.socket.write(REQUEST);
      await ended(hasty.socket);
      const gone = client(world, member(CA, "login1", "login"), [proof("alice")]);
      await until("the second proof is judged", () => waiting.length === 2);
      gone.socket.destroy();
      const stays = client(world, member(CA, "login1", "login"), [proof("alice")]);
      await until("the third proof is judged", () => waiting.length === 3);
      for (const answer of waiting) answer(ALICE);
      await until("the third is a link", () => stays.heard.length === 1);
      assert.deepEqual([world.links.size, hasty.heard.map(({ type }) => type)], [1, ["refused"]]);
      assert.match(world.problems.join(), /a frame before the answer to the proof/);
    },
    withUsers([], {}, () => new Promise((resolve) => waiting.push(resolve))),
  );
});

test("user link: a certificate that is revoked or expires during the proof gives no link (S3)", async () => {
  const waiting: ((verdict: UserVerdict) => void)[] = [];
  await inTlsWorld(
    CA,
    async (world) => {
      const revoked = client(world, member(CA, "login1", "login"), [proof("alice")]);
      await until("the proof is judged", () => waiting.length === 1);
      world.refused.add("login1");
      waiting[0]?.(ALICE);
      await ended(revoked.socket);
      assert.deepEqual(revoked.heard, [{ type: "refused", data: { code: 15019, text: "login1 was revoked" } }]);
      const brief = client(world, member(CA, "login2", "login", 3), [proof("alice")]);
      await until("the second proof is judged", () => waiting.length === 2);
      const until_ms = Date.now() + 3100;
      await until("its certificate has expired", () => Date.now() > until_ms);
      waiting[1]?.(ALICE);
      await ended(brief.socket);
      assert.match(JSON.stringify(brief.heard), /the certificate \w+ of login2 has expired/);
      const later = client(world, member(CA, "login3", "login", 3), [proof("alice")]);
      await until("the third proof is judged", () => waiting.length === 3);
      waiting[2]?.(ALICE);
      await until("the third is a link", () => world.links.size === 1);
      await until("a review ends it when its certificate has expired", () => {
        world.server.review();
        return world.links.size === 0;
      });
      await ended(later.socket);
    },
    withUsers([], {}, () => new Promise((resolve) => waiting.push(resolve))),
  );
});

test("user link: clients that leave before the verdict count against their address, faults of the server's own host do not (V3)", async () => {
  const rows: readonly (readonly [what: string, frames: readonly string[], verdict: UserVerdict | null, counts: boolean])[] = [
    ["leaves without a word", [], null, true],
    ["leaves before its verdict, a refusal", [proof("bob")], { ok: false, fault: "no" }, true],
    ["leaves before its verdict, a user", [proof("alice")], ALICE, false],
    ["leaves while munged hangs", [proof("alice")], { ok: false, fault: "munged is silent", is_own: true }, false],
  ];
  for (const [what, frames, verdict, counts] of rows) {
    const waiting: ((verdict: UserVerdict) => void)[] = [];
    const prove = (): Promise<UserVerdict> => new Promise((resolve) => waiting.push(resolve));
    await inTlsWorld(
      CA,
      async (world) => {
        const login = member(CA, "login1", "login");
        for (let at = 0; at < 2; at++) {
          const leaving = client(world, login, frames);
          await until(`${what}: it is connected`, () => leaving.binding !== "");
          if (verdict !== null) await until(`${what}: it is judged`, () => waiting.length === at + 1);
          leaving.socket.destroy();
          await ended(leaving.socket);
        }
        if (verdict !== null) for (const answer of waiting) answer(verdict);
        const isServed = async (): Promise<boolean> => {
          const { length } = waiting;
          const next = client(world, login, [proof("alice")]);
          await until(`${what}: it is served or refused`, () => next.socket.destroyed || waiting.length > length);
          const served = waiting.length > length;
          if (served) waiting.at(-1)?.(ALICE);
          return served;
        };
        if (counts) {
          for (let served = true; served; ) served = await isServed();
          assert.match(world.problems.join(), /too many connections of 127\.0\.0\.1 proved nothing/, what);
        } else for (let at = 0; at < 5; at++) assert.equal(await isServed(), true, what);
      },
      withUsers([], { unproved_ends_max: 2, unproved_ends_ms: 600_000 }, prove),
    );
  }
});

test("user link: a proof that the server's own munged never answers counts against nobody (V3)", async () => {
  await inTlsWorld(
    CA,
    async (world) => {
      for (let at = 0; at < 4; at++) {
        const each = client(world, member(CA, "login1", "login"), [proof("alice")]);
        await ended(each.socket);
        assert.match(JSON.stringify(each.heard), /the proof took too long/);
      }
    },
    withUsers([], { proof_ms_max: 50, unproved_ends_max: 2, unproved_ends_ms: 600_000 }, () => new Promise(() => undefined)),
  );
});

test("user link: a certificate for users carries no daemon, and each host has its share of links", async () => {
  await inTlsWorld(
    CA,
    async (world) => {
      const login = member(CA, "login1", "login");
      const daemon = dial(world, () => login);
      await until("it is refused", () => daemon.closed > 0);
      daemon.link.close();
      assert.match(world.problems[0] ?? "", /^the certificate of login1 with the role login cannot be used for this/);
      const two = [client(world, login, [proof("alice")]), client(world, login, [proof("alice")])];
      await until("two are linked", () => two.every(({ heard }) => heard.length === 1));
      const third = client(world, login, [proof("alice")]);
      await ended(third.socket);
      assert.deepEqual(third.heard, [{ type: "refused", data: { code: 15033, text: "No free connections" } }]);
      const other = client(world, member(CA, "login2", "login"), [proof("alice")]);
      await until("another host has its own", () => other.heard.length === 1);
      const fifth = client(world, member(CA, "login3", "login"), [proof("alice")]);
      await ended(fifth.socket);
      two[0]?.socket.destroy();
      await until("a place is free", () => world.links.size === 2);
      const next = client(world, login, [proof("alice")]);
      await until("it is taken again", () => next.heard[0]?.type === "proved");
    },
    withUsers([], { host_users_connections_max: 2, hosts_users_connections_max: 3 }),
  );
});

test("user link: the client of the commands, with the files of a host", async () => {
  const home = mkdtempSync(join(tmpdir(), "partita-user-"));
  try {
    mkdirSync(join(home, "identity"));
    writeFileSync(join(home, "identity/ca.crt"), CA.certificate);
    writeLogin(home, member(CA, "login1", "login"), true);
    const asked: Asked[] = [];
    await inTlsWorld(
      CA,
      async (world) => {
        const conf = {
          home,
          start: { server: false, sched: false, mom: false, comm: false },
          own_server: "head",
          server_host: "127.0.0.1",
          port: { server: world.port, mom: 1, manager: 2, sched: 3 },
          mode: "user",
          mom_node_name: "login1",
          values: {},
        } as const;
        const link = await connectPlace(serverPlace(conf));
        const reply = await link.request({ kind: "status", object: "server", ids: [] });
        assert.deepEqual(reply, { id: 1, ok: true, value: [1000, 100, "login1"] });
        assert.deepEqual([asked[0]?.credential, asked[0]?.binding.length], [null, 64]);
        const broken = link.request({ kind: "status", object: "server", ids: [] });
        for (const each of world.links) each.destroy();
        await assert.rejects(broken, ServerUnreachable);
        writeLogin(home, member(CA, "login1", "login", -1), true);
        const unreachable = (line: RegExp) => (error: unknown) =>
          error instanceof ServerUnreachable && error.pbse === 15019 && line.test(error.line);
        await assert.rejects(connectPlace(serverPlace(conf)), unreachable(/^the certificate has expired by the clock of the server$/));
        writeLogin(home, member(CA, "login1", "login"), true);
        await assert.rejects(
          connectPlace(serverPlace({ ...conf, own_server: "standby" })),
          unreachable(/the peer is the server head, not standby$/),
        );
        writeFileSync(join(home, "identity/ca.crt"), authority("Another CA").certificate);
        await assert.rejects(connectPlace(serverPlace(conf)), unreachable(/^the server at 127\.0\.0\.1, port \d+: /));
        assert.equal(asked.length, 1, "nothing about the user left");
      },
      withUsers(asked, {}, async () => ALICE),
    );
  } finally {
    rmSync(home, { recursive: true });
  }
});
