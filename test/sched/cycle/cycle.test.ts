// A complete cycle: its log, resources of queue and server, times, partitions, qrun, blocking.

import assert from "node:assert/strict";
import { test } from "node:test";
import { addTemporary, createFairshare } from "#model/fairshare.ts";
import { parseResourceGroup } from "#model/resource-group.ts";
import type { SchedNode } from "#protocol/sched-link.ts";
import { SCHED_COMMAND } from "#protocol/sched-link.ts";
import { cycle, cycleInParts } from "#sched/cycle/cycle.ts";
import type { CycleResult } from "#sched/cycle/result.ts";
import { applyDelta, takeComment } from "#sched/mirror/mirror.ts";
import { parseDedicatedTime } from "#sched/shapes/dedicated-time.ts";
import { parseHolidays } from "#sched/shapes/holidays.ts";
import { UTC } from "#sched/shapes/local-time.ts";
import { verdictRecord } from "#sched/shapes/log-record.ts";
import type { PolicyModule } from "#sched/shapes/module.ts";
import { commentText, logText } from "#sched/shapes/reasons.ts";
import type { World } from "../world.ts";
import { book, decisionTexts, jobOf, logTexts, queue, run, universeOf } from "../world.ts";

const NOW_S = 1_000_000;

test("cycle: the log of a small cycle (sched-cycle-log)", () => {
  const result = run({ nodes: "H ncpus=16", jobs: "1 ncpus=10 pack; 2 ncpus=10 pack; 3 ncpus=17 pack" });
  assert.deepEqual(logTexts(result, 767), [
    "0080;Req;;Starting Scheduling Cycle",
    "0080;Job;1;Considering job to run",
    "run 1",
    "0080;Job;2;Considering job to run",
    "0040;Job;2;Insufficient amount of resource: ncpus (R: 10 A: 6 T: 16)",
    "0080;Job;3;Considering job to run",
    "0040;Job;3;Insufficient amount of resource: ncpus (R: 17 A: 16 T: 16)",
    "0040;Job;3;Job will never run with the resources currently configured in the complex",
    "0080;Req;;Leaving Scheduling Cycle",
  ]);
});

test("cycle: a vnode lowered below what is used there takes nothing from what others have left", () => {
  const result = run({ nodes: "a ncpus=4 mem=1gb; b ncpus=2 mem=2gb", jobs: "1 R (a:ncpus=1:mem=3gb); 2 ncpus=1:mem=2gb" });
  assert.deepEqual(decisionTexts(result), ["2=(b:ncpus=1:mem=2097152kb)"]);
});

test("cycle: the log at 2047, comments not repeated (sched-cycle-log)", () => {
  const policies = book();
  const universe = universeOf({ nodes: "H ncpus=16", jobs: "1 R (H:ncpus=10); 2 ncpus=10 pack; 3 ncpus=17 pack" }, policies);
  const input = { now_s: NOW_S, command: SCHED_COMMAND.CMD } as const;
  const changes = cycle(universe, policies, input).decisions.flatMap((decision) => {
    const job = decision.kind === "comment" ? universe.jobs.get(decision.job) : undefined;
    return job === undefined || decision.kind !== "comment" ? [] : [{ put: "job", value: { ...job, comment: decision.comment } } as const];
  });
  applyDelta(universe, { revision: 2, changes });
  const result = cycle(universe, policies, input);
  assert.deepEqual(result.decisions, []);
  assert.deepEqual(logTexts(result), [
    "0080;Req;;Starting Scheduling Cycle",
    "0100;Svr;;It is primetime.  It will never end",
    "0400;Sched;create_resresv_sets;Number of job equivalence classes: 2",
    "0400;Node;create_node_buckets;Created node bucket ncpus=16:accelerator=False",
    "0080;Job;2;Considering job to run",
    "0040;Job;2;Insufficient amount of resource: ncpus (R: 10 A: 6 T: 16)",
    "0080;Job;3;Considering job to run",
    "0040;Job;3;Insufficient amount of resource: ncpus (R: 17 A: 16 T: 16)",
    "0040;Job;3;Job will never run with the resources currently configured in the complex",
    "0080;Req;;Leaving Scheduling Cycle",
  ]);
});

