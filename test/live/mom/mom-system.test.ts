// System mode: jobs run as their owner, with exactly the owner's groups and rights, and files that users plant in shared
// directories have no effect.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import {
  chmodSync,
  chownSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import type { MomJob } from "#protocol/mom-link.ts";
import { systemUsers } from "#support/passwd.ts";
import { type Bed, HOST, makeBed } from "../mom-bed.ts";
import { lackOfUsers } from "../needed-users.ts";

const USER = "pbsuser1";
const OTHER = "pbsuser2";
const users = systemUsers();
const user = users.userByName(USER);
const other = users.userByName(OTHER);
const skip = lackOfUsers(USER, OTHER);

let bed: Bed;
before(async () => {
  if (skip !== false) return;
  bed = await makeBed({ mode: "system", user: USER });
  await bed.launch();
});
after(() => bed?.close());

const uid = user?.uid ?? 0;
const gid = user?.gid ?? 0;
const out = (job: MomJob): string => readFileSync(join(bed.work, `${job.id}.out`), "utf8");
const err = (job: MomJob): string => readFileSync(join(bed.work, `${job.id}.err`), "utf8");
const sh = (script: string): { readonly argv: readonly string[] } => ({ argv: ["/bin/sh", "-c", script] });

test("a job has its owner's uid, gid and supplementary groups, no capabilities, and a session of its own", { skip }, async () => {
  const job = bed.job(
    sh(
      "id -u; id -g; id -G; grep -E '^(Cap(Inh|Prm|Eff|Amb)|SigIgn|SigBlk)' /proc/self/status; ps -o sid= -p $$; echo $$; ls -l /proc/self/fd | grep -v -E 'spool|pipe|/dev/null|/proc|total'; true",
    ),
  );
  bed.start(job);
  const { session_id } = await bed.started(job);
  assert.equal((await bed.obit(job)).exit_status, 0);
  const lines = out(job)
    .trim()
    .split("\n")
    .map((line) => line.trim());
  assert.deepEqual(lines.slice(0, 2), [String(uid), String(gid)]);
  assert.deepEqual(lines[2]?.split(" ").sort(), spawnSync("id", ["-G", USER], { encoding: "utf8" }).stdout.trim().split(" ").sort());
  for (const line of lines.slice(3, 9)) assert.match(line, /^(Cap...|SigIgn|SigBlk):\s0+$/);
  assert.deepEqual(lines.slice(9), [String(session_id), String(session_id)]);
});

test("TMPDIR and the whole environment reach the job: nothing is dropped as for a set-id program", { skip }, async () => {
  const program = bed.job({ argv: ["/usr/bin/env"] }, { attrs: { Variable_List: ["LD_LIBRARY_PATH=/x", "MALLOC_CHECK_=3"] } });
  const script = bed.job({ script: "stat -c '%a %U' $TMPDIR\n" });
  bed.start(program, script);
  await bed.obit(program);
  await bed.obit(script);
  for (const entry of [
    `TMPDIR=${join(bed.work, "../tmp")}/pbs.${program.id}`,
    "LD_LIBRARY_PATH=/x",
    "MALLOC_CHECK_=3",
    `HOME=${user?.home}`,
    `USER=${USER}`,
  ]) {
    assert.ok(out(program).split("\n").includes(entry), entry);
  }
  assert.equal(out(script), `700 ${USER}\n`);
});

test("no program runs as root with what the user says about its libraries", { skip }, async () => {
  const trace = join(bed.work, "trace");
  mkdirSync(trace);
  chmodSync(trace, 0o777);
  // The dynamic linker writes a file for each program that has these variables, as the user of the program.
  const Variable_List = ["LD_DEBUG=files", `LD_DEBUG_OUTPUT=${trace}/ld`];
  const job = bed.job({ argv: ["/usr/bin/env"] }, { attrs: { Variable_List, Resource_List: { ncpus: 1, nice: 1, file: "10mb" } } });
  bed.start(job);
  assert.equal((await bed.obit(job)).exit_status, 0);
  const files = readdirSync(trace);
  assert.equal(files.length, 1, "the job's own program alone");
  assert.equal(statSync(join(trace, files[0] as string)).uid, uid);
  for (const entry of Variable_List) assert.ok(out(job).split("\n").includes(entry), entry);
});

