// Full disks under a job's output: written data is not lost, the owner is told, and the host continues to work.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { chmodSync, chownSync, existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, afterEach, before, test } from "node:test";
import { systemUsers } from "#support/passwd.ts";
import { type Complex, startComplex, until } from "../complex.ts";

const USER = "pbsuser1";
const user = systemUsers().userByName(USER);
const KB = 1024;

/** Mounts a small separate disk at the directory until the end of the test. */
function mount(directory: string, options: string): boolean {
  const done = spawnSync("mount", ["-t", "tmpfs", "-o", `${options},mode=1777`, "none", directory]).status === 0;
  if (done) mounted.push(directory);
  return done;
}
const mounted: string[] = [];
function unmount(): void {
  for (const directory of mounted.splice(0)) spawnSync("umount", ["-l", directory]);
}

const skip = process.getuid?.() !== 0 ? "needs root" : user === null ? `needs the user ${USER} (scripts/test-host.sh makes him)` : false;

let complex: Complex;
let mails = "";

before(async () => {
  if (skip !== false) return;
  complex = await startComplex({ mode: "system" });
  const site = join(complex.home, "..");
  mails = join(site, "mails");
  mkdirSync(mails);
  // The mailer runs without root's rights.
  chmodSync(mails, 0o777);
  writeFileSync(join(site, "sendmail"), `#!/bin/sh\ncat > ${mails}/.$$ && mv ${mails}/.$$ ${mails}/$$\n`, { mode: 0o755 });
  complex.qmgr("set server job_history_enable = True", `set server mailer = ${site}/sendmail`);
});
afterEach(unmount);
after(async () => {
  unmount();
  await complex?.stop();
});

const spool = (): string => join(complex.pbsHome, "spool");
const undelivered = (): string => join(complex.pbsHome, "undelivered");
/** A job of the user by a script, its output joined. */
function submit(text: string, output: string): string {
  const script = join(complex.work(USER), "job.sh");
  writeFileSync(script, `${text}\n`);
  return complex.submit(["-j", "oe", "-o", output, script], { as: USER });
}
async function goesOn(): Promise<void> {
  const output = join(complex.work(USER), "fine.out");
  const job = await complex.untilJob(submit("echo fine", output), "F");
  assert.deepEqual([job.Exit_status, job["Stageout_status"], readFileSync(output, "utf8")], [0, 1, "fine\n"]);
}
const mailAbout = (id: string): Promise<string> =>
  until(`a mail about ${id}`, () =>
    readdirSync(mails)
      .filter((name) => !name.startsWith("."))
      .map((name) => readFileSync(join(mails, name), "utf8"))
      .find((text) => text.includes(`PBS Job Id: ${id}\n`) && text.includes("Post job file processing error")),
  );

test("a job that fills spool: it is told so, what there was room for is delivered, and the next job finds room", { skip }, async (t) => {
  if (!mount(spool(), `size=${128 * KB}`)) return t.skip("no file system can be mounted here");
  const work = complex.work(USER);
  const id = submit(`head -c 1000000 /dev/zero; echo "status $?" > ${work}/told`, join(work, "much.out"));
  await complex.untilJob(id, "F");
  assert.equal(readFileSync(join(work, "told"), "utf8"), "status 1\n");
  const { size, uid } = statSync(join(work, "much.out"));
  assert.ok(size > 0 && size <= 128 * KB, String(size));
  assert.equal(uid, user?.uid);
  assert.deepEqual(readdirSync(spool()), []);
  await goesOn();
});

test("a destination that is full: the output is in undelivered, on whatever disk that is; comment and mail say so", { skip }, async (t) => {
  const full = join(complex.work(USER), "full");
  mkdirSync(full);
  if (!mount(full, `size=${64 * KB}`) || !mount(spool(), `size=${512 * KB}`)) return t.skip("no file system can be mounted here");
  writeFileSync(join(full, "old"), Buffer.alloc(60 * KB));
  chownSync(join(full, "old"), user?.uid ?? 0, user?.gid ?? 0);
  const id = submit("head -c 20000 /dev/zero", join(full, "new.out"));
  const { Exit_status, Stageout_status, comment = "" } = await complex.untilJob(id, "F");
  assert.deepEqual([Exit_status, Stageout_status], [0, 0]);
  const kept = join(undelivered(), `${id}.OU`);
  const told = `Unable to copy file ${join(spool(), `${id}.OU`)} to ${join(full, "new.out")}: ENOSPC: no space left on device, write; it is in ${kept}`;
  assert.ok(comment.endsWith(` and finished; ${told}`), comment);
  assert.match(
    await mailAbout(id),
    new RegExp(`Post job file processing error; job ${id.replaceAll(".", "\\.")} on host .*\nUnable to copy file `),
  );
  assert.deepEqual([statSync(kept).size, statSync(kept).uid, statSync(kept).mode & 0o777], [20_000, user?.uid, 0o600]);
  assert.equal(existsSync(join(full, "new.out")), false, "half a file is none");
  assert.deepEqual(readdirSync(spool()), []);
  await goesOn();
});

test("no room in undelivered either: the output stays in spool", { skip }, async (t) => {
  const full = join(complex.work(USER), "full2");
  mkdirSync(full);
  for (const [directory, kb] of [
    [full, 4],
    [spool(), 512],
    [undelivered(), 4],
  ] as const)
    if (!mount(directory, `size=${kb * KB}`)) return t.skip("no file system can be mounted here");
  const id = submit("head -c 20000 /dev/zero", join(full, "new.out"));
  const { Exit_status, Stageout_status, comment = "" } = await complex.untilJob(id, "F");
  assert.deepEqual([Exit_status, Stageout_status], [0, 0]);
  const kept = join(spool(), `${id}.OU`);
  assert.ok(comment.includes(`; it stays in ${kept}: ENOSPC: no space left on device`), comment);
  assert.equal(statSync(kept).size, 20_000);
  assert.deepEqual(readdirSync(undelivered()), []);
  await goesOn();
});

test("no file can be made in spool: the job goes back to its queue, and runs when there is room", { skip }, async (t) => {
  if (!mount(spool(), "nr_inodes=1")) return t.skip("no file system can be mounted here");
  const output = join(complex.work(USER), "late.out");
  const id = submit("echo late", output);
  await until("it was tried and sent back", () => (complex.job(id).run_count ?? 0) >= 2);
  assert.match(complex.log("mom_logs"), new RegExp(`;${id.replaceAll(".", "\\.")};ENOSPC: no space left on device, open '.*/spool/`));
  unmount();
  // Meanwhile there may have been too many attempts.
  await until("it is over", () => {
    const { job_state } = complex.job(id);
    if (job_state === "H") complex.must("qrls", ["-h", "s", id]);
    return job_state === "F";
  });
  assert.deepEqual([complex.job(id).Exit_status, readFileSync(output, "utf8")], [0, "late\n"]);
});
