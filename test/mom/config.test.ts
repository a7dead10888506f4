import assert from "node:assert/strict";
import { test } from "node:test";
import { DEFAULT_SETTINGS, parseMomConfig } from "#mom/config.ts";
import { parseMomOptions } from "#mom/options.ts";
import { signalNumber } from "#mom/signals.ts";
import { mergeVnodeDefs, parseVnodeDefs, reportedVnodes } from "#mom/vnode-def.ts";

test("directives of mom_priv/config that are obeyed", () => {
  const rows: readonly (readonly [line: string, set: object])[] = [
    ["$cputmult 1.5", { cputmult: 1.5 }],
    ["$wallmult 0.5", { wallmult: 0.5 }],
    ["$enforce mem", { enforce_mem: true }],
    ["$enforce delta_weightup 0.7", { weight_up: 0.7 }],
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

test("a wrong value is an error; what is unknown or without effect yet is noted", () => {
  const outcome = parseMomConfig("$cputmult fast\n$nonsense 1\n$action terminate 10 !x\n$enforce cpuburst\n$tmpdir rel\n$constructor 1\n");
  assert.deepEqual(outcome.errors, ["config line 1: $cputmult must be a number", "config line 5: $tmpdir must be an absolute path"]);
  assert.deepEqual(outcome.notes, [
    "config line 2: $nonsense is not known and ignored",
    "config line 3: $action has no effect yet",
    "config line 4: $enforce cpuburst has no effect yet",
    "config line 6: $constructor is not known and ignored",
  ]);
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