test("cycle: decisions are given away in parts, each once and in order, and nothing else is different", () => {
  const jobs = Array.from({ length: 1200 }, (_, at) => `${at + 1} ncpus=1`).join("; ");
  const world = { nodes: "H ncpus=2000", jobs };
  const whole = run(world);
  const universe = universeOf(world);
  const parts: (readonly string[])[] = [];
  const steps = cycleInParts(universe, book(), { now_s: NOW_S, command: SCHED_COMMAND.TIME });
  let step = steps.next();
  for (; step.done !== true; step = steps.next()) parts.push(decisionTexts({ decisions: step.value } as CycleResult));
  const all = decisionTexts(step.value);
  assert.deepEqual(all, decisionTexts(whole));
  assert.deepEqual(logTexts(step.value), logTexts(whole));
  assert.equal(parts.length, 2);
  assert.deepEqual(parts.flat(), all.slice(0, parts.flat().length));
  assert.equal(all.length, 1200);
});

test("cycle: a decision is given away after a while, however few there are", () => {
  let elapsed_s = 0;
  const steps = cycleInParts(universeOf({ nodes: "H ncpus=9", jobs: "1 ncpus=1; 2 ncpus=1; 3 ncpus=1" }), book(), {
    now_s: NOW_S,
    command: SCHED_COMMAND.TIME,
    elapsed_s: () => (elapsed_s += 0.1),
  });
  const first = steps.next();
  assert.ok(first.done !== true && first.value.length > 0 && first.value.length < 3);
});

test("cycle: one that is given up between two parts leaves no usage of what it started", () => {
  const { tree } = parseResourceGroup("users 10 root 10\n", 1);
  const fairshare = createFairshare(tree, null, NOW_S);
  let elapsed_s = 0;
  const steps = cycleInParts(universeOf({ nodes: "H ncpus=9", jobs: "1 ncpus=1; 2 ncpus=1; 3 ncpus=1" }), book(), {
    now_s: NOW_S,
    command: SCHED_COMMAND.TIME,
    elapsed_s: () => (elapsed_s += 0.1),
    fairshare,
  });
  const differ = (): number => [...fairshare.nodes.values()].filter(({ usage, temporary }) => usage !== temporary).length;
  assert.notEqual(steps.next().done, true);
  // As the module fairshare does for each started job.
  addTemporary(fairshare, "users", 5);
  assert.notEqual(differ(), 0);
  steps.return(undefined as never);
  assert.equal(differ(), 0);
});

test("cycle: a module that has begun hears of the end once, of a cycle that is given up as well", () => {
  for (const given_up of [true, false]) {
    const heard: string[] = [];
    const site: PolicyModule = {
      name: "hears",
      begin: () => void heard.push("begin"),
      end: ({ complete }) => void heard.push(`end ${complete}`),
    };
    const policies = book({}, { modules: ["resources", "hears"], site_modules: new Map([["hears", site]]) });
    let elapsed_s = 0;
    const steps = cycleInParts(universeOf({ nodes: "H ncpus=9", jobs: "1 ncpus=1; 2 ncpus=1; 3 ncpus=1" }), policies, {
      now_s: NOW_S,
      command: SCHED_COMMAND.TIME,
      elapsed_s: () => (elapsed_s += 0.1),
    });
    assert.notEqual(steps.next().done, true);
    if (given_up) steps.return(undefined as never);
    while (steps.next().done !== true);
    assert.deepEqual(heard, ["begin", `end ${!given_up}`]);
  }
});

test("cycle: what the log says about a start is the server's verdict", () => {
  const decision = { kind: "run", job: "1.svr", exec_vnode: "(a:ncpus=1)" } as const;
  assert.equal(verdictRecord(decision, { ok: true })?.text, "Job run");
  assert.equal(verdictRecord(decision, { ok: false, code: 15018, text: "Job deleted" })?.text, "Failed to run: Job deleted (15018)");
});

type Attrs = Record<string, unknown>;

