// Reservations in the scheduler: their node sets and jobs, what they leave to jobs outside, and how they are confirmed, altered
// and placed again.

import assert from "node:assert/strict";
import { test } from "node:test";
import { SCHED_COMMAND } from "#protocol/sched-link.ts";
import { cycle } from "#sched/cycle/cycle.ts";
import { applyDelta } from "#sched/mirror/mirror.ts";
import { parseSchedConfig } from "#sched/policy/sched-config.ts";
import type { Policy } from "#sched/shapes/policy.ts";
import { describeUniverse } from "../describe.ts";
import type { World } from "../world.ts";
import { book, decisionTexts, logTexts, QUEUE, queue, run, universeOf } from "../world.ts";

const inside = (name: string, ncpus: number) => [QUEUE, queue(name, { resources_available: { ncpus }, Priority: -5 })];

test("jobs in a running reservation have its amounts, jobs outside the rest (resv-jobs-inside)", () => {
  const result = run({
    nodes: "H ncpus=16",
    resvs: "R1 RN ncpus=6 0-2000000=(H:ncpus=6)",
    queues: inside("R1", 6),
    jobs: "1 R in=R1 (H:ncpus=4); 2 in=R1 ncpus=4; 3 ncpus=12; 4 R (H:ncpus=10); 5 in=R1 ncpus=1 walltime=9000000",
  });
  assert.deepEqual(decisionTexts(result), [
    "2: Not Running: Insufficient amount of queue resource: ncpus (R: 4 A: 2 T: 6)",
    "5=(H:ncpus=1)",
    "3: Not Running: Insufficient amount of resource: ncpus (R: 12 A: 0 T: 16)",
  ]);
});

// biome-ignore format: a table
const INSIDE: readonly (readonly [title: string, world: World, expected: readonly string[]])[] = [
  ["only its own vnodes",      { nodes: "a ncpus=4; b ncpus=4", resvs: "R1 RN ncpus=2 0-9000000=(b:ncpus=2)", queues: inside("R1", 2), jobs: "1 in=R1 ncpus=2; 2 in=R1 ncpus=1; 3 4:ncpus=1; 4 2:ncpus=1" },
    ["1=(b:ncpus=2)", "2: Not Running: Insufficient amount of queue resource: ncpus (R: 1 A: 0 T: 2)", "3=(a:ncpus=1)+(a:ncpus=1)+(a:ncpus=1)+(a:ncpus=1)", "4=(b:ncpus=1)+(b:ncpus=1)"]],
  ["before those outside",     { nodes: "a ncpus=4", resvs: "R1 RN ncpus=2 0-9000000=(a:ncpus=2)", queues: [queue("workq", { Priority: 100 }), queue("R1")], jobs: "1 ncpus=2; 2 in=R1 ncpus=2" },
    ["2=(a:ncpus=2)", "1=(a:ncpus=2)"]],
  ["mem that is not reserved", { nodes: "a ncpus=4 mem=8gb", resvs: "R1 RN ncpus=2 0-9000000=(a:ncpus=2)", queues: inside("R1", 2), jobs: "1 in=R1 ncpus=1:mem=6gb; 2 in=R1 ncpus=1:mem=3gb; 3 ncpus=1:mem=3gb; 4 ncpus=1:mem=2gb" },
    ["1=(a:ncpus=1:mem=6291456kb)", "2: Not Running: Insufficient amount of resource: mem (R: 3gb A: 2gb T: 8gb)", "3: Not Running: Insufficient amount of resource: mem (R: 3gb A: 2gb T: 8gb)", "4=(a:ncpus=1:mem=2097152kb)"]],
  ["mem promised to others",   { nodes: "a ncpus=4 mem=8gb", resvs: "R1 RN ncpus=2 0-9000000=(a:ncpus=2); R2 ncpus=1:mem=5gb 2000000-3000000=(a:ncpus=1:mem=5gb)", queues: inside("R1", 2), jobs: "1 in=R1 ncpus=1:mem=4gb; 2 in=R1 ncpus=1:mem=3gb" },
    ["1: Not Running: Insufficient amount of resource: mem (R: 4gb A: 3gb T: 8gb)", "2=(a:ncpus=1:mem=3145728kb)"]],
  ["an exclusive job inside",  { nodes: "a ncpus=4", resvs: "R1 RN ncpus=4 0-9000000=(a:ncpus=4)", queues: [QUEUE, queue("R1")], jobs: "1 in=R1 ncpus=1 excl; 2 in=R1 ncpus=1" },
    ["1=(a:ncpus=1)", "2: Not Running: No available resources on nodes"]],
  ["its exclusive vnodes",     { nodes: "a ncpus=4", resvs: "R1 RN ncpus=1 excl 0-9000000=(a:ncpus=1)", queues: inside("R1", 1), jobs: "1 in=R1 ncpus=1; 2 ncpus=1" },
    ["1=(a:ncpus=1)", "2: Not Running: Not enough free nodes available"]],
  ["a vnode of it is offline", { nodes: "a ncpus=4 :offline; b ncpus=4", resvs: "R1 RN 2:ncpus=1 0-9000000=(a:ncpus=1)+(b:ncpus=1)", queues: inside("R1", 2), jobs: "1 in=R1 ncpus=1; 2 in=R1 ncpus=1" },
    ["1=(b:ncpus=1)", "2: Not Running: No available resources on nodes"]],
  ["not begun",                { nodes: "a ncpus=4", resvs: "R1 ncpus=4 2000000-3000000=(a:ncpus=4)", queues: [QUEUE, queue("R1", { started: false })], jobs: "1 in=R1 ncpus=1" },
    ["1: Not Running: Queue not started."]],
  ["limits of the server",     { nodes: "a ncpus=4", resvs: "R1 RN ncpus=2 0-9000000=(a:ncpus=2)", queues: inside("R1", 2), server: { max_run: { "o:PBS_ALL": 0 }, resources_available: { lic: 0 } }, jobs: "1 in=R1 ncpus=1 lic=1; 2 ncpus=1" },
    ["1=(a:ncpus=1)", "2: Not Running: Server job limit has been reached."]],
];
for (const [title, world, expected] of INSIDE) {
  test(`inside a reservation: ${title}`, () => {
    const universe = universeOf({ resources: [{ name: "lic", type: "long", flags: "q" }], ...world });
    const before = describeUniverse(universe);
    const result = cycle(universe, book(), { now_s: 1_000_000, command: SCHED_COMMAND.TIME });
    assert.deepEqual(decisionTexts(result), expected);
    assert.deepEqual(describeUniverse(universe), before);
  });
}

