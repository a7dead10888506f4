// The server's TCP port with a real authority: what hosts can ask, and which links end when certificates do.

import assert from "node:assert/strict";
import { chmodSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { connect } from "node:tls";
import { type Credentials, readCredentials, splitPem, writeCredentials } from "#identity/files/credentials.ts";
import { revokedSerials } from "#identity/files/revoked.ts";
import { loginFile, readLogin, writeLogin } from "#identity/files/user-credentials.ts";
import { CERTIFICATES_MAX } from "#identity/ledger.ts";
import { writeRevocations } from "#identity/revocations.ts";
import { TERMS } from "#identity/terms.ts";
import { parseToken } from "#identity/token.ts";
import { readCertificate } from "#identity/x509/certificate.ts";
import { makeRequest, newKey } from "#identity/x509/request.ts";
import { serverPorts } from "#mom/shell/server-port.ts";
import { checkCertificate, renewCertificate, renewDue, renewLogin, schedsOfHost } from "#protocol/host-questions.ts";
import { JOIN_ANSWERS } from "#protocol/schema-join.ts";
import { serverPlace } from "#protocol/server-place.ts";
import { ALPN } from "#protocol/wire/alpn.ts";
import { listenTls } from "#protocol/wire/tls-listener.ts";
import { askAuthority } from "#protocol/wire/tls-question.ts";
import { CertificateAuthority, createAuthority } from "#server/shell/authority.ts";
import { HostNetwork } from "#server/shell/network.ts";
import { until } from "../../protocol/wire/links-bed.ts";
import { dial, freePort, now_s, authority as testAuthority, member as testMember } from "../../protocol/wire/tls-bed.ts";

type Bed = {
  readonly home: string;
  readonly port: number;
  readonly authority: CertificateAuthority;
  readonly network: HostNetwork;
  readonly notes: string[];
  readonly hosts: string[];
  readonly closing: (() => void)[];
  /** whether another server leads now */
  readonly pair: { replaced: boolean };
};

async function inNetwork(work: (bed: Bed) => Promise<void>): Promise<void> {
  const home = mkdtempSync(join(tmpdir(), "partita-net-"));
  const port = await freePort();
  const notes: string[] = [];
  const hosts: string[] = [];
  const closing: (() => void)[] = [];
  const pair = { replaced: false };
  mkdirSync(join(home, "server_priv"));
  const options = { home, server: "head", own_names: [], now_s };
  createAuthority(options);
  const authority = new CertificateAuthority(options);
  authority.renewServer();
  const network = new HostNetwork({
    kept: () => Promise.resolve(),
    leader: () => (pair.replaced ? Promise.reject(new Error("another server leads")) : Promise.resolve(null)),
    standbyFor: () => null,
    home,
    settings: { server: "head", port, mode: "user" },
    types: ["hello", "mom-pong"],
    onDatagram: () => undefined,
    dropped: {},
    multicast: { commands: 0, datagrams: 0, bytes: 0, copies: 0 },
    shares: new Map(),
    proveUser: async () => ({ ok: false, fault: "nobody is known here" }),
    now_s,
    note: (_event, text) => void notes.push(text),
    sightOf: () => ({ connected: true, datagrams: "both", others: [{ host: "node8", address: "10.0.0.8", port: 15_002 }] }),
    files: () => ({ type: "files-heard", data: {} }),
    schedsOf: (host) => (host === "node7" ? [{ name: "s1", port: 15_077 }] : []),
    reviewed: () => undefined,
    dialled: () => [],
    handlers: {
      onFrame(link, type) {
        hosts.push(link.peer.host?.host ?? "");
        link.send(type === "hello" ? "told" : "mom-ping", {});
      },
      onProblem: (text) => void notes.push(text),
    },
  });
  try {
    await work({ home, port, authority, network, notes, hosts, closing, pair });
  } finally {
    for (const close of closing) close();
    await network.close();
    rmSync(home, { recursive: true });
  }
}

const placeOf = ({ port }: Bed) => ({ host: "127.0.0.1", port });

/** Joins as `partita join` does; the refusal's text, or the credentials. */
async function joins(bed: Bed, token: string, host: string, key = newKey()): Promise<Credentials | string> {
  const read = parseToken(token);
  assert.ok(read !== null);
  const data = { version: "1", token: read.id, secret: read.secret, request: makeRequest(host, key) };
  const asker = { authority: bed.authority.trusted, own: null, revoked: new Set<string>() };
  const { answer } = await askAuthority(placeOf(bed), asker, { type: "join", data }, JOIN_ANSWERS);
  const { certificate, text } = answer.data as { readonly certificate?: string; readonly text?: string };
  return certificate === undefined ? (text ?? "") : { key, certificate, authority: bed.authority.trusted };
}

async function member(bed: Bed, host: string): Promise<Credentials> {
  const credentials = await joins(bed, bed.authority.makeToken({ host, user: null, life_s: 60 }).token, host);
  assert.ok(typeof credentials !== "string");
  return credentials;
}

test("network: a host joins, is known, renews its certificate; what it may not ask is refused with a reason", async () => {
  await inNetwork(async (bed) => {
    const { authority, network, notes, home } = bed;
    await network.open(authority);
    const credentials = await member(bed, "node7");
    writeCredentials(join(home, "node7"), credentials);
    const host = { home: join(home, "node7"), places: [placeOf(bed)], server: "head", own: false };
    assert.equal((await checkCertificate(host)).host, "node7");
    assert.ok((await renewCertificate(host)) > now_s());
    await assert.rejects(checkCertificate({ ...host, server: "other" }), /the server head answers, not other/);
    assert.equal(
      await joins(bed, authority.makeToken({ host: null, user: null, life_s: 60 }).token, "node7"),
      "node7 has a certificate: a host that was reinstalled needs a token made for its name",
    );
    const asker = { authority: authority.trusted, own: null, revoked: new Set<string>() };
    const refused = async (type: string, data: unknown): Promise<unknown> => {
      return (await askAuthority(placeOf(bed), asker, { type, data }, JOIN_ANSWERS)).answer.data;
    };
    assert.deepEqual(await refused("check", { version: "1" }), { text: "check: the host has shown no certificate" });
    assert.deepEqual(await refused("renew", { version: "1", request: "x" }), { text: "renew: the host has shown no certificate" });
    assert.deepEqual(await schedsOfHost(host), [{ name: "s1", port: 15_077 }]);
    assert.deepEqual(await refused("scheds", { version: "1" }), { text: "scheds: the host has shown no certificate" });
    assert.match(JSON.stringify(await refused("join", { version: "1" })), /join: token: /);
    assert.ok(notes.includes("host node7 joined with token " + authority.list().tokens[0]?.id));
    assert.ok(notes.some((text) => text.startsWith("a certificate is refused: node7 has a certificate")));
  });
});

test("network: the certificate for a host's users renews nothing, and cannot use up what the host may ask", async () => {
  await inNetwork(async (bed) => {
    const { authority, network, home } = bed;
    await network.open(authority);
    writeCredentials(join(home, "node7"), await member(bed, "node7"));
    const host = { home: join(home, "node7"), places: [placeOf(bed)], server: "head", own: false };
    await renewLogin(host);
    const own = readLogin(host.home, host.own);
    assert.ok(own !== null);
    const asker = { authority: authority.trusted, own, revoked: new Set<string>() };
    const { length } = authority.list().certificates;
    for (const type of ["renew", "login"])
      for (let at = 0; at < CERTIFICATES_MAX; at++) {
        const question = { type, data: { version: "1", request: makeRequest("node7", newKey()) } };
        const { answer } = await askAuthority(placeOf(bed), asker, question, JOIN_ANSWERS);
        assert.deepEqual(answer.data, { text: "the certificate of node7 is none of a host" });
      }
    assert.equal(authority.list().certificates.length, length);
    assert.ok((await renewCertificate(host)) > now_s());
  });
});

test("network: links end when their certificate is revoked, or replaced because the host joined again", async () => {
  await inNetwork(async (bed) => {
    const { authority, network, hosts, notes } = bed;
    await network.open(authority);
    const [first, other] = [await member(bed, "node7"), await member(bed, "node8")];
    const [daemon, stays] = [dial(bed, () => first), dial(bed, () => other)];
    await until("both are linked", () => hosts.length === 2);
    await member(bed, "node7");
    await until("the link of the replaced certificate has ended", () => daemon.closed > 0);
    assert.ok(notes.some((text) => text.endsWith("of node7 was replaced by another one")));
    assert.equal(stays.closed, 0);
    authority.revoke("node8");
    network.changed();
    await until("the link of the revoked certificate has ended", () => stays.closed > 0);
  });
});

test("network: hosts follow to a new authority without joining again; one that did not renew is left out", async () => {
  await inNetwork(async (bed) => {
    const { authority, network, hosts, home } = bed;
    await network.open(authority);
    for (const name of ["node7", "node8"]) writeCredentials(join(home, name), await member(bed, name));
    const host = { home: join(home, "node7"), places: [placeOf(bed)], server: "head", own: false };
    const credentials = (name: string) => (): Credentials => {
      const present = readCredentials(join(home, name));
      assert.ok(present !== null);
      return present;
    };
    const [daemon, late] = [dial(bed, credentials("node7")), dial(bed, credentials("node8"))];
    await until("both are linked", () => hosts.length === 2);
    authority.beginRotation();
    network.changed();
    assert.equal((await checkCertificate(host)).current, false);
    await renewCertificate(host);
    assert.equal((await checkCertificate(host)).current, true);
    daemon.link.reconnect();
    await until("node7 is linked with its new certificate", () => hosts.length === 3);
    assert.deepEqual([daemon.faults, late.closed], [[], 0]);

    assert.deepEqual(authority.finishRotation(true), { out: ["node8"] });
    network.changed();
    await until("node8 is out", () => late.closed > 0 && late.faults.length > 0);
    daemon.link.reconnect();
    await until("node7 is linked to the server's new certificate", () => hosts.filter((name) => name === "node7").length === 3);
    assert.equal((await checkCertificate(host)).current, false, "it still trusts the former authority");
    await renewCertificate(host);
    assert.equal((await checkCertificate(host)).current, true);
    assert.equal(splitPem(credentials("node7")().authority).certificates.length, 1);
  });
});

test("network: the server's own certificate is shown anew when it changes", async () => {
  await inNetwork(async (bed) => {
    const { authority, network, port } = bed;
    await network.open(authority);
    const own = (): string => readCertificate(authority.serverCredentials().certificate).serial;
    const before = own();
    assert.equal(await shownSerial(port), before);
    authority.renewServer();
    network.changed();
    assert.notEqual(own(), before);
    assert.equal(await shownSerial(port), own());
  });
});

/** The serial number of the certificate that a stranger is shown. */
const shownSerial = (port: number): Promise<string> =>
  new Promise((resolve, reject) => {
    const socket = connect({ host: "127.0.0.1", port, rejectUnauthorized: false, ALPNProtocols: ["partita-join/1"] });
    socket.once("error", reject);
    socket.once("secureConnect", () => {
      resolve(socket.getPeerX509Certificate()?.serialNumber.toLowerCase() ?? "");
      socket.destroy();
    });
  });

test("network: hosts learn that a certificate of the server was revoked, leave it at once, and refuse it after a restart", async () => {
  await inNetwork(async (bed) => {
    const { authority, network, home, port, hosts, closing } = bed;
    await network.open(authority);
    const own = join(home, "node7");
    writeCredentials(own, await member(bed, "node7"));
    const stolen = authority.serverCredentials();
    const { serial } = readCertificate(stolen.certificate);
    const mom = dialAsMom(bed, own);
    await until("the mom is linked", () => hosts.length === 1);
    assert.equal(existsSync(join(own, "identity/revoked.json")), false);

    assert.deepEqual(authority.revoke("head"), { revoked: 1 });
    network.changed();
    await until("the mom is linked to the server's other certificate", () => hosts.length === 2);
    assert.deepEqual([mom.closed, mom.faults], [1, []]);
    assert.deepEqual([...revokedSerials(own)], [serial]);
    assert.deepEqual([...revokedSerials(home)], [serial], "for the mom of the server's host");
    network.changed();
    mom.link.close();

    const late = join(home, "node8");
    writeCredentials(late, await member(bed, "node8"));
    const second = dialAsMom(bed, late);
    await until("a host that was away is told when it comes", () => revokedSerials(late).has(serial));
    assert.equal(second.closed, 0, "its link is to the server's present certificate");
    second.link.close();
    await network.close();

    const handlers = { onFrame: () => assert.fail("nothing is said to the thief") };
    const thief = await listenTls({
      port,
      address: "127.0.0.1",
      types: ["hello"],
      protocol: ALPN.link,
      credentials: stolen,
      ...THIEF,
      ...handlers,
    });
    closing.push(() => void thief.close());
    const restarted = dialAsMom(bed, own);
    await until("the thief is refused", () => restarted.faults.length > 0);
    assert.match(restarted.faults[0] ?? "", /cannot be reached: the certificate \w+ of the server head was revoked/);
    assert.equal(restarted.opened, 0);
    const host = { home: own, places: [placeOf(bed)], server: "head", own: false };
    await assert.rejects(checkCertificate(host), /of the server head was revoked/);
    writeFileSync(join(own, "identity/revoked.json"), "{}");
    await assert.rejects(checkCertificate(host), /revoked\.json cannot be used/);
  });
});

test("network: a server that another one has replaced answers no question of a host, and lets nobody join", async () => {
  await inNetwork(async (bed) => {
    const { authority, network, pair, notes } = bed;
    await network.open(authority);
    const own = await member(bed, "node7");
    const { token } = authority.makeToken({ host: "node8", user: null, life_s: 60 });
    const asker = { authority: authority.trusted, own, revoked: new Set<string>() };
    const asked = async (type: "check" | "scheds"): Promise<string> =>
      (await askAuthority(placeOf(bed), asker, { type, data: { version: "1" } }, JOIN_ANSWERS)).answer.type;
    assert.deepEqual([await asked("check"), await asked("scheds")], ["checked", "scheds"]);
    pair.replaced = true;
    assert.deepEqual([await asked("check"), await asked("scheds")], ["join-refused", "join-refused"]);
    assert.equal(await joins(bed, token, "node8"), "the server cannot sign certificates now: see its log");
    assert.ok(notes.some((text) => text.includes("another server leads")));
    pair.replaced = false;
    assert.ok(typeof (await joins(bed, token, "node8")) !== "string", "the token was not used up");
  });
});

test("network: a host without a mom learns of the server's revoked certificates when it checks its own, and its users' commands refuse them", async () => {
  await inNetwork(async (bed) => {
    const { authority, network, home, port } = bed;
    await network.open(authority);
    const own = join(home, "login1");
    writeCredentials(own, await member(bed, "login1"));
    const host = { home: own, places: [placeOf(bed)], server: "head", own: true };
    await renewLogin(host);
    const { serial } = readCertificate(authority.serverCredentials().certificate);
    authority.revoke("head");
    const place = serverPlace({ ...commandConf(own), port: { server: port, mom: 1, manager: 2, sched: 3 } });
    assert.ok("connect" in place, "the complex has one server");
    const before = place.state();
    // The port still shows the certificate, as a thief would.
    writeFileSync(join(own, "identity/revoked.json"), writeRevocations([{ serial, until_s: now_s() + 1000 }]));
    await assert.rejects(place.connect(), /the certificate \w+ of the server head was revoked/);
    assert.notEqual(place.state(), before, "a resident uses none of its connections again");
    rmSync(join(own, "identity/revoked.json"));
    network.changed();
    await checkCertificate(host);
    assert.deepEqual([...revokedSerials(own)], [serial]);
    await assert.rejects(place.connect(), /nobody is known here/, "the server is accepted, and says no to this user");
  });
});

test("network: the certificate for a host's users is renewed when it is due, also if the host's own is not", async () => {
  await inNetwork(async (bed) => {
    const { authority, network, home } = bed;
    await network.open(authority);
    const own = join(home, "login1");
    writeCredentials(own, await member(bed, "login1"));
    const host = { home: own, places: [placeOf(bed)], server: "head", own: false };
    const endOf = (): number => readCertificate(readLogin(own, false)?.certificate ?? "").until_s;
    assert.equal((await renewDue(host, now_s())).renewed, "users", "it has none yet");
    assert.equal((await renewDue(host, now_s())).renewed, null);
    const { until_s } = await checkCertificate(host);
    const short = testMember(testAuthority(), "login1", "login", 1000);
    writeLogin(own, short, false);
    const before = endOf();
    const after = await renewDue(host, now_s());
    assert.deepEqual([after.renewed, after.until_s], ["users", until_s]);
    assert.ok(endOf() > before + TERMS.certificate_s / 2);
    chmodSync(loginFile(own), 0o666);
    assert.throws(() => readLogin(own, false), /login\.pem can be written by group or others: it is not used/);
    assert.equal((await renewDue(host, now_s())).renewed, "users", "a file that is not used is replaced");
    assert.throws(() => readLogin(own, true), /login\.pem can be read by group or others: it is not used/);
    assert.equal((await renewDue(host, until_s)).renewed, "both");
  });
});

const commandConf = (home: string) =>
  ({
    home,
    start: { server: false, sched: false, mom: false, comm: false },
    own_server: "head",
    server_host: "127.0.0.1",
    mode: "user",
    mom_node_name: "login1",
    values: {},
  }) as const;

const THIEF = { fault: () => null, questions: { types: ["check"], answer: () => assert.fail("nothing is asked of the thief") } };

/** The mom's own port, with a hello that the server of the bed answers. */
function dialAsMom({ port, closing }: Bed, home: string) {
  const state = { opened: 0, closed: 0, faults: [] as string[] };
  const place = {
    home,
    server_host: "127.0.0.1",
    servers: [{ host: "127.0.0.1", port }],
    pair: null,
    own_server: "head",
    mode: "system",
    start: { server: false },
  } as const;
  const link = serverPorts(place, home, (text) => void state.faults.push(text)).server.dial({
    opened() {
      state.opened++;
      link.send({ type: "mom-pong", data: { number: 1 } });
    },
    frame: () => undefined,
    closed: () => void state.closed++,
    absent: () => undefined,
  });
  closing.push(() => link.close());
  return Object.assign(state, { link });
}

test("network: hosts hear of a revocation that the server cannot write to its disk, and it is written when that is possible", async () => {
  await inNetwork(async (bed) => {
    const { authority, network, home, hosts, notes } = bed;
    const list = join(home, "identity/revoked.json");
    await network.open(authority);
    const own = join(home, "node7");
    writeCredentials(own, await member(bed, "node7"));
    const mom = dialAsMom(bed, own);
    await until("the mom is linked", () => hosts.length === 1);
    const { serial } = readCertificate(authority.serverCredentials().certificate);
    mkdirSync(dirname(list), { recursive: true });
    writeFileSync(list, "{}");
    authority.revoke("head");
    network.changed();
    await until("the mom has left the revoked certificate", () => hosts.length === 2);
    assert.deepEqual([...revokedSerials(own)], [serial]);
    assert.ok(notes.some((text) => /^certificates: .*revoked\.json cannot be used/.test(text)));
    rmSync(list);
    network.changed();
    assert.deepEqual([...revokedSerials(home)], [serial], "the next review writes the list");
    mom.link.close();
  });
});

test("network: a list of revoked certificates that cannot be written keeps no port closed", async () => {
  await inNetwork(async ({ authority, network, home, notes }) => {
    authority.revoke("head");
    const list = join(home, "identity/revoked.json");
    mkdirSync(dirname(list), { recursive: true });
    writeFileSync(list, "{}");
    await network.open(authority);
    const ports = notes.filter((text) => text.startsWith("listening on")).map((text) => text.slice(0, 16));
    assert.deepEqual(ports, ["listening on TCP", "listening on UDP"]);
    rmSync(list);
    network.changed();
    assert.equal(revokedSerials(home).size, 1);
  });
});

test("network: a port that is taken is reported, and opened when it is free", async () => {
  await inNetwork(async (bed) => {
    const { authority, network, port, notes } = bed;
    const squatter = createServer();
    await new Promise<void>((resolve) => squatter.listen(port, "::", resolve));
    await assert.rejects(network.open(authority), /EADDRINUSE/);
    await new Promise((resolve) => squatter.close(resolve));
    network.changed();
    await until("the port is open", () => notes.some((text) => text.startsWith("listening on TCP port")));
    await member(bed, "node7");
  });
});
