// What users' jobs and programs of a site inherit from the process that starts the daemons, and what users plant in shared
// directories. As root in system mode.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import {
  chmodSync,
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { after, before, test } from "node:test";
import { type Complex, startComplex, until } from "../complex.ts";

const isRoot = process.geteuid?.() === 0;

let complex: Complex;
let site = "";

before(async () => {
  complex = await startComplex({ mode: isRoot ? "system" : "user" });
  site = join(complex.home, "..");
  complex.qmgr("set server job_history_enable = True", "set server acl_roots = root@*");
});
after(() => complex?.stop());

/** Restarts the daemons by a shell that has a file open as descriptors 3 to 300, except every seventh. */
function startWithOpenFiles(path: string): void {
  complex.halt();
  const file = openSync(path, "w", 0o600);
  const stdio = Array.from({ length: 301 }, (_, fd) => (fd < 3 ? "pipe" : fd % 7 === 0 ? "ignore" : file));
  const init = join(dirname(dirname(complex.command("qstat"))), "libexec/pbs_init.d");
  const words = isRoot ? [init, "start"] : [complex.command("partita"), "start", "--home", complex.home];
  const ran = spawnSync(words[0] as string, words.slice(1), { env: complex.env(), encoding: "utf8", stdio: stdio as never });
  closeSync(file);
  assert.equal(ran.status, 0, `${ran.stdout}${ran.stderr}`);
}

/** Numbers under which a process has the file open. */
function openIn(pid: number | null, path: string): string[] {
  assert.notEqual(pid, null);
  return readdirSync(`/proc/${pid}/fd`).filter((fd) => {
    try {
      return readlinkSync(`/proc/${pid}/fd/${fd}`) === path;
    } catch {
      return false;
    }
  });
}

const childrenOf = (pid: number): number[] =>
  readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((each) => {
      try {
        const stat = readFileSync(`/proc/${each}/stat`, "latin1");
        return Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[1]) === pid;
      } catch {
        return false;
      }
    });

test("open files of whoever starts the daemons reach no daemon, no job, no hook and no mail program", async () => {
  const secret = join(site, "secret");
  startWithOpenFiles(secret);
  const shown = join(site, "shown");
  mkdirSync(shown);
  chmodSync(shown, 0o777);
  writeFileSync(join(site, "mail"), `#!/bin/sh\ncat >/dev/null\nls -l /proc/$$/fd > ${shown}/.mail; mv ${shown}/.mail ${shown}/mail\n`, {
    mode: 0o755,
  });
  const hook = join(site, "look.py");
  writeFileSync(
    hook,
    `import os\nopen(${JSON.stringify(join(shown, "hook"))}, "w").write(os.popen("ls -l /proc/%d/fd" % os.getpid()).read())\n`,
  );
  complex.qmgr(
    `set server mailer = ${site}/mail`,
    "create hook look",
    "set hook look event = queuejob",
    `import hook look application/x-python default ${hook}`,
  );
  const id = complex.submit(["-j", "oe", "-o", join(shown, "job"), "-m", "e", "--", "/bin/sh", "-c", "ls -l /proc/$$/fd"]);
  await complex.untilJob(id, "F");
  complex.qmgr("delete hook look");
  for (const name of ["job", "mail", "hook"]) {
    await until(name, () => existsSync(join(shown, name)));
    const text = readFileSync(join(shown, name), "utf8");
    assert.match(text, / 0 -> /, name);
    assert.doesNotMatch(text, /secret/, name);
  }
  const job = readFileSync(join(shown, "job"), "utf8");
  assert.deepEqual(
    [...job.matchAll(/ (\d+) -> /g)].map(([, fd]) => fd),
    ["0", "1", "2"],
    "a job has its own three and nothing else",
  );
  const mom = complex.pid("mom") ?? 0;
  const daemons = [
    complex.pid("server"),
    complex.pid("comm"),
    complex.schedPid("default"),
    mom,
    complex.pid("starter"),
    ...childrenOf(mom),
  ];
  assert.deepEqual(
    daemons.flatMap((pid) => openIn(pid, secret)),
    [],
  );
});

test("directories that another user has made under the names of coming TMPDIRs hold no job up: it has one with a random part", async () => {
  const told = (id: string): string => readFileSync(join(shownAgain, `${id.split(".")[0]}`), "utf8").trim();
  const shownAgain = join(site, "told");
  mkdirSync(shownAgain);
  const job = (): string =>
    complex.submit(["-e", "/dev/null", "-o", "/dev/null", "--", "/bin/sh", "-c", `echo $TMPDIR > ${shownAgain}/\${PBS_JOBID%%.*}`]);
  const first = job();
  await complex.untilJob(first, "F");
  const tmpdir = told(first);
  assert.ok(tmpdir.endsWith(`/pbs.${first}`), tmpdir);
  const coming = [1, 2, 3].map((n) => join(dirname(tmpdir), `pbs.${first.replace(/^\d+/, (number) => String(Number(number) + n))}`));
  // In user mode there is no other user, so a file that is not a directory takes the place of another user's directory.
  const words = isRoot ? ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "mkdir"] : ["touch"];
  const planted = spawnSync(words[0] as string, [...words.slice(1), ...coming], { encoding: "utf8" });
  assert.equal(planted.status, 0, planted.stderr);
  const second = job();
  await complex.untilJob(second, "F");
  assert.match(told(second), new RegExp(`^${coming[0]?.replaceAll(".", "\\.")}\\.[0-9a-f]{8}$`));
  await until("its directory is removed", () => !existsSync(told(second)));
  assert.equal(complex.job(second).Exit_status, 0);
  assert.deepEqual(readdirSync(dirname(tmpdir)).sort(), coming.map((path) => path.slice(dirname(tmpdir).length + 1)).sort());
});

test("another user finds no ids and owners of jobs in the server's log, and tracejob says so", {
  skip: isRoot ? false : "needs root",
}, async () => {
  const id = complex.submit(["-e", "/dev/null", "-o", "/dev/null", "--", "/bin/true"]);
  await complex.untilJob(id, "F");
  const logs = join(complex.pbsHome, "server_logs");
  assert.deepEqual(
    readdirSync(logs).map((name) => statSync(join(logs, name)).mode & 0o777),
    [0o640],
  );
  const told = complex.run("tracejob", [id], { as: "daemon" });
  assert.match(told.stderr, new RegExp(`^${logs}/\\d{8}: Permission denied\n`));
  assert.doesNotMatch(told.stdout, /owner = /);
  assert.match(complex.must("tracejob", [id]), /owner = root@/);
});
