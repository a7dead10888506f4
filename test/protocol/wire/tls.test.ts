// Links over TLS 1.3 between hosts: who gets one, who does not, and what those can do who have proved nothing (docs/identity.md).

import assert from "node:assert/strict";
import { connect, createServer, type Socket } from "node:net";
import { test } from "node:test";
import { type ConnectionOptions, connect as connectTls, createServer as createTlsServer, type TLSSocket } from "node:tls";
import type { Credentials } from "#identity/files/credentials.ts";
import { readCertificate } from "#identity/x509/certificate.ts";
import { encodeFrame } from "#protocol/wire/frame.ts";
import { askAuthority, fetchAuthority } from "#protocol/wire/tls-question.ts";
import { ended, until } from "./links-bed.ts";
import { authority, dial, freePort, inTlsWorld, member, type TlsWorld } from "./tls-bed.ts";

const CA = authority();
const NONE: ReadonlySet<string> = new Set();
const here = ({ port }: Pick<TlsWorld, "port">) => ({ host: "127.0.0.1", port });

test("tls link: frames both ways, each end known by its certificate, again after a cut", async () => {
  await inTlsWorld(CA, async (world) => {
    const host = member(CA, "node7");
    const daemon = dial(world, () => host);
    await until("the answer", () => daemon.heard.length === 1);
    daemon.link.send("tell", { text: "ä".repeat(100_000) });
    await until("the second answer", () => daemon.heard.length === 2);
    assert.equal(world.frames[0], 'node7 hello {"n":1}');
    const [link] = world.links;
    const { serial, until_s } = readCertificate(host.certificate);
    assert.deepEqual(link?.peer, {
      until_s,
      pid: 0,
      uid: 0xffffffff,
      gid: 0xffffffff,
      host: { host: "node7", role: "host", serial },
      address: "127.0.0.1",
    });
    link?.destroy();
    await until("the link is made again", () => daemon.heard.length === 3);
    assert.deepEqual([daemon.opened, daemon.closed, daemon.faults], [2, 1, []]);
    daemon.link.close();
    await until("the link is gone", () => world.links.size === 0);
  });
});

