// Every option of sched_config (docs/reference/scheduler.md 12): the result of a cycle without it and with it. Ignored options
// are refused in the log. A new option without a row here fails.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { createFairshare, decayDue } from "#model/fairshare.ts";
import { parseResourceGroup } from "#model/resource-group.ts";
import type { SchedJob } from "#protocol/sched-link.ts";
import { SCHED_COMMAND } from "#protocol/sched-link.ts";
import { cycle } from "#sched/cycle/cycle.ts";
import { createUniverse, setDynamic } from "#sched/mirror/mirror.ts";
import { mirrorOptions } from "#sched/modules/index.ts";
import { countUsage } from "#sched/order/usage-count.ts";
import { messageText, parseSchedConfig } from "#sched/policy/sched-config.ts";
import { SCHED_CONFIG_KEYS } from "#sched/policy/sched-config-keys.ts";
import { parseDedicatedTime } from "#sched/shapes/dedicated-time.ts";
import type { Holidays } from "#sched/shapes/holidays.ts";
import { ALWAYS_PRIME } from "#sched/shapes/holidays.ts";
import { UTC } from "#sched/shapes/local-time.ts";
import type { PolicyBook } from "#sched/shapes/policy-book.ts";
import type { World } from "../world.ts";
import { queue, snapshotOf } from "../world.ts";

const NOW_S = 1_000_000; // Monday, 13:46:40
const OFFICE: Holidays = {
  year: 1970,
  hours: Array.from({ length: 7 }, () => ({ prime_s: 6 * 3600, non_prime_s: 18 * 3600 })),
  days: new Set(),
};
const LEFT_S = 18 * 3600 - (NOW_S % 86_400);
const GROUPS = "alice 20 root 50\nbob 21 root 50\nusers 22 root 1\nstaff 23 root 1\n";

type More = Partial<World> & {
  /** further lines of the file in both cycles */
  readonly given?: string;
  readonly holidays?: Holidays;
  /** `MM/DD/YYYY HH:MM MM/DD/YYYY HH:MM` */
  readonly dedicated?: string;
  readonly usage?: Readonly<Record<string, number>>;
  /** seconds since the last decay of usage */
  readonly decayed_s?: number;
  readonly lacks?: Readonly<Record<string, Partial<SchedJob>>>;
};

/**
 * `1@a` 1 starts on a; `1!2` 1 makes room for 2; `~1` an estimate for 1; `1?` a comment for 1; `+R1` a reservation is
 * confirmed, `-R1` denied.
 */
function outcome(
  text: string,
  { given = "", holidays = ALWAYS_PRIME, dedicated = "", usage = {}, decayed_s = 0, lacks = {}, ...world }: More,
): string {
  const { config } = parseSchedConfig(`${given}\n${text}\n`);
  const { prime, non_prime, modules, module_options, unknown_shares, dyn_res } = config;
  const { tree } = parseResourceGroup(GROUPS, unknown_shares);
  const times = parseDedicatedTime(dedicated, UTC).times;
  const policies: PolicyBook = { prime, non_prime, modules, module_options, holidays, dedicated: times, fairshare: tree, local: UTC };
  const snapshot = snapshotOf({ nodes: "a ncpus=4", jobs: "", sched: { opt_backfill_fuzzy: "off" }, ...world });
  const jobs = snapshot.jobs.map((job) => ({ ...job, ...lacks[job.id] }));
  const universe = createUniverse({ ...snapshot, jobs }, mirrorOptions(policies));
  const fairshare = createFairshare(tree, { last_decay_s: NOW_S - decayed_s, usage, running: {} }, NOW_S);
  countUsage(universe, fairshare, true);
  decayDue(fairshare, prime.fairshare_decay, NOW_S);
  // The shell runs the programs; each answers 1.
  setDynamic(universe, new Map(dyn_res.map(({ resource }) => [resource, 1])));
  return cycle(universe, policies, { now_s: NOW_S, command: SCHED_COMMAND.TIME, fairshare })
    .decisions.map((decision) => {
      switch (decision.kind) {
        case "run":
          return `${decision.job}@${[...decision.exec_vnode.matchAll(/[(+](\w+)/g)].map((match) => match[1]).join("+")}`;
        case "preempt":
          return `${decision.job}!${decision.for}`;
        case "estimate":
          return `~${decision.job}`;
        case "comment":
          return `${decision.job}?`;
        case "confirm-resv":
          return `+${decision.resv}`;
        case "deny-resv":
          return `-${decision.resv}`;
        default:
          return decision.kind;
      }
    })
    .join(" ");
}

