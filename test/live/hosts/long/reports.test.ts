// A mom behind a relay that loses, doubles and replays datagrams, and that passes data in one direction only.

import assert from "node:assert/strict";
import { appendFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { test } from "node:test";
import { until } from "../../complex.ts";
import { lackOfUsers } from "../../needed-users.ts";
import { ROOT } from "../../shared.ts";
import { type Bed, closeBed, joins, makeBed } from "../bed.ts";
import { lackOfNamespaces, makeNet, type NetHost } from "../namespaces.ts";
import type { RelayOrder } from "../relay.ts";
import type { UdpCounts, UdpOrder } from "../udp-relay.ts";

const USER = "pbsuser1";
const PORT = "15001";
const skip = lackOfNamespaces() || lackOfUsers(USER);

type Far = Bed & {
  readonly node7: NetHost;
  tcp(order: Partial<RelayOrder>): Promise<void>;
  udp(order: Partial<UdpOrder>): Promise<UdpCounts>;
};

const qmgr = (bed: Bed, ...lines: readonly string[]): void => {
  for (const line of lines) bed.pbs(["qmgr", "-c", line]);
};
const serverLog = (bed: Bed): string => bed.log(bed.head, "server_logs");
const losses = (bed: Bed): number => (serverLog(bed).match(/node (?:unknown|down): /g) ?? []).length;
const notes = (bed: Far, words: string): number => bed.log(bed.node7, "mom_logs").split(words).length - 1;

async function order(control: string, what: object): Promise<string> {
  const socket = connect(control);
  socket.write(`${JSON.stringify(what)}\n`);
  return text(socket);
}

/** Starts a relay on a host, and returns the socket that takes its orders. */
async function startRelay(bed: Bed, host: NetHost, program: string, target: string): Promise<string> {
  const control = join(bed.net.dir, `${program}.sock`);
  const out = join(bed.net.dir, `${program}.out`);
  const words = [join(ROOT, "node_modules/node/bin/node"), join(import.meta.dirname, "..", `${program}.ts`), PORT, target, control];
  host.must("sh", "-c", `exec setsid "$@" </dev/null >${out} 2>&1 &`, "sh", ...words);
  await until(`${program} listens`, () => existsSync(control) && readFileSync(out, "utf8").includes("ready"));
  return control;
}

test("reports over a network that loses, doubles and replays datagrams, or carries data in one direction only", { skip }, async () => {
  const net = makeNet(["head", "node7", "node8", "between"]);
  const [head, node7, node8, between] = net.hosts as readonly [NetHost, NetHost, NetHost, NetHost];
  try {
    const made = makeBed(net, head);
    made.partita(head, "start");
    const target = `${head.address}:${PORT}`;
    const controls = { tcp: await startRelay(made, between, "relay", target), udp: await startRelay(made, between, "udp-relay", target) };
    const bed: Far = {
      ...made,
      node7,
      tcp: async (wanted) => void (await order(controls.tcp, { delay_ms: 0, there: true, back: true, ...wanted })),
      udp: async (wanted) =>
        JSON.parse(await order(controls.udp, { there: true, back: true, lost_of: 0, doubled: false, ...wanted })) as UdpCounts,
    };
    // The relay is at the address where node7 looks for the server.
    writeFileSync(join(net.dir, "node7/etc/hosts"), `127.0.0.1 localhost\n${between.address} head\n${node7.address} node7\n`);
    for (const host of [node7, node8]) {
      joins(bed, host);
      mkdirSync(join(bed.homeOf(host), "pbs/mom_priv"), { recursive: true });
      appendFileSync(join(bed.homeOf(host), "pbs/mom_priv/config"), "$status_interval 1\n$min_check_poll 1\n$max_check_poll 1\n");
      bed.partita(host, "start");
      qmgr(bed, `create node ${host.name}`);
    }
    qmgr(bed, "set server job_history_enable = True", "set server node_silence_timeout = 10");
    for (const { name } of [node7, node8]) await until(`${name} is free`, () => bed.state(name) === "free");
    await survivesLoss(bed);
    await survivesBlock(bed);
    await dropsForeign(bed);
    await startsOnce(bed);
  } finally {
    closeBed(net);
  }
});

/** Every third datagram is lost, and the others arrive twice. The node stays free, and the usage of its job arrives. */
async function survivesLoss(bed: Far): Promise<void> {
  const lost_before = losses(bed);
  await bed.udp({ lost_of: 3, doubled: true });
  const id = bed.pbs(["qsub", "-k", "oe", "-l", "select=1:host=node7", "--", "/bin/sleep", "1000"], USER).trim();
  await until("the usage of the job arrives", () => {
    const used = bed.job(id)["resources_used"] as { readonly walltime?: string } | undefined;
    return used?.walltime !== undefined && used.walltime > "00:00:03";
  });
  await until("many were lost", async () => (await bed.udp({ lost_of: 3, doubled: true })).lost >= 30);
  await bed.udp({});
  assert.equal(losses(bed), lost_before, "no node was unknown or down");
  bed.pbs(["qdel", id], USER);
  await until("the job has ended", () => bed.job(id)["job_state"] === "F");
}

/** No datagram passes: reports go over the connection until datagrams are answered again. */
async function survivesBlock(bed: Far): Promise<void> {
  const lost_before = losses(bed);
  const before = notes(bed, "the server does not answer datagrams");
  const again = notes(bed, "the server answers datagrams again");
  await bed.udp({ there: false, back: false });
  await until("the mom notices", () => notes(bed, "the server does not answer datagrams") > before);
  const { there } = await bed.udp({ there: false, back: false });
  await until("it goes on trying", async () => (await bed.udp({ there: false, back: false })).there >= there + 10);
  assert.equal(losses(bed), lost_before, "no node was unknown or down");
  await bed.udp({});
  await until("datagrams are answered again", () => notes(bed, "the server answers datagrams again") > again);
}

/** Replayed datagrams and garbage are counted, change nothing, and get no answer. */
async function dropsForeign(bed: Far): Promise<void> {
  const before = await bed.udp({});
  await until("there are datagrams to replay", async () => (await bed.udp({})).there >= before.there + 3);
  await bed.udp({ replay: 200, garbage: 5000 });
  await until("the server has counted them", () => {
    // After an order about certificates the server looks at its network, and tells what it has dropped.
    bed.partita(bed.head, "cert", "renew");
    const dropped =
      serverLog(bed)
        .match(/datagrams dropped since the start of the server: .*/g)
        ?.at(-1) ?? "";
    return /\d{3,} unknown/.test(dropped) && /\d+ (?:replayed|late)/.test(dropped) && /\d+ oversized/.test(dropped);
  });
  assert.equal(bed.state("node7"), "free");
}

/** The mom gets a start, but the server does not hear that it was accepted: the job runs elsewhere, and only there. */
async function startsOnce(bed: Far): Promise<void> {
  const out = join(bed.net.dir, "ran");
  writeFileSync(out, "", { mode: 0o666 });
  bed.head.must("chmod", "666", out);
  qmgr(bed, "set node node8 state = offline");
  await bed.tcp({ there: false });
  await bed.udp({ there: false });
  const id = bed
    .pbs(["qsub", "-k", "oe", "-l", "select=1:ncpus=1", "--", "/bin/sh", "-c", `cat /proc/sys/kernel/hostname >>${out}`], USER)
    .trim();
  await until("the job is sent to node7", () => bed.job(id)["exec_host"] === "node7/0");
  qmgr(bed, "set node node8 state = free");
  await until("node7 is unknown", () => bed.state("node7").includes("state-unknown"));
  await until("the job has run", () => bed.job(id)["job_state"] === "F");
  assert.deepEqual([bed.job(id)["exec_host"], bed.job(id)["run_count"], bed.job(id)["Exit_status"]], ["node8/0", 2, 0]);
  await until("node7 is down", () => bed.state("node7").includes("down"));
  await bed.tcp({});
  await bed.udp({});
  await until("node7 is back", () => bed.state("node7") === "free");
  assert.equal(readFileSync(out, "utf8"), "node8\n");
}