// biome-ignore format: a table
const SERVER: readonly (readonly [title: string, jobs: string, expected: readonly string[], server: Attrs, queue: Attrs, assigned: Record<string, number>])[] = [
  ["server resource, not now",   "1 lic=2",          ["1: Not Running: Insufficient amount of server resource: lic (R: 2 A: 1 T: 2)"],    { resources_available: { lic: 2 } }, {}, { lic: 1 }],
  ["server resource, never",     "1 lic=3",          ["1: Can Never Run: Insufficient amount of server resource: lic (R: 3 A: 2 T: 2)"],  { resources_available: { lic: 2 } }, {}, { lic: 1 }],
  ["taken within the cycle",     "1 lic=1; 2 lic=1", ["1=(H:ncpus=1)", "2: Not Running: Insufficient amount of server resource: lic (R: 1 A: 0 T: 2)"], { resources_available: { lic: 2 } }, {}, { lic: 1 }],
  ["unset at the server",        "1 lic=3",          ["1=(H:ncpus=1)"],                                                                     {}, {}, {}],
  ["queue resource",             "9 R (H:ncpus=4); 1 ncpus=4", ["1: Not Running: Insufficient amount of queue resource: ncpus (R: 4 A: 2 T: 6)"], {}, { resources_available: { ncpus: 6 } }, {}],
  ["queue resource, never",      "1 ncpus=7",        ["1: Can Never Run: Insufficient amount of queue resource: ncpus (R: 7 A: 6 T: 6)"],  {}, { resources_available: { ncpus: 6 } }, {}],
  ["queue before server",        "1 lic=3",          ["1: Can Never Run: Insufficient amount of queue resource: lic (R: 3 A: 1 T: 1)"],    { resources_available: { lic: 2 } }, { resources_available: { lic: 1 } }, {}],
  ["no free cpu stands before the server's lack", "9 R (H:ncpus=16); 1 lic=3", ["1: Not Running: Not enough free nodes available"],           { resources_available: { lic: 2 } }, {}, {}],
];
for (const [title, jobs, expected, server, attrs, assigned] of SERVER) {
  test(`cycle: ${title}`, () => {
    const world: World = {
      nodes: "H ncpus=16",
      jobs,
      server,
      assigned,
      queues: [queue("workq", attrs)],
      resources: [{ name: "lic", type: "long", flags: "q" }],
    };
    assert.deepEqual(decisionTexts(run(world, { resources: new Set(["ncpus", "lic"]) })), expected);
  });
}

test("cycle: a queue that is not started", () => {
  const world = { nodes: "H ncpus=16", jobs: "1 @slow; 2", queues: [queue("workq"), queue("slow", { started: false })] };
  const result = run(world);
  assert.deepEqual(decisionTexts(result), ["1: Not Running: Queue not started.", "2=(H:ncpus=1)"]);
  assert.ok(logTexts(result).includes("0040;Job;1;Queue not started"));
  assert.ok(!logTexts(result).includes("0080;Job;1;Considering job to run"));
});

test("cycle: jobs stay in their queue's partition, and vnodes of a queue serve it alone", () => {
  const queues = [queue("workq"), queue("q1", { partition: "p1" }), queue("q2", { partition: "p2" }), queue("own")];
  const nodes = "d ncpus=2; x ncpus=2 :partition=p1; y ncpus=2 :partition=p2; o ncpus=2 :queue=own";
  const jobs = "1 @q1 ncpus=2; 2 @q1 ncpus=1; 3 @q2; 4 ncpus=2; 5 ncpus=1; 6 @own ncpus=2; 7 @q2 ncpus=8";
  assert.deepEqual(decisionTexts(run({ nodes, jobs, queues })).sort(), [
    "1=(x:ncpus=2)",
    "2: Not Running: Not enough free nodes available",
    "3=(y:ncpus=1)",
    "4=(d:ncpus=2)",
    "5: Not Running: Not enough free nodes available",
    "6=(o:ncpus=2)",
    "7: Can Never Run: Insufficient amount of resource: ncpus (R: 8 A: 2 T: 2)",
  ]);
});

test("cycle: a partition's vnodes on one host with others (msched-basic)", () => {
  const world = {
    nodes: "v2 ncpus=4 host=H :partition=P1",
    jobs: "3 @wq1 ncpus=8",
    queues: [queue("wq1", { partition: "P1" })],
    sched: { partition: ["P1"] },
  };
  assert.deepEqual(decisionTexts(run(world)), ["3: Can Never Run: Insufficient amount of resource: ncpus (R: 8 A: 4 T: 4)"]);
});

