// Peers on other hosts at the server's entrance. The certificate of a host names its mom, or the scheduler that the server has dialled, and nobody else. A user of
// another host may send requests and nothing else.

import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { test } from "node:test";
import type { HostIdentity } from "#identity/peer.ts";
import { StatusChannel } from "#protocol/datagram/status-channel.ts";
import { StatusDesk } from "#protocol/datagram/status-desk.ts";
import type { Request } from "#protocol/messages.ts";
import type { MomToServer, ServerToMom } from "#protocol/mom-link.ts";
import { GroupDesk } from "#protocol/multicast/group-desk.ts";
import { aesGcm } from "#protocol/udp/aes-gcm.ts";
import { makeSigner } from "#protocol/udp/ed25519.ts";
import type { Reply } from "#protocol/wire/reply.ts";
import { type LinkPeer, NO_UID } from "#protocol/wire/server-link.ts";
import type { Link } from "#server/driver/connections.ts";
import { Gate, type GateOptions } from "#server/driver/gate.ts";
import { runnerFrame } from "#server/driver/runner-frames.ts";
import { addSched, addVnode, apply, CONFIG, type Harness, HOST, harness, settle } from "../harness.ts";

const host = (name: string, role: HostIdentity["role"] = "host"): LinkPeer => ({
  pid: 0,
  uid: NO_UID,
  gid: NO_UID,
  host: { host: name, role, serial: "4a".repeat(16) },
});
const LOCAL: LinkPeer = { pid: 77, uid: 0, gid: 0 };

type Seen = {
  readonly gate: Gate;
  readonly link: Link;
  readonly notes: string[];
  readonly replies: Reply[];
  /** frames to the peer */
  readonly sent: { readonly type: string; readonly data: unknown }[];
  readonly fate: { welcome: boolean; destroyed: boolean };
};

/** A gate in system mode before the core of the harness, with one open link of that peer. */
function gateFor(peer: LinkPeer, h: Harness = harness(), options: Partial<GateOptions> = {}): Seen {
  const notes: string[] = [];
  const replies: Reply[] = [];
  const sent: { readonly type: string; readonly data: unknown }[] = [];
  const fate = { welcome: false, destroyed: false };
  const root = { name: "root", uid: 0, gid: 0, home: "/root", shell: "/bin/sh" };
  const gate = new Gate({
    driver: () => h.driver,
    users: {
      userByName: () => root,
      userByUid: () => root,
      groupsOf: () => [],
      gidsOf: () => [],
      groupByName: () => null,
      groupByGid: () => null,
    },
    host: HOST,
    own_uid: 0,
    system: CONFIG.own_user === null,
    log: { note: (_event, text) => void notes.push(text) },
    listener: { setLimits: () => undefined, close: (done) => done() },
    scripts: (_ids, done) => done({ ok: true, value: new Map() }),
    cookies: () => "",
    secret: () => "",
    certified: () => new Set(["node7", "node8"]),
    clock: h.clock,
    group: new GroupDesk({
      cipher: aesGcm,
      random: randomBytes,
      boot: "1",
      signer: makeSigner,
      clock: h.clock,
      open: () => ({ send: () => undefined, close: () => undefined }),
      rotation_ms: 60_000,
      note: (text) => void notes.push(text),
    }),
    digest: (token) => `digest of ${token}`,
    desk: new StatusDesk({ cipher: aesGcm, random: randomBytes, boot: "1", rotation_ms: 60_000 }),
    ...options,
  });
  const link: Link = {
    id: 900,
    peer,
    frame_chars: 0,
    serveNext: () => false,
    hold: () => undefined,
    release: () => undefined,
    send: (type, data) => void sent.push({ type, data }),
    sendText: () => undefined,
    reply: (reply) => void replies.push(reply),
    part: () => undefined,
    sendFrames: () => Promise.resolve(),
    welcome: () => {
      fate.welcome = true;
    },
    end: () => undefined,
    destroy: () => {
      fate.destroyed = true;
    },
  };
  gate.opened(link);
  return { gate, link, notes, replies, sent, fate };
}