test("a running reservation on a host with vnodes of several sets: a vnode that moves and is used there ends no scheduler", () => {
  const universe = universeOf({
    nodes: "a ncpus=4 host=H; b ncpus=4 host=H",
    resvs: "R1 RN ncpus=2 0-9000000=(a:ncpus=2)",
    queues: [...inside("R1", 2), queue("own")],
    jobs: "1 in=R1 ncpus=1; 2 R in=R1 (a:ncpus=1)",
  });
  const node = universe.nodes.get("b");
  assert.ok(node !== undefined);
  // From now on the vnode belongs to another queue.
  const taken = { ...node, attrs: { ...node.attrs, queue: "own" }, jobs: ["9"], assigned: { ncpus: 1 } };
  applyDelta(universe, { revision: universe.revision + 1, changes: [{ put: "node", value: taken }] });
  assert.equal(universe.vnodes.get("a")?.state.spec.crowded, true);
  assert.deepEqual(decisionTexts(cycle(universe, book(), { now_s: 1_000_000, command: SCHED_COMMAND.TIME })), ["1=(a:ncpus=1)"]);
});

const resvRun = (world: World, more: Parameters<typeof book>[1] = {}, policy: Partial<Policy> = {}) => {
  const policies = book(policy, more);
  const universe = universeOf({ resources: [{ name: "lic", type: "long", flags: "q" }], ...world }, policies);
  const before = describeUniverse(universe);
  const result = cycle(universe, policies, { now_s: 1000, command: SCHED_COMMAND.NEW });
  assert.deepEqual(describeUniverse(universe), before);
  return result;
};