type Row = readonly [name: string, line: string, without: string, obeyed: string, more: More];
const TWO = [queue("low", { Priority: 10 }), queue("high", { Priority: 90 })];
const EXPRESS = [queue("workq"), queue("express", { Priority: 200 })];
const SHARES = { given: "fair_share: true", usage: { alice: 900, bob: 100 } };
const STRICT = { given: "strict_ordering: true", nodes: "a ncpus=2 aoe=x :current_aoe=x" };
const IN_DEDICATED = { dedicated: "01/12/1970 13:00 01/12/1970 15:00" };

// biome-ignore format: a table
const OBEYED: readonly Row[] = [
  ["round_robin",                 "round_robin: true",                            "1@a 2@a 3@a", "1@a 3@a 2@a", { jobs: "1 @x; 2 @x; 3 @y", queues: [queue("x"), queue("y")] }],
  ["by_queue",                    "by_queue: false",                              "2@a 1@a", "1@a 2@a", { jobs: "1 @low; 2 @high", queues: TWO }],
  ["strict_ordering",             "strict_ordering: true",                        "1? 2@a", "~1 1? 2?", { nodes: "a ncpus=2", jobs: "9 R (a:ncpus=1) walltime=60; 1 ncpus=2; 2 ncpus=1" }],
  ["strict_fifo",                 "strict_fifo: true",                            "1? 2@a", "~1 1? 2?", { nodes: "a ncpus=2", jobs: "9 R (a:ncpus=1) walltime=60; 1 ncpus=2; 2 ncpus=1" }],
  ["backfill",                    "backfill: false",                              "~1 1? 2@a", "1? 2?", { ...STRICT, jobs: "9 R (a:ncpus=1) walltime=60 stime=999999; 1 ncpus=2; 2 ncpus=1 walltime=30" }],
  ["backfill_prime",              "backfill_prime: true",                         "1@a", "1?", { holidays: OFFICE, jobs: `1 walltime=${LEFT_S + 1}` }],
  ["prime_exempt_anytime_queues", "prime_exempt_anytime_queues: true",            "1?", "1@a", { given: "backfill_prime: true", holidays: OFFICE, jobs: `1 walltime=${LEFT_S + 1}` }],
  ["prime_spill",                 "prime_spill: 00:01:00",                        "1? 2?", "1@a 2?", { given: "backfill_prime: true", holidays: OFFICE, jobs: `1 walltime=${LEFT_S + 60}; 2 walltime=${LEFT_S + 61}` }],
  ["primetime_prefix",            "primetime_prefix: day_",                       "1@a", "1?", { holidays: { ...OFFICE, days: new Set([12]) }, jobs: "1 @day_q", queues: [queue("day_q")] }],
  ["nonprimetime_prefix",         "nonprimetime_prefix: night_",                  "1@a", "1?", { holidays: OFFICE, jobs: "1 @night_q", queues: [queue("night_q")] }],
  ["dedicated_prefix",            "dedicated_prefix: own",                        "1? 2@a", "1@a 2?", { ...IN_DEDICATED, jobs: "1 @ownq walltime=60; 2 @dedq walltime=60", queues: [queue("ownq"), queue("dedq")] }],
  ["policy",                      "policy: log",                                  "~1 1? 2?", "~2 2? 1?", { nodes: "a ncpus=2", given: "strict_ordering: true", jobs: "9 R (a:ncpus=1) walltime=60; 1 ncpus=2 walltime=3600; 2 ncpus=2 walltime=60" }],
  ["job_sort_key",                'job_sort_key: "ncpus HIGH"',                   "1@a 2@a", "2@a 1@a", { jobs: "1 ncpus=1; 2 ncpus=2" }],
  ["job_sort_key job_priority",   'job_sort_key: "job_priority HIGH"',            "1@a 2@a", "2@a 1@a", { jobs: "1 prio=1; 2 prio=2" }],
  ["job_sort_key sort_priority",  'job_sort_key: "sort_priority LOW"',            "1@a 2@a", "2@a 1@a", { jobs: "1 prio=2; 2 prio=1" }],
  ["job_sort_key fairshare_perc", 'job_sort_key: "fairshare_perc HIGH"',          "1@a 2@a", "2@a 1@a", { jobs: "1 u=users; 2 u=bob" }],
  ["node_sort_key",               'node_sort_key: "ncpus HIGH"',                  "1@a", "1@b", { nodes: "a ncpus=2; b ncpus=4", jobs: "1" }],
  ["node_sort_key unused",        'node_sort_key: "ncpus HIGH unused"',           "1@a", "1@b", { nodes: "a ncpus=4; b ncpus=3", jobs: "9 R (a:ncpus=2); 1" }],
  ["node_sort_key assigned",      'node_sort_key: "ncpus HIGH assigned"',         "1@a", "1@b", { nodes: "a ncpus=4; b ncpus=4", jobs: "9 R (b:ncpus=2); 1" }],
  ["resources",                   'resources: "ncpus"',                           "1?", "1@a", { nodes: "a ncpus=4 mem=1gb", jobs: "1 ncpus=1:mem=2gb" }],
  ["resource_unset_infinite",     'resource_unset_infinite: "mem"',               "1?", "1@a", { jobs: "1 ncpus=1:mem=2gb" }],
  ["smp_cluster_dist",            "smp_cluster_dist: round_robin",                "1@a 2@a", "1@a 2@b", { nodes: "a ncpus=4; b ncpus=4", jobs: "1; 2" }],
  ["fair_share",                  "fair_share: true",                             "1@a 2@a", "2@a 1@a", { usage: { alice: 900, bob: 100 }, jobs: "1 u=alice; 2 u=bob" }],
  ["unknown_shares",              "unknown_shares: 10",                           "1?", "1@a", { ...SHARES, jobs: "1 u=zoe" }],
  ["fairshare_enforce_no_shares", "fairshare_enforce_no_shares: false",           "1?", "1@a", { ...SHARES, jobs: "1 u=zoe" }],
  ["fairshare_entity",            "fairshare_entity: egroup",                     "1@a 2@a", "2@a 1@a", { given: "fair_share: true", usage: { users: 900, staff: 1, alice: 1, bob: 900 }, jobs: "1 u=alice g=users; 2 u=bob g=staff" }],
  ["fairshare_usage_res",         'fairshare_usage_res: "ncpus*walltime"',        "2@a 1@a", "1@a 2@a",
    { given: "fair_share: true", nodes: "a ncpus=9", jobs: "8 R (a:ncpus=1) u=alice; 9 R (a:ncpus=1) u=bob; 1 u=alice; 2 u=bob", lacks: { 8: { resources_used: { cput: 90, ncpus: 1, walltime: 10 } }, 9: { resources_used: { cput: 10, ncpus: 4, walltime: 90 } } } }],
  ["fairshare_decay_time",        "fairshare_decay_time: 00:10:00",               "2@a 1@a", "1@a 2@a", { given: "fair_share: true\nfairshare_decay_factor: 0.1\nfairshare_usage_res: ncpus", usage: { alice: 20, bob: 1 }, decayed_s: 6000, jobs: "1 u=alice; 2 u=bob" }],
  ["fairshare_decay_factor",      "fairshare_decay_factor: 0.001",                "2@a 1@a", "1@a 2@a", { given: "fair_share: true\nfairshare_usage_res: ncpus", usage: { alice: 20, bob: 1 }, decayed_s: 86_400, jobs: "1 u=alice; 2 u=bob" }],
  ["preemptive_sched",            "preemptive_sched: false",                      "9!1 1@a 9?", "1?", { jobs: "9 R (a:ncpus=4); 1 @express", queues: EXPRESS }],
  ["preempt_attempts",            "preempt_attempts: 0",                          "9!1 1@a 9?", "1?", { jobs: "9 R (a:ncpus=4); 1 @express", queues: EXPRESS }],
  ["mom_resources",               'mom_resources: "lic"',                         "1@a", "1@b", { given: 'resources: "ncpus, lic"', resources: [{ name: "lic", type: "long", flags: "h" }], nodes: "a ncpus=4 lic=9 :site.lic=1; b ncpus=4 :site.lic=5", jobs: "1 ncpus=1:lic=2" }],
  ["server_dyn_res",              "server_dyn_res: lic !/site/lic",               "1?", "1@a", { given: 'resources: "ncpus, lic"', resources: [{ name: "lic", type: "long", flags: "" }], server: { resources_available: { lic: 0 } }, jobs: "1 lic=1" }],
  ["max_job_check",               "max_job_check: 1",                             "1@a 2@a", "1@a", { jobs: "1; 2" }],
  ["update_comments",             "update_comments: false",                       "1?", "", { jobs: "1 ncpus=9" }],
  ["resv_confirm_ignore",         "resv_confirm_ignore: dedicated_time",          "-R1", "+R1", { dedicated: "01/12/1970 14:00 01/12/1970 15:00", resvs: `R1 ncpus=1 ?${NOW_S + 1000}-${NOW_S + 2000}` }],
  ["allow_aoe_calendar",          "allow_aoe_calendar: true",                     "1?", "~1 1?", { ...STRICT, jobs: "9 R (a:ncpus=1) walltime=60; 1 ncpus=2:aoe=x" }],
  ["modules",                     "modules: time, resources, backfill",           "1?", "1@a", { server: { max_run: { "o:PBS_ALL": 0 } }, jobs: "1" }],
];

