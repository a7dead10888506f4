import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { actionCommand, parseAction } from "#mom/config/action-script.ts";
import { DEFAULT_SETTINGS, parseMomConfig } from "#mom/config/config.ts";
import { parseMomOptions } from "#mom/config/options.ts";
import { mergeVnodeDefs, parseVnodeDefs, reportedVnodes } from "#mom/config/vnode-def.ts";
import { NO_CPU_ENFORCEMENT } from "#mom/job/limits.ts";
import { signalNumber } from "#mom/job/signals.ts";
import { readSettings } from "#mom/shell/setup.ts";

test("directives of mom_priv/config that are obeyed", () => {
  const rows: readonly (readonly [line: string, set: object])[] = [
    ["$cputmult 1.5", { cputmult: 1.5 }],
    ["$wallmult 0.5", { wallmult: 0.5 }],
    ["$enforce mem", { enforce_mem: true }],
    ["$enforce delta_weightup 0.7", { weight_up: 0.7 }],
    ["$enforce cpuburst", { enforce_cpu: { ...NO_CPU_ENFORCEMENT, burst: true } }],
    ["$enforce cpuaverage\n$enforce average_trialperiod 60", { enforce_cpu: { ...NO_CPU_ENFORCEMENT, average: true, trialperiod_s: 60 } }],
    ["$enforce cpuaverage\n$enforce !cpuaverage", {}],
    ["$enforce delta_cpufactor 2", { enforce_cpu: { ...NO_CPU_ENFORCEMENT, delta_cpufactor: 2 } }],
    ["$ideal_load 2.5\n$max_load 3.5 suspend", { load: { ideal: 2.5, max: 3.5 }, suspend_on_load: true }],
    ["$kbd_idle 600", { kbd_idle: { idle_wait_s: 600, min_use_s: 10, poll_s: 1 } }],
    ["$kbd_idle 600 20 5", { kbd_idle: { idle_wait_s: 600, min_use_s: 20, poll_s: 5 } }],
    ["$restrict_user on", { restrict_user: { on: true, exceptions: [], maxsysid: 999 } }],
    ["$restrict_user_exceptions alice, bob", { restrict_user: { on: false, exceptions: ["alice", "bob"], maxsysid: 999 } }],
    ["$restrict_user_maxsysid 1999", { restrict_user: { on: false, exceptions: [], maxsysid: 1999 } }],
    ["$checkpoint_path /ckpt/", { checkpoint_path: "/ckpt" }],
    ["$action checkpoint 60 !/s/c %jobid x", { actions: { checkpoint: { timeout_s: 60, words: ["/s/c", "%jobid", "x"] } } }],
    ["$action terminate 0 ! /s/t", { actions: { terminate: { timeout_s: 0, words: ["/s/t"] } } }],
    ["$action multinodebusy 0 requeue", { multinode_requeue: true }],
    ["$restart_transmogrify True", { restart_transmogrify: true }],
    ["$clienthost far.example.org", {}],
    ["$logevent 0x1ff", { logevent: 511 }],
    ["$min_check_poll 5", { min_check_poll_s: 5 }],
    ["$suspendsig 20", { suspend_signal: 20, resume_signal: 18 }],
    ["$suspendsig SIGTSTP 25", { suspend_signal: 20, resume_signal: 25 }],
    ["$tmpdir /scratch/", { tmpdir: "/scratch" }],
    ["$jobdir_root /work shared", { jobdir_root: "/work" }],
    ["$usecp h:/a /b", { usecp: [["h", "/a", "/b"]] }],
    ["$vnodedef_additive false", { vnodedef_additive: false }],
    ["$prologalarm 00:01:00", { prologalarm_s: 60 }],
    ["$reject_root_scripts True", { reject_root_scripts: true }],
    ["licences 5", { site: { licences: "5" } }],
    ["# $cputmult 9", {}],
  ];
  for (const [line, set] of rows)
    assert.deepEqual(parseMomConfig(`${line}\n`), { settings: { ...DEFAULT_SETTINGS, ...set }, notes: [], errors: [] }, line);
});

