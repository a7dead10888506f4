// What hostile and faulty hosts can send to a server over the network: each is refused, and another user's commands are answered meanwhile. docs/security.md has a table
// that names the test of each kind of bad input.

import assert from "node:assert/strict";
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { X509Certificate } from "node:crypto";
import { appendFileSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { splitPem } from "#identity/files/credentials.ts";
import type { Authority } from "#identity/x509/authority.ts";
import { encodeFrame } from "#protocol/wire/frame.ts";
import { authority, member } from "../../../protocol/wire/tls-bed.ts";
import { until } from "../../complex.ts";
import { lackOfUsers } from "../../needed-users.ts";
import { type Bed, closeBed, joins, makeBed, tokenIn } from "../bed.ts";
import type { Attempt, Outcome } from "../hostile.ts";
import { lackOfMunge, type Munged, startMunged } from "../munged.ts";
import { lackOfNamespaces, makeNet, type NetHost } from "../namespaces.ts";

const USER = "pbsuser1";
const OTHER = "pbsuser2";
const skip = lackOfNamespaces() || lackOfUsers(USER, OTHER) || lackOfMunge();
const HOSTILE = join(import.meta.dirname, "../hostile.ts");
const ASKER = join(import.meta.dirname, "../asker.ts");
/** seconds for a handshake and for a request, short so that the test is */
const PATIENCE_S = 3;
const LINK = "partita/1";
const FOR_USERS = "partita-user/1";
const MUCH = 40 * 1024 * 1024;
const IDLE = 10_000;
/** The server logs few lines a minute about peers that have proved nothing (docs/limits.md), and says so; then only their answers can be checked. */
const LEFT_OUT = /more of this kind is not logged for a minute/;
/** The head of a record of 512 bytes, and the begin of a ClientHello of 380 bytes in it. */
const HALF_A_HANDSHAKE = "\u0016\u0003\u0001\u0002\u0000\u0001\u0000\u0001\u007c\u0003\u0003";

let bed: Bed;
let munged: Munged;
const hostOf = (name: string): NetHost => bed.net.hosts.find((host) => host.name === name) as NetHost;
const fileOf = (host: string, path: string): string => readFileSync(join(bed.homeOf(hostOf(host)), "pbs", path), "utf8");
const log = (): string => bed.log(bed.head, "server_logs");

/** Times of the commands of another user, in ms. */
const asked: number[] = [];
let asker: ChildProcess | null = null;
/** the longest time before any attack: a slow machine answers late without one */
let quiet_ms = 0;

before(async () => {
  if (skip !== false) return;
  munged = await startMunged();
  const net = makeNet(["head", "login1", "n1", "stranger"], { home: true });
  bed = makeBed(net, net.hosts[0] as NetHost);
  const settings = [
    `PARTITA_MUNGE_SOCKET=${munged.socket}`,
    `PARTITA_HANDSHAKE_TIMEOUT=${PATIENCE_S}`,
    `PARTITA_PROOF_TIMEOUT=${PATIENCE_S}`,
  ];
  appendFileSync(join(bed.homeOf(bed.head), "pbs.conf"), `${settings.join("\n")}\n`);
  bed.partita(bed.head, "start");
  bed.pbs(["qmgr", "-c", `set server max_request_time = ${PATIENCE_S}`]);
  joins(bed, hostOf("n1"));
  bed.partita(hostOf("n1"), "start");
  bed.pbs(["qmgr", "-c", "create node n1"]);
  const token = tokenIn(bed.partita(bed.head, "cert", "token", "--host", "login1"));
  bed.partita(hostOf("login1"), "join", "head", "--token", token, "--prefix", join(net.dir, "opt"), "--login");
  appendFileSync(join(bed.homeOf(hostOf("login1")), "pbs.conf"), `PARTITA_MUNGE_SOCKET=${munged.socket}\nPARTITA_RESIDENT=no\n`);
  await until("n1 is free", () => bed.state("n1") === "free");
  await beginAsking();
});
after(async () => {
  asker?.kill("SIGKILL");
  if (skip !== false) return;
  closeBed(bed.net);
  await munged.close();
});

async function beginAsking(): Promise<void> {
  const uid = spawnSync("id", ["-u", OTHER], { encoding: "utf8" }).stdout.trim();
  const socket = join(bed.homeOf(bed.head), "pbs/sock/server.sock");
  const [enter = "", ...within] = bed.head.within;
  asker = spawn(enter, [...within, process.execPath, ASKER, socket, uid], { stdio: ["ignore", "pipe", "inherit"], cwd: "/" });
  asker.stdout?.setEncoding("utf8").on("data", (text: string) => asked.push(...text.trim().split("\n").map(Number)));
  await until("the other user has asked many times", () => asked.length >= 50);
  quiet_ms = Math.max(...asked.splice(0));
}

/** Runs work, and checks that the other user's commands were answered in time meanwhile. */
async function meanwhile(what: string, work: () => Promise<void> | void): Promise<void> {
  asked.splice(0);
  await work();
  const { length } = asked;
  await until("the other user is still served", () => asked.length >= length + 3);
  const longest_ms = Math.max(...asked);
  console.log(
    `# ${what}: ${asked.length} commands of another user, the longest ${longest_ms.toFixed(0)} ms (${quiet_ms.toFixed(0)} ms before)`,
  );
  assert.ok(longest_ms <= Math.max(1000, 4 * quiet_ms), `${what}: ${longest_ms} ms`);
}

/** Makes attempts on a host. */
async function attempts(host: string, all: readonly Attempt[]): Promise<readonly Outcome[]> {
  const printed = await hostOf(host).later([process.execPath, HOSTILE, "head", "15001", JSON.stringify(all)]);
  return printed
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as Outcome);
}