test("cycle: nothing to schedule with", () => {
  const none = run({ nodes: "", jobs: "1" });
  assert.deepEqual(none.decisions, []);
  assert.deepEqual(logTexts(none).slice(2, 4), [
    "0040;Svr;query_nodes;No nodes found in partitions serviced by scheduler",
    "0002;Svr;;Problem with creating server data structure",
  ]);
  const universe = universeOf({ nodes: "a ncpus=1", jobs: "1" });
  universe.sched = { name: "s1", attrs: {} };
  const result = cycle(universe, book(), { now_s: NOW_S, command: SCHED_COMMAND.TIME });
  assert.ok(logTexts(result).includes("0040;Svr;query_server;Scheduler does not contain a partition"));
});

test("cycle: qrun looks at one job, ignores limits, keeps to resources", () => {
  const world: World = {
    nodes: "H ncpus=16",
    jobs: "1; 2 ncpus=4; 3 ncpus=40; 4 H; 5 H lic=1",
    server: { max_run: { "u:PBS_GENERIC": 0 } },
  };
  const qrun = (job: string) => run(world, {}, { command: SCHED_COMMAND.AJOB, job });
  assert.deepEqual(decisionTexts(qrun("2")), ["2=(H:ncpus=4)"]);
  assert.deepEqual(logTexts(qrun("2"), 767), [
    "0080;Req;;Starting Scheduling Cycle",
    "0008;Job;2;Received qrun request",
    "0080;Job;2;Considering job to run",
    "run 2",
    "0080;Req;;Leaving Scheduling Cycle",
  ]);
  assert.equal(decisionTexts(qrun("3")).at(-1), "3 refused: Insufficient amount of resource: ncpus (R: 40 A: 16 T: 16)");
  assert.deepEqual(decisionTexts(qrun("4")), ["4=(H:ncpus=1)"], "a held job may be started by hand");
  assert.deepEqual(decisionTexts(qrun("99")), ["99 refused: Unknown Job Id"]);
});

test("cycle: strict_ordering holds back all jobs after the first that cannot run", () => {
  const world = { nodes: "H ncpus=16", jobs: "9 R (H:ncpus=10); 1 ncpus=1; 2 ncpus=17; 3 ncpus=8; 4 ncpus=1; 5 ncpus=2" };
  assert.deepEqual(decisionTexts(run(world, { strict_ordering: true, backfill: false })), [
    "1=(H:ncpus=1)",
    "2: Can Never Run: Insufficient amount of resource: ncpus (R: 17 A: 16 T: 16)",
    "3: Not Running: Insufficient amount of resource: ncpus (R: 8 A: 5 T: 16)",
    "4: Not Running: Job would break strict sorted order",
    "5: Not Running: Job would break strict sorted order",
  ]);
});

test("cycle: max_job_check", () => {
  const result = run({ nodes: "H ncpus=16", jobs: "1; 2; 3" }, { max_job_check: 2 });
  assert.deepEqual(decisionTexts(result), ["1=(H:ncpus=1)", "2=(H:ncpus=1)"]);
  assert.ok(logTexts(result).some((line) => line.endsWith("Bailed out of main job loop after checking to see if 2 jobs could run.")));
});

test("cycle: equal jobs get one look and one answer; the comment of each is set once", () => {
  const world = { nodes: "H ncpus=16", jobs: "9 R (H:ncpus=12); 1 ncpus=8; 2 ncpus=6; 3 ncpus=8; 4 ncpus=8" };
  const result = run(world);
  assert.equal(result.stats.jobs_considered, 2);
  assert.deepEqual(decisionTexts(result), [
    "1: Not Running: Insufficient amount of resource: ncpus (R: 8 A: 4 T: 16)",
    "2: Not Running: Insufficient amount of resource: ncpus (R: 6 A: 4 T: 16)",
    "3: Not Running: Insufficient amount of resource: ncpus (R: 8 A: 4 T: 16)",
    "4: Not Running: Insufficient amount of resource: ncpus (R: 8 A: 4 T: 16)",
  ]);
});

