// Jobs that try to outlive their end, and limits that the kernel enforces, with and without control groups. As root: jobs run
// as pbsuser1.

import assert from "node:assert/strict";
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { openGroups } from "#mom/host/cgroup.ts";
import { processVariable, readProcesses } from "#mom/host/proc-table.ts";
import type { MomJob } from "#protocol/mom-link.ts";
import { systemUsers } from "#support/passwd.ts";
import { type Bed, makeBed } from "../mom-bed.ts";

const USER = "pbsuser1";
const isRoot = process.getuid?.() === 0;
const skipUser = isRoot && systemUsers().userByName(USER) === null ? `needs the user ${USER} (scripts/test-host.sh adds it)` : undefined;
const probe = mkdtempSync(join(tmpdir(), "partita-groups-"));
after(() => rmSync(probe, { recursive: true, force: true }));
const groups = isRoot ? openGroups(probe, () => undefined) : null;
groups?.dissolve();
const skipGroups = skipUser ?? (groups === null ? "needs root and writable control groups" : undefined);

const PYTHON = "/usr/bin/python3";
const skipPython = existsSync(PYTHON) ? undefined : "needs python3";

/** Leaves session, environment and parent behind. Writes its pid to `mark` so that the test knows that it ran. */
const DAEMON = `
import os, sys, time
mark = sys.argv[1]
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        if len(sys.argv) == 2: os.execve(sys.executable, [sys.executable, __file__, mark, "clean"], {})
        open(mark, "w").write(str(os.getpid()))
        time.sleep(1000)
    os._exit(0)
for _ in range(200):
    if os.path.exists(mark) and os.path.getsize(mark) > 0: break
    time.sleep(0.05)
`;
const BOMB = `
import os, time
for _ in range(300):
    try:
        if os.fork() == 0:
            os.setsid()
            for _ in range(3):
                try:
                    if os.fork() == 0: time.sleep(1000)
                except OSError: pass
            time.sleep(1000)
    except OSError: pass
`;

/** Daemons with their own sessions and no environment that ignore SIGTERM and keep multiplying. */
const HYDRA = `
import os, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
if len(sys.argv) == 1:
    for _ in range(40):
        if os.fork() == 0:
            os.setsid()
            os.execve(sys.executable, [sys.executable, __file__, "head"], {"PBS_JOBID": ""})
    while True: time.sleep(1000)
made = 0
while True:
    try:
        if made < 25 and os.fork() == 0:
            os.setsid()
            made = 24
        made += 1
    except OSError: pass
    time.sleep(0.02 if made < 25 else 0.5)
`;

/** Processes of the test's job anywhere on the host; those of its user if it has a separate user. */
function outsiders(job: MomJob): number {
  return readProcesses().filter(({ pid, state }) => state !== "Z" && processVariable(pid, "PBS_JOBID") === job.id).length;
}

const out = (bed: Bed, job: MomJob): string => readFileSync(join(bed.work, `${job.id}.out`), "utf8");
const err = (bed: Bed, job: MomJob): string => readFileSync(join(bed.work, `${job.id}.err`), "utf8");

/** All descendants of the starter, including the top processes of its own jobs. */
function below(starter: number): number {
  const all = readProcesses();
  const found = new Set([starter]);
  for (let size = 0; size !== found.size; ) {
    size = found.size;
    for (const info of all) if (found.has(info.ppid) && info.state !== "Z") found.add(info.pid);
  }
  return found.size - 1;
}