/** Each attempt is closed by the server; its answer and the log are as the row says. null: no answer, no line. */
async function areRefused(
  what: string,
  host: string,
  rows: readonly (readonly [Attempt, answer: RegExp | null, line: RegExp | null])[],
): Promise<void> {
  await meanwhile(what, async () => {
    const outcomes = await attempts(
      host,
      rows.map(([each]) => each),
    );
    for (const [at, [{ name }, answer, line]] of rows.entries()) {
      const outcome = outcomes[at] as Outcome;
      assert.ok(outcome.closed, `${name}: the server closes it`);
      if (answer === null) assert.equal(outcome.heard, "", name);
      else assert.match(outcome.heard, answer, name);
      if (line !== null) await until(`${name} is in the log`, () => line.test(log()) || LEFT_OUT.test(log()));
    }
  });
}

/** The authority of the complex, as a thief of its key has it. */
function stolen(): Authority {
  const { certificates, key } = splitPem(fileOf("head", "server_priv/ca/ca.pem"));
  const [certificate = ""] = certificates;
  const name = new X509Certificate(certificate).subject.replace(/^CN=/, "");
  return { name, key: key ?? "", certificate };
}
const pemOf = ({ key, certificate }: { readonly key: string; readonly certificate: string }): string => certificate + key;
const hello = (host: string, more: object = {}): string =>
  encodeFrame("mom-hello", { host, port: 15002, pid: 5, version: "1", vnodes: [], jobs: [], ...more });
const request = (more: object): string => encodeFrame("request", { id: 1, kind: "select-jobs", criteria: [], ...more });
const WAIT = { wait_ms: 60_000 };

