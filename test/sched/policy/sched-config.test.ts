// The files of sched_priv and the command line: text => settings and messages.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { parseResourceGroup } from "#model/resource-group.ts";
import { createUniverse } from "#sched/mirror/mirror.ts";
import { notObeyed } from "#sched/policy/not-obeyed.ts";
import { messageText, parseSchedConfig } from "#sched/policy/sched-config.ts";
import { SCHED_CONFIG_KEYS } from "#sched/policy/sched-config-keys.ts";
import { dedicatedNow, parseDedicatedTime } from "#sched/shapes/dedicated-time.ts";
import { parseHolidays, primeStatus } from "#sched/shapes/holidays.ts";
import { UTC } from "#sched/shapes/local-time.ts";
import { POLICY_DEFAULT } from "#sched/shapes/policy.ts";
import { parseOptions, USAGE } from "#sched/shell/options.ts";
import { snapshotOf } from "../world.ts";

const read = (text: string) => {
  const { config, messages } = parseSchedConfig(text);
  return { ...config, messages: messages.map(messageText) };
};

test("sched_config: the empty file gives the defaults", () => {
  const { prime, non_prime, messages } = read("");
  assert.deepEqual(prime, POLICY_DEFAULT);
  assert.deepEqual(non_prime, POLICY_DEFAULT);
  assert.deepEqual(messages, []);
});

test("sched_config: the shipped file means the defaults and is told nothing about", () => {
  const { config, messages } = parseSchedConfig(readFileSync(new URL("../../../etc/pbs_sched_config", import.meta.url), "utf8"));
  assert.deepEqual(config.prime, POLICY_DEFAULT);
  assert.deepEqual(config.non_prime, POLICY_DEFAULT);
  assert.deepEqual(messages.map(messageText), []);
});

test("sched_config: each key's default, written out, is told nothing about", () => {
  for (const { name, kind, default: value } of SCHED_CONFIG_KEYS) {
    if (value === "") continue;
    assert.deepEqual(read(`${name}: ${kind === "boolean" ? value : `"${value}"`}\n`).messages, [], name);
  }
});

test("sched_config: prime, non_prime, all, none; the last line of a name wins", () => {
  const { prime, non_prime } = read("by_queue: False prime\nround_robin: True\nround_robin: false NON_PRIME\nstrict_ordering: True none\n");
  assert.deepEqual([prime.by_queue, non_prime.by_queue], [false, true]);
  assert.deepEqual([prime.round_robin, non_prime.round_robin], [true, false]);
  assert.equal(prime.strict_ordering, false);
});

test("sched_config: list keys accumulate and replace the default", () => {
  const { prime, non_prime } = read(
    'job_sort_key: "walltime HIGH"\njob_sort_key: "ncpus LOW" PRIME\nnode_sort_key: "ncpus HIGH unused" ALL\n',
  );
  assert.deepEqual(prime.job_sort_key, [
    { key: "walltime", high: true },
    { key: "ncpus", high: false },
  ]);
  assert.deepEqual(non_prime.job_sort_key, [{ key: "walltime", high: true }]);
  assert.deepEqual(prime.node_sort_key, [{ key: "ncpus", high: true, amount: "unused" }]);
});

test("sched_config: resources, prefixes, numbers, modules", () => {
  const { prime, modules, unknown_shares } = read(
    'resources: "ncpus, mem, lic"\nresource_unset_infinite: "mem,vmem"\ndedicated_prefix: special\nmax_job_check: 50\nunknown_shares: 10\nmodules: limits resources\n',
  );
  assert.deepEqual([...prime.resources], ["ncpus", "mem", "lic"]);
  assert.deepEqual([...prime.resource_unset_infinite], ["mem", "vmem"]);
  assert.equal(prime.dedicated_prefix, "special");
  assert.equal(prime.max_job_check, 50);
  assert.equal(unknown_shares, 10);
  assert.deepEqual(modules, ["limits", "resources"]);
});