// biome-ignore format: a table
const ASKED: readonly (readonly [title: string, nodes: string, jobs: string, resvs: string, expected: readonly string[], more?: Partial<World>])[] = [
  ["it fits",                        "a ncpus=4", "", "R1 ncpus=4 ?2000-3000", ["R1 2000-3000=(a:ncpus=4)"]],
  ["more than there is",             "H ncpus=16", "", "R1 ncpus=32 ?2000-3000", ["R1: Insufficient amount of resource: ncpus "]],
  ["beside another one",             "H ncpus=16", "", "R2 ncpus=12 2000-5600=(H:ncpus=12); R3 ncpus=8 ?3800-7400; R4 ncpus=4 ?3800-7400", ["R3: Insufficient amount of resource: ncpus ", "R4 3800-7400=(H:ncpus=4)"]],
  ["after another one",              "H ncpus=16", "", "R2 ncpus=12 2000-5600=(H:ncpus=12); R3 ncpus=8 ?5600-7400", ["R3 5600-7400=(H:ncpus=8)"]],
  ["two at once: the older has it",  "a ncpus=4", "", "R2 ncpus=3 ?2000-3000; R1 ncpus=3 ?2500-3500", ["R2 2000-3000=(a:ncpus=3)", "R1: Insufficient amount of resource: ncpus "]],
  ["a job that runs into it",        "a ncpus=4; b ncpus=2", "1 R (a:ncpus=2) walltime=5000", "R1 ncpus=4 ?2000-3000", ["R1: Insufficient amount of resource: ncpus "], { }],
  ["a job that is over by then",     "a ncpus=4", "1 R (a:ncpus=2) walltime=1999", "R1 ncpus=4 ?2000-3000", ["R1 2000-3000=(a:ncpus=4)"]],
  ["queued jobs do not count",       "a ncpus=4", "1 ncpus=4", "R1 ncpus=4 ?1000-3000", ["R1 1000-3000=(a:ncpus=4)"]],
  ["an exclusive one beside a job",  "a ncpus=4", "1 R (a:ncpus=1) walltime=5000", "R1 ncpus=1 excl ?2000-3000", ["R1: No available resources on nodes"]],
  ["beside an exclusive one",        "a ncpus=4; b ncpus=1", "", "R1 ncpus=1 excl 2000-3000=(a:ncpus=1); R2 ncpus=2 ?2500-2600; R3 ncpus=1 ?2500-2600", ["R2: Insufficient amount of resource: ncpus ", "R3 2500-2600=(b:ncpus=1)"]],
  ["whole hosts",                    "a ncpus=4 host=h; b ncpus=4 host=h; c ncpus=4", "", "R1 ncpus=1 exclhost 2000-3000=(a:ncpus=1); R2 ncpus=1 ?2500-2600", ["R2 2500-2600=(c:ncpus=1)"]],
  ["spread",                         "a ncpus=4; b ncpus=4", "", "R1 2:ncpus=2 scatter ?2000-3000; R2 3:ncpus=1 scatter ?4000-5000", ["R1 2000-3000=(a:ncpus=2)+(b:ncpus=2)", "R2: Not enough total nodes available"]],
  ["resv_enable",                    "a ncpus=4 :resv_enable=False; b ncpus=2", "", "R1 ncpus=2 ?2000-3000", ["R1 2000-3000=(b:ncpus=2)"]],
  ["resv_enable nowhere",            "a ncpus=4 :resv_enable=False", "", "R1 ncpus=2 ?2000-3000", ["R1: Node not eligible for advance reservation"]],
  ["offline",                        "a ncpus=4 :offline", "", "R1 ncpus=2 ?2000-3000", ["R1: Not enough free nodes available"]],
  ["vnodes of a queue are not used", "a ncpus=4 :queue=own", "", "R1 ncpus=2 ?2000-3000", ["R1: Not enough free nodes available"], { queues: [QUEUE, queue("own")] }],
  ["limits of a vnode are for jobs", "a ncpus=4 :max_user_run=0 :max_running=0", "", "R1 ncpus=2 ?2000-3000", ["R1 2000-3000=(a:ncpus=2)"]],
  ["every occurrence",               "a ncpus=4; b ncpus=4", "", "R1 ncpus=3 2500-2600=(a:ncpus=3); S2 ncpus=3 ?1500-1600 ?2500-2600 ?3500-3600", ["S2 1500-1600=(a:ncpus=3) 2500-2600=(b:ncpus=3) 3500-3600=(a:ncpus=3)"]],
  ["occurrences that meet",          "a ncpus=4; b ncpus=4", "", "S1 ncpus=3 ?2000-2600 ?2500-3100 ?3000-3600", ["S1 2000-2600=(a:ncpus=3) 2500-3100=(b:ncpus=3) 3000-3600=(a:ncpus=3)"]],
  ["occurrences that would meet",    "a ncpus=4", "", "S1 ncpus=2 ?2000-2600 ?2500-3100 ?2550-3600", ["S1: Insufficient amount of resource: ncpus "]],
  ["beside those that meet",         "a ncpus=4", "", "S1 ncpus=2 2000-2600=(a:ncpus=2) 2500-3100=(a:ncpus=2); R2 ncpus=1 ?2550-2700; R3 ncpus=2 ?2600-2700", ["R2: Insufficient amount of resource: ncpus ", "R3 2600-2700=(a:ncpus=2)"]],
  ["not the second occurrence",      "a ncpus=4", "", "R1 ncpus=3 2500-2600=(a:ncpus=3); S2 ncpus=3 ?1500-1600 ?2500-2600 ?3500-3600", ["S2: Insufficient amount of resource: ncpus "]],
  ["in the partition asked for",     "a ncpus=2 :partition=p1; b ncpus=4 :partition=p2", "", "R1 part=p2 ncpus=2 ?2000-3000; R2 part=p1 ncpus=4 ?2000-3000", ["R1 p2 2000-3000=(b:ncpus=2)", "R2: Insufficient amount of resource: ncpus "], { sched: { partition: ["p1", "p2"] }, name: "s1" }],
  ["in any of its partitions",       "a ncpus=2 :partition=p1; b ncpus=4 :partition=p2", "", "R1 ncpus=2 ?2000-3000; R2 ncpus=4 ?2000-3000", ["R1 p1 2000-3000=(a:ncpus=2)", "R2 p2 2000-3000=(b:ncpus=4)"], { sched: { partition: ["p1", "p2"] }, name: "s1" }],
  ["a top job's place",              "a ncpus=4", "1 ncpus=4 walltime=1000 est=2000(a:ncpus=4)", "R1 ncpus=1 ?2500-3000; R2 ncpus=1 ?3000-4000", ["R1: Insufficient amount of resource: ncpus ", "R2 3000-4000=(a:ncpus=1)"]],
  ["licences of the server",         "a ncpus=9", "1 R (a:ncpus=1) lic=1 walltime=5000", "R1 lic=1 2000-3000=(a:ncpus=1); R2 lic=1 ?2500-3500; R3 lic=1 ?3000-4000", ["R2: Insufficient amount of server resource: lic ", "R3 3000-4000=(a:ncpus=1)"], { server: { resources_available: { lic: 2 } }, assigned: { lic: 1 } }],
  ["soon: now",                      "a ncpus=4", "", "R1 ncpus=4 asap=60", ["R1 1000-1060=(a:ncpus=4)"]],
  ["soon: when a job is over",       "a ncpus=4", "1 R (a:ncpus=2) walltime=1500; 2 R (a:ncpus=1) walltime=1700", "R1 ncpus=3 asap=60; R2 ncpus=4 asap=60", ["R1 1500-1560=(a:ncpus=3)", "R2 1700-1760=(a:ncpus=4)"]],
  ["soon: between reservations",     "a ncpus=4", "", "R1 ncpus=4 1050-1100=(a:ncpus=4); R2 ncpus=4 1160-1200=(a:ncpus=4); R3 ncpus=1 asap=60; R4 ncpus=4 asap=60", ["R3 1100-1160=(a:ncpus=1)", "R4 1200-1260=(a:ncpus=4)"]],
  ["soon: never",                    "a ncpus=4", "", "R1 ncpus=5 asap=60", ["R1: Insufficient amount of resource: ncpus "]],
  ["altered: later end, same place", "a ncpus=4; b ncpus=4", "", "R1 ncpus=2 2000-3000=(b:ncpus=2) alter ?2000-4000", ["R1 2000-4000=(b:ncpus=2)"]],
  ["altered: elsewhere",             "a ncpus=4; b ncpus=4", "", "R1 ncpus=2 2000-3000=(b:ncpus=2) alter ?2000-4000; R2 ncpus=3 3500-3600=(b:ncpus=3)", ["R1 2000-4000=(a:ncpus=2)"]],
  ["altered: nowhere",               "H ncpus=16", "", "R1 ncpus=8 2000-3000=(H:ncpus=8) alter ?2000-4000; R2 ncpus=12 3500-3600=(H:ncpus=12)", ["R1: Job would conflict with reservation or top job"]],
  ["altered: fewer chunks",          "a ncpus=4; b ncpus=4", "", "R1 1:ncpus=2 2000-3000=(b:ncpus=4)+(b:ncpus=2) alter ?2000-3000", ["R1 2000-3000=(b:ncpus=2)"]],
  ["altered in its time: longer",    "a ncpus=4; b ncpus=4", "1 R in=R1 (b:ncpus=1) walltime=9000", "R1 RN ncpus=2 500-3000=(b:ncpus=2) alter ?500-4000", ["R1 500-4000=(b:ncpus=2)"]],
  ["altered in its time: in the way","a ncpus=4; b ncpus=4", "1 R in=R1 (b:ncpus=1) walltime=9000", "R1 RN ncpus=2 500-3000=(b:ncpus=2) alter ?500-4000; R2 ncpus=3 3500-3600=(b:ncpus=3)", ["R1: Job would conflict with reservation or top job"]],
  ["altered in its time: empty",     "a ncpus=4; b ncpus=4", "", "R1 RN ncpus=2 500-3000=(b:ncpus=2) alter ?500-4000; R2 ncpus=3 3500-3600=(b:ncpus=3)", ["R1 500-4000=(a:ncpus=2)"]],
  ["altered: its jobs' chunk stays", "a ncpus=4; b ncpus=4", "1 R in=R1 (b:ncpus=1) walltime=9000", "R1 RN 1:ncpus=2 500-3000=(a:ncpus=2)+(b:ncpus=2) alter ?500-3000", ["R1 500-3000=(b:ncpus=2)"]],
  ["alterations come first",         "a ncpus=4", "", "R2 ncpus=4 ?3000-4000; R1 ncpus=4 2000-3000=(a:ncpus=4) alter ?2000-3500", ["R1 2000-3500=(a:ncpus=4)", "R2: Insufficient amount of resource: ncpus "]],
  ["in one placement set",           "a ncpus=4 rack=A; b ncpus=4 rack=B; c ncpus=4 rack=B", "1 R (a:ncpus=1)", "R1 2:ncpus=3 group=rack ?2000-3000", ["R1 2000-3000=(b:ncpus=3)+(c:ncpus=3)"], { resources: [{ name: "rack", type: "string", flags: "h" }] }],
  ["degraded: the lost chunk moves", "a ncpus=4 :down; b ncpus=4; c ncpus=4", "", "R1 2:ncpus=2 2000-3000=(a:ncpus=2)+(c:ncpus=2) reconfirm ?2000-3000", ["R1 2000-3000=(b:ncpus=2)+(c:ncpus=2)"]],
  ["degraded: nowhere",              "a ncpus=4 :down; b ncpus=1", "", "R1 ncpus=2 2000-3000=(a:ncpus=2) reconfirm ?2000-3000", ["R1: Insufficient amount of resource: ncpus "]],
  ["degraded: back",                 "a ncpus=4; b ncpus=4", "", "R1 ncpus=2 2000-3000=(b:ncpus=2) reconfirm ?2000-3000", ["R1 2000-3000=(b:ncpus=2)"]],
  ["degraded in its time",           "a ncpus=4 :down; b ncpus=4; c ncpus=4", "1 R in=R1 (c:ncpus=2) walltime=9000", "R1 RN 2:ncpus=2 scatter 500-3000=(a:ncpus=2)+(c:ncpus=2) reconfirm ?500-3000", ["R1 500-3000=(b:ncpus=2)+(c:ncpus=2)"]],
  ["degraded: a later occurrence",   "a ncpus=4 :down; b ncpus=4", "", "S1 RN ncpus=2 500-3000=(b:ncpus=2) 5000-6000=(a:ncpus=2) reconfirm ?5000-6000", ["S1 5000-6000=(b:ncpus=2)"]],
];
for (const [title, nodes, jobs, resvs, expected, more = {}] of ASKED) {
  test(`asked about a reservation: ${title}`, () => {
    const texts = decisionTexts(resvRun({ nodes, jobs, resvs, ...more }));
    assert.deepEqual(
      texts.filter((text) => /^[RS]\d/.test(text)),
      expected,
    );
  });
}