for (const [name, line, without, obeyed, more] of OBEYED) {
  test(`sched_config: ${name} is obeyed`, () => {
    assert.notEqual(without, obeyed);
    assert.equal(outcome("", more), without, "without it");
    assert.equal(outcome(line, more), obeyed, "with it");
  });
}

// biome-ignore format: a table
const REFUSED: readonly (readonly [name: string, line: string, text: string])[] = [
  ["peer_queue",       'peer_queue: "workq workq@other"',        "peer_queue is not supported yet: no jobs are pulled"],
  ["provision_policy", "provision_policy: avoid_provision",      "provision_policy is not supported yet: nothing is provisioned"],
  ["job_sort_key preempt_priority", 'job_sort_key: "preempt_priority HIGH"', "job_sort_key preempt_priority is not supported yet and left out"],
];
for (const [name, line, text] of REFUSED) {
  test(`sched_config: ${name} is refused, and told with its line`, () => {
    const { messages, config } = parseSchedConfig(`# a comment\n${line}\n`);
    assert.deepEqual(messages.map(messageText), [`Error reading line 2: ${text}`]);
    assert.deepEqual(config, parseSchedConfig("").config);
  });
}

/** Names of former releases (docs/reference/scheduler.md 12): reported, without effect. */
const OBSOLETE = [
  "log_filter",
  "preempt_queue_prio",
  "preempt_prio",
  "preempt_order",
  "preempt_sort",
  "half_life",
  "sort_queues",
  "help_starving_jobs",
  "max_starve",
];
for (const name of OBSOLETE) {
  test(`sched_config: ${name} is obsolete, and told`, () => {
    const { messages, config } = parseSchedConfig(`${name}: 1\n`);
    assert.match(messages.map(messageText).join("\n"), new RegExp(`^Obsolete config name ${name}(, instead use .+)?$`));
    assert.deepEqual(config, parseSchedConfig("").config);
  });
}

