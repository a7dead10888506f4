// System mode: runners belong to the users whose jobs they run. A runner has the rights of its user only, and nobody else can take its place (docs/runners.md).

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { systemUsers } from "#support/passwd.ts";
import { becoming, type Complex, startComplex, until } from "../complex.ts";
import { lackOfCheckout } from "../needed-users.ts";

const [ONE, TWO] = ["pbsuser1", "pbsuser2"] as const;
const skip = lackOfCheckout(ONE) || lackOfCheckout(TWO);
const uidOf = (name: string): number => systemUsers().userByName(name)?.uid ?? -1;

let complex: Complex;
before(async () => {
  if (skip !== false) return;
  complex = await startComplex({ mode: "system" });
  complex.qmgr(
    "set server job_history_enable=t",
    "create queue cloud queue_type=e,enabled=t,started=t,partition=cloud",
    "create sched cs partition=cloud",
    "set sched cs scheduling=t",
    "create backend lo type=local",
    "set backend lo partition=cloud,max_runners=4,resources_available.ncpus=4,enabled=t",
  );
});
after(() => complex?.stop());

const submit = (user: string, script: string, ...options: readonly string[]): string => {
  const words = ["-q", "cloud", "-l", "walltime=0:05:00", "-j", "oe", "-o", join(complex.work(user), "out"), ...options];
  return complex.submit([...words, "--", "/bin/sh", "-c", script], { as: user });
};
type Runner = { readonly runner: string; readonly backend_id: string | null };
const runners = (): readonly Runner[] =>
  (JSON.parse(complex.must("partita", ["runners", "-F", "json", "--home", complex.home])) as { readonly runners: readonly Runner[] })
    .runners;
const tokenFile = (runner: string): string => {
  const pid = runners().find((each) => each.runner === runner)?.backend_id;
  const environ = readFileSync(`/proc/${pid}/environ`, "utf8");
  return /PARTITA_RUNNER_TOKEN_FILE=([^\0]*)/.exec(environ)?.[1] ?? "";
};

/** What the server does with a process of this user that says it is that runner. */
function claim(user: string, host: string, token: string | null): string {
  const [program = "", ...words] = [...becoming(user), process.execPath, join(import.meta.dirname, "runner-claim.ts")];
  const path = join(complex.pbsHome, "sock/server.sock");
  const done = spawnSync(program, [...words, path], {
    cwd: join(import.meta.dirname),
    input: JSON.stringify({ host, token }),
    encoding: "utf8",
    timeout: 120_000,
  });
  return done.stdout.trim().replaceAll("\n", " ") || `nothing: ${done.stderr}`;
}

test("system runners: each job runs as its owner on a runner of this owner; tokens and places of runners are of no use to others", {
  skip,
}, async () => {
  const flag = join(complex.work(), "go-on");
  writeFileSync(flag, "");
  const script = `id -un; id -u; echo $TMPDIR; while [ -e ${flag} ]; do sleep 0.2; done`;
  const jobs = new Map([ONE, TWO].map((user) => [user, submit(user, script)]));
  const runnerOf = new Map<string, string>();
  for (const [user, id] of jobs) runnerOf.set(user, String((await complex.untilJob(id, "R"))["runner"]));
  const [mine = "", other = ""] = [runnerOf.get(ONE), runnerOf.get(TWO)];
  assert.notEqual(mine, other);
  for (const [user, runner] of runnerOf) {
    const pid = Number(
      await until("the runner's pid is known", () => runners().find((each) => each.runner === runner)?.backend_id ?? false),
    );
    assert.match(readFileSync(`/proc/${pid}/status`, "utf8"), new RegExp(`^Uid:(\\s${uidOf(user)}){4}$`, "m"), user);
    const file = tokenFile(runner);
    const { mode, uid } = statSync(file);
    assert.deepEqual([mode & 0o777, uid], [0o600, uidOf(user)], `the file with the token of ${user}`);
    const token = readFileSync(file, "utf8");
    for (const place of ["cmdline", "environ"]) assert.ok(!readFileSync(`/proc/${pid}/${place}`, "utf8").includes(token), place);
    for (const logs of ["server_logs", "runner_logs"]) assert.ok(!complex.log(logs).includes(token), logs);
    const [program = "", ...words] = [...becoming(user === ONE ? TWO : ONE), "cat", file];
    assert.match(spawnSync(program, words, { encoding: "utf8", env: { LC_ALL: "C" } }).stderr, /Permission denied/, "another user's token");
  }
  const token = readFileSync(tokenFile(mine), "utf8");
  const foreign = readFileSync(tokenFile(other), "utf8");
  // biome-ignore format: a table
  const claims: readonly (readonly [what: string, user: string, token: string | null, answer: string])[] = [
    ["no token",                                  ONE, null,            "closed"],
    ["a forged token",                            ONE, "0".repeat(64),  "closed"],
    ["the token of another runner",               ONE, foreign,         "closed"],
    ["another user who has got the token",        TWO, token,           "closed"],
    ["a second process with the token",           ONE, token,           "quit"],
  ];
  for (const [what, user, shown, answer] of claims) assert.equal(claim(user, mine, shown), answer, what);
  assert.equal(claim(TWO, "node7", null), "closed", "a user who says he is a host");
  const log = complex.log("server_logs");
  assert.match(log, new RegExp(`mom-hello of runner ${mine} without its token refused from uid ${uidOf(ONE)}`));
  assert.match(log, new RegExp(`mom-hello of runner ${mine} of ${ONE}, although its token is right, refused from uid ${uidOf(TWO)}`));
  const held = submit(TWO, "true", "-h");
  assert.match(complex.run("qrun", ["-H", mine, held]).stderr, /belongs to another user/);
  assert.equal(complex.job(held).job_state, "H");
  // The server ends and comes back: the runners prove themselves again, and their jobs go on.
  process.kill(complex.pid("server") ?? 0, "SIGKILL");
  await until("the server is gone", () => complex.pid("server") === null);
  complex.start();
  await until("both runners are back", () => [mine, other].every((name) => !/state-unknown|down/.test(complex.must("pbsnodes", [name]))));
  rmSync(flag);
  for (const [user, id] of jobs) {
    const job = await complex.untilJob(id, "F");
    assert.deepEqual([job.Exit_status, job.run_count], [0, 1]);
    const file = join(complex.work(user), "out");
    const [name, uid, tmpdir] = readFileSync(file, "utf8").split("\n");
    assert.deepEqual([name, uid, statSync(file).uid], [user, String(uidOf(user)), uidOf(user)]);
    assert.match(String(tmpdir), /\/partita-runner-[^/]+\/tmp\/pbs\./);
  }
  await until("the runners have left", () => runners().length === 0);
  assert.equal(claim(ONE, mine, token), "quit", "the token of a runner that has left");
  assert.doesNotMatch(complex.must("pbsnodes", ["-a"]), /lo-|ncpus = 64/);
});