test("the soft limit on open files is the usual one", { skip }, async () => {
  const job = bed.job(sh("ulimit -Sn"));
  bed.start(job);
  await bed.obit(job);
  assert.equal(out(job), "1024\n");
});

test("output files belong to the owner, with the mode of his umask", { skip }, async () => {
  const tight = bed.job(sh("echo x; umask"));
  const open = bed.job({ script: "echo x; umask\n" }, { attrs: { umask: 22 } });
  bed.start(tight, open);
  for (const [job, mode, umask] of [
    [tight, 0o600, "0077"],
    [open, 0o644, "0022"],
  ] as const) {
    await bed.obit(job);
    const stat = statSync(join(bed.work, `${job.id}.out`));
    assert.deepEqual([stat.uid, stat.gid, stat.mode & 0o777, out(job)], [uid, gid, mode, `x\n${umask}\n`]);
  }
});

test("a script is readable for its owner alone and runs under a login shell", { skip }, async () => {
  const job = bed.job({ script: "stat -c '%a %U' $0; cat /proc/$PPID/cmdline | tr '\\0' ' '\n" });
  bed.start(job);
  await bed.obit(job);
  assert.equal(out(job), `700 ${USER}\n${user?.shell} -l `);
});

test("what cannot be executed by the owner is told on stderr, with 254", { skip }, async () => {
  const closed = join(bed.work, "closed");
  writeFileSync(closed, "#!/bin/sh\n", { mode: 0o700 });
  const rows = [
    [closed, "Permission denied"],
    ["/no/such/program", "No such file or directory"],
    ["/root/x", "Permission denied"],
  ] as const;
  const jobs = rows.map(([path]) => bed.job({ argv: [path] }));
  bed.start(...jobs);
  for (const [at, job] of jobs.entries()) {
    assert.equal((await bed.obit(job)).exit_status, 254);
    assert.equal(err(job), `pbs_mom, exec of ${rows[at]?.[0]} failed with error: ${rows[at]?.[1]}\n`);
  }
});

test("what another user has put in the way of TMPDIRs holds no job up: each has one with a random part, closed to others", {
  skip,
}, async () => {
  const [made, linked] = [bed.job(sh("echo $TMPDIR; stat -c '%a %U' $TMPDIR")), bed.job(sh("echo $TMPDIR"))];
  const planted = [made, linked].map((job) => join(bed.work, "../tmp", `pbs.${job.id}`)) as [string, string];
  mkdirSync(planted[0], { mode: 0o777 });
  chownSync(planted[0], other?.uid ?? 0, other?.gid ?? 0);
  symlinkSync("/etc", planted[1]);
  bed.start(made, linked);
  for (const job of [made, linked]) assert.equal((await bed.obit(job)).exit_status, 0);
  const [tmpdir = "", mode] = out(made).trim().split("\n");
  assert.match(tmpdir.slice(planted[0].length), /^\.[0-9a-f]{8}$/);
  assert.equal(mode, `700 ${USER}`);
  assert.match(out(linked).trim().slice(planted[1].length), /^\.[0-9a-f]{8}$/);
  await bed.until("both removed", () => !existsSync(tmpdir) && !existsSync(out(linked).trim()));
  assert.equal(statSync(planted[0]).uid, other?.uid);
  assert.equal(lstatSync(planted[1]).isSymbolicLink(), true);
});

test("output is delivered with the owner's rights: not where he may not write, and not through his links to what is not his", {
  skip,
}, async () => {
  const closed = join(bed.work, "roots");
  mkdirSync(closed, { mode: 0o755 });
  const secret = join(bed.work, "secret");
  writeFileSync(secret, "root's\n", { mode: 0o644 });
  const link = join(bed.work, "link");
  symlinkSync(secret, link);
  const nowhere = bed.job(sh("echo a"), { attrs: { Output_Path: `${HOST}:${closed}/o` } });
  const through = bed.job(sh("echo b"), { attrs: { Output_Path: `${HOST}:${link}` } });
  const direct = bed.job(sh("echo c"), { attrs: { Keep_Files: "do", Output_Path: `${HOST}:${closed}/o` } });
  bed.start(nowhere, through, direct);
  for (const job of [nowhere, through]) {
    const obit = await bed.obit(job);
    assert.deepEqual([obit.exit_status, obit.stageout_status], [0, 0]);
    assert.equal(statSync(`${bed.home}/undelivered/${job.id}.OU`).uid, uid);
  }
  assert.equal((await bed.obit(direct)).exit_status < 0, true);
  assert.equal(readFileSync(secret, "utf8"), "root's\n");
  assert.equal(existsSync(join(closed, "o")), false);
});