const hello = (name: string): MomToServer["mom-hello"] => ({ host: name, port: 15002, pid: 5, version: "1", vnodes: [], jobs: [] });

test("a mom on another host is welcome under the name in its certificate only", () => {
  // biome-ignore format: a table
  const rows: readonly (readonly [what: string, peer: LinkPeer, says: string, welcome: boolean])[] = [
    ["its own name",          host("node7"),          "node7",  true],
    ["in other letters",      host("node7"),          "Node7",  true],
    ["another host's name",   host("node7"),          "node8",  false],
    ["the server's name",     host("node7"),          HOST,     false],
    ["no name of a host",     host("node7"),          "node 7", false],
    ["the server's certificate", host("svr", "server"), "svr",  false],
    ["root on this host",     LOCAL,                  "node7",  true],
  ];
  for (const [what, peer, says, welcome] of rows) {
    const h = harness();
    addVnode(h, "node7");
    const { gate, link, notes, fate } = gateFor(peer, h);
    gate.frame(link, "mom-hello", hello(says));
    assert.deepEqual(fate, { welcome, destroyed: !welcome }, what);
    assert.equal(h.core.kernel.moms.by_host.has(says.toLowerCase()), welcome, what);
    if (!welcome) assert.equal(notes[0], `mom-hello of ${says} refused from host ${peer.host?.host}`, what);
  }
});

test("a mom on another host says hello once on each link", () => {
  for (const [peer, destroyed] of [
    [host("node7"), true],
    [LOCAL, false],
  ] as const) {
    const h = harness();
    addVnode(h, "node7");
    const { gate, link, notes, fate } = gateFor(peer, h);
    gate.frame(link, "mom-hello", hello("node7"));
    assert.equal(fate.destroyed, false);
    gate.frame(link, "mom-hello", hello("node7"));
    assert.equal(fate.destroyed, destroyed);
    assert.equal(notes.includes("a second mom-hello refused from host node7"), destroyed);
  }
});

test("a mom on another host brings no vnode with the name of a host that has a certificate, with or without a mom (G6)", () => {
  const h = harness();
  addVnode(h, "node7");
  const vnodes = ["node7", "Node8", "node9"].map((name) => ({ name, attrs: {} }));
  const { gate, link, notes, fate } = gateFor(host("node7"), h);
  gate.frame(link, "mom-hello", { ...hello("node7"), vnodes: vnodes.slice(0, 2) });
  assert.deepEqual([...h.core.state.vnodes.keys()], ["node7"]);
  gate.frame(link, "mom-vnodes", { vnodes });
  assert.deepEqual([...h.core.state.vnodes.keys()], ["node7", "node9"]);
  const note = "vnode Node8 is not taken from host node7: it is the name of another host";
  assert.deepEqual([notes, fate.destroyed], [[note, note], false]);
  addVnode(h, "node8");
  gate.frame(link, "mom-vnodes", {
    vnodes: [
      { name: "node7", attrs: {} },
      { name: "node8", attrs: {} },
    ],
  });
  assert.equal(notes.length, 2, "a vnode that exists is the core's matter");
});

test("a mom that reports too many vnodes loses its link", () => {
  for (const [count, destroyed] of [
    [10_000, false],
    [10_001, true],
  ] as const) {
    const { gate, link, fate } = gateFor(host("node7"));
    gate.frame(link, "mom-hello", { ...hello("node7"), vnodes: Array.from({ length: count }, (_, at) => ({ name: `v${at}`, attrs: {} })) });
    assert.equal(fate.destroyed, destroyed);
  }
});

test("the socket for tasks that a mom on another host names is not passed on to other moms, the address that it comes from is", () => {
  for (const [peer, tasks, address] of [
    [{ ...host("node7"), address: "10.0.0.7" }, undefined, "10.0.0.7"],
    [LOCAL, "/run/other.sock", undefined],
  ] as const) {
    const h = harness();
    addVnode(h, "node7");
    const { gate, link } = gateFor(peer, h);
    gate.frame(link, "mom-hello", { ...hello("node7"), tasks: "/run/other.sock" });
    const known = h.core.kernel.moms.by_host.get("node7")?.hello;
    assert.deepEqual([known?.tasks, known?.address], [tasks, address]);
  }
});