test("a cycle that confirms ends without looking at jobs, one that denies goes on; the log (resv-logs, resv-denied, resv-standing)", () => {
  const logOf = (resvs: string): string[] => logTexts(resvRun({ nodes: "a ncpus=4", jobs: "1 ncpus=1", resvs }), 0x0380);
  assert.deepEqual(logOf("S1 ncpus=4 ?2000-3000 ?86402000-86403000"), [
    "0080;Req;;Starting Scheduling Cycle",
    "0100;Svr;;It is primetime.  It will never end",
    "0200;Resv;S1;Confirming 2 Occurrences",
    "0100;Resv;S1;Occurrence 1/2,Thu Jan  1 00:33:20 1970",
    "0100;Resv;S1;Occurrence 2/2,Wed Sep 27 00:33:20 1972",
    "0200;Resv;S1;confirmed",
    "0080;Req;;Leaving Scheduling Cycle",
  ]);
  assert.deepEqual(logOf("R1 ncpus=5 ?2000-3000; R2 ncpus=5 1001-1002=(b:ncpus=5) reconfirm ?1001-1002"), [
    "0080;Req;;Starting Scheduling Cycle",
    "0100;Svr;;It is primetime.  It will never end",
    "0200;Resv;R1;PBS Failed to confirm resv: Insufficient amount of resource: ncpus ",
    "0200;Resv;R2;Reservation is in degraded mode",
    "0200;Resv;R2;Reservation Failed to Reconfirm: Insufficient amount of resource: ncpus ",
    "0080;Job;1;Considering job to run",
    "run 1",
    "0080;Req;;Leaving Scheduling Cycle",
  ]);
});

