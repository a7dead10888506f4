// Stage lists and output to other hosts (docs/reference/files.md 5), with real jobs. A copy program of the test (PBS_SCP) plays
// the other host: it takes `user@far:PATH` as a path below a separate directory.

import assert from "node:assert/strict";
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { type Complex, startComplex, until } from "../complex.ts";
import { lackOfUsers, seatOf } from "../needed-users.ts";

const USER = "pbsuser1";
const { mode, owner, as } = seatOf(USER);

/** Copies as scp would, records its arguments, and fails for the host `lost`. */
const SCP = `#!/bin/sh
echo "$(id -un) $*" >> "$(dirname "$0")/calls"
while [ "$1" != -- ]; do shift; done
for word in "$2" "$3"; do case $word in *@lost:*) echo "connect to host lost: no route" >&2; exit 1;; esac; done
far() { case $1 in *@far:*) echo "$(dirname "$0")/far/\${1#*@far:}";; *) echo "$1";; esac; }
exec cp -r -- $(far "$2") "$(far "$3")"
`;

let complex: Complex;
let host: string;
let work: string;
let site: string;

before(async () => {
  complex = await startComplex({ mode });
  work = complex.work(owner);
  site = join(complex.home, "..", "site");
  mkdirSync(join(site, "far"), { recursive: true });
  for (const path of [site, join(site, "far")]) chmodSync(path, 0o777);
  writeFileSync(join(site, "scp"), SCP);
  chmodSync(join(site, "scp"), 0o755);
  writeFileSync(join(site, "calls"), "");
  chmodSync(join(site, "calls"), 0o666);
  complex.halt();
  const conf = join(complex.home, "pbs.conf");
  writeFileSync(conf, `${readFileSync(conf, "utf8")}PBS_SCP=${join(site, "scp")}\nPBS_SCP_ARGS=-B -r\n`);
  complex.start();
  complex.qmgr("set server job_history_enable=True");
  host = /^Name=([^|]+)/m.exec(complex.must("pbsnodes", ["-a", "-F", "dsv"]))?.[1] as string;
});
after(() => complex.stop());

const put = (path: string, text: string): string => {
  const whole = join(work, path);
  mkdirSync(join(whole, ".."), { recursive: true });
  chmodSync(join(whole, ".."), 0o777);
  writeFileSync(whole, text);
  chmodSync(whole, 0o666);
  return whole;
};
const read = (path: string): string => readFileSync(join(work, path), "utf8");
const submit = (args: readonly string[], script: string): string => complex.submit([...args, put("job.sh", script)], as);
const stage = (direction: "in" | "out", ...items: readonly string[]): string => `stage${direction}=${items.join(",")}`;

test("files, patterns and directories are there before the job and fetched after it; what was staged goes, what stood there stays", async () => {
  put("data/one", "1\n");
  put("data/a.txt", "a\n");
  put("data/b.txt", "b\n");
  put("data/tree/deep/leaf", "leaf\n");
  symlinkSync("leaf", join(work, "data/tree/deep/link"));
  put("here/own", "mine\n");
  put("out/keep", "");
  const here = join(work, "here");
  const there = (path: string): string => `${host}:${join(work, "data", path)}`;
  const lists = [
    stage(
      "in",
      `${here}/in@${there("one")}`,
      `${here}@${there("*.txt")}`,
      `${here}/tree@${there("tree")}`,
      `${here}/own@${host}:${here}/own`,
    ),
    stage("out", `${here}/result.*@${host}:${work}/out`, `${here}/own@${host}:${work}/here/own`),
  ];
  const script = `cd ${here}; cat in a.txt b.txt tree/deep/link own > result.1; ls > result.2\n`;
  const id = submit(["-W", lists.join(",")], script);
  const job = await complex.untilJob(id, "F");
  assert.deepEqual([job.Exit_status, job["Stageout_status"]], [0, 1]);
  assert.equal(read("out/result.1"), "1\na\nb\nleaf\nmine\n");
  assert.equal(read("out/result.2"), "a.txt\nb.txt\nin\nown\nresult.1\nresult.2\ntree\n");
  assert.deepEqual(readdirSync(here), ["own"]);
  assert.deepEqual(readdirSync(join(work, "data")).sort(), ["a.txt", "b.txt", "one", "tree"]);
});