for (const [name, config, skip] of [
  ["with control groups", "$cgroups all\n$cgroups_pids_max 400\n", skipGroups],
  ["without control groups", "$cgroups off\n", skipUser],
] as const) {
  describe(name, { skip: skip ?? skipPython ?? false }, () => {
    let bed: Bed;
    before(async () => {
      bed = await makeBed({ mode: isRoot ? "system" : "user", ...(isRoot ? { user: USER } : {}), config });
      await bed.launch();
    });
    after(() => bed?.close());

    test("a daemon that forgets session, parent and environment ends with its job", async () => {
      writeFileSync(join(bed.work, "daemon.py"), DAEMON, { mode: 0o644 });
      const mark = join(bed.work, "mark");
      const job = bed.job({ argv: [PYTHON, join(bed.work, "daemon.py"), mark] });
      bed.start(job);
      const obit = await bed.obit(job);
      assert.equal(obit.exit_status, 0);
      const pid = Number(readFileSync(mark, "utf8"));
      assert.ok(pid > 1);
      assert.equal(existsSync(`/proc/${pid}`), false);
      assert.equal(below(bed.starter_pid), 0);
    });

    test("a job that has forked thousands in sessions of their own is deleted whole", async () => {
      writeFileSync(join(bed.work, "bomb.py"), `${BOMB}time.sleep(1000)\n`, { mode: 0o644 });
      const job = bed.job({ argv: [PYTHON, join(bed.work, "bomb.py")] }, { kill_delay_s: 0 });
      bed.start(job);
      await bed.started(job);
      await bed.until("a crowd", () => below(bed.starter_pid) > 200);
      bed.send("mom-terminate", { job: job.id, run_count: job.run_count, why: "delete", kill_delay_s: 0 });
      assert.equal((await bed.obit(job)).exit_status, 265);
      await bed.until("nothing left", () => below(bed.starter_pid) === 0);
    });

    test("a thousand daemons that ignore SIGTERM and make new ones while they die end with their job, and the host stays usable", async () => {
      writeFileSync(join(bed.work, "hydra.py"), HYDRA, { mode: 0o644 });
      const job = bed.job({ argv: [PYTHON, join(bed.work, "hydra.py")] }, { kill_delay_s: 1 });
      bed.start(job);
      await bed.started(job);
      await bed.until("a crowd", () => below(bed.starter_pid) > 100);
      bed.send("mom-terminate", { job: job.id, run_count: job.run_count, why: "delete", kill_delay_s: 1 });
      const { exit_status } = await bed.obit(job);
      assert.ok([265, 271].includes(exit_status), String(exit_status));
      // Without control groups, a process created while its parent dies is found when the mom next looks.
      await bed.until("nothing left", () => below(bed.starter_pid) === 0 && outsiders(job) === 0);
      const next = bed.job({ argv: ["/bin/true"] });
      bed.start(next);
      assert.equal((await bed.obit(next)).exit_status, 0);
    });

    test("a job that fills its disk ends by itself, its output is kept or told as undelivered, and the next one runs", async () => {
      const full = bed.job(
        { argv: ["/bin/sh", "-c", "head -c 64m /dev/zero; echo end >&2"] },
        { attrs: { Resource_List: { ncpus: 1, file: "8mb" } } },
      );
      bed.start(full);
      const { exit_status } = await bed.obit(full);
      // SIGXFSZ ends head; the shell continues and reports it.
      assert.equal(exit_status, 0);
      assert.match(err(bed, full), /^end$/m);
      assert.equal(readFileSync(join(bed.work, `${full.id}.out`)).length, 8 << 20);
      const next = bed.job({ argv: ["/bin/true"] });
      bed.start(next);
      assert.equal((await bed.obit(next)).exit_status, 0);
    });
  });
}