test("a peer on another host is no user and no scheduler, and no mom before its hello", () => {
  const request: Request = { kind: "status", object: "server", ids: [] };
  const asked = gateFor(host("node7"));
  asked.gate.frame(asked.link, "request", { id: 1, ...request });
  assert.deepEqual(asked.replies, [{ id: 1, ok: false, code: 15019, text: "Invalid credential" }]);
  const sched = gateFor(host("node7"));
  sched.gate.frame(sched.link, "sched-hello", { name: "default", pid: 5, version: "1" });
  assert.deepEqual([sched.fate, sched.notes], [{ welcome: false, destroyed: true }, ["sched-hello refused from host node7"]]);
  const early = gateFor(host("node7"));
  early.gate.frame(early.link, "mom-busy", { busy: true });
  assert.deepEqual([early.fate, early.notes], [{ welcome: false, destroyed: true }, ["mom-busy refused from host node7"]]);
});

/** The mom's end of the channel whose keys it was sent last. */
function channelOf({ sent }: Seen, name: string): StatusChannel {
  const frame = sent.filter(({ type }) => type === "mom-keys").at(-1);
  assert.ok(frame !== undefined, "no keys");
  const { channel, key, boot } = frame.data as ServerToMom["mom-keys"];
  const keys = new StatusChannel(aesGcm);
  keys.take({ channel, key: Buffer.from(key, "base64"), boot, host: name });
  return keys;
}

test("a mom on another host gets a key over its link, and reports by datagrams that are answered", () => {
  const h = harness();
  addVnode(h, "node7");
  const seen = gateFor(host("node7"), h);
  const { gate, link, sent } = seen;
  gate.frame(link, "mom-hello", { ...hello("Node7"), pongs: true, reports: { every_s: 15 } });
  const mom = channelOf(seen, "node7");
  const answers: Uint8Array[] = [];
  const arrives = (text: string): void => gate.datagram(mom.seal(text), (answer) => void answers.push(answer));
  h.clock.now_ms += 20_000;
  arrives(JSON.stringify({ number: 5 }));
  assert.equal(h.core.kernel.moms.by_host.get("node7")?.heard_ms, h.now_ms);
  assert.deepEqual(JSON.parse(mom.open(answers[0] ?? new Uint8Array()) ?? ""), { number: 5 });
  // The same over the link.
  gate.frame(link, "mom-report", { number: 6 });
  assert.deepEqual(sent.at(-1), { type: "mom-heard", data: { number: 6 } });
  // The key is old: the next report brings a new one.
  h.clock.now_ms += 60_000;
  const keys = (): number => sent.filter(({ type }) => type === "mom-keys").length;
  arrives(JSON.stringify({ number: 7 }));
  assert.equal(keys(), 2);
  const renewed = channelOf(seen, "node7");
  gate.datagram(renewed.seal(JSON.stringify({ number: 8 })), (answer) => void answers.push(answer));
  assert.equal(answers.length, 3);
  gate.closed(link);
  gate.datagram(renewed.seal(JSON.stringify({ number: 9 })), () => assert.fail("answered after the end of the link"));
});

test("a report that is none ends the link of the mom that sent it; anything else without a key is not answered at all", () => {
  for (const text of ["", "{", "[]", '{"number":-1}', '{"number":1,"ill":2}', '{"number":1,"jobs":[{"job":"1"}]}']) {
    const h = harness();
    addVnode(h, "node7");
    const seen = gateFor(host("node7"), h);
    seen.gate.frame(seen.link, "mom-hello", { ...hello("node7"), pongs: true, reports: { every_s: 15 } });
    const unanswered = (): void => assert.fail("answered");
    seen.gate.datagram(Buffer.from(text), unanswered);
    assert.equal(seen.fate.destroyed, false);
    seen.gate.datagram(channelOf(seen, "node7").seal(text), unanswered);
    assert.deepEqual([seen.fate.destroyed, seen.notes], [true, ["mom-report refused from host node7"]], text);
  }
});

