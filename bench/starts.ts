// The row of the whole way of a cycle (docs/bench.md): a real server and a real scheduler, and in place of moms ourselves. We say that we have 50,000 vnodes,
// take every start, and answer each as a mom does. The last commit is told by the server's log, which says of each start that it was made when it is
// committed; starts leave for their moms after that.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { connectServer } from "#protocol/client.ts";
import type { ServerToMom } from "#protocol/mom-link.ts";
import { frameTypes } from "#protocol/schema-link.ts";
import { connectLink, type DaemonLink } from "#protocol/wire/ipc-transport.ts";
import { serverSocketPath } from "#protocol/wire/socket-path.ts";
import { readConf } from "#support/conf.ts";
import { type Complex, startComplex, until } from "../test/live/complex.ts";
import type { Row } from "./row.ts";

const VNODES = 50_000;
/** Connections; each stands for so many moms. */
const LINKS = 10;

export async function startRows(say: (text: string) => void): Promise<Row[]> {
  say(`${VNODES.toLocaleString("en")} starts`);
  const complex = await startComplex({ mode: "user", conf: { PBS_START_MOM: "0", PBS_LOG_HIGHRES_TIMESTAMP: "1" } });
  const hosts = Array.from({ length: VNODES }, (_, at) => hostName(at));
  complex.qmgr("set server scheduling=False");
  await createNodes(complex, hosts);
  const seen: Seen = { starts: 0, last_ms: 0 };
  const share = VNODES / LINKS;
  const links = Array.from({ length: LINKS }, (_, at) => simulateMoms(complex.pbsHome, hosts.slice(at * share, (at + 1) * share), seen));
  try {
    await until("the vnodes are free", () => !/down|unknown/.test(complex.must("pbsnodes", ["-aSj"])));
    complex.must("qsub", ["--batch", "-"], { input: "-l select=1:ncpus=1 -- /bin/true\n".repeat(VNODES) });
    await idle(complex);
    const administrator = await connectServer(readConf(complex.env()));
    const begin_ms = Date.now();
    const attrs = [{ name: "scheduling", op: "=" as const, value: "True" }];
    const { ok } = await administrator.request({ kind: "manager", verb: "set", object: "server", name: "", attrs });
    if (!ok) throw new Error("the trigger was refused");
    await until("every job has been started", () => seen.starts === VNODES);
    administrator.close();
    const work = "50,000 one-cpu jobs started on 50,000 vnodes of simulated moms, trigger to";
    return [
      {
        work: `${work} commit of the last decision`,
        value: (lastCommit_ms(complex.log("server_logs")) - begin_ms) / 1000,
        unit: "s",
        limit: 2,
      },
      { work: `${work} last start at its mom`, value: (seen.last_ms - begin_ms) / 1000, unit: "s", limit: null },
    ];
  } finally {
    for (const link of links) link.close();
    await complex.stop();
  }
}

/** Waits until server and scheduler have finished the work of the submissions, which is not part of the cycle. */
async function idle(complex: Complex): Promise<void> {
  const pids = ["server_priv/server.lock", "sched_priv/sched.lock"].map((path) => readFileSync(join(complex.pbsHome, path), "utf8").trim());
  for (let last = -1, now = cpuTicks(pids); now !== last; now = cpuTicks(pids)) {
    last = now;
    await setTimeout(IDLE_MS);
  }
}

const IDLE_MS = 500;

/** User and system time of processes, in ticks (proc(5)). */
function cpuTicks(pids: readonly string[]): number {
  return pids.reduce((sum, pid) => {
    const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ").at(-1)?.split(" ") ?? [];
    return sum + Number(fields[11]) + Number(fields[12]);
  }, 0);
}

/** The time of the last line that tells of a start, by this machine's clock and time zone. */
function lastCommit_ms(log: string): number {
  const lines = log.split("\n").filter((line) => line.includes(";Job Run at request of "));
  const match = /^(\d+)\/(\d+)\/(\d+) (\S+?)\.(\d{3})/.exec(lines.at(-1) ?? "");
  if (lines.length !== VNODES || match === null) throw new Error(`${lines.length} starts in the server's log`);
  const [, month, day, year, time, ms] = match;
  return new Date(`${year}-${month}-${day}T${time}.${ms}`).getTime();
}

/** As qmgr does it, with many requests in flight. */
async function createNodes(complex: Complex, hosts: readonly string[]): Promise<void> {
  const link = await connectServer(readConf(complex.env()));
  const replies = await Promise.all(
    hosts.map((name) => link.request({ kind: "manager", verb: "create", object: "node", name, attrs: [] })),
  );
  link.close();
  const refused = replies.find((reply) => !reply.ok);
  if (refused !== undefined) throw new Error(`create node: ${JSON.stringify(refused)}`);
}

/** What all simulated moms have received: the number of starts, and the time of the last one. */
type Seen = { starts: number; last_ms: number };

/** Addresses of the loopback network: names that every machine resolves. */
const hostName = (at: number): string => `127.1.${at >> 8}.${at & 255}`;

function simulateMoms(home: string, hosts: readonly string[], seen: Seen): DaemonLink {
  const vnodes = (host: string) => [
    { name: host, attrs: { resources_available: { ncpus: 1, mem: 4_194_304, arch: "linux" }, pcpus: 1, sharing: "default_shared" } },
  ];
  const link = connectLink({
    path: serverSocketPath(home),
    types: frameTypes("server-to-mom"),
    onOpen(open) {
      for (const host of hosts)
        open.send("mom-hello", { host, port: 15002, pid: process.pid, version: "bench", vnodes: vnodes(host), jobs: [] });
    },
    onFrame: (type, data) => {
      if (type === "mom-refused" || type === "refused") throw new Error(`the server refuses a simulated mom: ${JSON.stringify(data)}`);
      if (type !== "mom-start") return;
      for (const { id, run_count } of (data as ServerToMom["mom-start"]).jobs) {
        seen.starts += 1;
        link.send("mom-started", { job: id, run_count, session_id: seen.starts + 1, jobdir: "/" });
      }
      seen.last_ms = Date.now();
    },
    onClose: () => undefined,
  });
  return link;
}