test("cycle: in a long line a change of amounts alone is told to the first job, to the others after a minute", () => {
  const policies = book();
  const jobs = Array.from({ length: 150 }, (_, at) => `${at + 1} ncpus=8`).join("; ");
  const universe = universeOf({ nodes: "H ncpus=16", jobs: `999 R (H:ncpus=10); ${jobs}` }, policies);
  const comments = (now_s: number): string[] => {
    const { decisions } = cycle(universe, policies, { now_s, command: SCHED_COMMAND.TIME });
    return decisions.flatMap((decision) => {
      if (decision.kind !== "comment") return [];
      takeComment(universe, decision.job, decision.comment);
      return [`${decision.job}: ${decision.comment}`];
    });
  };
  const use = (ncpus: number): void => {
    const node = universe.nodes.get("H");
    assert.ok(node !== undefined);
    applyDelta(universe, { revision: universe.revision + 1, changes: [{ put: "node", value: { ...node, assigned: { ncpus } } }] });
  };
  assert.equal(comments(NOW_S).length, 150);
  use(11);
  assert.deepEqual(comments(NOW_S + 1), ["1: Not Running: Insufficient amount of resource: ncpus (R: 8 A: 5 T: 16)"]);
  assert.deepEqual(comments(NOW_S + 2), []);
  assert.equal(comments(NOW_S + 60).length, 149);
  use(12);
  assert.equal(comments(NOW_S + 61).length, 1);
  applyDelta(universe, {
    revision: universe.revision + 1,
    changes: [
      {
        put: "node",
        value: { ...(universe.nodes.get("H") as SchedNode), attrs: { ...universe.nodes.get("H")?.attrs, state: ["offline"] } },
      },
    ],
  });
  assert.equal(comments(NOW_S + 62).length, 150, "another reason is told to all at once");
});

test("cycle: update_comments False sends none", () => {
  assert.deepEqual(run({ nodes: "H ncpus=1", jobs: "1 ncpus=2" }, { update_comments: false }).decisions, []);
});

test("cycle: attr_update_period sends comments once in a while only", () => {
  const world = { nodes: "H ncpus=1", jobs: "1 ncpus=2", sched: { attr_update_period: 60 } };
  const first = run(world, {}, { now_s: NOW_S });
  assert.equal(first.decisions.length, 1);
  const second = run(world, {}, { now_s: NOW_S + 59, memory: first.memory });
  assert.equal(second.decisions.length, 0);
  assert.equal(run(world, {}, { now_s: NOW_S + 60, memory: second.memory }).decisions.length, 1);
});

const PRIME_QUEUES = [queue("workq"), queue("p_day"), queue("np_night")];

test("cycle: prime and non-prime queues (sched-primetime)", () => {
  const world = { nodes: "H ncpus=16", jobs: "1 @p_day; 2 @np_night; 3", queues: PRIME_QUEUES };
  const { year } = UTC.civil(NOW_S);
  const at = (hours: string) => {
    const { holidays } = parseHolidays(`YEAR ${year}\nweekday ${hours}\nsaturday ${hours}\nsunday ${hours}\n`);
    return cycle(universeOf(world), book({}, { holidays }), { now_s: NOW_S, command: SCHED_COMMAND.TIME });
  };
  assert.deepEqual(decisionTexts(at("none all")).sort(), [
    "1: Not Running: Job will run in primetime only",
    "2=(H:ncpus=1)",
    "3=(H:ncpus=1)",
  ]);
  assert.deepEqual(decisionTexts(at("all none")).sort(), [
    "1=(H:ncpus=1)",
    "2: Not Running: Job will run in nonprimetime only",
    "3=(H:ncpus=1)",
  ]);
  assert.ok(logTexts(at("none all")).includes("0040;Job;1;Job only runs in primetime"));
});

