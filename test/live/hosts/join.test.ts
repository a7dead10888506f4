// A mom with a PBS_HOME of its own joins a complex over TLS on the loopback interface, as `partita join` on another host would do it (docs/identity.md). The same with
// hosts in network namespaces: network.test.ts.

import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { chmodSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { connect, createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { freePort } from "../../protocol/wire/tls-bed.ts";
import { type Complex, startComplex, until } from "../complex.ts";
import { ROOT } from "../shared.ts";

type Ran = { readonly status: number | null; readonly out: string; readonly err: string };

const partita = (...args: readonly string[]): Ran => partitaWith("", ...args);

/** input: its standard input. */
function partitaWith(input: string, ...args: readonly string[]): Ran {
  const { status, stdout, stderr } = spawnSync(join(ROOT, "bin/partita"), args, { encoding: "utf8", cwd: "/", timeout: 300_000, input });
  return { status, out: stdout, err: stderr };
}

function must(...args: readonly string[]): string {
  const { status, out, err } = partita(...args);
  assert.equal(status, 0, `partita ${args.join(" ")}: ${out}${err}`);
  return out;
}

const tokenIn = (text: string): string => /partita1\.\S+/.exec(text)?.[0] ?? "";

/** Whether somebody listens on a port of this host. */
const isOpen = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect({ host: "127.0.0.1", port }, () => resolve(socket.destroy() !== undefined));
    socket.on("error", () => resolve(false));
  });

function stateOf(complex: Complex, node: string): string {
  const { nodes } = JSON.parse(complex.must("pbsnodes", ["-F", "json", node])) as { nodes: Record<string, { state: string }> };
  return nodes[node]?.state ?? "";
}

const logOf = (home: string): string =>
  readdirSync(join(home, "pbs/mom_logs"))
    .map((name) => readFileSync(join(home, "pbs/mom_logs", name), "utf8"))
    .join("");

type Certificates = {
  readonly certificates: readonly { readonly host: string; readonly role: string; readonly standing: string; readonly serial: string }[];
};

test("partita join: a mom joins with a token, runs jobs over TLS, renews its certificate, is revoked and comes back", async () => {
  const port = await freePort();
  const complex = await startComplex({ conf: { PBS_BATCH_SERVICE_PORT: String(port) } });
  const home = join(complex.home, "../node7");
  const at = ["--home", complex.home] as const;
  const joining = (token: string, directory = home): readonly string[] => {
    return ["join", "127.0.0.1", "--port", String(port), "--token", token, "--name", "node7", "--home", directory];
  };
  try {
    assert.match(must("cert", "list", ...at), /has no certificate authority yet/);
    assert.equal(await isOpen(port), false, "a complex on one host listens on no port");

    const token = tokenIn(must("cert", "token", "--host", "node7", ...at));
    assert.ok(await isOpen(port));
    await refusals(complex, joining, token);
    assert.match(partitaWith(`${token}\n`, ...joining("-")).out, /node7 is a host of/);
    complex.qmgr("set server job_history_enable = True", "create node node7", "set node node7 resources_available.ncpus = 4");
    must("start", "--home", home);
    await until("node7 is free", () => stateOf(complex, "node7") === "free");
    const known = /the server \S+ answers, and knows this host as node7; certificate until /;
    assert.match(must("status", "--home", home), known);
    assert.match(must("doctor", "--home", home), known);
    showsHosts(complex, home);
    const port_line = new RegExp(`ok +TCP port ${port} answers, with a certificate of \\S+ until `);
    assert.match(partita("doctor", ...at).out, port_line);
    await namesFaults(home);
    assert.match(partita(...joining(token, `${home}-thief`)).err, /the server refuses: the token was used already/);

    const select = ["-l", "select=1:host=node7", "-k", "oe"];
    const done = await complex.untilJob(complex.submit([...select, "--", "/bin/true"]), "F");
    assert.deepEqual([done.Exit_status, done["exec_host"]], [0, "node7/0"]);
    assert.match(logOf(home), /connected to the server/);

    assert.equal(must("upgrade", "--home", home), "Restarted pbs_mom.\n");
    await until("node7 is free after the upgrade", () => stateOf(complex, "node7") === "free");
    const long = complex.submit([...select, "--", "/bin/sleep", "1000"]);
    await complex.untilJob(long, "R");
    assert.match(must("upgrade", "--home", home), /^pbs_mom has jobs and goes on with the program of before/);
    const server = complex.pid("server");
    assert.ok(server !== null);
    process.kill(server, "SIGKILL");
    await until("the server is gone", () => complex.pid("server") === null);
    complex.start();
    await until("node7 is back", () => /free|job-busy/.test(stateOf(complex, "node7")));
    assert.equal(complex.job(long).job_state, "R", "the job ran on meanwhile");

    const before = certificates(complex);
    assert.match(must("cert", "renew", "--home", home), /^This host has a new certificate, until /);
    const after = certificates(complex);
    assert.deepEqual([before.length, after.length, after.every(({ standing }) => standing === "valid")], [1, 2, true]);
    assert.ok(must("cert", "show", "--home", home).includes(after[1]?.serial ?? "?"));

    await followsServer(complex, home);
    assert.match(must("cert", "revoke", "node7", ...at), /node7: 4 certificates revoked/);
    await until("node7 is down", () => /down|state-unknown/.test(stateOf(complex, "node7")));
    await until("the mom knows why", () => logOf(home).includes("was revoked"));
    assert.match(partita("cert", "renew", "--home", home).err, /was revoked/);
    const status = partita("status", "--home", home);
    assert.deepEqual([status.status, /the server refuses: the certificate \w+ of node7 was revoked/.test(status.out)], [1, true]);

    must(...joining(tokenIn(must("cert", "token", ...at))));
    must("stop", "--home", home);
    startsOnlyWithItsKey(home);
    await until("node7 is free again", () => stateOf(complex, "node7") === "free");
    await followsAuthority(complex, home);
  } finally {
    partita("stop", "--home", home);
    await complex.stop();
  }
});

