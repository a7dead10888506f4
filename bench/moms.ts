// Rows of moms on other hosts (docs/bench.md): a real server, and in one process 500 moms made of the real code for links over TLS, hello and reports by datagrams.
// Each has a certificate and an address of its own. Nothing runs on them.

import { readFileSync } from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { setTimeout as sleep } from "node:timers/promises";
import tls from "node:tls";
import type { Credentials } from "#identity/files/credentials.ts";
import { parseToken } from "#identity/token.ts";
import { makeRequest, newKey } from "#identity/x509/request.ts";
import { openingOf, StatusReports } from "#mom/driver/status-reports.ts";
import { connectServer, type ServerConnection } from "#protocol/client.ts";
import type { MomHello } from "#protocol/mom-link.ts";
import { type FrameOf, frameTypes, parseFrame } from "#protocol/schema-link.ts";
import { aesGcm } from "#protocol/udp/aes-gcm.ts";
import { dialUdp } from "#protocol/udp/udp-socket.ts";
import { connectTls } from "#protocol/wire/tls-dialer.ts";
import { CertificateAuthority } from "#server/shell/authority.ts";
import { readConf } from "#support/conf.ts";
import { type Complex, startComplex } from "../test/live/complex.ts";
import { freePort } from "../test/protocol/wire/tls-bed.ts";
import type { Row } from "./row.ts";

const MOMS = 500;
/** $status_interval */
const EVERY_S = 15;
/** Time for which the server's processor time is measured: four reports of each mom. */
const WATCHED_MS = 60_000;
const WAIT_MS_MAX = 120_000;
/** Ticks of processor time in a second (USER_HZ). */
const TICKS_PER_S = 100;

/** The moms wait for one another when they are connected, so that their hellos come together. */
type Storm = { readonly ready: (() => void)[] };

export async function momRows(say: (text: string) => void): Promise<Row[]> {
  const port = await freePort();
  const complex = await startComplex({ mode: "user", conf: { PBS_START_MOM: "0", PBS_BATCH_SERVICE_PORT: String(port) } });
  const closing: (() => void)[] = [];
  try {
    say(`${MOMS} moms on other hosts: certificates and nodes`);
    const conf = readConf(complex.env());
    const hosts = Array.from({ length: MOMS }, (_, at) => `far${at}`);
    const credentials = certificates(complex, conf.own_server, hosts);
    complex.qmgr(...hosts.map((host) => `create node ${host}`));
    const administrator = await connectServer(conf);
    closing.push(() => administrator.close());
    const pid = Number(complex.pid("server"));
    ownAddresses();
    say("hello of all at once");
    const storm: Storm = { ready: [] };
    const [begin_ms, before] = [performance.now(), processorTicks(pid)];
    for (const host of hosts) closing.push(simulateMom({ host, port, server: conf.own_server, credentials: credentials(host) }, storm));
    await within("all moms are connected", () => storm.ready.length === MOMS);
    const hello_ms = performance.now();
    for (const sayHello of storm.ready) sayHello();
    const said_ms = performance.now();
    await within("all nodes are free", async () => (await freeNodes(administrator)) === MOMS);
    const free_ms = performance.now();
    const storm_ticks = processorTicks(pid) - before;
    say(`reports for ${WATCHED_MS / 1000} s`);
    await sleep(EVERY_S * 1000);
    const [from_ms, from_ticks] = [performance.now(), processorTicks(pid)];
    await sleep(WATCHED_MS);
    const watched_s = (performance.now() - from_ms) / 1000;
    const busy_ms = ((processorTicks(pid) - from_ticks) / TICKS_PER_S) * 1000;
    if ((await freeNodes(administrator)) < MOMS) throw new Error("a node is no longer free");
    const work = `${MOMS} moms of other hosts`;
    return [
      { work: `${work} dial at once: all connected`, value: (hello_ms - begin_ms) / 1000, unit: "s", limit: null },
      { work: `${work} say hello: first to last`, value: (said_ms - hello_ms) / 1000, unit: "s", limit: 1 },
      { work: `${work} say hello: all vnodes free`, value: (free_ms - hello_ms) / 1000, unit: "s", limit: 10 },
      { work: `${work} dial and say hello: processor time of the server`, value: storm_ticks / TICKS_PER_S, unit: "s", limit: null },
      { work: `${work} report: processor time of the server a second`, value: busy_ms / watched_s, unit: "ms", limit: 200 },
    ];
  } finally {
    for (const close of closing) close();
    await complex.stop();
  }
}