test("cycle: before dedicated time (sched-dedicated-time)", () => {
  const hour = 3600;
  const local = UTC.civil(NOW_S);
  const minutes = (shift_h: number) => {
    const { year, month, day, second_of_day } = UTC.civil(NOW_S + shift_h * hour);
    return `${month}/${day}/${year} ${Math.floor(second_of_day / 3600)}:${String(Math.floor(second_of_day / 60) % 60).padStart(2, "0")}`;
  };
  assert.equal(local.year, 1970);
  const world = {
    nodes: "H ncpus=16",
    jobs: "1 walltime=600; 2 walltime=7200; 3; 4 @dedq walltime=3600; 5 @dedq walltime=18000",
    queues: [queue("workq"), queue("dedq")],
  };
  const at = (text: string, job?: string) => {
    const policies = book({}, { dedicated: parseDedicatedTime(text, UTC).times });
    const command = job === undefined ? SCHED_COMMAND.TIME : SCHED_COMMAND.AJOB;
    return cycle(universeOf(world, policies), policies, { now_s: NOW_S, command, ...(job === undefined ? {} : { job }) });
  };
  const ahead = `${minutes(1)} ${minutes(3)}\n`;
  assert.deepEqual(decisionTexts(at(ahead)).sort(), [
    "1=(H:ncpus=1)",
    "2: Not Running: Job would cross dedicated time boundary",
    "3: Not Running: Job would cross dedicated time boundary",
    "4: Not Running: Dedicated time conflict",
    "5: Not Running: Dedicated time conflict",
  ]);
  assert.equal(decisionTexts(at(ahead, "2")).at(-1), "2 refused: Job would not finish before dedicated time");
  assert.deepEqual(decisionTexts(at(`${minutes(-1)} ${minutes(2)}\n`)).sort(), [
    "1: Not Running: Dedicated time conflict",
    "2: Not Running: Dedicated time conflict",
    "3: Not Running: Dedicated time conflict",
    "4=(H:ncpus=1)",
    "5: Not Running: Job would cross dedicated time boundary",
  ]);
});

test("reasons: comment and log text where they differ", () => {
  const why = { code: "SET_TOO_SMALL", resource: "Placement", where: 'rack="A"' };
  assert.equal(commentText(why), 'Not Running: Placement set rack="A" has too few free resources');
  assert.equal(logText(why), 'Placement set rack="A" has too few free resources or is too small');
  assert.equal(commentText({ code: "NODE_TYPE" }), "Not Running: Not enough of the right type of nodes are available");
  assert.equal(logText({ code: "NODE_TYPE" }), "Not enough of the right type of nodes available");
  assert.equal(commentText({ code: "a site's own words" }), "Not Running: a site's own words");
});

test("cycle: a site's policy module in the chain: its reason, and classes kept apart by what it looks at", () => {
  const site: PolicyModule = {
    name: "veto",
    classKey: (job) => job.name,
    checks: [{ stage: "limits", check: (_, { entry }) => (entry.job.name === "bad" ? { code: "Not today" } : null) }],
  };
  const policies = book({}, { modules: ["resources", "veto"], site_modules: new Map([["veto", site]]) });
  const universe = universeOf({ nodes: "a ncpus=4", jobs: "1 ncpus=1; 2 ncpus=1" }, policies);
  applyDelta(universe, { revision: 2, changes: [{ put: "job", value: { ...jobOf("1 ncpus=1", 1), name: "bad" } }] });
  const decide = (): string[] => decisionTexts(cycle(universe, policies, { now_s: NOW_S, command: SCHED_COMMAND.TIME }));
  assert.deepEqual(decide(), ["1: Not Running: Not today", "2=(a:ncpus=1)"]);
  applyDelta(universe, { revision: 3, changes: [{ put: "job", value: { ...jobOf("2 ncpus=1", 2), name: "bad" } }] });
  assert.deepEqual(decide(), ["1: Not Running: Not today", "2: Not Running: Not today"], "a new name is another class");
});

test("the log names the chunks of an exclusive job that is placed by whole nodes, at DEBUG3", () => {
  const chunks = (job: string): string[] =>
    logTexts(run({ nodes: "a ncpus=4; b ncpus=4", jobs: job })).filter((line) => line.includes(";Chunk: "));
  assert.deepEqual(chunks("1 4:ncpus=1+1:ncpus=2 excl"), ["0400;Job;1;Chunk: 4:ncpus=1", "0400;Job;1;Chunk: 1:ncpus=2"]);
  assert.deepEqual(chunks("1 4:ncpus=1"), []);
});
