// Commands to many moms by multicast: hosts that hear the group, one that does not, one whose certificate is revoked, and a
// group of IPv6.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { appendFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import type { MomHooks } from "#protocol/mom-link.ts";
import { until } from "../../complex.ts";
import { lackOfUsers } from "../../needed-users.ts";
import { type Bed, closeBed, joins, makeBed } from "../bed.ts";
import { lackOfNamespaces, makeNet, type NetHost } from "../namespaces.ts";

const USER = "pbsuser1";
const skip = lackOfNamespaces() || lackOfUsers(USER);

type Counts = { readonly commands: number; readonly datagrams: number; readonly bytes: number; readonly copies: number };

const qmgr = (bed: Bed, ...lines: readonly string[]): void => {
  for (const line of lines) bed.pbs(["qmgr", "-c", line]);
};

/** The numbers in the server's log. */
function counts(bed: Bed): Counts {
  // After an order about certificates the server logs its numbers.
  bed.partita(bed.head, "cert", "renew");
  const line =
    bed
      .log(bed.head, "server_logs")
      .match(/multicast since the start of the server: .*/g)
      ?.at(-1) ?? "";
  const [commands = 0, datagrams = 0, bytes = 0, copies = 0] = (line.match(/\d+/g) ?? []).map(Number);
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

const inSwitch = (...words: readonly string[]): void => {
  const { status, stderr } = spawnSync("ip", ["netns", "exec", `partita-${process.pid}-switch`, ...words], { encoding: "utf8" });
  assert.equal(status, 0, stderr);
};

test("commands to many moms by multicast", { skip }, async () => {
  const net = makeNet(["head", "n1", "n2", "n3", "n4"]);
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
  } finally {
    closeBed(net);
  }
});

/** A hook reaches all moms by a few datagrams. */
async function tellsHooks(bed: Bed, nodes: readonly NetHost[]): Promise<void> {
  qmgr(bed, "create hook h", "set hook h event = execjob_begin");
  const before = counts(bed);
  importHook(bed, "first-script", 9000);
  for (const host of nodes) await until(`${host.name} has the hook`, () => hasHook(bed, host, "first-script"));
  const after = counts(bed);
  assert.ok(after.commands > before.commands, "by multicast");
  assert.ok(after.bytes - before.bytes >= 9000, "the whole script");
}

/** The sisters of a job are ended by one datagram, and each mom ends the job once. */
async function endsJob(bed: Bed, nodes: readonly NetHost[]): Promise<void> {
  const id = bed.pbs(["qsub", "-k", "oe", "-l", "select=4:ncpus=1", "-l", "place=scatter", "--", "/bin/sleep", "1000"], USER).trim();
  await until("the job runs", () => bed.job(id)["job_state"] === "R");
  const before = counts(bed);
  bed.pbs(["qdel", id], USER);
  await until("the job has ended", () => bed.job(id)["job_state"] === "F");
  for (const { name } of nodes) await until(`${name} is free`, () => bed.state(name) === "free");
  assert.ok(counts(bed).commands > before.commands, "by multicast");
}

/** A host that gets no datagrams of the group gets commands over its connection. */
async function reachesDeaf(bed: Bed, nodes: readonly NetHost[]): Promise<void> {
  inSwitch("bridge", "link", "set", "dev", "port4", "mcast_flood", "off");
  inSwitch("ip", "link", "set", "bridge0", "type", "bridge", "mcast_snooping", "0");
  const before = counts(bed);
  for (const word of ["deaf-1", "deaf-2", "deaf-3", "deaf-4"]) {
    importHook(bed, word, 100);
    for (const host of nodes) await until(`${host.name} has the hook`, () => hasHook(bed, host, word));
  }
  assert.ok(counts(bed).copies >= before.copies + 3);
  assert.match(bed.log(bed.head, "server_logs"), /multicast: no acknowledgement from n4: commands go over these connections/);
  inSwitch("bridge", "link", "set", "dev", "port4", "mcast_flood", "on");
}

/** A mom whose certificate was revoked is no member any more; the others get the next commands. */
async function refusesRevoked(bed: Bed, nodes: readonly NetHost[]): Promise<void> {
  bed.partita(bed.head, "cert", "revoke", "n4");
  await until("n4 is away", () => /down|unknown/.test(bed.state("n4")));
  importHook(bed, "after-revocation", 100);
  for (const host of nodes.slice(0, 3)) await until(`${host.name} has the hook`, () => hasHook(bed, host, "after-revocation"));
  const before = counts(bed);
  await until("commands go to the group again", () => {
    importHook(bed, `later-${Date.now()}`, 100);
    return counts(bed).commands > before.commands;
  });
  assert.equal(hasHook(bed, nodes[3] as NetHost, "later-"), false);
}

/** A group of IPv6. */
async function takesAddress6(bed: Bed, nodes: readonly NetHost[]): Promise<void> {
  qmgr(bed, "set server multicast_group = ff15::96:1");
  const before = counts(bed);
  const remaining = nodes.slice(0, 3);
  let tries = 0;
  // The first attempts may be sent while the moms still join the group.
  await until("a hook reaches all moms without a copy over a connection", async () => {
    const { copies, commands } = counts(bed);
    const word = `six-${tries++}`;
    importHook(bed, word, 100);
    for (const host of remaining) await until(`${host.name} has the hook`, () => hasHook(bed, host, word));
    const after = counts(bed);
    return after.commands > commands && after.copies === copies;
  });
  assert.ok(counts(bed).commands > before.commands);
  assert.doesNotMatch(bed.log(bed.head, "server_logs"), /multicast to ff15/, "no fault");
}