async function within(what: string, holds: () => boolean | Promise<boolean>): Promise<void> {
  const end_ms = performance.now() + WAIT_MS_MAX;
  while (!(await holds())) {
    if (performance.now() > end_ms) throw new Error(`${what}: not within ${WAIT_MS_MAX / 1000} s`);
    await sleep(50);
  }
}

/** Makes an authority for the complex, and a certificate for each host. The server is restarted, so that it knows them. */
function certificates(complex: Complex, server: string, hosts: readonly string[]): (host: string) => Credentials {
  complex.must("partita", ["cert", "token", "--home", complex.home]);
  complex.halt();
  const now_s = (): number => Math.floor(Date.now() / 1000);
  const authority = new CertificateAuthority({ home: complex.pbsHome, server, own_names: [], now_s });
  const made = new Map<string, Credentials>();
  for (const host of hosts) {
    const { token } = authority.makeToken({ host, user: null, life_s: 3600 });
    const parsed = parseToken(token);
    if (parsed === null) throw new Error(`token ${token}`);
    const key = newKey();
    const signed = authority.join({ token: parsed.id, secret: parsed.secret, request: makeRequest(host, key) });
    made.set(host, { key, certificate: signed.certificate, authority: signed.authority });
  }
  complex.start();
  return (host) => made.get(host) as Credentials;
}

/** Gives each connection over TLS an address of its own, as if it came from another host. The server counts connections by their addresses. */
function ownAddresses(): void {
  const { connect } = tls;
  let count = 0;
  const connectFrom = (options: tls.ConnectionOptions): tls.TLSSocket => {
    const at = count++ % MOMS;
    return connect({ ...options, localAddress: `127.1.${1 + (at >> 7)}.${1 + (at & 127)}` } as tls.ConnectionOptions);
  };
  Object.assign(tls, { connect: connectFrom });
  syncBuiltinESMExports();
}

type Place = { readonly host: string; readonly port: number; readonly server: string; readonly credentials: Credentials };

/** A mom that says hello and reports. Returns a function that ends it. */
function simulateMom({ host, port, server, credentials }: Place, storm: Storm): () => void {
  const attrs = { resources_available: { ncpus: 4, mem: "8gb", arch: "linux" }, pcpus: 4, sharing: "default_shared" };
  const hello: MomHello = {
    host,
    port: 15002,
    pid: 1,
    version: "1",
    vnodes: [{ name: host, attrs }],
    jobs: [],
    pongs: true,
    reports: { every_s: EVERY_S },
  };
  const hear = ({ type, data }: FrameOf<"server-to-mom">): void => {
    if (type === "mom-keys") reports.takeKeys(data);
    else if (type === "mom-heard") reports.heard(data);
    else if (type === "mom-ping") link.send("mom-pong", { number: data.number });
    else if (type === "mom-welcome") reports.begin();
  };
  const link = connectTls(
    {
      types: frameTypes("server-to-mom"),
      onOpen: (opened) => void storm.ready.push(() => opened.send("mom-hello", hello)),
      onFrame(type, data) {
        const parsed = parseFrame("server-to-mom", type, data);
        if (parsed.ok) hear(parsed.frame);
      },
      onClose: () => reports.pause(),
    },
    { host: "127.0.0.1", port, server, credentials: () => credentials, revoked: () => new Set() },
  );
  let number = 0;
  const reports = new StatusReports({
    port: { cipher: aesGcm, open: (heard) => dialUdp({ host: "127.0.0.1", port }, heard) },
    clock: {
      wall_ms: Date.now,
      after(delay_ms, work) {
        const timer = setTimeout(work, delay_ms);
        return () => clearTimeout(timer);
      },
    },
    host,
    every_s: () => EVERY_S,
    opening: () => openingOf(++number, 0, null),
    answered: () => undefined,
    send: ({ type, data }) => link.send(type, data),
    note: (text) => void process.stderr.write(`bench: ${host}: ${text}\n`),
  });
  return () => {
    reports.close();
    link.close();
  };
}

async function freeNodes(client: ServerConnection): Promise<number> {
  let free = 0;
  const onPart = (items: readonly unknown[]): void => {
    for (const item of items as readonly { readonly attrs: { readonly state?: string } }[]) if (item.attrs.state === "free") free++;
  };
  const reply = await client.request({ kind: "status", object: "node", ids: [] }, { onPart });
  if (!reply.ok) throw new Error(`status of nodes: ${reply.code}`);
  return free;
}

/** User and system time of a process (proc(5): fields 14 and 15 of stat). */
function processorTicks(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return Number(fields[11]) + Number(fields[12]);
}