/** Settings of a joined host with which it has no link, as partita doctor names them. */
async function namesFaults(home: string): Promise<void> {
  const file = join(home, "pbs.conf");
  const text = readFileSync(file, "utf8");
  const rows: readonly (readonly [line: RegExp, other: string, said: RegExp])[] = [
    [
      /^PBS_MOM_NODE_NAME=.*$/m,
      "PBS_MOM_NODE_NAME=other",
      /FAULT +the mom says that it is other, and the certificate is that of node7: correct/,
    ],
    [
      /^PBS_BATCH_SERVICE_PORT=.*$/m,
      `PBS_BATCH_SERVICE_PORT=${await freePort()}`,
      /ECONNREFUSED.*: does the server run, and does it listen/,
    ],
    [/^PBS_SERVER_HOST_NAME=.*$/m, "PBS_SERVER_HOST_NAME=nowhere.invalid", /: the name nowhere\.invalid has no address here/],
  ];
  for (const [line, other, said] of rows) {
    writeFileSync(file, text.replace(line, other));
    const { status, out } = partita("doctor", "--home", home);
    assert.match(out, said);
    assert.equal(status, 1);
  }
  writeFileSync(file, text);
}

/** Both hosts are connected. That of the server has the server's certificate. */
function showsHosts(complex: Complex, home: string): void {
  type Host = {
    readonly host: string;
    readonly connected_s: number | null;
    readonly certificate_until_s: number | null;
    readonly state: string;
  };
  const { hosts } = JSON.parse(must("hosts", "-F", "json", "--home", complex.home)) as { readonly hosts: readonly Host[] };
  const now_s = Date.now() / 1000;
  assert.deepEqual(
    hosts.map(({ host, connected_s, certificate_until_s, state }) => [
      host === "node7",
      connected_s !== null && Math.abs(now_s - connected_s) < 3600,
      certificate_until_s !== null && certificate_until_s > now_s,
      state,
    ]),
    hosts.map(({ host }) => [host === "node7", true, true, "free"]),
  );
  assert.equal(hosts.filter(({ host }) => host === "node7").length, 1);
  assert.match(
    must("hosts", "--home", complex.home),
    /^host +connected since +answers in +clock +datagrams +version +certificate until +state\n/,
  );
  assert.match(partita("hosts", "--home", home).err, /the server is on another host: call partita hosts there/);
}

/** The host learns that a certificate of the server was revoked, and obeys the server with its other one. */
async function followsServer(complex: Complex, home: string): Promise<void> {
  const { certificates: all } = JSON.parse(must("cert", "list", "--json", "--home", complex.home)) as Certificates;
  const server = all.find(({ host }) => host !== "node7");
  assert.match(must("cert", "revoke", server?.host ?? "", "--home", complex.home), /: 1 certificate revoked/);
  const list = join(home, "pbs/identity/revoked.json");
  await until("the host knows", () => existsSync(list) && readFileSync(list, "utf8").includes(server?.serial ?? "?"));
  await until("node7 is linked again", () => /free|job-busy/.test(stateOf(complex, "node7")));
  assert.match(must("status", "--home", home), /knows this host as node7/);
}