test("sched_config: modules of a site by path, options of modules in the chain", () => {
  const { modules, site_modules, module_options, messages } = read(
    'modules: limits, time ./mine.mjs /site/resources.js\nmine.words: a b PRIME\nmine.words: "last one: wins"\nlimits.x.y: 1\ntime.empty:\n',
  );
  assert.deepEqual(modules, ["limits", "time", "mine", "resources"]);
  assert.deepEqual(site_modules, [
    { name: "mine", path: "./mine.mjs" },
    { name: "resources", path: "/site/resources.js" },
  ]);
  assert.deepEqual([...(module_options.get("mine") ?? [])], [["words", "last one: wins"]]);
  assert.deepEqual([...(module_options.get("time") ?? [])], [["empty", ""]]);
  assert.deepEqual(messages, ["Error reading line 4: limits.x.y: no module limits.x in the chain"]);
});

test("sched_config: the matcher is part of the policy, and first_fit by default", () => {
  assert.equal(read("").prime.matcher, "first_fit");
  const { prime, non_prime, messages } = read("backfill.matcher: best_fit\n");
  assert.deepEqual([prime.matcher, non_prime.matcher, messages], ["best_fit", "best_fit", []]);
  assert.equal(read("modules: limits\nbackfill.matcher: best_fit\n").prime.matcher, "first_fit", "no module, no option");
});

// biome-ignore format: a table
const TOLD: readonly (readonly [line: string, text: string])[] = [
  ["nosuch: 1",                          "Error reading line 1: Unknown config parameter"],
  ["no colon",                           "Error reading line 1: Unable to parse line"],
  ["by_queue: perhaps",                  "Error reading line 1: Invalid boolean perhaps, taken as False"],
  ["by_queue: True sometimes",           "Error reading line 1: Invalid prime or non_prime word sometimes"],
  ["help_starving_jobs: true",           "Obsolete config name help_starving_jobs, instead use use eligible_time in job_sort_formula"],
  ["sort_queues: true",                  "Obsolete config name sort_queues"],
  ["fairshare_entity: uid",              "Error reading line 1: Invalid fairshare_entity uid: one of euser, egroup, Account_Name, queue, egroup:euser"],
  ["fairshare_decay_factor: 1.5",        "Error reading line 1: Invalid fairshare_decay_factor 1.5"],
  ["fairshare_decay_time: daily",        "Error reading line 1: Invalid fairshare_decay_time daily"],
  ['fairshare_usage_res: "cput +"',      "Error reading line 1: Invalid fairshare_usage_res cput +: unexpected end"],
  ["server_dyn_res: lic /bin/lic",       "Error reading line 1: Invalid server_dyn_res lic /bin/lic: RESOURCE !PROGRAM [ARGUMENT...]"],
  ['server_dyn_res: "lic !bin/lic"',     "Error reading line 1: Invalid server_dyn_res lic !bin/lic: the program must be named by its whole path"],
  ['server_dyn_res: "lic !/bin/a | b"',  "Error reading line 1: Invalid server_dyn_res lic !/bin/a | b: it is not given to a shell; put what needs one into a script"],
  ["backfill.matcher: worst_fit",       "Error reading line 1: Invalid backfill.matcher worst_fit: it is first_fit or best_fit"],
  ["smp_cluster_dist: round_robin\nbackfill.matcher: best_fit", "Error reading line 2: backfill.matcher best_fit has no effect while smp_cluster_dist is round_robin"],
  ["backfill.policy: sjf",               "Error reading line 1: Invalid backfill.policy sjf: it is depth or cons"],
  ["backfill.plans: 3",                  "Error reading line 1: backfill.plans: module backfill has no such option"],
  ["prime_spill: soon",                   "Error reading line 1: Invalid prime_spill soon"],
  ['job_sort_key: "ncpus UP"',           "Error reading line 1: Invalid job_sort_key"],
  ['node_sort_key: "ncpus HIGH some"',   "Error reading line 1: Invalid node_sort_key"],
  ["smp_cluster_dist: lowest_load",      "Error reading line 1: Invalid smp_cluster_dist lowest_load"],
  ["modules: limits, limits",            "Error reading line 1: module limits is listed twice"],
  ["modules: limits, /site/limits.mjs",  "Error reading line 1: module limits is listed twice"],
  ["modules: limits, ./2.mjs",           "Error reading line 1: module ./2.mjs is left out: its file name is no name for a module"],
  ["modules: limits\ntime.a: 1",         "Error reading line 2: time.a: no module time in the chain"],
  ["modules: limits, nosuch",            "Error reading line 1: Unknown module nosuch"],
  ["max_job_check: some",                "Error reading line 1: Invalid max_job_check some"],
  ["preempt_attempts: few",              "Error reading line 1: Invalid preempt_attempts few"],
  ['node_sort_key: "mem HIGH unused"\nsmp_cluster_dist: round_robin', "smp_cluster_dist is pack: node_sort_key is sorted by unused or assigned amounts"],
];
for (const [line, text] of TOLD) {
  test(`sched_config: told about ${line.replaceAll("\n", " / ")}`, () => {
    assert.deepEqual(read(`${line}\n`).messages, [text]);
  });
}

