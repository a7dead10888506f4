// Job arrays with real subjobs: environment and output files, ranges in commands, reruns, a kill of the daemons during the run,
// a large waiting array.

import assert from "node:assert/strict";
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { type Complex, isAlive, startComplex, until } from "../complex.ts";
import { lackOfUsers, seatOf } from "../needed-users.ts";
import { BEGIN, ofScript } from "../script-output.ts";

const USER = "pbsuser1";
const { mode, owner, as } = seatOf(USER);

let complex: Complex;
let work: string;

before(async () => {
  complex = await startComplex({ mode });
  work = complex.work(owner);
  complex.qmgr("set server job_history_enable=True", "set server max_array_size=200000", "set node @default resources_available.ncpus=8");
});
after(() => complex.stop());

const number = (id: string): string => id.replace(/\[.*/, "");
const subjob = (array: string, index: number): string => array.replace("[]", `[${index}]`);
const submit = (...args: readonly string[]): string => complex.submit(args, as);
const run = (command: string, ...args: readonly string[]): string => {
  const { status, stdout, stderr } = complex.run(command, args, as);
  return `${status} ${stdout}${stderr}`.trim();
};
/** `Running:2`, ... of an array */
const counts = (array: string): string => String(complex.job(array)["array_state_count"]);

function openDirectory(name: string): string {
  const path = join(work, name);
  mkdirSync(path, { recursive: true });
  chmodSync(path, 0o1777);
  return path;
}

test("subjobs know their index, and their output has its own names", async () => {
  const script = join(work, "array.sh");
  writeFileSync(
    script,
    `#!/bin/sh\n#PBS -J 1-5:2\n${BEGIN}\n` + 'echo "$PBS_JOBID $PBS_ARRAY_INDEX $PBS_ARRAY_ID"\nexit $((PBS_ARRAY_INDEX / 5))\n',
  );
  chmodSync(script, 0o755);
  const array = submit("-N", "known", script);
  assert.match(array, /^\d+\[\]\.\S+$/);
  const job = await complex.untilJob(array, "F");
  assert.equal(job.Exit_status, 1, "a subjob failed");
  assert.equal(job["array_state_count"], "Queued:0 Running:0 Exiting:0 Expired:0");
  for (const index of [1, 3, 5]) {
    const id = subjob(array, index);
    assert.equal(ofScript(readFileSync(join(work, `known.o${number(array)}.${index}`), "utf8")), `${id} ${index} ${array}\n`);
    assert.equal(complex.job(id).Exit_status, index === 5 ? 1 : 0);
  }
});

test("in system mode subjobs run as the owner of the array", { skip: lackOfUsers(USER) }, async () => {
  const array = submit("-J", "1-2", "-N", "who", "--", "/usr/bin/id", "-un");
  await complex.untilJob(array, "F");
  for (const index of [1, 2]) assert.equal(readFileSync(join(work, `who.o${number(array)}.${index}`), "utf8"), `${USER}\n`);
});

test("output with ^array_index^ in its name, and in a directory", async () => {
  const place = openDirectory("out");
  const one = submit("-J", "7-8", "-o", `${place}/x.^array_index^`, "-e", `${place}/y.^array_index^`, "--", "/bin/echo", "here");
  const two = submit("-J", "1-2", "-j", "oe", "-o", `${place}/`, "--", "/bin/echo", "there");
  for (const array of [one, two]) await complex.untilJob(array, "F");
  const names = ["x.7", "x.8", "y.7", "y.8", `${subjob(two, 1)}.OU`, `${subjob(two, 2)}.OU`];
  assert.deepEqual(readdirSync(place).sort(), names.sort());
  assert.equal(readFileSync(join(place, "x.8"), "utf8"), "here\n");
});

test("max_run_subjobs holds, ranges are deleted, signalled and rerun, the array ends with its last subjob", async () => {
  const array = submit("-J", "1-20%3", "--", "/bin/sleep", "1000");
  await until("three running", () => counts(array) === "Queued:17 Running:3 Exiting:0 Expired:0");
  assert.equal(complex.job(array)["array_indices_remaining"], "4-20");
  assert.equal(run("qdel", `${number(array)}[6-20]`), "0");
  assert.equal(counts(array), "Queued:2 Running:3 Exiting:0 Expired:15");
  assert.match(run("qdel", `${number(array)}[7]`), /^55 qdel: Request invalid for finished array subjob \d+\[7\]\./);
  assert.match(run("qdel", `${number(array)}[99]`), /^156 qdel: Invalid request \d+\[99\]\./);
  assert.match(run("qalter", "-N", "x", `${number(array)}[1]`), /^156 qalter: Invalid request/);
  assert.match(run("qmsg", "hello", array), /^181 qmsg: not supported for Array Jobs \d+\[\]\./);
  assert.match(run("qsig", `${number(array)}[4-5]`), /^168 qsig: Request invalid for state of job \d+\[4-5\]\./);
  await until("the three run", () => [1, 2, 3].every((index) => complex.job(subjob(array, index))["substate"] === 42));
  complex.must("qrerun", [subjob(array, 2)]);
  await until("rerun", () => complex.job(subjob(array, 2)).run_count === 2);
  await until("three again", () => counts(array).includes("Running:3"));
  assert.equal(run("qsig", "-s", "KILL", array), "0");
  await until("the last two", () => [4, 5].every((index) => complex.job(subjob(array, index))["substate"] === 42));
  assert.equal(run("qdel", array), "0");
  const job = await complex.untilJob(array, "F");
  assert.deepEqual([job["substate"], job["array_indices_remaining"]], [91, "-"]);
  assert.match(String(job.comment), /^Job Array Began at .* and terminated$/);
  assert.equal(complex.job(subjob(array, 1)).Exit_status, 265);
});

test("a held array starts nothing, what runs goes on", async () => {
  const flag = join(work, "go");
  const array = submit("-J", "1-12", "-l", "ncpus=4", "--", "/bin/sh", "-c", `while [ ! -e ${flag} ]; do sleep 0.1; done`);
  await until("two running", () => counts(array).includes("Running:2"));
  assert.equal(run("qhold", array), "0");
  writeFileSync(flag, "");
  await until("both ended", () => counts(array) === "Queued:10 Running:0 Exiting:0 Expired:2");
  assert.equal(complex.job(array).job_state, "H");
  complex.qmgr("set server scheduling=True");
  assert.equal(run("qrls", array), "0");
  assert.equal((await complex.untilJob(array, "F")).Exit_status, 0);
});

test("each subjob runs once though server, scheduler and mom are killed in the midst", async () => {
  const runs = openDirectory("runs");
  const array = submit("-J", "1-60", "--", "/bin/sh", "-c", `echo x >> ${runs}/$PBS_ARRAY_INDEX; sleep 0.3`);
  const dies = async (pid: number | null): Promise<void> => {
    if (pid === null) return;
    process.kill(pid, "SIGKILL");
    await until(`end of ${pid}`, () => !isAlive(pid));
  };
  for (const victim of ["server", "mom", "sched", "server", "mom"] as const) {
    const before = readdirSync(runs).length;
    await until("some more have run", () => readdirSync(runs).length >= Math.min(60, before + 6));
    await dies(victim === "sched" ? complex.schedPid("default") : complex.pid(victim));
    if (victim !== "sched") complex.must(`pbs_${victim}`, []);
  }
  const job = await complex.untilJob(array, "F");
  assert.deepEqual([job.Exit_status, job["substate"]], [0, 92]);
  assert.equal(readdirSync(runs).length, 60);
  for (let index = 1; index <= 60; index++) assert.equal(readFileSync(join(runs, String(index)), "utf8"), "x\n", `subjob ${index}`);
  const letters = new Map<string, string>();
  for (const [, letter, id] of complex.log("server_priv/accounting").matchAll(/^[^;\n]*;(.);([^;\n]*);/gm))
    letters.set(id as string, (letters.get(id as string) ?? "") + letter);
  assert.equal(letters.get(array), "QSE");
  for (let index = 1; index <= 60; index++) assert.equal(letters.get(subjob(array, index)), "SE", `records of subjob ${index}`);
});

test("100,000 subjobs wait in one object, are listed, deleted in part and as a whole", () => {
  complex.qmgr("set server scheduling=False");
  const array = submit("-J", "1-100000", "--", "/bin/true");
  const listing = complex.must("qstat", ["-t", array]);
  assert.equal(listing.split("\n").length, 100_004);
  assert.match(listing, new RegExp(`^${number(array)}\\[100000\\]\\S*\\s+STDIN .* Q workq`, "m"));
  assert.equal(run("qdel", `${number(array)}[2-99999]`), "0");
  assert.equal(complex.job(array)["array_indices_remaining"], "1,100000");
  assert.match(complex.must("qselect", ["-T", "-s", "Q"]), new RegExp(`^${number(array)}\\[1\\].*\\n${number(array)}\\[100000\\].*\\n$`));
  assert.equal(run("qdel", array), "0");
  const job = complex.job(array);
  assert.deepEqual([job.job_state, job["substate"], job["array_state_count"]], ["F", 91, "Queued:0 Running:0 Exiting:0 Expired:100000"]);
  assert.ok(existsSync(join(complex.pbsHome, "server_priv", "partita.db")));
  complex.qmgr("set server scheduling=True");
});