test("a mom of this host gets no key, even if it asks for one", () => {
  const h = harness();
  addVnode(h, "node7");
  const { gate, link, sent } = gateFor(LOCAL, h);
  gate.frame(link, "mom-hello", { ...hello("node7"), pongs: true, reports: { every_s: 15 } });
  assert.deepEqual([sent, h.core.kernel.moms.by_host.get("node7")?.every_ms], [[], null]);
});

test("a peer that the server has dialled is the scheduler that was dialled, and nothing else", () => {
  const dialled = (sched: string): LinkPeer => ({ ...host("node7"), sched });
  const says = { name: "s1", pid: 5, version: "1" };
  const world = (): Harness => {
    const h = harness();
    addSched(h, "s1", { partition: ["p1"], sched_host: "node7" });
    addVnode(h, "node7");
    return h;
  };
  // biome-ignore format: a table
  const rows: readonly (readonly [what: string, peer: LinkPeer, welcome: boolean])[] = [
    ["the scheduler that was dialled", dialled("s1"), true],
    ["another scheduler",              dialled("s2"), false],
    ["a mom",                          host("node7"), false],
  ];
  for (const [what, peer, welcome] of rows) {
    const h = world();
    const { gate, link, fate } = gateFor(peer, h);
    gate.frame(link, "sched-hello", says);
    assert.deepEqual(fate, { welcome, destroyed: !welcome }, what);
    const runtime = h.core.kernel.scheds.by_name.get("s1");
    assert.deepEqual([runtime?.link, runtime?.host, runtime?.pid], welcome ? [900, "node7", 0] : [null, null, 0], what);
  }
  const h = world();
  const { gate, link, fate } = gateFor(dialled("s1"), h);
  gate.frame(link, "mom-hello", hello("node7"));
  assert.deepEqual([fate.welcome, fate.destroyed, h.core.kernel.moms.by_host.has("node7")], [false, true, false]);
});

test("a user of another host sends requests under its name and host, and is neither mom nor scheduler, whatever its uid", () => {
  const users = [
    { pid: 0, uid: 0, gid: 0, host: { host: "login1", role: "login", serial: "4a".repeat(16) } },
    { pid: 0, uid: 0, gid: 0, host: { host: "login1", role: "user", user: "root", serial: "4a".repeat(16) } },
  ] satisfies LinkPeer[];
  for (const peer of users) {
    const h = harness();
    addVnode(h, "login1");
    const asked = gateFor(peer, h);
    asked.gate.frame(asked.link, "request", { id: 1, kind: "manager", verb: "create", object: "queue", name: "far", attrs: [] });
    asked.gate.frame(asked.link, "request", { id: 2, kind: "identity", ask: { verb: "list" } });
    settle(h);
    const codes = [...h.answers.values()].map((answer) => answer.ok || answer.code);
    assert.deepEqual(codes, [15007, 15007], "root of another host has no rights of root");
    assert.deepEqual(asked.replies, []);
    for (const [type, data] of [
      ["mom-hello", hello("login1")],
      ["sched-hello", { name: "default", pid: 5, version: "1" }],
    ] as const) {
      const seen = gateFor(peer, h);
      seen.gate.frame(seen.link, type, data);
      assert.deepEqual(seen.fate, { welcome: false, destroyed: true }, type);
      assert.match(seen.notes[0] ?? "", /hello.* refused from uid 0 of host login1$/);
    }
  }
});