test("a link or file that another user put in spool under the job's name is removed, not written through", { skip }, async () => {
  const secret = join(bed.work, "secret2");
  writeFileSync(secret, "root's\n", { mode: 0o666 });
  chmodSync(secret, 0o666);
  const linked = bed.job(sh("echo mine"));
  const taken = bed.job(sh("echo mine"));
  symlinkSync(secret, `${bed.home}/spool/${linked.id}.OU`);
  writeFileSync(`${bed.home}/spool/${taken.id}.OU`, "theirs\n", { mode: 0o666 });
  chownSync(`${bed.home}/spool/${taken.id}.OU`, other?.uid ?? 0, other?.gid ?? 0);
  bed.start(linked, taken);
  await bed.obit(linked);
  await bed.obit(taken);
  assert.deepEqual([out(linked), out(taken), readFileSync(secret, "utf8")], ["mine\n", "mine\n", "root's\n"]);
});

test("the owner's own tricks with his output file while the job runs gain him nothing", { skip }, async () => {
  const secret = join(bed.work, "secret3");
  writeFileSync(secret, "root's\n", { mode: 0o600 });
  const job = bed.job({
    script: `rm ${bed.home}/spool/$PBS_JOBID.OU; ln -s ${secret} ${bed.home}/spool/$PBS_JOBID.OU; ln -s ${secret} $TMPDIR/x\n`,
  });
  const limited = bed.job(
    { script: `rm ${bed.home}/spool/$PBS_JOBID.ER; ln -s ${secret} ${bed.home}/spool/$PBS_JOBID.ER; sleep 1000\n` },
    { attrs: { Resource_List: { ncpus: 1, walltime: 1 } } },
  );
  bed.start(job, limited);
  await bed.obit(job);
  await bed.obit(limited);
  assert.deepEqual([readFileSync(secret, "utf8"), statSync(secret).uid, statSync(secret).mode & 0o777], ["root's\n", 0, 0o600]);
  // Only regular files are delivered.
  assert.equal(lstatSync(join(bed.work, `${job.id}.out`), { throwIfNoEntry: false }), undefined);
});

test("an unknown user gives -10", { skip }, async () => {
  const job = bed.job({ argv: ["/bin/true"] }, { user: "no-such-user-here" });
  bed.start(job);
  assert.equal((await bed.obit(job)).exit_status, -10);
});

test("another user cannot signal the starter, whose processes bear his uid only after they are his", { skip }, () => {
  const outcome = spawnSync("setpriv", [`--reuid=${uid}`, `--regid=${gid}`, "--init-groups", "kill", "-9", String(bed.starter_pid)], {
    encoding: "utf8",
  });
  assert.notEqual(outcome.status, 0);
  assert.match(readFileSync(`/proc/${bed.starter_pid}/status`, "latin1"), /^Uid:\s0\s0\s0\s0$/m);
});

test("sandbox=PRIVATE: a directory under the home for the time of the job", { skip }, async () => {
  const job = bed.job({ script: "pwd; echo $PBS_JOBDIR; stat -c '%a %U' .\n" }, { attrs: { sandbox: "PRIVATE" } });
  bed.start(job);
  assert.equal((await bed.started(job)).jobdir, `${user?.home}/pbs.${job.id}.x8z`);
  await bed.obit(job);
  assert.equal(out(job), `${user?.home}/pbs.${job.id}.x8z\n${user?.home}/pbs.${job.id}.x8z\n700 ${USER}\n`);
  assert.equal(existsSync(`${user?.home}/pbs.${job.id}.x8z`), false);
});