test("sched_config: strict_fifo is obeyed under its new name", () => {
  const { prime, messages } = read("strict_fifo: True\nbackfill: False\n");
  assert.equal(prime.strict_ordering, true);
  assert.deepEqual(messages, ["Obsolete config name strict_fifo, instead use strict_ordering"]);
});

test("sched_config: any text is read without an exception", () => {
  for (const text of [
    'job_sort_key: "',
    "resources:",
    ": :",
    "a\0b: c",
    `by_queue: ${"x".repeat(10_000)}`,
    '"quoted": yes',
    "#only a comment",
  ]) {
    assert.ok(Array.isArray(parseSchedConfig(text).messages), text);
  }
});

// --- holidays

const FRIDAY_NOON = UTC.epoch(2026, 11, 20, 12 * 3600);
const WEEK = "YEAR 2026\nweekday 0600 1730\nsaturday none all\nsunday none all\n";

// biome-ignore format: a table
const PRIME: readonly (readonly [title: string, text: string, now_s: number, prime: boolean, until: string | null])[] = [
  ["without YEAR it is always prime",        "weekday none all\n",                    FRIDAY_NOON, true, null],
  ["YEAR in a comment",                      `* YEAR 2026\n${WEEK.slice(10)}`,        FRIDAY_NOON, true, null],
  ["a weekday noon is prime until evening",  WEEK,                                    FRIDAY_NOON, true, "2026-11-20 17:30"],
  ["a weekend lasts until Monday morning",   WEEK,                                    FRIDAY_NOON + 8 * 3600, false, "2026-11-23 6:00"],
  ["a holiday is non-prime all day",         `${WEEK}324 11/20 A day off\n`,          FRIDAY_NOON, false, "2026-11-23 6:00"],
  ["never prime",                            "YEAR 2026\nweekday none all\nsaturday none all\nsunday none all\n", FRIDAY_NOON, false, null],
  ["days that are not named are prime",      "YEAR 2026\nsaturday none all\n",        FRIDAY_NOON, true, "2026-11-21 0:00"],
  ["prime over midnight",                    "YEAR 2026\nweekday 2200 0400\nsaturday none all\nsunday none all\n", FRIDAY_NOON, false, "2026-11-20 22:00"],
];
for (const [title, text, now_s, prime, until] of PRIME) {
  test(`holidays: ${title}`, () => {
    const { holidays, messages } = parseHolidays(text);
    assert.deepEqual(messages, []);
    const status = primeStatus(holidays, UTC, now_s);
    assert.equal(status.prime, prime);
    const shown = (epoch_s: number) => {
      const { year, month, day, second_of_day } = UTC.civil(epoch_s);
      return `${year}-${month}-${day} ${Math.floor(second_of_day / 3600)}:${String(Math.floor(second_of_day / 60) % 60).padStart(2, "0")}`;
    };
    assert.equal(status.until_s === null ? null : shown(status.until_s), until);
  });
}

test("holidays: lines that cannot be understood are told, both all or both none too", () => {
  const { holidays, messages } = parseHolidays("YEAR 2026\nweekday 2500 1730\nsunday all all\nsomeday 1 2\n400 x y\n# fine\n* fine\n");
  assert.deepEqual(
    messages.map(({ line }) => line),
    [2, 3, 4, 5],
  );
  assert.equal(primeStatus(holidays, UTC, FRIDAY_NOON).prime, true);
});

test("local time: universal time goes forth and back", () => {
  for (const epoch_s of [0, 951_782_400, 1_709_164_800, 1_795_166_830, 4_102_444_799]) {
    const { year, month, day, second_of_day } = UTC.civil(epoch_s);
    assert.equal(UTC.epoch(year, month, day, second_of_day), epoch_s);
    assert.equal(
      new Date(epoch_s * 1000).toISOString().slice(0, 10),
      `${year}-${String(month).padStart(2, "0")}-${String(day).padStart(2, "0")}`,
    );
  }
});