test("a wrong value is an error that names its line", () => {
  const rows: readonly (readonly [line: string, error: string])[] = [
    ["$cputmult fast", "$cputmult must be a number"],
    ["$wallmult 0", "$wallmult must be larger than 0"],
    ["$restart_transmogrify x", "$restart_transmogrify must be True or False"],
    ["$tmpdir rel", "$tmpdir must be an absolute path"],
    ["$checkpoint_path rel", "$checkpoint_path must be an absolute path"],
    ["$enforce everything", "$enforce everything cannot be enforced"],
    ["$enforce !delta_cpufactor", "$enforce !delta_cpufactor cannot be enforced"],
    ["$enforce average_cpufactor much", "$enforce average_cpufactor must be a number"],
    ["$max_load 3 stop", "$max_load must be a number, perhaps with suspend after it"],
    ["$ideal_load -1", "$ideal_load must be a number"],
    ["$kbd_idle soon", "$kbd_idle must be IDLE_WAIT [MIN_USE POLL], in seconds"],
    ["$restrict_user perhaps", "$restrict_user must be True or False"],
    ["$restrict_user_exceptions ,", "$restrict_user_exceptions must be 1 to 1000 names of users"],
    ["$restrict_user_maxsysid x", "$restrict_user_maxsysid must be a user's number"],
    ["$restart_background x", "$restart_background must be True or False"],
    ["$max_poll_downtime soon", "$max_poll_downtime must be a number of seconds"],
    ["$action checkpoint soon !/x", "$action must be ACTION TIMEOUT !SCRIPT ARGUMENTS, with a timeout in seconds"],
    ["$action freeze 10 !/x", "$action action must be one of terminate, checkpoint, checkpoint_abort, restart, multinodebusy"],
    ["$action terminate 10 !x", "$action terminate needs the absolute path of a script after !"],
    ["$action terminate 10 /x", "$action terminate needs the absolute path of a script after !"],
    ["$action terminate 10 !/x %job", "$action %job is none of %jobid %sid %uid %gid %login %owner %auxid %path"],
    ["$action multinodebusy 10 !/x", "$action multinodebusy knows only requeue"],
  ];
  for (const [line, error] of rows) assert.deepEqual(parseMomConfig(`# c\n${line}\n`).errors, [`config line 2: ${error}`], line);
  assert.deepEqual(parseMomConfig("$ideal_load 3\n$max_load 2\n").errors, ["config: $ideal_load must not be larger than $max_load"]);
  assert.deepEqual(parseMomConfig("$min_check_poll 9\n$max_check_poll 3\n").errors, [
    "config: $min_check_poll must not be larger than $max_check_poll",
  ]);
});

test("a mom does not start where sandboxes cannot be made", () => {
  const directory = mkdtempSync(join(tmpdir(), "partita-config-"));
  const path = join(directory, "config");
  const root = join(directory, "root");
  try {
    writeFileSync(path, `$jobdir_root ${root}\n`);
    const problem = new RegExp(`^MomStartError: ${path}: \\$jobdir_root ${root} is not a directory$`);
    assert.throws(() => readSettings(path, assert.fail), problem);
    writeFileSync(root, "");
    assert.throws(() => readSettings(path, assert.fail), problem);
    rmSync(root);
    mkdirSync(root);
    assert.equal(readSettings(path, assert.fail).jobdir_root, root);
  } finally {
    rmSync(directory, { recursive: true });
  }
});

test("how long the hosts of a job are waited for", () => {
  const { settings, notes, errors } = parseMomConfig("$sister_join_job_alarm 5\n$job_launch_delay 1:00\n$max_poll_downtime 7\n");
  assert.deepEqual([settings.patience, notes, errors], [{ join_s: 5, launch_s: 60, downtime_s: 7 }, [], []]);
  assert.deepEqual(parseMomConfig("$max_poll_downtime 0\n$job_launch_delay soon\n").errors, [
    "config line 1: $max_poll_downtime must be a number of seconds",
    "config line 2: $job_launch_delay must be a number of seconds",
  ]);
  assert.deepEqual(parseMomConfig("").settings.patience, {});
});

test("what is unknown or has no effect is noted and stops nothing", () => {
  const outcome = parseMomConfig("$nonsense 1\n$enforce complexmem\n$constructor 1\n$restart_background False\n$ideal_load 2\n");
  assert.deepEqual(outcome.errors, []);
  assert.deepEqual(outcome.notes, [
    "config line 1: $nonsense is not known and ignored",
    "config line 2: $enforce complexmem has no effect: memory is counted by process and control group on this system",
    "config line 3: $constructor is not known and ignored",
    "config line 4: $restart_background has no effect: a restart script always runs in the background, as the job's top process",
    "config: $ideal_load has no effect without $max_load",
  ]);
});

