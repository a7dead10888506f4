// Commands to many moms by multicast: hosts that hear the group, one that loses datagrams, one that hears nothing, one whose certificate is revoked, and a
// group of IPv6.

import assert from "node:assert/strict";
import { appendFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import type { MomHooks } from "#protocol/mom-link.ts";
import { until } from "../../complex.ts";
import { lackOfUsers } from "../../needed-users.ts";
import { type Bed, closeBed, joins, makeBed } from "../bed.ts";
import { lackOfNamespaces, makeNet, type NetHost } from "../namespaces.ts";

const USER = "pbsuser1";
/** multicast_port */
const PORT = 15_009;
const skip = lackOfNamespaces() || lackOfUsers(USER);

type Counts = { readonly commands: number; readonly datagrams: number; readonly bytes: number; readonly copies: number };

const qmgr = (bed: Bed, ...lines: readonly string[]): void => {
  for (const line of lines) bed.pbs(["qmgr", "-c", line]);
};

let marks = 0;

/** The numbers in the server's log. */
async function counts(bed: Bed): Promise<Counts> {
  // After an order about certificates the server logs its numbers. Lines are written in their order, but not at once.
  bed.partita(bed.head, "cert", "renew");
  const mark = `mark-${++marks}-`;
  qmgr(bed, `set server comment = ${mark}`);
  const log = await until("the mark is in the log", () => {
    const text = bed.log(bed.head, "server_logs");
    return text.includes(mark) && text;
  });
  const line = log.match(/multicast since the start of the server: .*/g)?.at(-1) ?? "";
  const [commands = 0, datagrams = 0, bytes = 0, copies = 0] = (/ server: (.*)/.exec(line)?.[1]?.match(/\d+/g) ?? []).map(Number);
  return { commands, datagrams, bytes, copies };
}

/** Changes the script of the hook. length: of the script in characters */
function importHook(bed: Bed, word: string, length: number): void {
  const file = join(bed.net.dir, "hook.py");
  writeFileSync(file, `import pbs\n# ${word}\n${`# ${"x".repeat(70)}\n`.repeat(Math.ceil(length / 73))}`);
  qmgr(bed, `import hook h application/x-python default ${file}`);
}

/** Whether the host's mom has the hook with that word. */
function hasHook(bed: Bed, host: NetHost, word: string): boolean {
  const file = join(bed.homeOf(host), "pbs/mom_priv/hooks/hooks.json");
  if (!existsSync(file)) return false;
  const { hooks } = JSON.parse(readFileSync(file, "utf8")) as MomHooks;
  return hooks.some(({ script }) => Buffer.from(script.content, "base64").toString().includes(word));
}

test("commands to many moms by multicast", { skip }, async () => {
  const net = makeNet(["head", "n1", "n2", "n3", "n4"], { weather: true });
  const [head, ...nodes] = net.hosts as readonly [NetHost, NetHost, NetHost, NetHost, NetHost];
  try {
    const bed = makeBed(net, head);
    bed.partita(head, "start");
    qmgr(bed, "set server job_history_enable = True", "set server multicast_moms_min = 2", "set server multicast = True");
    for (const host of nodes) {
      joins(bed, host);
      mkdirSync(join(bed.homeOf(host), "pbs/mom_priv"), { recursive: true });
      appendFileSync(join(bed.homeOf(host), "pbs/mom_priv/config"), "$status_interval 1\n");
      bed.partita(host, "start");
      qmgr(bed, `create node ${host.name}`);
    }
    for (const { name } of nodes) await until(`${name} is free`, () => bed.state(name) === "free");
    await tellsHooks(bed, nodes);
    await endsJob(bed, nodes);
    await reachesDeaf(bed, nodes);
    await refusesRevoked(bed, nodes);
    await takesAddress6(bed, nodes);
    await endsMoms(bed, nodes);
  } finally {
    closeBed(net);
  }
});

/** A hook reaches all moms by a few datagrams. */
async function tellsHooks(bed: Bed, nodes: readonly NetHost[]): Promise<void> {
  qmgr(bed, "create hook h", "set hook h event = execjob_begin");
  const before = await counts(bed);
  importHook(bed, "first-script", 9000);
  for (const host of nodes) await until(`${host.name} has the hook`, () => hasHook(bed, host, "first-script"));
  const after = await counts(bed);
  assert.ok(after.commands > before.commands, "by multicast");
  assert.ok(after.bytes - before.bytes >= 9000, "the whole script");
}

/** The sisters of a job are ended by one datagram, and each mom ends the job once. */
async function endsJob(bed: Bed, nodes: readonly NetHost[]): Promise<void> {
  const id = bed.pbs(["qsub", "-k", "oe", "-l", "select=4:ncpus=1", "-l", "place=scatter", "--", "/bin/sleep", "1000"], USER).trim();
  await until("the job runs on all hosts", () => bed.job(id)["substate"] === 42);
  const before = await counts(bed);
  bed.pbs(["qdel", id], USER);
  await until("the job has ended", () => bed.job(id)["job_state"] === "F");
  for (const { name } of nodes) await until(`${name} is free`, () => bed.state(name) === "free");
  assert.ok((await counts(bed)).commands > before.commands, "by multicast");
}

/** Half of the datagrams to one host are lost, and all to another one: both get each command, the latter over its connection. */
async function reachesDeaf(bed: Bed, nodes: readonly NetHost[]): Promise<void> {
  const [, , lossy, deaf] = nodes as readonly [NetHost, NetHost, NetHost, NetHost];
  await lossy.weather({ way: "in", protocol: "udp", port: PORT, lost: 0.5 });
  await deaf.weather({ way: "in", protocol: "udp", port: PORT, lost: 1 });
  const before = await counts(bed);
  for (const word of ["deaf-1", "deaf-2", "deaf-3", "deaf-4"]) {
    importHook(bed, word, 100);
    for (const host of nodes) await until(`${host.name} has the hook`, () => hasHook(bed, host, word));
  }
  assert.ok((await counts(bed)).copies >= before.copies + 3);
  assert.ok((await deaf.weather()).lost > 0);
  assert.match(bed.log(bed.head, "server_logs"), /multicast: no acknowledgement from n4: commands go over these connections/);
  await lossy.weather();
}

/** A mom whose certificate was revoked is no member any more; the others get the next commands. */
async function refusesRevoked(bed: Bed, nodes: readonly NetHost[]): Promise<void> {
  bed.partita(bed.head, "cert", "revoke", "n4");
  await until("n4 is away", () => /down|unknown/.test(bed.state("n4")));
  importHook(bed, "after-revocation", 100);
  for (const host of nodes.slice(0, 3)) await until(`${host.name} has the hook`, () => hasHook(bed, host, "after-revocation"));
  const before = await counts(bed);
  await until("commands go to the group again", async () => {
    importHook(bed, `later-${++marks}`, 100);
    return (await counts(bed)).commands > before.commands;
  });
  assert.equal(hasHook(bed, nodes[3] as NetHost, "later-"), false);
}

/** A group of IPv6. */
async function takesAddress6(bed: Bed, nodes: readonly NetHost[]): Promise<void> {
  qmgr(bed, "set server multicast_group = ff15::96:1");
  const before = await counts(bed);
  const remaining = nodes.slice(0, 3);
  let tries = 0;
  // The first attempts may be sent while the moms still join the group.
  await until("a hook reaches all moms without a copy over a connection", async () => {
    const { copies, commands } = await counts(bed);
    const word = `six-${tries++}`;
    importHook(bed, word, 100);
    for (const host of remaining) await until(`${host.name} has the hook`, () => hasHook(bed, host, word));
    const after = await counts(bed);
    return after.commands > commands && after.copies === copies;
  });
  assert.ok((await counts(bed)).commands > before.commands);
  assert.doesNotMatch(bed.log(bed.head, "server_logs"), /multicast to ff15/, "no fault");
}

/** The server ends right after its last command: the moms get the command nevertheless. */
async function endsMoms(bed: Bed, nodes: readonly NetHost[]): Promise<void> {
  bed.pbs(["qterm", "-m"]);
  for (const host of nodes.slice(0, 3))
    await until(`the mom of ${host.name} has ended`, () => !existsSync(join("/proc", momPid(bed, host), "stat")));
}

const momPid = (bed: Bed, host: NetHost): string => readFileSync(join(bed.homeOf(host), "pbs/mom_priv/mom.lock"), "utf8").trim() || "none";