test("tls link: hosts that are not of this complex get none, and learn it only in the log", async () => {
  const foreign = authority("Another CA");
  // biome-ignore format: a table
  const rows: readonly (readonly [name: string, credentials: Credentials, problem: RegExp])[] = [
    ["a foreign authority",      { ...member(foreign, "node7"), authority: CA.certificate },          /^the certificate is not one of this complex \((UNABLE|SELF|self|DEPTH)/],
    ["an expired certificate",   member(CA, "node7", "host", -1),                                     /^the certificate has expired by the clock of the server, from 127/],
    ["one that is not valid yet", member(CA, "node7", "host", 5000, 4000),                            /^the certificate is not valid yet by the clock of the server: compare/],
    ["the authority's own",      { key: CA.key, certificate: CA.certificate, authority: CA.certificate }, /is not one of this complex|names no host/],
    ["a revoked one",            member(CA, "gone"),                                                  /^gone was revoked, from 127\.0\.0\.1$/],
  ];
  await inTlsWorld(CA, async (world) => {
    world.refused.add("gone");
    for (const [name, credentials, problem] of rows) {
      const before = world.problems.length;
      const daemon = dial(world, () => credentials);
      await until(`${name} is refused`, () => world.problems.length > before && daemon.closed > 0);
      daemon.link.close();
      assert.match(world.problems[before] ?? "", problem, name);
      const said = (JSON.parse(daemon.heard[0]?.replace("refused ", "") ?? "{}") as { readonly text?: string }).text ?? "";
      assert.match(`${said}, from 127.0.0.1`, problem, `the holder of ${name} learns why`);
    }
    assert.deepEqual([world.frames, world.links.size], [[], 0]);
  });
});

test("tls link: no session is resumed: each connection proves itself by the key of its certificate (S4)", async () => {
  await inTlsWorld(CA, async (world) => {
    const { key, certificate: cert, authority: ca } = member(CA, "node7");
    const options = { ...here(world), key, cert, ca, checkServerIdentity: () => undefined, ALPNProtocols: ["partita/1"] };
    const sessions: Buffer[] = [];
    for (let at = 0; at < 2; at++) {
      const [session] = sessions;
      const socket = connectTls(session === undefined ? options : { ...options, session });
      socket.on("session", (text: Buffer) => sessions.push(text));
      const answered = new Promise((resolve) => socket.once("data", resolve));
      socket.write(encodeFrame("hello", {}));
      await answered;
      assert.equal(socket.isSessionReused(), false);
      socket.destroy();
    }
    assert.ok(sessions.length > 0, "the server offers a session, and the client has tried to resume it");
  });
});

test("tls link: a server that does not agree to our protocol gets no hello and no question", async () => {
  const { key, certificate, authority: ca } = member(CA, "head", "server");
  const port = await freePort();
  const heard: string[] = [];
  const other = createTlsServer({ key, cert: certificate, ca, minVersion: "TLSv1.3" }, (socket) => {
    socket.on("error", () => undefined);
    socket.on("data", (chunk: Buffer) => heard.push(chunk.toString()));
  });
  await new Promise<void>((resolve) => other.listen(port, "127.0.0.1", resolve));
  const closing: (() => void)[] = [];
  const daemon = dial({ port, closing }, () => member(CA, "node7"));
  await until("two attempts have failed", () => daemon.faults.length >= 2);
  assert.match(daemon.faults[0] ?? "", /speaks another protocol/);
  assert.equal(daemon.opened, 0);
  const asker = { authority: CA.certificate, own: null, revoked: NONE };
  await assert.rejects(askAuthority(here({ port }), asker, { type: "join", data: {} }, ["joined"]), /is no server of Partita/);
  assert.deepEqual(heard, []);
  for (const close of closing) close();
  await new Promise((resolve) => other.close(resolve));
});

test("tls link: one host has few links and few questions at a time, and others are served (T3)", async () => {
  await inTlsWorld(
    CA,
    async (world) => {
      const linked = [dial(world, () => MEMBERS.bad), dial(world, () => MEMBERS.bad)];
      await until("both are there", () => linked.every(({ heard }) => heard.length === 1));
      const third = dial(world, () => MEMBERS.bad);
      await until("a third is refused", () => third.heard.length > 0);
      assert.match(third.heard[0] ?? "", /^refused .*No free connections/);
      const other = dial(world, () => MEMBERS.good);
      await until("another host is served", () => other.heard.length === 1);
      const own = MEMBERS.bad;
      const silent = connectTls({
        ...here(world),
        key: own.key,
        cert: own.certificate,
        rejectUnauthorized: false,
        ALPNProtocols: [QUESTION],
      });
      await new Promise((resolve) => silent.once("secureConnect", resolve));
      const asked = (credentials: Credentials) =>
        askAuthority(here(world), { authority: CA.certificate, own: credentials, revoked: NONE }, { type: "renew", data: {} }, ["joined"]);
      await assert.rejects(asked(own), /the server refuses: too many questions at a time/);
      await asked(MEMBERS.good);
      silent.destroy();
      await ended(silent);
      await untilAnswered(() => asked(own));
    },
    { limits: { host_connections_max: 2, host_questions_max: 1 } },
  );
});
const QUESTION = "partita-join/1";

/** Asks until the server has noticed that the question before has ended. */
async function untilAnswered(ask: () => Promise<unknown>): Promise<void> {
  for (;;) {
    try {
      return void (await ask());
    } catch (error) {
      assert.match(String(error), /too many questions/);
    }
  }
}

test("tls link: without certificate, without protocol, with an older TLS nobody is served", async () => {
  await inTlsWorld(CA, async (world) => {
    const host = member(CA, "node7");
    const own = { key: host.key, cert: host.certificate };
    // biome-ignore format: a table
    const rows: readonly (readonly [name: string, options: ConnectionOptions, problem: RegExp])[] = [
      ["no certificate",  { ALPNProtocols: ["partita/1"] },                                            /a peer without certificate/],
      ["no protocol",     { ...own },                                                                  /a peer that speaks no protocol of ours, from 127/],
      ["another protocol", { ...own, ALPNProtocols: ["http/1.1"] },                                    /no application protocol/i],
      ["TLS 1.2",         { ...own, ALPNProtocols: ["partita/1"], minVersion: "TLSv1.2", maxVersion: "TLSv1.2" }, /unsupported protocol/],
    ];
    for (const [name, options, problem] of rows) {
      const before = world.problems.length;
      const socket = connectTls({ ...here(world), rejectUnauthorized: false, ...options });
      socket.on("error", () => undefined);
      socket.on("secureConnect", () => socket.write(encodeFrame("hello", {})));
      await ended(socket);
      await until(`${name} is in the log`, () => world.problems.length > before);
      assert.match(world.problems[before] ?? "", problem, name);
    }
    const plain = connect(here(world));
    plain.on("error", () => undefined);
    plain.write(encodeFrame("hello", {}));
    await ended(plain);
    assert.deepEqual([world.frames, world.links.size], [[], 0]);
  });
});

test("tls link: a host talks to its server only, whoever else answers at the address (D2)", async () => {
  const host = member(CA, "node7");
  const revoked = member(CA, "head", "server");
  // biome-ignore format: a table
  const rows: readonly (readonly [name: string, shown: Credentials, fault: RegExp])[] = [
    ["another host",             member(CA, "node8"),                            /the host node8 and no server/],
    ["a host named like it",     member(CA, "head"),                             /the host head and no server/],
    ["the server of another name", member(CA, "other", "server"),                /the server other, not head/],
    ["a foreign server",         member(authority("Another CA"), "head", "server"), /self.signed|unable to/i],
    ["an expired server",        member(CA, "head", "server", -1),               /expired/],
    ["a revoked server",         revoked,                                        /of the server head was revoked/],
  ];
  for (const [name, credentials, fault] of rows) {
    await inTlsWorld(
      CA,
      async (world) => {
        const daemon = dial(world, () => host, { revoked: new Set([readCertificate(revoked.certificate).serial]) });
        await until(`${name} is refused`, () => daemon.faults.length > 1);
        assert.match(daemon.faults[0] ?? "", fault, name);
        assert.deepEqual([daemon.opened, world.frames], [0, []], name);
      },
      { credentials },
    );
  }
});

test("tls link: a host whose certificate is refused waits before it comes back, and is told why (D1)", async () => {
  await inTlsWorld(CA, async (world) => {
    world.refused.add("gone");
    const { times_ms, credentials } = attempts(member(CA, "gone"));
    const daemon = dial(world, credentials);
    await until("some attempts", () => daemon.closed >= 5);
    assert.ok(
      gapsOf(times_ms)
        .slice(1)
        .every((gap) => gap >= 95),
      `the wait is 100 ms: ${gapsOf(times_ms)}`,
    );
    assert.ok(daemon.heard.every((text) => text.startsWith('refused {"code":15019,"text":"gone was revoked"')));
    world.refused.clear();
    await until("it is welcome again", () => world.links.size === 1);
  });
});

test("tls link: a server that closes without a word is dialled less and less often (D1)", async () => {
  await inTlsWorld(
    CA,
    async (world) => {
      const { times_ms, credentials } = attempts(member(CA, "node7"));
      const daemon = dial(world, credentials);
      await until("some attempts", () => daemon.closed >= 6);
      assert.ok(
        gapsOf(times_ms)
          .slice(4)
          .every((gap) => gap >= 95),
        `the wait grows to its limit of 100 ms: ${gapsOf(times_ms)}`,
      );
    },
    { onFrame: (link) => link.destroy() },
  );
});

/** Credentials that note when they are read: before each attempt. */
function attempts(host: Credentials) {
  const times_ms: number[] = [];
  const credentials = (): Credentials => {
    times_ms.push(performance.now());
    return host;
  };
  return { times_ms, credentials };
}
const gapsOf = (times_ms: readonly number[]): number[] =>
  times_ms.slice(1).map((at_ms, index) => Math.round(at_ms - (times_ms[index] ?? 0)));

test("tls link: an open link ends when its certificate is revoked (S3)", async () => {
  await inTlsWorld(CA, async (world) => {
    const [bad, good] = [dial(world, () => MEMBERS.bad), dial(world, () => MEMBERS.good)];
    await until("both are there", () => bad.heard.length + good.heard.length === 2);
    world.server.review();
    assert.equal(world.links.size, 2);
    world.refused.add("node8");
    world.server.review();
    await until("one is left", () => world.links.size === 1);
    assert.deepEqual([[...world.links][0]?.peer.host?.host, world.problems[0]], ["node7", "node8 was revoked"]);
    assert.equal(good.closed, 0);
  });
});
const MEMBERS = { good: member(CA, "node7"), bad: member(CA, "node8") };

test("tls link: both ends take renewed certificates without a restart", async () => {
  await inTlsWorld(CA, async (world) => {
    let host = member(CA, "node7");
    const daemon = dial(world, () => host);
    await until("it is there", () => daemon.heard.length === 1);
    const serialOf = () => [...world.links][0]?.peer.host?.serial;
    assert.equal(serialOf(), readCertificate(host.certificate).serial);
    host = member(CA, "node7");
    const next = member(CA, "head", "server");
    world.server.show(next);
    daemon.link.reconnect();
    await until("it is there again", () => daemon.heard.length === 2);
    assert.equal(serialOf(), readCertificate(host.certificate).serial);
    const socket = connectTls({ ...here(world), rejectUnauthorized: false, ALPNProtocols: ["partita-join/1"] });
    await new Promise((resolve) => socket.once("secureConnect", resolve));
    assert.equal(socket.getPeerX509Certificate()?.serialNumber.toLowerCase(), readCertificate(next.certificate).serial);
    socket.destroy();
  });
});

test("question: a new host proves the server by the fingerprint of its authority, and nothing is sent before", async () => {
  const { fingerprint } = readCertificate(CA.certificate);
  await inTlsWorld(CA, async (world) => {
    const found = await fetchAuthority(here(world), fingerprint);
    assert.equal(readCertificate(found).fingerprint, fingerprint);
    await assert.rejects(fetchAuthority(here(world), "0".repeat(64)), /belongs to another complex than the token/);
    const asker = { authority: found, own: null, revoked: NONE };
    const asked = await askAuthority(here(world), asker, { type: "join", data: { n: 1 } }, ["joined"]);
    assert.deepEqual(asked, { answer: { type: "joined", data: { n: 1 } }, server: "head" });
    const own = member(CA, "node7");
    await askAuthority(here(world), { authority: found, own, revoked: NONE }, { type: "renew", data: {} }, ["joined"]);
    world.refused.add("node7");
    await assert.rejects(
      askAuthority(here(world), { authority: found, own, revoked: NONE }, { type: "renew", data: {} }, ["joined"]),
      /refuses: node7 was revoked/,
    );
    assert.deepEqual(world.questions, [
      { type: "join", host: null },
      { type: "renew", host: "node7" },
    ]);
  });
  await notAsked();
  // Some sites set this variable for other programs.
  process.env["NODE_TLS_REJECT_UNAUTHORIZED"] = "0";
  try {
    await notAsked();
  } finally {
    delete process.env["NODE_TLS_REJECT_UNAUTHORIZED"];
  }
});

/** Servers that do not prove themselves get no question. */
async function notAsked(): Promise<void> {
  for (const shown of [member(CA, "node8"), member(authority("Another CA"), "head", "server")]) {
    await inTlsWorld(
      CA,
      async (world) => {
        const asker = { authority: CA.certificate, own: null, revoked: NONE };
        await assert.rejects(
          askAuthority(here(world), asker, { type: "join", data: {} }, ["joined"]),
          /the host node8 and no server|self.signed|unable to/i,
        );
        assert.deepEqual(world.questions, []);
      },
      { credentials: shown },
    );
  }
}

test("question: a server whose certificate is out of its dates is refused, and the clocks are named", async () => {
  const rows: readonly (readonly [life_s: number, starts_s: number, fault: RegExp])[] = [
    [-1, -2000, /its certificate has expired by the clock of this host: compare the clocks/],
    [5000, 4000, /its certificate is not valid yet by the clock of this host: compare the clocks/],
  ];
  for (const [life_s, starts_s, fault] of rows) {
    await inTlsWorld(
      CA,
      async (world) => {
        const asker = { authority: CA.certificate, own: null, revoked: NONE };
        await assert.rejects(askAuthority(here(world), asker, { type: "join", data: {} }, ["joined"]), fault);
        assert.deepEqual(world.questions, []);
      },
      { credentials: member(CA, "head", "server", life_s, starts_s) },
    );
  }
});

test("question: one frame of a known type and a bounded length, and nothing that a link may say (S1)", async () => {
  await inTlsWorld(
    CA,
    async (world) => {
      // biome-ignore format: a table
      const rows: readonly (readonly [name: string, text: string, answered: number, problem: RegExp | null])[] = [
        ["two questions",      `${encodeFrame("join", { n: 1 })}|${encodeFrame("join", { n: 2 })}`, 1, null],
        ["a frame of a link",  encodeFrame("hello", {}),                                      0, /not taken here/],
        ["a long question",    encodeFrame("join", { text: "x".repeat(2000) }),               0, /longer than 1000/],
        ["an endless one",     "x".repeat(5000),                                              0, /longer than 1000/],
        ["what is not JSON",   "hello\f",                                                     0, /not JSON/],
      ];
      for (const [name, text, answered, problem] of rows) {
        const [questions, problems] = [world.questions.length, world.problems.length];
        const socket = connectTls({ ...here(world), rejectUnauthorized: false, ALPNProtocols: ["partita-join/1"] });
        socket.on("error", () => undefined);
        socket.once("secureConnect", () => {
          // Each part is a record of its own, and so a chunk of its own for the server.
          for (const part of text.split("|")) socket.write(part);
        });
        await ended(socket);
        assert.equal(world.questions.length - questions, answered, name);
        if (problem !== null) assert.match(world.problems[problems] ?? "", problem, name);
      }
      assert.deepEqual(world.frames, []);
    },
    { limits: { question_chars_max: 1000 } },
  );
});

test("tls listener: who proves nothing has little time, and drives out only its own (S2)", async () => {
  const limits = { handshake_ms_max: 300, question_ms_max: 300, unproved_connections_max: 5 };
  await inTlsWorld(
    CA,
    async (world) => {
      const mute = connect(here(world));
      mute.on("error", () => undefined);
      const silent = connectTls({ ...here(world), rejectUnauthorized: false, ALPNProtocols: ["partita-join/1"] });
      silent.on("error", () => undefined);
      await Promise.all([ended(mute), ended(silent)]);
    },
    { limits },
  );
  await inTlsWorld(
    CA,
    async (world) => {
      const daemon = dial(world, () => MEMBERS.good);
      await until("it is there", () => daemon.heard.length === 1);
      const crowd: Socket[] = [];
      for (let at = 0; at < 12; at++) crowd.push(await opened(world));
      await until("some are turned out", () => crowd.filter(({ destroyed }) => destroyed).length === 7);
      assert.deepEqual(
        crowd.map(({ destroyed }) => destroyed),
        [...Array<boolean>(7).fill(true), ...Array<boolean>(5).fill(false)],
        "the oldest go first",
      );
      daemon.link.send("tell", {});
      await until("the link still answers", () => daemon.heard.length === 2);
      const late = dial(world, () => MEMBERS.bad);
      await until("a host still comes in", () => late.heard.length === 1);
      for (const socket of crowd) socket.destroy();
    },
    { limits: { unproved_connections_max: 5 } },
  );
});

const opened = (world: TlsWorld): Promise<Socket> =>
  new Promise((resolve) => {
    const socket = connect(here(world), () => resolve(socket.resume()));
    socket.on("error", () => undefined);
  });

test("tls listener: an address whose connections prove nothing again and again is not served for a while, but its hosts were (S2)", async () => {
  await inTlsWorld(
    CA,
    async (world) => {
      for (let at = 0; at < 8; at++) {
        const daemon = dial(world, () => MEMBERS.good);
        await until("a host is served", () => daemon.heard.length === 1);
        daemon.link.close();
        await until("it has left", () => world.links.size === 0);
      }
      assert.deepEqual(world.problems, [], "connections that proved themselves do not count");
      for (let at = 0; at < 4; at++) {
        const socket = await opened(world);
        socket.destroy();
        await ended(socket);
      }
      await until(
        "the address is refused",
        () => world.problems.some((text) => /of (::ffff:)?127\.0\.0\.1 proved nothing/.test(text)) || nudge(world),
      );
      const daemon = dial(world, () => MEMBERS.good);
      await until("it is refused, too", () => daemon.faults.length > 0);
      await until("it is served when the time is over", () => daemon.heard.length === 1);
    },
    { limits: { unproved_ends_max: 4, unproved_ends_ms: 2000 } },
  );
});

/** Connects once more: the server learns of a lost connection when it reads. */
function nudge(world: TlsWorld): boolean {
  const socket = connect(here(world));
  socket.on("error", () => undefined);
  socket.on("connect", () => socket.destroy());
  return false;
}

test("tls dialer: a server that accepts and says nothing is given up", async () => {
  const port = await freePort();
  const sockets: Socket[] = [];
  const mute = createServer((socket) => void sockets.push(socket.on("error", () => undefined)));
  await new Promise<void>((resolve) => mute.listen(port, "127.0.0.1", resolve));
  const closing: (() => void)[] = [];
  const daemon = dial({ port, closing }, () => MEMBERS.good, { dial_ms_max: 50 });
  await until("two attempts are given up", () => daemon.faults.length >= 2);
  assert.match(daemon.faults[1] ?? "", /did not show its certificate in time/);
  for (const close of closing) close();
  for (const socket of sockets) socket.destroy();
  await new Promise((resolve) => mute.close(resolve));
});

test("tls listener: a crowd of strangers fills the log with a few lines only", async () => {
  await inTlsWorld(CA, async (world) => {
    for (let at = 0; at < 15; at++) {
      const socket: TLSSocket = connectTls({ ...here(world), rejectUnauthorized: false, ALPNProtocols: ["partita/1"] });
      socket.on("error", () => undefined);
      await ended(socket);
    }
    assert.equal(world.problems.length, 10);
    assert.match(world.problems.at(-1) ?? "", /more of this kind is not logged for a minute/);
  });
});

test("tls listener: a link that the server ends is closed, even if the peer keeps it open and goes on sending (L4)", async () => {
  await inTlsWorld(
    CA,
    async (world) => {
      const { key, certificate, authority: ca } = MEMBERS.good;
      const options = { key, cert: certificate, ca, rejectUnauthorized: false, ALPNProtocols: ["partita/1"], allowHalfOpen: true };
      const stubborn = connectTls({ ...here(world), ...options });
      stubborn.on("error", () => undefined).resume();
      const closed = ended(stubborn);
      stubborn.write(encodeFrame("hello", {}));
      await until("it is welcome", () => world.frames.length === 1);
      for (const link of world.links) link.end();
      stubborn.write(encodeFrame("tell", {}));
      await until("the server has closed the link", () => world.links.size === 0);
      stubborn.destroy();
      await closed;
      assert.equal(world.frames.length, 1, "nothing is read from a link that was ended");
    },
    { limits: { drop_ms_max: 200 } },
  );
});

test("tls listener: the frames of a welcome mom on another host have a limit of their own", async () => {
  await inTlsWorld(
    CA,
    async (world) => {
      const daemon = dial(world, () => MEMBERS.good);
      await until("it is welcome", () => daemon.heard.length === 1);
      daemon.link.send("tell", { text: "x".repeat(1000) });
      await until("the link is closed", () => world.problems.length > 0);
      assert.deepEqual(world.problems, ["a frame is longer than 1000 characters"]);
    },
    { limits: { far_mom_frame_chars_max: 1000 } },
  );
});