test("words of an $action line become arguments one by one, whatever they hold", () => {
  const line = parseAction("checkpoint 5 !/s/c %jobid %sid %uid %gid %login %owner %auxid %path ;rm".split(" "));
  assert.equal(line.kind, "script");
  if (line.kind !== "script") return;
  const facts = { jobid: "1[2].svr", sid: 7, uid: 8, gid: 9, login: "a b", owner: "a@h", auxid: "", path: "/p" };
  assert.deepEqual(actionCommand(line.script, facts), ["/s/c", "1[2].svr", "7", "8", "9", "a b", "a@h", "", "/p", ";rm"]);
});

const HOST = { host: "n1", arch: "linux", ncpus: 2, mem_kb: 1000 };

test("vnode definitions: typed values, later lines win, and what the mom reports of them", () => {
  const defs = parseVnodeDefs(
    "$configversion 2\n# c\nva[0]: resources_available.ncpus=4\nva[0]: resources_available.mem = 2GB\nva[0]: sharing = force_excl\nva[0]: resources_available.lic = 3\n",
  );
  assert.deepEqual(reportedVnodes(HOST, defs), [
    {
      name: "n1",
      attrs: {
        sharing: "default_shared",
        pcpus: 2,
        in_multivnode_host: 1,
        resources_available: { arch: "linux", host: "n1", mem: "1000kb", ncpus: 2, vnode: "n1" },
      },
    },
    {
      name: "va[0]",
      attrs: {
        sharing: "force_excl",
        pcpus: 2,
        in_multivnode_host: 1,
        resources_available: { arch: "linux", host: "n1", vnode: "va[0]", ncpus: 4, mem: "2gb", lic: 3 },
      },
    },
  ]);
});

test("a definition of the natural vnode sets more than the machine has, and makes no second vnode", () => {
  const defs = mergeVnodeDefs([
    parseVnodeDefs("$configversion 2\nn1: resources_available.ncpus = 8\n"),
    parseVnodeDefs("$configversion 2\nn1: resources_available.ncpus = 16\n"),
  ]);
  const [natural, ...others] = reportedVnodes(HOST, defs);
  assert.deepEqual(
    [natural?.attrs["resources_available"], natural?.attrs["in_multivnode_host"], others],
    [{ arch: "linux", host: "n1", mem: "1000kb", ncpus: 16, vnode: "n1" }, undefined, []],
  );
});

test("what is no vnode definition is refused with its line", () => {
  const rows: readonly (readonly [text: string, message: RegExp])[] = [
    ["n1: sharing = default_excl\n", /first line must be \$configversion 2/],
    ["", /first line/],
    ["$configversion 2\nn1 sharing\n", /line 2: not VNODE/],
    ["$configversion 2\nn1: nonsense = 1\n", /line 2: Undefined attribute/],
    ["$configversion 2\n\nn1: resources_available.ncpus = lots\n", /line 3: ncpus cannot be "lots"/],
    ["$configversion 2\nn1: sharing = wild\n", /line 2: /],
  ];
  for (const [text, message] of rows) assert.throws(() => parseVnodeDefs(text), message, text);
});

test("the command line of pbs_mom", () => {
  const rows: readonly (readonly [argv: readonly string[], expected: object | string])[] = [
    [[], { kill_found: false, foreground: false }],
    [["-p"], { kill_found: false }],
    [["-rN"], { kill_found: true, foreground: true }],
    [["-d", "/h", "-M15012"], { home: "/h", port: 15012 }],
    [["-s", "insert", "a", "b"], { vnodes: ["insert", "a", "b"] }],
    [["-s", "list"], { vnodes: ["list"] }],
    [["--version"], { version: true }],
    [["-p", "-r"], "-p and -r exclude one another"],
    [["-Z"], "invalid option -- 'Z'"],
    [["-c"], "option requires an argument -- 'c'"],
    [["-L", "rel"], "-L must be an absolute path"],
    [["-n", "99"], "invalid nice value 99"],
    [["-M", "x"], "-M must be a number, not x"],
    [["extra"], "unexpected argument extra"],
  ];
  for (const [argv, expected] of rows) {
    const outcome = parseMomOptions(argv);
    if (typeof expected === "string") assert.equal(outcome, expected, String(argv));
    else assert.partialDeepStrictEqual(outcome, expected, String(argv));
  }
});

test("signal names with and without SIG, numbers, and what is none", () => {
  for (const [text, number] of [
    ["TERM", 15],
    ["sigterm", 15],
    ["SIGKILL", 9],
    ["0", 0],
    ["64", 64],
    ["65", null],
    ["SIG", null],
    ["", null],
    ["-9", null],
    ["suspend", null],
  ] as const) {
    assert.equal(signalNumber(text), number, text);
  }
});
