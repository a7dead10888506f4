// Files of jobs between hosts, over the complex's own channel: output and stage lists to a login host without a mom, to the server's host and to a host with a mom.
// Each host has a disk of its own, /mnt, so that nothing but the network can bring a file there.

import assert from "node:assert/strict";
import { appendFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { until } from "../complex.ts";
import { lackOfUsers } from "../needed-users.ts";
import { type Bed, closeBed, joins, makeBed, tokenIn } from "./bed.ts";
import { lackOfNamespaces, makeNet, type NetHost } from "./namespaces.ts";

const [USER, OTHER] = ["pbsuser1", "pbsuser2"];
const skip = lackOfNamespaces() || lackOfUsers(USER, OTHER);

let bed: Bed;
let head: NetHost;
let n1: NetHost;
let n2: NetHost;
let door: NetHost;

before(async () => {
  if (skip !== false) return;
  const net = makeNet(["head", "n1", "n2", "door"], { own: ["/mnt"] });
  [head, n1, n2, door] = net.hosts as [NetHost, NetHost, NetHost, NetHost];
  bed = makeBed(net, head);
  bed.partita(head, "start");
  bed.pbs(["qmgr", "-c", "set server job_history_enable = True"]);
  for (const host of [n1, n2]) {
    joins(bed, host);
    appendFileSync(join(bed.homeOf(host), "pbs/mom_priv/config"), "$copy_patience 60\n");
    bed.partita(host, "start");
    bed.pbs(["qmgr", "-c", `create node ${host.name}`]);
  }
  const token = tokenIn(bed.partita(head, "cert", "token", "--host", door.name));
  bed.partita(door, "join", head.name, "--token", token, "--prefix", join(net.dir, "opt"), "--login");
  bed.partita(door, "start");
  for (const { name } of net.hosts) mkdirSync(join(net.dir, name, "mnt/work"));
  for (const { name } of net.hosts) head.must("chown", USER, join(net.dir, name, "mnt/work"));
  for (const host of [n1, n2]) await until(`${host.name} is free`, () => bed.state(host.name) === "free");
});
after(() => {
  if (skip === false) closeBed(bed.net);
});

/** The path by which this test reads a file of a host's own disk. */
const onDisk = (host: NetHost, path: string): string => join(bed.net.dir, host.name, path);
const read = (host: NetHost, path: string): string | null =>
  existsSync(onDisk(host, path)) ? readFileSync(onDisk(host, path), "utf8") : null;
const list = (host: NetHost, path: string): readonly string[] => head.must("ls", "-A", onDisk(host, path)).split("\n").slice(0, -1);
const owner = (host: NetHost, path: string): string => head.must("stat", "-c", "%U %a", onDisk(host, path)).trim();

/** Submits a job for n1. */
function submit(text: string, words: readonly string[]): string {
  const script = join(bed.net.dir, "job.sh");
  writeFileSync(script, text);
  return bed.pbs(["qsub", "-l", "select=1:host=n1", ...words, script], USER).trim();
}

async function ends(id: string): Promise<Readonly<Record<string, unknown>>> {
  await until(`${id} has ended`, () => bed.job(id)["job_state"] === "F");
  return bed.job(id);
}
const momLog = (): string => bed.log(n1, "mom_logs");

test("output goes to a host without a mom, to the server's host, and to a host with a mom", { skip }, async () => {
  for (const host of [door, head, n2]) {
    const job = await ends(
      submit("echo out; echo err >&2; cat /proc/sys/kernel/hostname\n", [
        "-o",
        `${host.name}:/mnt/work/`,
        "-e",
        `${host.name}:/mnt/work/err`,
      ]),
    );
    assert.deepEqual([job["Exit_status"], job["Stageout_status"]], [0, 1], momLog());
    const [name = ""] = list(host, "mnt/work").filter((each) => each.endsWith(".OU"));
    assert.equal(read(host, `mnt/work/${name}`), "out\nn1\n", host.name);
    assert.equal(read(host, "mnt/work/err"), "err\n");
    assert.equal(owner(host, "mnt/work/err"), `${USER} 600`);
    assert.deepEqual(list(n1, "mnt/work"), [], "nothing is left where the job ran");
  }
});

test("stagein and stageout: files, patterns and directories, with modes and links; all of it is removed where the job ran", {
  skip,
}, async () => {
  const from = onDisk(door, "mnt/work/in");
  mkdirSync(join(from, "tree/deep"), { recursive: true });
  for (const name of ["a.dat", "b.dat", "tree/deep/c"]) writeFileSync(join(from, name), `${name}\n`);
  head.must("sh", "-c", `cd ${from} && ln -s deep/c tree/link && chmod 750 tree/deep/c && chown -Rh ${USER} .`);
  const stagein = "stagein=/mnt/work/@door:/mnt/work/in/*.dat,/mnt/work/tree@door:/mnt/work/in/tree";
  const stageout = "stageout=/mnt/work/tree@n2:/mnt/work/,/mnt/work/r*@door:/mnt/work/";
  const text = "cd /mnt/work; cat a.dat b.dat tree/link >result; echo more >tree/new; cp result r2\n";
  const job = await ends(submit(text, ["-W", stagein, "-W", stageout, "-j", "oe", "-o", "door:/mnt/work/log"]));
  assert.equal(read(door, "mnt/work/log"), "", momLog());
  assert.deepEqual([job["Exit_status"], job["Stageout_status"]], [0, 1]);
  assert.equal(read(door, "mnt/work/result"), "a.dat\nb.dat\ntree/deep/c\n");
  assert.equal(read(door, "mnt/work/r2"), "a.dat\nb.dat\ntree/deep/c\n");
  assert.equal(read(n2, "mnt/work/tree/new"), "more\n");
  assert.equal(owner(n2, "mnt/work/tree/deep/c"), `${USER} 750`);
  assert.equal(head.must("readlink", onDisk(n2, "mnt/work/tree/link")).trim(), "deep/c");
  assert.deepEqual(
    list(n1, "mnt/work"),
    ["a.dat", "b.dat"].filter(() => false),
  );
});

test("what cannot be written is told by mail and log, and kept in undelivered: no such directory, no right, a planted link, a full disk", {
  skip,
}, async () => {
  door.must("sh", "-c", `mkdir /mnt/sticky && chmod 1777 /mnt/sticky`);
  head.must("sh", "-c", `cd ${onDisk(door, "mnt/sticky")} && echo precious >../work/precious && chown ${USER} ../work/precious`);
  head.must(
    "setpriv",
    `--reuid=${OTHER}`,
    `--regid=${OTHER}`,
    "--clear-groups",
    "ln",
    "-s",
    "/mnt/work/precious",
    onDisk(door, "mnt/sticky/planted"),
  );
  const cases: readonly (readonly [path: string, reason: RegExp])[] = [
    ["/mnt/nowhere/out", /ENOENT/],
    ["/root/out", /EACCES|ENOENT/],
    ["/mnt/sticky/planted", /planted is a link of another user/],
  ];
  for (const [path, reason] of cases) {
    const id = submit("echo kept\n", ["-j", "oe", "-o", `door:${path}`]);
    const job = await ends(id);
    assert.deepEqual([job["Exit_status"], job["Stageout_status"]], [0, 0], path);
    const line =
      momLog()
        .split("\n")
        .find((each) => each.includes(id) && each.includes("Unable to copy file")) ?? "";
    assert.match(line, reason);
    assert.equal(readFileSync(join(bed.homeOf(n1), `pbs/undelivered/${id}.OU`), "utf8"), "kept\n");
  }
  assert.equal(read(door, "mnt/work/precious"), "precious\n", "the file behind the link is as it was");
});
