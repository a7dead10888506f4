// Files of jobs between hosts, over the complex's own channel: output and stage lists to a login host without a mom, to the server's host and to a host with a mom.
// Each host has a disk of its own, /mnt, so that nothing but the network can bring a file there.

import assert from "node:assert/strict";
import { appendFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { until } from "../../complex.ts";
import { lackOfUsers } from "../../needed-users.ts";
import { ROOT } from "../../shared.ts";
import { type Bed, closeBed, joins, makeBed, tokenIn } from "../bed.ts";
import { lackOfNamespaces, makeNet, type NetHost } from "../namespaces.ts";

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
  door.must("sed", "-i", "s/^PBS_START_COMM=0/PBS_START_COMM=1/", join(bed.homeOf(door), "pbs.conf"));
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

/** A job on n1 that runs until endsNow(). */
async function runs(name: string, words: readonly string[]): Promise<string> {
  const id = submit(`while [ ! -e /mnt/work/${name}.go ]; do sleep 0.2; done; echo over\n`, words);
  await until(`${id} runs`, () => bed.job(id)["substate"] === 42);
  return id;
}
const endsNow = (name: string): void => writeFileSync(onDisk(n1, `mnt/work/${name}.go`), "");

/** What becomes of a claim of files that root of a host makes. */
function claim(from: NetHost, to: NetHost, job: string, run_count: number, ...words: readonly string[]): string {
  const program = [
    process.execPath,
    "--no-warnings",
    `--import=${join(ROOT, "scripts/tsx-hook.mjs")}`,
    join(import.meta.dirname, "../files-claim.ts"),
  ];
  return from.must(...program, join(bed.homeOf(from), "pbs"), to.address, "15003", to.name, job, String(run_count), ...words).trim();
}

test("a hostile host gets only what the job states, while the job runs on that host: no other job, no other path, no later call, no endless file", {
  skip,
}, async () => {
  for (const name of ["secret", "input"]) writeFileSync(onDisk(door, `mnt/work/${name}`), `${name}\n`);
  const stagein = "stagein=/mnt/work/b.dat@door:/mnt/work/input";
  const id = await runs("hostile", ["-j", "oe", "-o", "door:/mnt/work/hostile.out", "-W", stagein]);
  const path = "/mnt/work/hostile.out";
  assert.match(claim(n2, door, id, 1, "put", path), /^refused: the server refuses: job \S+ does not run on n2$/);
  assert.match(claim(n1, door, id, 7, "put", path), /^refused: the server refuses: job \S+ does not run on n1$/, "another run");
  assert.match(claim(n1, door, "999.head", 1, "put", path), /^refused: the server refuses: job 999.head does not run on n1$/);
  assert.match(claim(n1, door, id, 1, "put", "/mnt/work/secret"), /^refused: the job states no place \/mnt\/work\/secret/);
  assert.match(claim(n1, door, id, 1, "put", `${path}/../secret`), /^refused: the job states no place/);
  assert.match(claim(n1, door, id, 1, "get", "/mnt/work/secret"), /^refused: the job names no files \/mnt\/work\/secret/);
  assert.match(claim(n1, n2, id, 1, "put", path), /^refused: the job states no place/, "a host that has no part in the job");
  assert.match(claim(n1, door, id, 1, "endless", path, String(2 ** 52)), /^ended after \w+ data: .*ENOSPC/);
  assert.match(claim(n1, door, id, 1, "endless", path, "100000"), /^ended after \w+ data: /);
  assert.equal(claim(n1, door, id, 1, "put", path), "done", "this host may speak for this run");
  assert.equal(owner(door, "mnt/work/hostile.out"), `${USER} 644`, "as the owner of the job, whoever asks");
  endsNow("hostile");
  assert.equal((await ends(id))["Stageout_status"], 1);
  assert.equal(read(door, "mnt/work/hostile.out"), "over\n");
  assert.match(claim(n1, door, id, 1, "put", path), /^refused: the server refuses: job \S+ does not run on n1$/, "a call that is repeated");
  assert.equal(read(door, "mnt/work/hostile.out"), "over\n");
  assert.equal(read(door, "mnt/work/secret"), "secret\n");
  assert.deepEqual(
    list(door, "mnt/work").filter((name) => name.startsWith(".")),
    [],
    "nothing incomplete is left",
  );
});

/** The process on the login host that takes files: the child of its pbs_comm. */
function fileServer(): number {
  const comm = Number.parseInt(readFileSync(join(bed.homeOf(door), "pbs/server_priv/comm.lock"), "utf8"), 10);
  return Number.parseInt(readFileSync(`/proc/${comm}/task/${comm}/children`, "utf8"), 10);
}

test("the process that takes a large file is killed in the middle: it is started again, and the file arrives whole", { skip }, async () => {
  const size = 2 ** 30;
  const text = `truncate -s ${size} /mnt/work/large\n`;
  const id = submit(text, ["-j", "oe", "-o", "door:/mnt/work/large.log", "-W", "stageout=/mnt/work/large@door:/mnt/work/"]);
  const begun = (): boolean => list(door, "mnt/work").some((name) => name.startsWith(".large."));
  await until("the copy has begun", begun);
  const pid = fileServer();
  process.kill(pid, "SIGKILL");
  assert.equal(read(door, "mnt/work/large"), null, "it has no name yet");
  const job = await ends(id);
  assert.equal(job["Stageout_status"], 1, momLog());
  assert.notEqual(fileServer(), pid);
  assert.equal(Number(head.must("stat", "-c", "%s", onDisk(door, "mnt/work/large")).trim()), size);
  await until("nothing incomplete is left", () => !begun());
});

test("a host that takes no files is reached by scp, as the owner; without scp the log says what is missing", { skip }, async () => {
  // No pbs_comm: the process that takes files ends with it, and a server that starts again does not know where it was.
  bed.partita(door, "stop");
  bed.partita(head, "stop");
  bed.partita(head, "start");
  await until("n1 is free", () => bed.state("n1") === "free");
  const id = submit("echo kept\n", ["-j", "oe", "-o", "door:/mnt/work/late"]);
  const job = await ends(id);
  assert.deepEqual([job["Exit_status"], job["Stageout_status"]], [0, 0]);
  const line =
    momLog()
      .split("\n")
      .find((each) => each.includes(id) && each.includes("Unable to copy file")) ?? "";
  assert.match(line, existsSync("/usr/bin/scp") ? /scp ended with/ : /the server does not know where door takes files/);
  assert.equal(readFileSync(join(bed.homeOf(n1), `pbs/undelivered/${id}.OU`), "utf8"), "kept\n");
});