/** Options without effect on the core, with the test that covers them. */
const IN_THE_SHELL: readonly (readonly [name: string, file: string, title: string])[] = [
  ["module_alarm", "test/live/sched/sched-modules.test.ts", "a module that never comes to its end"],
  ["module_work_alarm", "test/live/sched/sched-modules.test.ts", "a promise that never settles"],
];
for (const [name, file, title] of IN_THE_SHELL) {
  test(`sched_config: ${name} is read, and shown in ${file}`, () => {
    const { config, messages } = parseSchedConfig(`${name}: 00:02:00\n`);
    assert.deepEqual(messages, []);
    assert.equal(config[`${name}_s` as keyof typeof config], 120);
    assert.deepEqual(parseSchedConfig(`${name}: soon`).messages.map(messageText), [`Error reading line 1: Invalid ${name} soon`]);
    assert.ok(readFileSync(new URL(`../../../${file}`, import.meta.url), "utf8").includes(title), title);
  });
}

test("sched_config: there is a row here for every option", () => {
  const rows = new Set<string>([...OBEYED, ...REFUSED, ...IN_THE_SHELL].map(([name]) => name));
  assert.deepEqual(
    SCHED_CONFIG_KEYS.map(({ name }) => name).filter((name) => !rows.has(name)),
    [],
  );
});