test("no certificate, a foreign authority, an expired, unknown or misused certificate", { skip }, async () => {
  const ca = stolen();
  const foreign = authority("Another CA");
  const mom = { alpn: LINK, texts: [hello("n1")], ...WAIT };
  const REFUSED = /^\{"type":"refused","data":\{"code":15019,"text":"/;
  await areRefused("certificates", "stranger", [
    [{ ...mom, name: "none", pem: null }, REFUSED, /a peer without certificate, from 10\.99\.0\.4/],
    [{ ...mom, name: "no protocol of ours", pem: null, alpn: "http/1.1" }, null, /a handshake failed: /],
    [{ ...mom, name: "no TLS", pem: null, alpn: null, texts: ["GET / HTTP/1.0\r\n\r\n"] }, null, null],
    [{ ...mom, name: "foreign", pem: pemOf(member(foreign, "n1")) }, REFUSED, /the certificate is not one of this complex/],
    [
      { ...mom, name: "expired", pem: pemOf(member(ca, "n1", "host", -1)) },
      REFUSED,
      /the certificate has expired by the clock of the server/,
    ],
    [{ ...mom, name: "of tomorrow", pem: pemOf(member(ca, "n1", "host", 9000, 4000)) }, REFUSED, /the certificate is not valid yet/],
    [
      { ...mom, name: "signed, but not in the ledger", pem: pemOf(member(ca, "n1")) },
      REFUSED,
      /the certificate \w+ of n1 is not in the ledger/,
    ],
    [
      { ...mom, name: "of a host's users", pem: fileOf("n1", "identity/login.pem") },
      REFUSED,
      /of n1 with the role login cannot be used for this/,
    ],
    [
      { ...mom, name: "of a host, for a user", alpn: FOR_USERS, pem: fileOf("n1", "identity/host.pem"), texts: [request({})] },
      REFUSED,
      /with the role host cannot be used/,
    ],
  ]);
});

test("a token used twice, a server with another name, names with two addresses and with none", { skip }, async () => {
  await meanwhile("names and tokens", async () => {
    const used = tokenIn(bed.partita(bed.head, "cert", "token", "--host", "n1"));
    const stranger = hostOf("stranger");
    const joining = [
      join(bed.net.dir, "opt/bin/partita"),
      "join",
      "head",
      "--prefix",
      join(bed.net.dir, "opt"),
      "--home",
      bed.homeOf(stranger),
      "--token",
    ];
    assert.match(stranger.run([...joining, used]).stderr, /the token was made for another host than stranger/);
    const own = tokenIn(bed.partita(bed.head, "cert", "token", "--host", "stranger"));
    bed.partita(hostOf("stranger"), "join", "head", "--token", own, "--prefix", join(bed.net.dir, "opt"));
    assert.match(
      hostOf("n1").run([...joining.slice(0, -3), "--home", join(bed.net.dir, "thief"), "--name", "stranger", "--token", own]).stderr,
      /the token was used already/,
    );

    const login = hostOf("login1");
    const conf = join(bed.homeOf(login), "pbs.conf");
    const text = readFileSync(conf, "utf8");
    const hosts = join(bed.net.dir, "login1/etc/hosts");
    const names = readFileSync(hosts, "utf8");
    const asks = () => login.run(bed.wordsAt(login, ["qselect"], USER));
    assert.equal(asks().status, 0);
    writeFileSync(conf, `${text.replace(/^PBS_SERVER=.*$/m, "PBS_SERVER=other")}PBS_SERVER_HOST_NAME=head\n`);
    assert.match(asks().stderr, /the peer is the server head, not other/);
    writeFileSync(conf, `${text}PBS_SERVER_HOST_NAME=nowhere.invalid\n`);
    assert.match(asks().stderr, /^Unknown Host\.\nqselect: cannot connect to server head \(errno=15008\)/);
    writeFileSync(conf, text);
    // The first address answers nothing, the second is a host that is no server, the third is the server.
    for (const [addresses, status] of [
      [["10.99.0.250", "10.99.0.1"], 0],
      [["10.99.0.4", "10.99.0.1"], 0],
      [["10.99.0.250"], 15010 % 256],
    ] as const) {
      writeFileSync(hosts, `127.0.0.1 localhost\n${addresses.map((address) => `${address} head\n`).join("")}`);
      const ran = asks();
      assert.equal(ran.status, status, `${addresses.join()}: ${ran.stderr}`);
    }
    writeFileSync(hosts, names);
  });
});

test("users: credentials that are replayed, claims of another uid, clocks minutes apart", { skip }, async () => {
  const pem = fileOf("login1", "identity/login.pem");
  const user = { alpn: FOR_USERS, pem, texts: [request({})], ...WAIT };
  const munge = { socket: munged.socket, user: USER };
  const closing = { ...user, wait_ms: 4000 };
  const [good] = await attempts("login1", [{ ...closing, name: "good", munge }]);
  assert.match(good?.heard ?? "", /"proved".*"ok":true/s);
  const REFUSED = /^\{"type":"refused","data":\{"code":15019,"text":"Invalid credential: the munge credential is refused: /;
  await areRefused("credentials", "login1", [
    [
      { ...user, name: "of another connection", munge: { ...munge, binding: good?.binding ?? "" } },
      REFUSED,
      /it was made for another connection, from host login1/,
    ],
    [{ ...user, name: "for something else", munge: { ...munge, payload: "uid=0" } }, REFUSED, /it was not made for a Partita server/],
    [
      { ...user, name: "ten minutes old", munge: { ...munge, age_s: 600 } },
      REFUSED,
      /compare the clocks|it was made at another time|clock/,
    ],
    [{ ...user, name: "of ten minutes from now", munge: { ...munge, age_s: -600 } }, REFUSED, null],
    [{ ...user, name: "no proof", texts: [request({})] }, /the first frame is no proof/, /the first frame is no proof/],
  ]);
  const apart = await attempts("login1", [
    { ...closing, name: "four minutes old", munge: { ...munge, age_s: 240 } },
    { ...closing, name: "of four minutes from now", munge: { ...munge, age_s: -240 } },
  ]);
  for (const { name, heard } of apart) assert.match(heard, /"proved".*"ok":true/s, name);

  // Who says another name or uid in a request is refused, and is no other user for it.
  const claims = [
    request({ uid: 0 }),
    request({ user: "root" }),
    encodeFrame("request", { id: 2, kind: "shutdown", manner: "quick", scheds: true, moms: true }),
  ];
  const [said] = await attempts("login1", [{ ...closing, name: "claims", munge, texts: claims }]);
  assert.match(said?.heard ?? "", /Unrecognized key.*Unrecognized key.*"id":2,"ok":false,"code":15007/s);
  const id = bed.pbs(["qsub", "-h", "--", "/bin/true"], OTHER).trim();
  const [deletes] = await attempts("login1", [
    { ...closing, name: "another's job", munge, texts: [encodeFrame("request", { id: 1, kind: "delete-job", job: id })] },
  ]);
  assert.match(deletes?.heard ?? "", /"ok":false,"code":15007/);
  bed.pbs(["qdel", id], OTHER);
});

test("a mom that speaks for another host, or as a scheduler or user", { skip }, async () => {
  const mom = { alpn: LINK, pem: fileOf("stranger", "identity/host.pem"), ...WAIT };
  await areRefused("moms", "stranger", [
    [{ ...mom, name: "another's hello", texts: [hello("n1")] }, null, /mom-hello of n1 refused from host stranger/],
    [{ ...mom, name: "the server's hello", texts: [hello("head")] }, null, /mom-hello of head refused from host stranger/],
    [
      {
        ...mom,
        name: "an obit before a hello",
        texts: [encodeFrame("mom-obit", { job: "1.head", run_count: 1, exit_status: 0, used: {} })],
      },
      null,
      /mom-obit refused from host stranger/,
    ],
    [
      { ...mom, name: "a scheduler", texts: [encodeFrame("sched-hello", { name: "default", pid: 1, version: "1" })] },
      null,
      /sched-hello refused from host stranger/,
    ],
  ]);
  assert.equal(bed.state("n1"), "free", "the mom of n1 is still the mom of n1");
  const [asks] = await attempts("stranger", [{ ...mom, name: "a user", texts: [request({})], wait_ms: 3000 }]);
  assert.match(asks?.heard ?? "", /"ok":false,"code":15019/);
});

test("oversized and endless frames, bytes that come one by one", { skip }, async () => {
  const pem = fileOf("stranger", "identity/host.pem");
  const login = fileOf("login1", "identity/login.pem");
  const munge = { socket: munged.socket, user: USER };
  await areRefused("frames", "stranger", [
    [
      { name: "endless, of a host", alpn: LINK, pem, endless_chars: MUCH, ...WAIT },
      null,
      /a frame is longer than 16777216 characters, host stranger/,
    ],
    [
      { name: "oversized question", alpn: "partita-join/1", pem: null, endless_chars: MUCH, ...WAIT },
      null,
      /a frame is longer than 65536 characters/,
    ],
    [
      { name: "endless proof", alpn: FOR_USERS, pem: login, endless_chars: MUCH, ...WAIT },
      /the proof is too long/,
      /the proof is too long/,
    ],
    [
      { name: "half a frame of a host", alpn: LINK, pem, texts: ['{"type":"mom-'], drip_ms: 200, ...WAIT },
      null,
      /a frame was not completed in time, host stranger/,
    ],
    [
      { name: "half a proof", alpn: FOR_USERS, pem: login, texts: ['{"type":"pro'], drip_ms: 200, ...WAIT },
      /the proof took too long/,
      /the proof took too long/,
    ],
    [{ name: "half a question", alpn: "partita-join/1", pem: null, texts: ['{"type":"jo'], drip_ms: 200, ...WAIT }, null, null],
    [{ name: "half a handshake", alpn: null, pem: null, texts: [HALF_A_HANDSHAKE], drip_ms: 200, ...WAIT }, null, null],
  ]);
  await areRefused("a user's frames", "login1", [
    [
      { name: "endless, of a user", alpn: FOR_USERS, pem: login, munge, endless_chars: MUCH, ...WAIT },
      /"proved"/,
      /a frame is longer than 16777216 characters/,
    ],
    [
      { name: "half a request", alpn: FOR_USERS, pem: login, munge, texts: ['{"type":"req'], drip_ms: 200, ...WAIT },
      /"proved"/,
      /a frame was not completed in time/,
    ],
  ]);
});

test("ten thousand connections that say nothing, over TCP and over the unix socket", { skip }, async () => {
  const socket = join(bed.homeOf(bed.head), "pbs/sock/server.sock");
  const rows = [
    ["TCP of a host without certificate", "stranger", ["head", "15001"], "root", 256],
    ["the unix socket, as a user", "head", [socket, "0"], USER, 1024],
  ] as const;
  for (const [what, host, place, user, most] of rows)
    await meanwhile(what, async () => {
      const [enter = "", ...within] = hostOf(host).within;
      const words = ["prlimit", "--nofile=20000:20000", process.execPath, HOSTILE, ...place, "idle", String(IDLE)];
      const uid = spawnSync("id", ["-u", user], { encoding: "utf8" }).stdout.trim();
      const child = spawn(enter, [...within, ...words], {
        stdio: ["ignore", "pipe", "inherit"],
        cwd: "/",
        env: { ...process.env, HOSTILE_UID: uid },
      });
      let said = "";
      child.stdout.setEncoding("utf8").on("data", (text: string) => (said = (said + text).slice(-200)));
      const seen = (): readonly number[] => said.trim().split("\n").at(-1)?.split(" ").map(Number) ?? [];
      try {
        await until("all were tried", () => (seen()[0] ?? 0) >= IDLE);
        const count = asked.length;
        await until("the other user has asked often meanwhile", () => asked.length >= count + 20);
        assert.ok((seen()[1] ?? IDLE) <= most + 100, `${what}: ${seen()[1]} connections are open`);
        assert.equal(child.exitCode, null, "the hostile program still runs");
      } finally {
        child.kill("SIGKILL");
      }
    });
  await until(
    "users of the other host are served",
    () => hostOf("login1").run(bed.wordsAt(hostOf("login1"), ["qselect"], USER)).status === 0,
  );
});
