// Jobs over several hosts in system mode: everything that a job has on its hosts belongs to the job's owner and to nobody else.

import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { after, before, test } from "node:test";
import { systemUsers } from "#support/passwd.ts";
import { becoming, type Complex, startComplex, until } from "../complex.ts";
import { addHost, type Host } from "../hosts-bed.ts";
import { HOST } from "../mom-bed.ts";
import { lackOfUsers } from "../needed-users.ts";

const [USER, OTHER] = ["pbsuser1", "pbsuser2"];
const users = systemUsers();
const user = users.userByName(USER);
const skip = lackOfUsers(USER, OTHER);
// The name of a host must resolve; this one does everywhere.
const BETA = "127.0.0.2";

let complex: Complex;
let beta: Host;

before(async () => {
  if (skip !== false) return;
  complex = await startComplex({ mode: "system" });
  complex.qmgr(`set node ${HOST} resources_available.ncpus = 4`, "set server job_history_enable = true");
  beta = await addHost(complex, BETA);
});
after(async () => {
  await beta?.close();
  await complex?.stop();
});

/** A job of the user on both hosts, by a script. */
function submit(name: string, text: string): string {
  const work = complex.work(USER);
  const script = join(work, `${name}.sh`);
  writeFileSync(script, `export PATH="${dirname(complex.command("qsub"))}:$PATH"\ncd "$PBS_O_WORKDIR"\n${text}\n`);
  const select = `select=1:ncpus=1:host=${HOST}+1:ncpus=1:host=${BETA}`;
  return complex.submit(["-l", select, "-l", "place=scatter", "-o", `${name}.out`, "-e", `${name}.err`, script], { as: USER });
}
const file = (name: string): string => join(complex.work(USER), name);
const lines = (name: string): string[] => (existsSync(file(name)) ? readFileSync(file(name), "utf8").trim().split("\n") : []);
const stateOfProcess = (pid: number): string => {
  try {
    return /^State:\s+(\S)/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1] ?? "";
  } catch {
    return "";
  }
};
const commandOf = (pid: number): string => readFileSync(`/proc/${pid}/comm`, "latin1").trim();
const left = (id: string): string[] =>
  [complex.pbsHome, beta.home].flatMap((home) =>
    ["aux", "spool", "mom_priv/jobs"].flatMap((name) => readdirSync(join(home, name)).filter((entry) => entry.startsWith(id))),
  );

test("tasks on every host are the owner's, with his groups, no capabilities, his own TMPDIR; what they write arrives as his", {
  skip,
}, async () => {
  const words =
    'echo "$PBS_NODENUM $(id -u) $(id -G) $(stat -c %a-%U "$TMPDIR") $(wc -l < "$PBS_NODEFILE") $(grep -c "^Cap[IPE].*:.0*$" /proc/self/status)"';
  const id = submit("who", `pbsdsh -s -- sh -c '${words}; touch "$TMPDIR/x"'\numask`);
  await complex.untilJob(id, "F");
  const groups = spawnSync("id", ["-G", USER], { encoding: "utf8" }).stdout.trim();
  const expected = [0, 1].map((node) => `${node} ${user?.uid} ${groups} 700-${USER} 2 3`);
  assert.deepEqual(lines("who.out"), [...expected, "0077"], readFileSync(file("who.err"), "utf8"));
  assert.deepEqual([statSync(file("who.out")).uid, statSync(file("who.out")).mode & 0o777], [user?.uid, 0o600]);
  await until("nothing of it is left", () => left(id).length === 0);
});

test("another user gets nothing of a job over several hosts, on none of them", { skip }, async () => {
  const id = submit("closed", "pbsdsh -o -- sh -c 'echo secret; exec sleep 1000'\ntouch closed.said\nsleep 1000");
  await until("it runs", () => existsSync(file("closed.said")));
  const spool = join(beta.home, "spool", `${id}.OU`);
  await until("the task's output on the sister", () => existsSync(spool) && statSync(spool).size > 0);
  assert.deepEqual([statSync(spool).uid, statSync(spool).mode & 0o777], [user?.uid, 0o600]);
  const asOther = (env: Readonly<Record<string, string>>, ...words: readonly string[]) => {
    const [first, ...rest] = [...becoming(OTHER), "env", ...Object.entries(env).map(([name, value]) => `${name}=${value}`), ...words] as [
      string,
      ...string[],
    ];
    return spawnSync(first, rest, { encoding: "utf8", cwd: "/" });
  };
  const sitting = spawn(becoming(OTHER)[0] as string, [...becoming(OTHER).slice(1), "sleep", "1000"], { stdio: "ignore", detached: true });
  try {
    await until("a process of another user", () => (sitting.pid ?? 0) > 0);
    const { PBS_CONF_FILE = "" } = complex.env();
    for (const home of [complex.pbsHome, beta.home]) {
      const env = { PBS_CONF_FILE, PBS_JOBID: id, PBS_JOBCOOKIE: "0".repeat(32), PBS_NODEFILE: join(home, "aux", id) };
      const dsh = asOther(env, complex.command("pbsdsh"), "--", "true");
      assert.deepEqual([dsh.status, /does not run on/.test(dsh.stderr)], [1, true], dsh.stderr);
      const attach = asOther(env, complex.command("pbs_attach"), "-j", id, "-p", String(sitting.pid));
      assert.notEqual(attach.status, 0, attach.stdout);
      assert.notEqual(asOther(env, "cat", join(home, "spool", `${id}.OU`)).status, 0);
    }
    complex.must("qdel", [id], { as: USER });
    await complex.untilJob(id, "F");
    assert.ok(existsSync(`/proc/${sitting.pid}`), "who has no part in the job is left alone");
  } finally {
    sitting.kill("SIGKILL");
  }
  await until("nothing of it is left", () => left(id).length === 0);
});

test("suspended, a job stands still on all hosts; at its end nothing of it runs on any", { skip }, async () => {
  // Tasks begin in the home directory.
  const pids_file = file("stop.pids");
  const task = `echo $$ >> ${pids_file}; setsid sleep 987654 & echo $! >> ${pids_file}; wait`;
  const id = submit(
    "stop",
    `touch ${pids_file}; pbsdsh -o -- sh -c '${task}'\nwhile [ "$(wc -l < ${pids_file})" -lt 4 ]; do sleep 0.1; done\ntouch stop.said\nsleep 1000`,
  );
  await until("it runs", () => existsSync(file("stop.said")));
  const pids = lines("stop.pids").map(Number);
  assert.equal(pids.length, 4);
  for (const pid of pids) assert.equal(statSync(`/proc/${pid}`).uid, user?.uid);
  complex.must("qsig", ["-s", "suspend", id]);
  await complex.untilJob(id, "S");
  const shells = pids.filter((pid) => commandOf(pid) === "sh");
  assert.equal(shells.length, 2);
  for (const pid of shells) await until(`${pid} stands still`, () => stateOfProcess(pid) === "T");
  complex.must("qsig", ["-s", "resume", id]);
  await complex.untilJob(id, "R");
  for (const pid of shells) await until(`${pid} goes on`, () => stateOfProcess(pid) === "S");
  complex.must("qdel", [id], { as: USER });
  await complex.untilJob(id, "F");
  for (const pid of pids) await until(`${pid} is gone`, () => ["", "Z"].includes(stateOfProcess(pid)));
});