test("a mom with the name of a runner needs the token of this runner; the token goes no further (G7)", () => {
  const bucket = { key: "b", owner: "alice", queue: "workq", project: "p", ncpus: 1, mem_kb: 0, tmp_kb: 0, walltime_s: 64, resources: {} };
  const world = (): Harness => {
    const h = harness();
    for (const [index, token] of ["one", "two"].entries()) {
      const attrs = { backend: "sl", serial: 1, index, bucket, digest: `digest of ${token}`, asked_s: 0, life_s: 600 };
      apply(h, { kind: "created", object: "runner", name: `sl-1-${index}`, attrs });
    }
    return h;
  };
  const runner = (token: string) => ({ runner: { token, age_s: 1 } });
  // biome-ignore format: a table
  const rows: readonly (readonly [what: string, hello: MomToServer["mom-hello"], welcome: boolean])[] = [
    ["its own token",         { ...hello("sl-1-0"), ...runner("one") }, true],
    ["that of another runner",{ ...hello("sl-1-0"), ...runner("two") }, false],
    ["an empty token",        { ...hello("sl-1-0"), ...runner("") },    false],
    ["no token",              hello("sl-1-0"),                          false],
  ];
  for (const [what, says, welcome] of rows) {
    const h = world();
    const { gate, link, notes, fate } = gateFor(LOCAL, h);
    gate.frame(link, "mom-hello", says);
    assert.deepEqual(fate, { welcome, destroyed: !welcome }, what);
    assert.equal(h.core.state.vnodes.has("sl-1-0"), welcome, what);
    assert.doesNotMatch(JSON.stringify([notes, [...h.core.kernel.moms.by_host.values()].map((mom) => mom.hello)]), /one|two/, what);
  }
  const twice = gateFor(LOCAL, world());
  const again = (pid: number): Link => ({ ...twice.link, id: 900 + pid, peer: { ...LOCAL, pid } });
  for (const next of [twice.link, again(78), again(77)]) {
    if (next !== twice.link) twice.gate.opened(next);
    twice.gate.frame(next, "mom-hello", { ...hello("sl-1-0"), ...runner("one") });
  }
  const quits = twice.sent.filter(({ type }) => type === "mom-quit");
  assert.equal(quits.length, 1, "a second process with the token of a runner that is connected");
  assert.equal(twice.notes.at(-1), "runner sl-1-0: pid 78 must end, pid 77 is connected");
  const { gate, link, sent, fate } = gateFor(LOCAL, world());
  gate.frame(link, "mom-hello", { ...hello("sl-9-0"), ...runner("one") });
  assert.deepEqual([sent, fate.welcome], [[{ type: "mom-quit", data: {} }], false], "a runner that is not known any more");
});

test("in system mode, a user's process may be a runner of this user; the server believes only what it says about its own jobs (G8)", () => {
  const bucket = { key: "b", owner: "alice", queue: "workq", project: "p", ncpus: 1, mem_kb: 0, tmp_kb: 0, walltime_s: 64, resources: {} };
  const person = { name: "alice", uid: 1000, gid: 1000, home: "/home/alice", shell: "/bin/sh" };
  const users = {
    userByName: () => person,
    userByUid: (uid: number) => (uid === 1000 ? person : { ...person, name: "mallory", uid }),
    groupsOf: () => [],
    gidsOf: () => [1000],
    groupByName: () => null,
    groupByGid: () => null,
  };
  const world = (): Harness => {
    const h = harness();
    const attrs = { backend: "sl", serial: 1, index: 0, bucket, digest: "digest of one", asked_s: 0, life_s: 600 };
    apply(h, { kind: "created", object: "runner", name: "sl-1-0", attrs });
    return h;
  };
  const ALICE: LinkPeer = { pid: 91, uid: 1000, gid: 1000 };
  const said = {
    ...hello("sl-1-0"),
    pid: 1,
    vnodes: [
      { name: "sl-1-0", attrs: { resources_available: { ncpus: 64 } } },
      { name: "x", attrs: {} },
    ],
  };
  const shows = (token: string): MomToServer["mom-hello"] => ({ ...said, tasks: "/tmp/mine", hooks: "h", runner: { token, age_s: 1 } });
  // biome-ignore format: a table
  const rows: readonly (readonly [what: string, peer: LinkPeer, says: MomToServer["mom-hello"], system: boolean, destroyed: boolean])[] = [
    ["her own runner",               ALICE,                    shows("one"),                              true,  false],
    ["a forged token",               ALICE,                    shows("two"),                              true,  true],
    ["no token",                     ALICE,                    said,                                      true,  true],
    ["another user with the token",  { ...ALICE, uid: 1001 },  shows("one"),                              true,  true],
    ["another host with the token",  host("node7"),            shows("one"),                              true,  true],
    ["user mode",                    ALICE,                    shows("one"),                              false, true],
    ["a host",                       ALICE,                    hello("node7"),                            true,  true],
    ["an unknown runner",            ALICE,                    { ...shows("one"), host: "sl-7-0" },       true,  false],
  ];
  for (const [what, peer, says, system, destroyed] of rows) {
    const h = world();
    const { gate, link, fate } = gateFor(peer, h, { users, system });
    gate.frame(link, "mom-hello", says);
    assert.deepEqual(fate, { welcome: false, destroyed }, what);
    assert.equal(h.core.state.vnodes.has("sl-1-0"), what === "her own runner", what);
  }
  const h = world();
  const { gate, link, fate, sent } = gateFor(ALICE, h, { users, system: true });
  gate.frame(link, "mom-hello", shows("one"));
  const mom = h.core.kernel.moms.by_host.get("sl-1-0");
  assert.deepEqual([mom?.hello.pid, mom?.hello.tasks, mom?.vnodes, mom?.hello.runner?.token], [91, undefined, [], ""]);
  const available = (): unknown => h.core.state.vnodes.get("sl-1-0")?.attrs["resources_available"];
  const before = JSON.stringify([available(), [...h.core.state.vnodes.keys()]]);
  gate.frame(link, "mom-vnodes", { vnodes: said.vnodes });
  gate.frame(link, "mom-site", { resources: { ncpus: "64" } });
  gate.frame(link, "mom-hook", { hook: "h", event: "exechost_periodic", actions: ["offline_vnodes"], restart_cycle: true, vnodes: {} });
  assert.equal(JSON.stringify([available(), [...h.core.state.vnodes.keys()]]), before);
  assert.deepEqual(h.core.state.vnodes.get("sl-1-0")?.attrs["site_resources"], undefined);
  assert.ok(!sent.some(({ type }) => type === "mom-hooks"));
  gate.frame(link, "mom-hello", shows("one"));
  assert.equal(fate.destroyed, true, "a second hello on the link");
});