describe("limits the kernel keeps", { skip: skipGroups ?? skipPython ?? false }, () => {
  let bed: Bed;
  before(async () => {
    bed = await makeBed({ mode: "system", user: USER, config: "$cgroups all\n$cgroups_pids_max 20\n" });
    await bed.launch();
  });
  after(() => bed?.close());
  const python = (code: string): { readonly argv: readonly string[] } => ({ argv: [PYTHON, "-c", code] });

  test("mem: the job ends with the code and words of PBS", {
    skip: groups?.missing.includes("memory") ? "no memory controller" : false,
  }, async () => {
    const job = bed.job(python("x = bytearray(300 << 20)"), { attrs: { Resource_List: { ncpus: 1, mem: "64mb" } } });
    bed.start(job);
    const obit = await bed.obit(job);
    assert.equal(obit.exit_status, -27);
    assert.match(err(bed, job), /^=>> PBS: job killed: mem \d+kb exceeded limit 65536kb$/m);
    assert.ok(Number.parseInt(String(obit.used["mem"]), 10) >= 65_536);
    const fits = bed.job(python("x = bytearray(20 << 20)"), { attrs: { Resource_List: { ncpus: 1, mem: "200mb" } } });
    bed.start(fits);
    const fitted = await bed.obit(fits);
    assert.equal(fitted.exit_status, 0);
    const peak_kb = Number.parseInt(String(fitted.used["mem"]), 10);
    assert.ok(peak_kb >= 20 * 1024 && peak_kb <= 200 * 1024, `its peak: ${peak_kb} kB`);
  });

  test("ncpus: cpus of its own, given back at its end", {
    skip: groups?.missing.includes("cpuset") ? "no cpuset controller" : false,
  }, async () => {
    for (let round = 0; round < 3; round++) {
      const job = bed.job(python("import os; print(len(os.sched_getaffinity(0)))"), { attrs: { Resource_List: { ncpus: 1 } } });
      bed.start(job);
      assert.equal((await bed.obit(job)).exit_status, 0);
      assert.equal(out(bed, job), "1\n");
    }
  });

  test("processes: no more than the limit", { skip: groups?.missing.includes("pids") ? "no pids controller" : false }, async () => {
    const code =
      "import os, time\nn = 0\nfor _ in range(100):\n  try:\n    if os.fork() == 0: time.sleep(1000)\n    n += 1\n  except OSError: break\nprint(n)";
    const job = bed.job(python(code));
    bed.start(job);
    assert.equal((await bed.obit(job)).exit_status, 0);
    const made = Number(out(bed, job));
    assert.ok(made > 5 && made < 20, `${made} were made`);
  });

  test("cput counts those nobody waited for", async () => {
    const code =
      "import os, time\nif os.fork() == 0:\n  os.setsid()\n  end = time.process_time() + 1.5\n  while time.process_time() < end: pass\n  open('done', 'w').close()\n  os._exit(0)\nwhile not os.path.exists('done'): time.sleep(0.05)";
    const job = bed.job({ argv: ["/bin/sh", "-c", `cd ${bed.work} && rm -f done && trap '' CHLD && exec ${PYTHON} -c "$0"`, code] });
    bed.start(job);
    const obit = await bed.obit(job);
    assert.equal(obit.exit_status, 0);
    assert.ok(Number(obit.used["cput"]) >= 1, JSON.stringify(obit.used));
  });

  test("a starter that is killed leaves nothing of its jobs", async () => {
    const job = bed.job({ argv: ["/bin/sleep", "1000"] });
    bed.start(job);
    const { session_id } = await bed.started(job);
    process.kill(bed.starter_pid, "SIGKILL");
    await bed.obit(job);
    await bed.until("the job's process gone", () => !existsSync(`/proc/${session_id}`));
  });
});