// --- dedicated time, resource_group, options

test("dedicated_time: times in order, wrong lines told", () => {
  const { times, messages } = parseDedicatedTime(
    "# FORMAT\n11/20/2026 12:00 11/20/2026 14:00\n\n11/19/2026 12:00 11/19/2026 13:00\n11/20/2026 14:00 11/20/2026 12:00\nnonsense\n13/40/2026 1:00 1/1/2027 1:00\n",
    UTC,
  );
  assert.deepEqual(
    messages.map(({ line }) => line),
    [5, 6, 7],
  );
  assert.deepEqual(
    times.map(({ from_s }) => UTC.civil(from_s).day),
    [19, 20],
  );
  assert.notEqual(dedicatedNow(times, FRIDAY_NOON), null);
  assert.equal(dedicatedNow(times, FRIDAY_NOON + 2 * 3600), null);
});

test("resource_group: shares of siblings, errors by line", () => {
  const { tree, messages } = parseResourceGroup(
    "# group\ngrp1 50 root 10\ngrp2 51 root 30\nu1 60 grp1 1\nu2 61 grp1 3\nu1 70 root 5\nu3 71 nosuch 5\nbroken line\n",
    10,
  );
  assert.deepEqual(
    messages.map(({ line, text }) => `${line} ${text}`),
    ["6 entity u1 is not unique", "7 Parent ginfo of u3 doesnt exist.", "8 "],
  );
  const [unknown, grp1, grp2] = tree.children;
  assert.deepEqual([unknown?.name, unknown?.percentage, grp1?.percentage, grp2?.percentage], ["unknown", 0.2, 0.2, 0.6]);
  assert.deepEqual(
    grp1?.children.map(({ name, percentage }) => `${name} ${percentage.toFixed(3)}`),
    ["u1 0.050", "u2 0.150"],
  );
});

// biome-ignore format: a table
const OPTIONS: readonly (readonly [argv: string, expected: unknown])[] = [
  ["",                  { name: "default", foreground: false }],
  ["-I s1 -N",          { name: "s1", foreground: true }],
  ["-Is1 -nN -d /x",    { name: "s1", foreground: true, no_restart: true, home: "/x" }],
  ["-L /l -p /o -c f",  { log_file: "/l", out_file: "/o" }],
  ["-t 2",              { threads: 2 }],
  ["-t 99",             { threads: 4, notes: ["99: cannot be larger than number of cores 4, using number of cores instead\n"] }],
  ["-t x",              "x: bad num threads value\n"],
  ["-t 0",              "0: bad num threads value (should be in range 1-99999)\n"],
  ["-a",                USAGE],
  ["-S 15077 -I s1",    { name: "s1", port: 15_077 }],
  ["-S",                USAGE],
  ["-U alice -I s1",    { name: "s1", user: "alice" }],
  ["-S 0",              "0: bad port value (should be in range 1-65535)\n"],
  ["-S x",              "x: bad port value (should be in range 1-65535)\n"],
  ["-S 65536",          "65536: bad port value (should be in range 1-65535)\n"],
  ["-I",                USAGE],
  ["word",              USAGE],
  ["-I ../x",           "pbs_sched: bad scheduler name ../x\n"],
  ["--version",         "version"],
  ["--help",            "help"],
];
for (const [argv, expected] of OPTIONS) {
  test(`options: pbs_sched ${argv}`, () => {
    const parsed = parseOptions(
      argv.split(" ").filter((word) => word !== ""),
      4,
    );
    if (parsed.kind === "run")
      assert.deepEqual({ ...parsed.options, notes: parsed.notes, ...(expected as object) }, { ...parsed.options, notes: parsed.notes });
    else assert.equal(parsed.kind === "wrong" ? parsed.text : parsed.kind, expected);
  });
}

test("not obeyed: attributes that ask for more than this release does are named", () => {
  const sched = { job_sort_formula: "ncpus" };
  const policy = { ...POLICY_DEFAULT, job_sort_key: [{ key: "mem", high: true }] };
  const universe = createUniverse(snapshotOf({ nodes: "a ncpus=1", jobs: "", sched }), { policy, times_matter: false });
  assert.deepEqual(notObeyed(universe, policy), [
    "Job sorting formula and job_sort_key are incompatible.  The job sorting formula will be used.",
  ]);
});
