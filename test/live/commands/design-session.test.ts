// The qmgr session of the multi-scheduler design document, interfaces 1, 2, 4, 5, 6: the settings, the refusals, and that
// printed output recreates the same configuration elsewhere.

import assert from "node:assert/strict";
import { chmodSync, cpSync, existsSync, mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { NO_PARTITION } from "#protocol/sched-link.ts";
import { type Complex, startComplex, until } from "../complex.ts";

let complex: Complex;
/** name of the vnode */
let host: string;

before(async () => {
  complex = await startComplex();
  host = /^Name=([^|]+)/m.exec(complex.must("pbsnodes", ["-a", "-F", "dsv"]))?.[1] as string;
});
after(() => complex.stop());

const list = (what: string): string => complex.qmgr(`list ${what}`);
const state = (name: string): string | undefined => /state = (\w+)/.exec(list(`sched ${name} state`))?.[1];
const comment = (name: string): string | undefined => /comment = (.*)/.exec(list(`sched ${name} comment`))?.[1];

/** A directory as an administrator makes it for a scheduler. */
function makePriv(name: string): string {
  const dir = join(complex.work(), name);
  mkdirSync(dir);
  chmodSync(dir, 0o750);
  for (const file of ["sched_config", "holidays", "dedicated_time", "resource_group"])
    cpSync(join(complex.pbsHome, "sched_priv", file), join(dir, file));
  return dir;
}

test("a new scheduler has the defaults of the design and does not run", () => {
  complex.qmgr("c sched multi_sched_1");
  const text = list("sched multi_sched_1");
  assert.match(text, /^Sched multi_sched_1\n/);
  for (const line of [
    `sched_priv = ${complex.pbsHome}/sched_priv_multi_sched_1`,
    `sched_log = ${complex.pbsHome}/sched_logs_multi_sched_1`,
    "scheduling = False",
    "scheduler_iteration = 600",
    "state = down",
  ])
    assert.ok(text.includes(`    ${line}\n`), `${line} in\n${text}`);
  for (const name of ["partition", "port", "comment", "sched_host"]) assert.ok(!text.includes(`    ${name} =`), `${name} not in\n${text}`);
});

test("partitions are a list: =, += and -=, under both names; print and list show it in the order of addition", () => {
  const rows: readonly (readonly [line: string, shown: string])[] = [
    ["s sched multi_sched_1 partitions='part1,part2'", "part1,part2"],
    ["s sched multi_sched_1 partition+=part3", "part1,part2,part3"],
    ["s sched multi_sched_1 partition-=part2", "part1,part3"],
    ["s sched multi_sched_1 partitions+='part2'", "part1,part3,part2"],
    ["s sched multi_sched_1 partition=part1", "part1"],
    ["s sched multi_sched_1 partition+=part2", "part1,part2"],
  ];
  for (const [line, shown] of rows) {
    complex.qmgr(line);
    assert.match(list("sched multi_sched_1 partition"), new RegExp(`^    partition = ${shown}$`, "m"), line);
  }
  const printed = complex.qmgr("p sched multi_sched_1");
  assert.ok(
    printed.includes("\nset sched multi_sched_1 partition = part1\nset sched multi_sched_1 partition += part2\n"),
    `one value a line:\n${printed}`,
  );
});

test("a scheduler that was just made has its files, which can be written before its first cycle", async () => {
  complex.qmgr("c sched fresh");
  assert.ok(existsSync(join(complex.pbsHome, "sched_priv_fresh/sched_config")));
  assert.ok(existsSync(join(complex.pbsHome, "sched_logs_fresh")));
  complex.qmgr("d sched fresh");
});

test("the server starts a scheduler once scheduling becomes True and makes its default directories", async () => {
  complex.qmgr("s sched multi_sched_1 scheduling = 1");
  await until("the scheduler idle", () => state("multi_sched_1") === "idle");
  for (const file of ["sched_config", "holidays", "dedicated_time", "resource_group"])
    assert.equal(
      readFileSync(join(complex.pbsHome, "sched_priv_multi_sched_1", file), "utf8"),
      readFileSync(join(complex.pbsHome, "sched_priv", file), "utf8"),
    );
  assert.notEqual(complex.log("sched_logs_multi_sched_1"), "");
});

test("sched_priv and sched_log move to other directories while the scheduler runs", async () => {
  const priv = makePriv("priv_1");
  const logs = join(complex.work(), "logs_1");
  mkdirSync(logs, { mode: 0o755 });
  // The server reports directories at level DEBUG3.
  complex.qmgr("s sched multi_sched_1 log_events=2047", `s sched multi_sched_1 sched_log=${logs}`);
  complex.qmgr(`s sched multi_sched_1 sched_priv=${priv}`);
  const told = (): string => complex.log("../../work/logs_1");
  await until("the new log", () => told().includes(`scheduler log directory is changed to ${logs}`));
  await until("the new directory", () => told().includes(`scheduler priv directory has changed to ${priv}`));
  assert.equal(comment("multi_sched_1"), undefined);
  assert.match(list("sched multi_sched_1 scheduling"), /scheduling = True/);
});

test("a directory that fails the checks gives the comment and scheduling=False, a right one takes the comment away", async () => {
  const open = makePriv("open");
  chmodSync(open, 0o777);
  const cases: readonly (readonly [attribute: string, value: string, comment: RegExp])[] = [
    ["sched_priv", open, /^PBS failed validation checks for sched_priv directory$/],
    ["sched_priv", join(complex.work(), "missing"), /^PBS failed validation checks for sched_priv directory$/],
    ["sched_log", join(complex.work(), "missing"), /^Unable to change the sched_log directory$/],
  ];
  for (const [attribute, value, expected] of cases) {
    const old = /= (.*)/.exec(list(`sched multi_sched_1 ${attribute}`))?.[1] as string;
    complex.qmgr(`s sched multi_sched_1 ${attribute}=${value}`);
    await until(`the comment on ${attribute}=${value}`, () => expected.test(comment("multi_sched_1") ?? ""));
    assert.match(list("sched multi_sched_1 scheduling"), /scheduling = False/);
    complex.qmgr(`s sched multi_sched_1 ${attribute}=${old}`);
    await until("no comment", () => comment("multi_sched_1") === undefined);
    complex.qmgr("s sched multi_sched_1 scheduling=True");
    await until("the scheduler idle", () => state("multi_sched_1") === "idle");
  }
});

test("what the design refuses, with number, text and exit status", () => {
  complex.qmgr(
    "c sched other partition=other",
    "c q q1 queue_type=e,enabled=t,started=t,partition=part1",
    "c q q2 queue_type=e,enabled=t,started=t,partition=other",
    "c q plain queue_type=e,enabled=t,started=t",
    "c q route1 queue_type=r",
  );
  const taken = /= (.*)/.exec(list("sched multi_sched_1 sched_priv"))?.[1] as string;
  const logs = /= (.*)/.exec(list("sched multi_sched_1 sched_log"))?.[1] as string;
  const refused: readonly (readonly [line: string, object: string, code: number, text: string])[] = [
    [`s sched other sched_priv=${taken}`, "other", 15215, "Another scheduler also has same value for its sched_priv directory"],
    [`s sched other sched_log=${logs}`, "other", 15216, "Another scheduler also has same value for its sched_log directory"],
    ["s q route1 partition=part1", "route1", 15217, "Cannot assign a partition to route queue"],
    ["s q q1 queue_type=route", "q1", 15218, "Route queues are incompatible with the partition attribute queue_type"],
    ["s sched default sched_priv=/tmp", "default", 15223, "Operation is not permitted on default scheduler"],
    ["s sched default sched_log=/tmp", "default", 15223, "Operation is not permitted on default scheduler"],
    ["s sched default partition=part9", "default", 15223, "Operation is not permitted on default scheduler"],
    ["s sched other partitions+=part2", "other", 15224, "Partition is already associated with other scheduler"],
    ["s sched other partitions=part1", "other", 15224, "Partition is already associated with other scheduler"],
    ["c sched third partition=part1", "third", 15224, "Partition is already associated with other scheduler"],
    ["d sched default", "default", 15214, "Can not delete Scheduler"],
    ["c sched a234567890123456", "a234567890123456", 15212, "Scheduler name is too long"],
    ["c sched other", "other", 15211, "Scheduler already exists"],
    ["s sched nobody scheduling=t", "nobody", 15213, "Unknown Scheduler"],
  ];
  for (const each of refused) assertRefused(...each);
});

test("a node, its queue and their partitions keep together", () => {
  complex.qmgr(`s n ${host} partition=part1`);
  assertRefused(`s n ${host} queue=q2`, host, 15220, "Partition part1 is not part of queue for node");
  complex.qmgr(`s n ${host} queue=q1`);
  assertRefused(`s n ${host} partition=other`, host, 15219, "Queue q1 is not part of partition for node");
  assertRefused("s q q1 partition=other", "q1", 15221, "Invalid partition in queue");
  complex.qmgr(`u n ${host} queue`, `u n ${host} partition`);
});

test("scheduling and scheduler_iteration are one value on the server and the default scheduler", () => {
  const rows: readonly (readonly [line: string, server: string, sched: string])[] = [
    ["s s scheduler_iteration=300", "server scheduler_iteration", "sched default scheduler_iteration"],
    ["s sched default scheduler_iteration=450", "server scheduler_iteration", "sched default scheduler_iteration"],
    ["s s scheduling=False", "server scheduling", "sched default scheduling"],
    ["s sched default scheduling=True", "server scheduling", "sched default scheduling"],
    ["s sched scheduler_iteration=600", "server scheduler_iteration", "sched default scheduler_iteration"],
  ];
  for (const [line, server, sched] of rows) {
    complex.qmgr(line);
    const value = /=\s*(\S+)/.exec(line)?.[1];
    assert.deepEqual([/= (\S+)/.exec(list(server))?.[1], /= (\S+)/.exec(list(sched))?.[1]], [value, value], line);
  }
});

test("a scheduler without partition is not started; one whose last partition is removed stops", async () => {
  complex.qmgr("c sched bare", "s sched bare scheduling=True", "s sched other scheduling=True");
  await until("other idle", () => state("other") === "idle");
  assert.equal(state("bare"), "down");
  assert.equal(comment("bare"), NO_PARTITION);
  await until("its log says why", () => complex.log("sched_logs_bare").includes(`0040;pbs_sched;Svr;query_server;${NO_PARTITION}`));
  const pid = complex.schedPid("other") as number;
  complex.qmgr("u q q2 partition", "s sched other partition-=other");
  await until("other down", () => state("other") === "down");
  await until("its process gone", () => complex.schedPid("other") === null);
  assert.ok(pid > 0);
  assert.doesNotMatch(list("sched other"), /^ *partition =/m);
  assert.equal(comment("other"), NO_PARTITION);
  await until("its log says why", () => complex.log("sched_logs_other").includes(`0040;pbs_sched;Svr;query_server;${NO_PARTITION}`));
  complex.qmgr("d sched bare");
});

test("print fed into a second, empty complex gives the same print there", async () => {
  complex.qmgr(
    "c r lic type=long,flag=q",
    "s s max_run='[u:PBS_GENERIC=40]',comment='two words, and \"quotes\"'",
    "s q plain resources_max.ncpus=8,acl_users='alice@*,bob@*',acl_user_enable=t,Priority=90",
    "s q route1 route_destinations='plain,workq'",
    `s sched multi_sched_1 sched_priv=${complex.pbsHome}/sched_priv_multi_sched_1`,
    `s sched multi_sched_1 sched_log=${complex.pbsHome}/sched_logs_multi_sched_1`,
  );
  const second = await startComplex();
  try {
    const server = complex.qmgr("p s");
    assert.equal(second.run("qmgr", [], { input: server }).status, 0);
    assert.equal(second.qmgr("p s"), server);

    const scheds = complex.qmgr("p sched").replaceAll(complex.pbsHome, second.pbsHome);
    const fed = second.run("qmgr", [], { input: scheds });
    // The default scheduler already exists and keeps its directories; a state is not a setting (docs/reference/qmgr.md 9).
    const refusals = [...fed.stderr.matchAll(/^qmgr obj=(\S+) svr=default: (.*)\nqmgr: Error \((\d+)\) returned from server$/gm)];
    const unexpected = refusals.filter(
      ([, object, text, code]) =>
        !(object === "default" && (code === "15211" || code === "15223")) && !(code === "15003" && text?.endsWith(" state")),
    );
    assert.deepEqual(unexpected, []);
    await until(
      "the schedulers idle",
      () => !/state = (down|scheduling)/.test(second.qmgr("list sched @default state").replace(/Sched other\n.*\n/, "")),
    );
    assert.equal(second.qmgr("p sched"), scheds);
  } finally {
    await second.stop();
  }
});

function assertRefused(line: string, object: string, code: number, text: string): void {
  const { status, stdout, stderr } = complex.run("qmgr", ["-c", line]);
  assert.deepEqual(
    { status, stdout, stderr },
    { status: code % 256, stdout: "", stderr: `qmgr obj=${object} svr=default: ${text}\nqmgr: Error (${code}) returned from server\n` },
    line,
  );
}