test("in a private sandbox names are the sandbox's; it goes with the job", async () => {
  put("data/word", "sand\n");
  const lists = [stage("in", `word@${host}:${work}/data/word`), stage("out", `word.out@${host}:${work}/out/`)];
  const id = submit(["-W", `sandbox=PRIVATE,${lists.join(",")}`], "tr a-z A-Z < word > word.out\n");
  const job = await complex.untilJob(id, "F");
  assert.deepEqual([job.Exit_status, job["Stageout_status"]], [0, 1]);
  assert.equal(read("out/word.out"), "SAND\n");
  assert.match(String(job["jobdir"]), /pbs\..*\.x8z$/);
  assert.equal(existsSync(String(job["jobdir"])), false);
});

test("a job whose files cannot be staged in waits half an hour, says why, and leaves nothing", async () => {
  put("data/one", "1\n");
  const local = join(work, "left");
  const list = stage("in", `${local}@${host}:${work}/data/one`, `${local}2@${host}:${work}/data/missing`);
  const id = submit(["-W", list], "true\n");
  const job = await complex.untilJob(id, "W");
  assert.equal(job["substate"], 37);
  assert.match(String(job.comment), /^Stage In of files failed; tried again at /);
  assert.equal(existsSync(local), false);
  const said = /Stage In of files failed: Unable to stage in \S*left2 from \S*missing: .*ENOENT/;
  await until("the server's log line", () => said.test(complex.log("server_logs")));
  complex.must("qdel", [id], as);
});

test("to and from another host goes the site's program, as the owner; what it cannot reach stays and is told", async () => {
  writeFileSync(join(site, "far/in.txt"), "from far\n");
  const local = join(work, "fetched");
  const lists = [stage("in", `${local}@far:in.txt`), stage("out", `${local}.done@far:out.txt`)];
  const id = submit(["-W", lists.join(","), "-j", "oe", "-o", "far:/printed.txt"], `cp ${local} ${local}.done; echo printed\n`);
  const job = await complex.untilJob(id, "F");
  assert.deepEqual([job.Exit_status, job["Stageout_status"]], [0, 1], complex.log("mom_logs").slice(-1500));
  assert.equal(readFileSync(join(site, "far/out.txt"), "utf8"), "from far\n");
  assert.match(readFileSync(join(site, "far/printed.txt"), "utf8"), /(^|\n)printed\n$/);
  assert.deepEqual([existsSync(local), existsSync(`${local}.done`)], [false, false]);
  const calls = readFileSync(join(site, "calls"), "utf8").split("\n");
  const user = calls[0]?.split(" ")[0];
  assert.equal(calls[0], `${user} -B -r -- ${user}@far:in.txt ${local}`);
  if (owner !== undefined) assert.equal(user, owner);

  const lost = submit(["-W", stage("out", `${local}.2@lost:x`), "-j", "oe", "-o", "lost:y"], `echo kept > ${local}.2\n`);
  const failed = await complex.untilJob(lost, "F");
  assert.deepEqual([failed.Exit_status, failed["Stageout_status"]], [0, 0]);
  assert.equal(readFileSync(`${local}.2`, "utf8"), "kept\n");
  assert.ok(existsSync(join(complex.pbsHome, "undelivered", `${lost}.OU`)));
  await until("the mom's log line", () => complex.log("mom_logs").includes("Unable to stage out"));
  assert.match(complex.log("mom_logs"), /Unable to stage out \S+fetched\.2 to lost:x: scp ended with 1: connect to host lost: no route/);
});

test("nobody waits for the other end of a FIFO, and root's files are not the owner's to fetch", {
  skip: lackOfUsers(USER),
}, async () => {
  const secret = put("secret", "root's\n");
  chmodSync(secret, 0o600);
  complex.must("qsub", ["-W", "block=true", put("fifo.sh", `mkfifo ${work}/fifo\n`)], as);
  const into = submit(["-W", stage("out", `${work}/x@${host}:${work}/fifo`)], `echo x > ${work}/x\n`);
  const from = submit(["-W", stage("out", `${work}/fifo@${host}:${work}/y`)], "true\n");
  const take = submit(["-W", stage("in", `${work}/mine@${host}:${secret}`)], "true\n");
  for (const id of [into, from]) assert.equal((await complex.untilJob(id, "F"))["Stageout_status"], 0);
  await complex.untilJob(take, "W");
  await until("no trace of the secret", () => !existsSync(join(work, "mine")));
  complex.must("qdel", [take], as);
});