test("a task's start does not meet the limits of its job; the task does", { skip: skipGroups ?? false }, async () => {
  const mine = openGroups(probe, (text) => assert.fail(text));
  assert.ok(mine !== null);
  const limits = { memory_bytes: 64 * 1024 * 1024, cpus: null, ncpus: 1, pids_max: null };
  const children: ChildProcess[] = [];
  const start = (): number => {
    const child = spawn("/bin/sleep", ["1000"], { stdio: "ignore" });
    children.push(child);
    return child.pid as number;
  };
  const top = (text: string): string | undefined => /\/partita\.[0-9a-f]{12}\/7\.s$/.exec(text)?.[0];
  /** our groups by their controllers */
  const groupsOf = (of: string): string[] =>
    readFileSync(`/proc/${of}/cgroup`, "utf8")
      .split("\n")
      .flatMap((line) => (top(line) === undefined ? [] : [line.split(":")[1] as string]));
  const isLimiting = (controllers: string): boolean => /\b(memory|cpu)\b/.test(controllers);
  try {
    const first = mine.within("7.s", limits, start);
    mine.leave();
    let own: string[] = [];
    /** the group in which version 2 limits memory */
    let lifted: string | null = null;
    const second = mine.within("7.s", limits, () => {
      own = groupsOf("thread-self");
      const inside = readFileSync("/proc/thread-self/cgroup", "utf8")
        .split("\n")
        .find((line) => line.startsWith("0::") && top(line));
      const limit = `/sys/fs/cgroup${inside?.slice(3)}/memory.max`;
      if (existsSync(limit)) lifted = readFileSync(limit, "utf8").trim();
      return start();
    });
    mine.bringIn(second);
    mine.leave();
    assert.ok(own.length > 0);
    assert.deepEqual(own.filter(isLimiting), []);
    if (lifted !== null) assert.equal(lifted, "max");
    assert.deepEqual(groupsOf(String(second)), groupsOf(String(first)));
    assert.deepEqual(groupsOf("thread-self"), []);
  } finally {
    mine.leave();
    mine.kill("7.s");
    await Promise.all(children.map((child) => once(child, "exit")));
    while (mine.close("7.s") === null && mine.jobs().length > 0) await new Promise((resolve) => setTimeout(resolve, 10));
    mine.dissolve();
  }
});

/**
 * The groups of a mom at the given path: `start` runs a job and prints its pid, `again` removes groups that it believes to be
 * of an earlier starter.
 */
const OTHER_MOM = `
import { spawn } from "node:child_process";
const [at, what, cgroup, lost] = process.argv.slice(2);
const groups = (await import(cgroup)).openGroups(at, (text) => { throw new Error(text); });
const limits = { memory_bytes: null, cpus: null, ncpus: null, pids_max: null };
if (what === "start") {
  const child = groups.within("1.s", limits, () => spawn("/bin/sleep", ["1000"], { stdio: "ignore", detached: true }));
  groups.leave();
  child.unref();
  console.log(child.pid);
} else {
  (await import(lost)).settleLostRuns({ boot: "b", runs: new Map(), last: new Map() }, "b", groups);
  groups.dissolve();
}
process.exit(0);
`;

test("moms with equal paths in different mount namespaces: neither kills the other's jobs", { skip: skipNamespaces() }, () => {
  const [path, ...homes] = ["at", "one", "two"].map((name) => join(probe, name)) as [string, string, string];
  for (const each of [path, ...homes]) mkdirSync(each);
  const program = join(probe, "other-mom.ts");
  writeFileSync(program, OTHER_MOM);
  const library = (name: string): string => new URL(`../../../src/mom/${name}.ts`, import.meta.url).href;
  const mom = (home: string, what: string): string => {
    const words = [process.execPath, ...process.execArgv, program, path, what, library("host/cgroup"), library("starter/lost-runs")];
    const script = 'mount --bind "$0" "$1" && shift && exec "$@"';
    const ran = spawnSync("unshare", ["-m", "sh", "-c", script, home, path, ...words], { encoding: "utf8" });
    assert.equal(ran.status, 0, ran.stderr);
    return ran.stdout.trim();
  };
  const pid = Number(mom(homes[0] as string, "start"));
  const lives = (): boolean => existsSync(`/proc/${pid}`) && !readFileSync(`/proc/${pid}/stat`, "latin1").includes(") Z ");
  try {
    mom(homes[1] as string, "again");
    assert.ok(lives(), "the other mom has killed the job");
    mom(homes[0] as string, "again");
    assert.equal(lives(), false, "its own mom knows it after a restart");
  } finally {
    if (lives()) process.kill(pid, "SIGKILL");
    for (const home of homes) mom(home, "again");
  }
});

function skipNamespaces(): string | false {
  if (groups === null) return "needs root and writable control groups";
  return spawnSync("unshare", ["-m", "true"]).status === 0 ? false : "needs the right to make mount namespaces";
}