test("what a user's runner reports begins no line of its own and names known resources (runner-frames.ts F2)", () => {
  const { resources } = harness().core.state;
  const used = { cput: "0:00:01", mem: "5kb", walltime: 3, "x\nE;1": 1, cpupercent: "1\n2", ncpus: "9".repeat(65) };
  const obit = { type: "mom-obit", data: { job: "1", run_count: 1, exit_status: 0, used, message: "a\nb\u0007c" } } as const;
  const counts = { cput: "0:00:01", mem: "5kb", walltime: 3 };
  assert.deepEqual(runnerFrame(obit, resources)?.data, { job: "1", run_count: 1, exit_status: 0, used: counts, message: "a b c" });
  const report = { type: "mom-report", data: { number: 1, jobs: [{ job: "1", run_count: 1, used }], site: { ncpus: "64" } } } as const;
  assert.deepEqual(runnerFrame(report, resources)?.data, { number: 1, jobs: [{ job: "1", run_count: 1, used: counts }] });
});

test("the ticket of an interactive job says where its qsub is, also on the host of one of two servers", () => {
  const terminal = { socket: "partita-qsub-1", secret: "ab".repeat(32), port: 4711 };
  const addressOf = (peer: LinkPeer, options: Partial<GateOptions>): string | undefined => {
    const h = harness();
    const { gate, link } = gateFor(peer, h, options);
    let address: string | undefined;
    h.driver.request = (_peer, request) => {
      if (request.kind === "queue-job") address = request.terminal?.address;
    };
    gate.frame(link, "request", { id: 1, kind: "queue-job", destination: "", attrs: [], script: null, terminal });
    return address;
  };
  const remote: LinkPeer = { pid: 0, uid: 0, gid: 0, address: "10.0.0.7" };
  assert.equal(addressOf(remote, {}), "10.0.0.7");
  assert.equal(addressOf(LOCAL, {}), undefined, "each mom reaches it as it reaches the only server");
  assert.equal(addressOf(LOCAL, { own_address: "spare" }), "spare", "PBS_SERVER can be the host of the other server");
  assert.equal(addressOf(remote, { own_address: "spare" }), "10.0.0.7");
});