/** A key that others may read is not used, and the call says so. */
function startsOnlyWithItsKey(home: string): void {
  const key = join(home, "pbs/identity/host.pem");
  chmodSync(key, 0o644);
  const { status, err } = partita("start", "--home", home);
  assert.deepEqual([status, err.includes(`pbs_mom: ${key} can be read by group or others: it is not used\n`)], [1, true], err);
  assert.doesNotMatch(err, /\n +at /, "no stack");
  chmodSync(key, 0o600);
  must("start", "--home", home);
}

/** The host comes over to a new authority without joining again, and runs jobs afterwards. */
async function followsAuthority(complex: Complex, home: string): Promise<void> {
  const at = ["--home", complex.home] as const;
  assert.match(must("cert", "rotate", ...at), /hosts without a certificate of it: node7/);
  assert.match(partita("cert", "rotate", "--finish", ...at).err, /have no certificate of the new authority yet: node7/);
  must("cert", "renew", "--home", home);
  assert.match(must("cert", "rotate", "--finish", ...at), /^The new authority has replaced the former one\.\n$/);
  const job = complex.submit(["-l", "select=1:host=node7", "-k", "oe", "--", "/bin/true"]);
  assert.equal((await complex.untilJob(job, "F")).Exit_status, 0);
}

test("programs of a complex on one host load no code that signs certificates", () => {
  /** ecdsa-with-SHA256, as src/identity/x509 writes it */
  const signs = (name: string): boolean => readFileSync(join(ROOT, "dist", name), "utf8").includes("1.2.840.10045.4.3.2");
  const programs = ["server-shell-daemon.mjs", "pbs_server.mjs", "pbs_mom.mjs", "admin-calls.mjs", "partita.mjs", "qsub.cjs"];
  const where = ["server-shell-authority.mjs", "protocol-host-questions.mjs", "admin-hosts-join.mjs"];
  assert.deepEqual([programs.filter(signs), where.filter(signs)], [[], where]);
});

test("partita join: the token is not among the words of the call that others can read", async () => {
  const home = mkdtempSync(join(tmpdir(), "partita-join-"));
  const sockets: Socket[] = [];
  const mute = createServer((socket) => void sockets.push(socket.on("error", () => undefined)));
  await new Promise<void>((resolve) => mute.listen(0, "127.0.0.1", resolve));
  const address = mute.address();
  const port = String(typeof address === "object" ? address?.port : "");
  const token = `partita1.${"A".repeat(80)}`;
  const words = ["join", "127.0.0.1", "--port", port, "--token", token, "--name", "node7", "--home", join(home, "node7")];
  const child = spawn(join(ROOT, "bin/partita"), words, { stdio: "ignore" });
  try {
    await Promise.race([once(mute, "connection"), once(child, "exit")]);
    const shown = readFileSync(`/proc/${child.pid}/cmdline`, "utf8");
    assert.match(shown, /^partita join/);
    assert.ok(!shown.includes("AAAA"), shown);
  } finally {
    child.kill("SIGKILL");
    for (const socket of sockets) socket.destroy();
    mute.close();
    rmSync(home, { recursive: true });
  }
});

const certificates = (complex: Complex) => {
  const { certificates: all } = JSON.parse(must("cert", "list", "--json", "--home", complex.home)) as Certificates;
  return all.filter(({ host, role }) => host === "node7" && role === "host");
};

/** Calls that are refused, with what the administrator reads. None of them uses the token up. */
async function refusals(complex: Complex, joining: (token: string, directory?: string) => readonly string[], token: string): Promise<void> {
  const flipped = token.slice(0, -1) + (token.endsWith("A") ? "B" : "A");
  const other_secret = `${token.slice(0, 25)}${token[25] === "A" ? "B" : "A"}${token.slice(26)}`;
  const nobody = [
    "join",
    "127.0.0.1",
    "--port",
    String(await freePort()),
    "--token",
    token,
    "--name",
    "node7",
    "--home",
    `${complex.home}-x`,
  ];
  const other_name = joining(token).map((word) => (word === "node7" ? "node8" : word));
  // biome-ignore format: a table
  const rows: readonly (readonly [what: string, args: readonly string[], err: RegExp])[] = [
    ["half a token",        joining(token.slice(0, 40)),   /--token: this is not a token/],
    ["a damaged end",       joining(flipped),              /belongs to another complex than the token, or the token is damaged/],
    ["a damaged secret",    joining(other_secret),         /the server refuses: the token is not known here/],
    ["another host's token", other_name,                   /the server refuses: the token was made for another host than node8/],
    ["nobody there",        nobody,                        /the server at 127\.0\.0\.1, port \d+: connect ECONNREFUSED/],
    ["a host with a server", joining(token, complex.home), /describes a host with a server/],
  ];
  for (const [what, args, err] of rows) {
    const ran = partita(...args);
    assert.equal(ran.status, 1, what);
    assert.match(ran.err, err, what);
  }
}
