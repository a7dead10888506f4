// A complex in system mode over hosts with addresses, names and /etc of their own: a mom joins over the network, runs a user's job, loses and finds its server.

import assert from "node:assert/strict";
import { appendFileSync, mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { until } from "../../complex.ts";
import { lackOfUsers } from "../../needed-users.ts";
import { type Bed, closeBed, makeBed, tokenIn } from "../bed.ts";
import { lackOfNamespaces, makeNet, type NetHost } from "../namespaces.ts";

const USER = "pbsuser1";

const skip = lackOfNamespaces() || lackOfUsers(USER);

test("a mom on another host: joins with a token, runs a user's job, is cut off and comes back; others cannot take its name", {
  skip,
}, async () => {
  const net = makeNet(["head", "node7", "node8"]);
  const [head, node7, node8] = net.hosts as readonly [NetHost, NetHost, NetHost];
  try {
    const bed = makeBed(net, head);
    bed.partita(head, "start");
    const token = tokenIn(bed.partita(head, "cert", "token"));
    await joins(bed, node7, token);
    await runsJob(bed);
    await survivesCut(bed, node7);
    await keepsItsName(bed, node8, token);
  } finally {
    closeBed(net);
  }
});

async function joins(bed: Bed, node7: NetHost, token: string): Promise<void> {
  const told = bed.partita(node7, "join", "head", "--token", token, "--prefix", join(bed.net.dir, "opt"));
  assert.match(told, /^node7 is a host of head now/);
  bed.partita(node7, "start");
  bed.pbs(["qmgr", "-c", "create node node7"]);
  bed.pbs(["qmgr", "-c", "set server job_history_enable = True"]);
  bed.pbs(["qmgr", "-c", "set server node_silence_timeout = 4"]);
  await until("node7 is free", () => bed.state("node7") === "free");
}

/** As its owner, on the host with that name and address. */
async function runsJob(bed: Bed): Promise<void> {
  const out = join(bed.net.dir, "out");
  mkdirSync(out, { mode: 0o777 });
  bed.head.must("chmod", "777", out);
  const script = `id -un; cat /proc/sys/kernel/hostname /etc/hostname; ip -4 -o addr show eth0`;
  const id = bed.pbs(["qsub", "-j", "oe", "-o", `node7:${out}/job`, "--", "/bin/sh", "-c", script], USER).trim();
  await until("the job has ended", () => bed.job(id)["job_state"] === "F");
  assert.deepEqual([bed.job(id)["Exit_status"], bed.job(id)["exec_host"]], [0, "node7/0"]);
  const said = readFileSync(join(out, "job"), "utf8").split("\n");
  assert.deepEqual(said.slice(0, 3), [USER, "node7", "node7"]);
  assert.match(said[3] ?? "", /inet 10\.99\.0\.2\/24/);
}

/** The node is down while the cable is out; its job runs on, and is known again afterwards. */
async function survivesCut(bed: Bed, node7: NetHost): Promise<void> {
  const id = bed.pbs(["qsub", "-k", "oe", "--", "/bin/sleep", "1000"], USER).trim();
  await until("the job runs", () => bed.job(id)["job_state"] === "R");
  node7.cable("down");
  await until("node7 is lost", () => /state-unknown|down/.test(bed.state("node7")));
  node7.cable("up");
  await until("node7 is back", () => /^(free|job-busy)$/.test(bed.state("node7")));
  const job = bed.job(id);
  assert.deepEqual([job["job_state"], job["run_count"]], ["R", 1]);
  bed.pbs(["qdel", id], USER);
  await until("the job has ended", () => bed.job(id)["job_state"] === "F");
}

/** A used token gives nothing, and a host with its own certificate cannot speak for another one. */
async function keepsItsName(bed: Bed, node8: NetHost, used: string): Promise<void> {
  const join_words = (token: string): readonly string[] => ["join", "head", "--token", token, "--prefix", join(bed.net.dir, "opt")];
  assert.throws(() => bed.partita(node8, ...join_words(used)), /the token was used already/);
  bed.partita(node8, ...join_words(tokenIn(bed.partita(bed.head, "cert", "token", "--host", "node8"))));
  appendFileSync(join(bed.homeOf(node8), "pbs.conf"), "PBS_MOM_NODE_NAME=node7\n");
  bed.partita(node8, "start");
  await until("node8 is refused", () => bed.log(bed.head, "server_logs").includes("mom-hello of node7 refused from host node8"));
  assert.equal(bed.state("node7"), "free");
}
