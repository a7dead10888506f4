// Hosts that are cut off from the server end their rerunnable jobs before the server starts these elsewhere: the mom does it, or its starter if the mom is stopped.
// Each job writes the time of a clock that is never set, again and again, so that the file shows whether two runs overlap.

import assert from "node:assert/strict";
import { appendFileSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
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
import type { UdpOrder } from "../udp-relay.ts";

const USER = "pbsuser1";
const PORT = "15001";
const REQUEUE_S = 20;
const skip = lackOfNamespaces() || lackOfUsers(USER);

type Cuttable = Bed & {
  readonly node7: NetHost;
  readonly node8: NetHost;
  /** cuts node7 off from the server in these directions; none: the network is whole again */
  cut(...ways: readonly ("there" | "back")[]): Promise<void>;
};

async function order(control: string, what: Partial<RelayOrder & UdpOrder>): Promise<void> {
  const socket = connect(control);
  socket.write(`${JSON.stringify(what)}\n`);
  await text(socket);
}

async function startRelay(bed: Bed, host: NetHost, program: string, target: string): Promise<string> {
  const control = join(bed.net.dir, `${program}.sock`);
  const out = join(bed.net.dir, `${program}.out`);
  const words = [join(ROOT, "node_modules/node/bin/node"), join(import.meta.dirname, `../${program}.ts`), PORT, target, control];
  host.must("sh", "-c", `exec setsid "$@" </dev/null >${out} 2>&1 &`, "sh", ...words);
  await until(`${program} listens`, () => existsSync(control) && readFileSync(out, "utf8").includes("ready"));
  return control;
}

/** node7 reaches the server through relays, node8 directly. */
async function makeCuttable(): Promise<Cuttable> {
  const net = makeNet(["head", "node7", "node8", "between"]);
  const [head, node7, node8, between] = net.hosts as readonly [NetHost, NetHost, NetHost, NetHost];
  try {
    const bed = makeBed(net, head);
    bed.partita(head, "start");
    for (const line of ["job_history_enable = True", "node_silence_timeout = 10", `node_fail_requeue = ${REQUEUE_S}`])
      bed.pbs(["qmgr", "-c", `set server ${line}`]);
    const target = `${head.address}:${PORT}`;
    const tcp = await startRelay(bed, between, "relay", target);
    const udp = await startRelay(bed, between, "udp-relay", target);
    writeFileSync(join(net.dir, "node7/etc/hosts"), `127.0.0.1 localhost\n${between.address} head\n${node7.address} node7\n`);
    for (const host of [node7, node8]) {
      joins(bed, host);
      mkdirSync(join(bed.homeOf(host), "pbs/mom_priv"), { recursive: true });
      appendFileSync(join(bed.homeOf(host), "pbs/mom_priv/config"), "$status_interval 2\n");
      bed.partita(host, "start");
      bed.pbs(["qmgr", "-c", `create node ${host.name}`]);
    }
    for (const { name } of [node7, node8]) await until(`${name} is free`, () => bed.state(name) === "free");
    const cut = async (...ways: readonly ("there" | "back")[]): Promise<void> => {
      const open = { there: !ways.includes("there"), back: !ways.includes("back") };
      await order(tcp, { delay_ms: 0, ...open });
      await order(udp, { lost_of: 0, doubled: false, ...open });
    };
    return { ...bed, node7, node8, cut };
  } catch (error) {
    closeBed(net);
    throw error;
  }
}

/** The milliseconds since the boot in which a process of a job lived, for each host. */
type Lives = ReadonlyMap<string, { readonly first_ms: number; readonly last_ms: number }>;

function livesIn(file: string): Lives {
  const lives = new Map<string, { first_ms: number; last_ms: number }>();
  for (const line of readFileSync(file, "utf8").trim().split("\n")) {
    const [host = "", up_s = "0"] = line.split(" ");
    const at_ms = Number(up_s) * 1000;
    const known = lives.get(host);
    lives.set(host, { first_ms: known?.first_ms ?? at_ms, last_ms: at_ms });
  }
  return lives;
}

/** Submits a job whose script and whose child in a session of its own both write their host and the time again and again. Returns its id and the file. */
function submit(bed: Cuttable, name: string, ...options: readonly string[]): { readonly id: string; readonly file: string } {
  const file = join(bed.net.dir, name);
  writeFileSync(file, "", { mode: 0o666 });
  bed.head.must("chmod", "666", file);
  const write = `trap "" TERM HUP; h=$(cat /proc/sys/kernel/hostname); while :; do echo "$h $(cut -d" " -f1 /proc/uptime)" >>${file}; sleep 0.1; done`;
  const script = `setsid sh -c '${write}' & ${write}`;
  const id = bed.pbs(["qsub", "-k", "oe", ...options, "-l", "select=1:ncpus=1", "--", "/bin/sh", "-c", script], USER).trim();
  return { id, file };
}

const hostOf = (bed: Cuttable, id: string): string => String(bed.job(id)["exec_host"] ?? "").split("/")[0] ?? "";
const switchNode = (bed: Cuttable, name: string, state: "offline" | "free"): void =>
  void bed.pbs(["qmgr", "-c", `set node ${name} state = ${state}`]);

/** The letters of a job's accounting records. */
function letters(bed: Cuttable, id: string): string {
  const directory = join(bed.homeOf(bed.head), "pbs/server_priv/accounting");
  const lines = readdirSync(directory).flatMap((file) => readFileSync(join(directory, file), "utf8").split("\n"));
  return lines
    .filter((line) => line.split(";")[2] === id)
    .map((line) => line.split(";")[1])
    .join("");
}

/** Waits until the job, which has run on node7, runs on node8, and checks that the runs did not overlap. */
async function runsElsewhere(bed: Cuttable, { id, file }: { readonly id: string; readonly file: string }): Promise<void> {
  await until("the job runs on node8", () => hostOf(bed, id) === "node8" && livesIn(file).has("node8"));
  const lives = livesIn(file);
  const [before, after] = [lives.get("node7"), lives.get("node8")];
  assert.ok(before !== undefined && after !== undefined);
  assert.ok(
    before.last_ms < after.first_ms,
    `the last sign of life on node7 at ${before.last_ms}, the first on node8 at ${after.first_ms}`,
  );
}

async function onNode7(bed: Cuttable, jobs: readonly { readonly id: string; readonly file: string }[]): Promise<void> {
  for (const { id, file } of jobs) await until(`${id} runs on node7`, () => hostOf(bed, id) === "node7" && livesIn(file).has("node7"));
}

test("hosts that are cut off end their rerunnable jobs before these start elsewhere", { skip }, async () => {
  const bed = await makeCuttable();
  try {
    for (const ways of [["there", "back"], ["there"], ["back"]] as const) await cutOff(bed, ways);
    await stopped(bed);
  } finally {
    closeBed(bed.net);
  }
});

/** A host that is cut off in these directions ends its rerunnable job before it starts elsewhere. What cannot be rerun goes on. */
async function cutOff(bed: Cuttable, ways: readonly ("there" | "back")[]): Promise<void> {
  switchNode(bed, "node8", "offline");
  const again = submit(bed, `again-${ways.join("-")}`);
  const not = submit(bed, `not-${ways.join("-")}`, "-r", "n");
  await onNode7(bed, [again, not]);
  await bed.cut(...ways);
  switchNode(bed, "node8", "free");
  await runsElsewhere(bed, again);
  assert.match(bed.log(bed.node7, "mom_logs"), new RegExp(`${again.id};the server has not answered for 1\\d seconds: the job is ended`));
  assert.equal(bed.job(not.id)["job_state"], "F", "the server has deleted what cannot be rerun");
  const lived_ms = livesIn(not.file).get("node7")?.last_ms ?? 0;
  await until("it goes on where it is", () => (livesIn(not.file).get("node7")?.last_ms ?? 0) > lived_ms + 500);
  await bed.cut();
  await until("node7 is free again", () => bed.state("node7") === "free");
  const after_ms = livesIn(not.file).get("node7")?.last_ms ?? 0;
  bed.pbs(["qdel", again.id], USER);
  await until("the job has ended", () => bed.job(again.id)["job_state"] === "F");
  assert.deepEqual([letters(bed, again.id), letters(bed, not.id)], ["QSRSDE", "QSAE"], ways.join());
  assert.equal(livesIn(not.file).get("node7")?.last_ms, after_ms, "the mom has ended it when the server was there again");
}

/** The starter ends the job of a mom that is stopped, and the mom reports that when it goes on. */
async function stopped(bed: Cuttable): Promise<void> {
  switchNode(bed, "node8", "offline");
  const again = submit(bed, "stopped");
  await onNode7(bed, [again]);
  const mom = Number(readFileSync(join(bed.homeOf(bed.node7), "pbs/mom_priv/mom.lock"), "utf8").trim());
  process.kill(mom, "SIGSTOP");
  switchNode(bed, "node8", "free");
  await runsElsewhere(bed, again);
  assert.match(
    readFileSync(join(bed.homeOf(bed.node7), "pbs/mom_priv/starter.log"), "utf8"),
    /is killed: its host is cut off from the server/,
  );
  process.kill(mom, "SIGCONT");
  await until("node7 is free again", () => bed.state("node7") === "free");
  bed.pbs(["qdel", again.id], USER);
  await until("the job has ended", () => bed.job(again.id)["job_state"] === "F");
  assert.equal(letters(bed, again.id), "QSRSDE");
}