test("a degraded reservation that its running jobs keep where it is says so in the log", () => {
  const nodes = "a ncpus=1; b ncpus=4 :offline; c ncpus=4 :offline";
  const resvs = "R1 RN 2:ncpus=4 900-2000=(b:ncpus=4)+(c:ncpus=4) reconfirm ?900-2000";
  const lines = (jobs: string): string[] => logTexts(resvRun({ nodes, jobs, resvs }), 0x0200);
  const told = lines("9 R (b:ncpus=2) in=R1");
  assert.ok(told.includes("0200;Resv;R1;PBS Failed to confirm resv: Reservation has running jobs in it"), told.join("\n"));
  assert.ok(!lines("").some((line) => line.includes("running jobs")));
});

test("no reservation lies in dedicated time, unless resv_confirm_ignore says so", () => {
  const dedicated = [{ from_s: 2500, to_s: 2600 }];
  const { config, messages } = parseSchedConfig("resv_confirm_ignore: dedicated_time\nresv_confirm_ignore: everything\n");
  assert.ok(messages.some(({ line, text }) => line === 2 && text === "Invalid resv_confirm_ignore everything"));
  const asked = (resvs: string, policy: Partial<Policy> = {}): string[] =>
    decisionTexts(resvRun({ nodes: "a ncpus=4", jobs: "", resvs }, { dedicated }, policy));
  assert.deepEqual(asked("R1 ?2000-3000", { resv_confirm_ignore: config.prime.resv_confirm_ignore }), ["R1 2000-3000=(a:ncpus=1)"]);
  assert.deepEqual(asked("R1 ?2000-3000; R2 ?2600-2700; R3 ?2550-2650; R4 asap=1600"), [
    "R1: Job would not finish before dedicated time",
    "R2 2600-2700=(a:ncpus=1)",
    "R3: Dedicated Time",
    "R4 2600-4200=(a:ncpus=1)",
  ]);
});
