// The effects of mom_priv/config: checkpoints, a host in use, enforced cpus, wrong lines. In user mode, and as root with jobs
// of pbsuser1.

import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { systemUsers } from "#support/passwd.ts";
import { type Complex, startComplex, until } from "../complex.ts";

const USER = "pbsuser1";
const noRoot =
  process.getuid?.() !== 0
    ? "needs root"
    : systemUsers().userByName(USER) === null
      ? `needs the user ${USER} (scripts/test-host.sh makes it)`
      : false;

/** Counts from a number until told to stop. Arguments: directory, first number. */
const COUNTER = `#!/bin/sh
n=$2
while [ ! -e "$1/stop" ]; do n=$((n+1)); echo $n > "$1/count.new"; mv "$1/count.new" "$1/count"; sleep 0.05; done
echo "counted from $2 as $(id -un)"
`;
const SAVE = '#!/bin/sh\nset -e\ntest ! -e "$2/refuse"\ncp "$2/count" "$1/count"\necho "$3 $4" > "$1/job"\n';
const RESTART =
  '#!/bin/sh\ntest ! -e "$2/lost" || exit 3\nexec setpriv --reuid="$3" --regid="$4" --keep-groups "$2/counter" "$2" "$(cat "$1/count")"\n';

for (const mode of ["user", "system"] as const) {
  describe(`${mode} mode`, { skip: mode === "system" ? noRoot : false }, () => {
    let complex: Complex;
    let work = "";
    const as = mode === "system" ? { as: USER } : {};
    const config = (...lines: readonly string[]): void =>
      writeFileSync(join(complex.pbsHome, "mom_priv", "config"), lines.map((line) => `${line}\n`).join(""));
    const momLog = (): string => complex.log("mom_logs");
    const occurrences = (text: string): number => momLog().split(text).length - 1;
    /** Rewrites the configuration and makes the mom read it. */
    const reread = async (...lines: readonly string[]): Promise<void> => {
      const said = "re-read configuration";
      const times = occurrences(said);
      config(...lines);
      process.kill(complex.pid("mom") as number, "SIGHUP");
      await until(said, () => occurrences(said) > times);
    };
    const count = (): number => (existsSync(join(work, "count")) ? Number(readFileSync(join(work, "count"), "utf8")) : 0);
    const accounting = (id: string): string =>
      complex
        .log("server_priv/accounting")
        .split("\n")
        .filter((line) => line.split(";")[2] === id)
        .map((line) => line.split(";")[1])
        .join("");

    before(async () => {
      complex = await startComplex({ mode });
      complex.qmgr("set server job_history_enable = True");
      work = complex.work(as.as);
      const site = join(complex.home, "..");
      writeFileSync(join(work, "counter"), COUNTER, { mode: 0o755 });
      writeFileSync(join(site, "save"), SAVE, { mode: 0o755 });
      // The kernel names a process after the executed file, not after a link to it.
      writeFileSync(join(site, "go-on"), RESTART, { mode: 0o755 });
      symlinkSync("go-on", join(site, "restart"));
      await reread(
        `$action checkpoint_abort 60 !${site}/save %path ${work} %jobid %sid`,
        `$action restart 0 !${site}/restart %path ${work} %uid %gid`,
      );
    });
    after(() => complex?.stop());

    test("qhold saves a running job and ends it; qrls lets it go on where it was, with its own rights and output", async () => {
      const id = complex.submit(["-r", "n", "-j", "oe", "-o", join(work, "out"), "--", join(work, "counter"), work, "0"], as);
      await complex.untilJob(id, "R");
      await until("it counts", () => count() > 3);
      complex.must("qhold", [id]);
      await complex.untilJob(id, "H");
      const saved = Number(readFileSync(join(complex.pbsHome, "checkpoint", `${id}.CK`, "count"), "utf8"));
      assert.ok(saved > 3);
      assert.match(readFileSync(join(complex.pbsHome, "checkpoint", `${id}.CK`, "job"), "utf8"), new RegExp(`^${id} \\d+\n$`));
      complex.must("qrls", [id]);
      await until("it counts on", () => count() > saved + 3);
      writeFileSync(join(work, "stop"), "");
      const { Exit_status, run_count } = await complex.untilJob(id, "F");
      assert.deepEqual([Exit_status, run_count], [0, 2]);
      assert.match(
        readFileSync(join(work, "out"), "utf8"),
        new RegExp(`^counted from ${saved} as ${mode === "system" ? USER : "\\S+"}\n$`),
      );
      assert.equal(accounting(id), "QSCTE");
      assert.deepEqual(readdirSync(join(complex.pbsHome, "checkpoint")), []);
    });

    test("a restart script that fails: the job is run from its beginning, and goes on with its output", async () => {
      for (const file of ["stop", "count", "out"]) rmSync(join(work, file), { force: true });
      const id = complex.submit(["-j", "oe", "-o", join(work, "out"), "--", join(work, "counter"), work, "0"], as);
      await complex.untilJob(id, "R");
      await until("it counts", () => count() > 3);
      complex.must("qhold", [id]);
      await complex.untilJob(id, "H");
      writeFileSync(join(work, "lost"), "");
      rmSync(join(work, "count"));
      complex.must("qrls", [id]);
      await until("it counts again", () => count() > 0);
      rmSync(join(work, "lost"));
      writeFileSync(join(work, "stop"), "");
      const { Exit_status, run_count } = await complex.untilJob(id, "F");
      assert.deepEqual([Exit_status, run_count], [0, 3]);
      assert.match(readFileSync(join(work, "out"), "utf8"), /^counted from 0 as /);
      assert.equal(accounting(id), "QSCTRSE");
      assert.ok(momLog().includes("restart failed: exit=3; the job is run from its beginning"));
      assert.deepEqual(readdirSync(join(complex.pbsHome, "checkpoint")), []);
    });

    test("preempted by checkpoint a job makes room, and goes on from there when the room is free again", async () => {
      for (const file of ["stop", "count", "out"]) rmSync(join(work, file), { force: true });
      complex.qmgr(
        "set sched default preempt_order = C",
        "create queue express queue_type=e,enabled=t,started=t,Priority=200",
        `set node ${complex.must("pbsnodes", ["-av", "-F", "dsv"]).match(/^Name=([^|]+)/)?.[1]} resources_available.ncpus = 1`,
      );
      const victim = complex.submit(["-j", "oe", "-o", join(work, "out"), "--", join(work, "counter"), work, "0"], as);
      await complex.untilJob(victim, "R");
      await until("it counts", () => count() > 3);
      const urgent = complex.submit(["-q", "express", "--", "/bin/sh", "-c", `while [ ! -e ${work}/enough ]; do sleep 0.1; done`], as);
      await complex.untilJob(urgent, "R");
      assert.equal(complex.job(victim).job_state, "Q");
      const saved = Number(readFileSync(join(complex.pbsHome, "checkpoint", `${victim}.CK`, "count"), "utf8"));
      writeFileSync(join(work, "enough"), "");
      await complex.untilJob(urgent, "F");
      await until("it counts on", () => count() > saved + 3);
      writeFileSync(join(work, "stop"), "");
      assert.equal((await complex.untilJob(victim, "F")).Exit_status, 0);
      assert.match(readFileSync(join(work, "out"), "utf8"), new RegExp(`^counted from ${saved} as `));
      assert.equal(accounting(victim), "QSCTE");
    });

    test("a job that cannot be saved runs on with its hold", async () => {
      writeFileSync(join(work, "refuse"), "");
      const id = complex.submit(["--", "/bin/sleep", "1000"], as);
      await complex.untilJob(id, "R");
      complex.must("qhold", [id]);
      await until("the script has failed", () => momLog().includes(`${id};checkpoint_abort failed: exit=1`));
      const { job_state, Hold_Types } = complex.job(id);
      assert.deepEqual([job_state, Hold_Types], ["R", "u"]);
      complex.must("qdel", ["-W", "force", id]);
    });

    test("a wrong line leaves the old configuration in force, and stops a mom that starts with it; both name file and line", async () => {
      const file = join(complex.pbsHome, "mom_priv", "config");
      const text = `${file}: config line 2: $cputmult must be a number`;
      config("# site", "$cputmult fast");
      process.kill(complex.pid("mom") as number, "SIGHUP");
      await until("told", () => momLog().includes(`configuration kept as it was: ${text}`));
      const pid = complex.pid("mom") as number;
      process.kill(pid, "SIGINT");
      await until("the mom has ended", () => complex.pid("mom") !== pid);
      const refused = complex.run("pbs_mom", []);
      assert.deepEqual([refused.status, refused.stderr], [1, `pbs_mom: ${text}\n`]);
      config("$nonsense 1");
      complex.start();
      await until("noted", () => momLog().includes("config line 1: $nonsense is not known and ignored"));
    });

    test("a host above its maximal load is busy and gets no job until it is not", async () => {
      await reread("$max_load 0");
      const node = (): string => complex.must("pbsnodes", ["-a"]);
      await until("busy", () => /^ +state = busy$/m.test(node()));
      const id = complex.submit(["--", "/bin/true"], as);
      await until("a reason is given", () => complex.job(id).comment !== undefined);
      assert.equal(complex.job(id).job_state, "Q");
      await reread("$ideal_load 1000", "$max_load 1000");
      await until("free", () => /^ +state = free$/m.test(node()));
      // A change of a node's state starts no cycle (as in PBS), so the test requests one.
      complex.qmgr("set server scheduling = True");
      await complex.untilJob(id, "F");
    });

    test("with suspend a job stands still meanwhile, in state U", async () => {
      const id = complex.submit(["--", "/bin/sleep", "1000"], as);
      await complex.untilJob(id, "R");
      await reread("$max_load 0 suspend");
      await complex.untilJob(id, "U");
      const { session_id } = complex.job(id) as { readonly session_id?: number };
      assert.match(readFileSync(`/proc/${session_id}/stat`, "latin1"), /\) T /);
      await reread("$max_load 1000 suspend");
      await complex.untilJob(id, "R");
      complex.must("qdel", ["-W", "force", id]);
    });

    test("$enforce cpuburst and cpuaverage end a job that takes more cpu than it asked for", async () => {
      const burn = [
        "-l",
        "select=1:ncpus=1",
        "-e",
        join(work, "burn.err"),
        "-o",
        "/dev/null",
        "--",
        "/bin/sh",
        "-c",
        "while :; do :; done",
      ];
      for (const [how, lines, status, words] of [
        [
          "burst",
          ["$enforce cpuburst", "$enforce delta_cpufactor 0.02", "$enforce delta_percent_over 0"],
          -24,
          /^=>> PBS: job killed: ncpus \d+\.\d exceeded limit 1 \(burst\)$/m,
        ],
        [
          "sum",
          ["$enforce cpuaverage", "$enforce average_trialperiod 1", "$enforce average_cpufactor 0.02", "$enforce average_percent_over 0"],
          -25,
          /^=>> PBS: job killed: ncpus \d+\.\d\d exceeded limit 1 \(sum\)$/m,
        ],
      ] as const) {
        await reread(...lines);
        const id = complex.submit(burn, as);
        const job = await complex.untilJob(id, "F");
        assert.equal(job.Exit_status, status, how);
        assert.match(job.comment ?? "", new RegExp(` and exceeded resource ncpus \\(${how}\\)$`));
        assert.match(readFileSync(join(work, "burn.err"), "utf8"), words);
      }
    });
  });
}
