// Explanations of jobs: they agree with the cycle, leave the universe unchanged, and name every obstacle.

import assert from "node:assert/strict";
import { test } from "node:test";
import { explanationText } from "#admin/explain/explanation-text.ts";
import type { Explanation } from "#protocol/explanation.ts";
import type { SchedQueue } from "#protocol/sched-link.ts";
import { NO_MEMORY } from "#sched/cycle/result.ts";
import { type EstimateHistory, estimatesOf, forgetEstimates, noteEstimates } from "#sched/explain/estimate-history.ts";
import { explainJob } from "#sched/explain/explain.ts";
import type { Policy } from "#sched/shapes/policy.ts";
import { book, queue, universeOf, type World } from "../world.ts";

const NOW_S = 1_000_000;

function explain(
  world: World,
  job: string,
  policy: Partial<Policy> = {},
  more: { sees_others?: boolean; history?: EstimateHistory } = {},
): Explanation {
  const policies = book(policy);
  const input = { now_s: NOW_S, job, memory: NO_MEMORY, history: new Map(), sees_others: true, ...more };
  const explanation = explainJob(universeOf(world, policies), policies, input);
  assert.ok(explanation !== null, `${job} is known`);
  return explanation;
}

const TWO_LEVELS = [queue("workq"), queue("express", { Priority: 150 })];

test("a job for which others would make room: who they are, unless that is nobody's business", () => {
  const world = { nodes: "a ncpus=4", jobs: "1 R (a:ncpus=2); 2 R (a:ncpus=2); 3 ncpus=4 @express; 4 ncpus=1", queues: TWO_LEVELS };
  const told = explain(world, "3");
  assert.deepEqual([told.verdict, told.preempts, told.why?.text], ["preempts", ["2", "1"], "Not Running: Not enough free nodes available"]);
  assert.deepEqual(explain(world, "3", {}, { sees_others: false }).preempts, [null, null]);
  assert.match(explanationText(told), /: other jobs make room: the next cycle starts it\n(.*\n)* {2}preempts {10}2, 1\n/);
  const normal = explain({ ...world, jobs: world.jobs.replace("3 ncpus=4 @express; ", "") }, "4");
  assert.deepEqual([normal.verdict, normal.preempts], ["waits", []]);
});

test("a job that was preempted waits to go on; one that is suspended by hand is not offered", () => {
  const world = { nodes: "a ncpus=4", jobs: "1 S (a:ncpus=2) ptime=999990; 2 R (a:ncpus=4) walltime=60", queues: TWO_LEVELS };
  const told = explain(world, "1");
  assert.deepEqual([told.verdict, told.preempted_s, told.running], ["waits", 999_990, null]);
  assert.match(explanationText(told), / {2}preempted {9}.*; it goes before other jobs of its level\n/);
});

test("a job that waits for cpus: its reason, node classes, what has them, and its earliest start", () => {
  const world = {
    nodes: "a ncpus=4; b ncpus=4; c ncpus=8 :offline; d ncpus=2",
    jobs: "1 R (a:ncpus=3) walltime=100; 2 R (b:ncpus=4) walltime=50; 3 2:ncpus=2 walltime=60; 4 ncpus=1",
  };
  const told = explain(world, "3");
  assert.equal(told.verdict, "waits");
  assert.deepEqual(
    told.reasons.map(({ stage, text }) => [stage, text]),
    [
      ["totals", "Not Running: Insufficient amount of resource: ncpus (R: 4 A: 3 T: 18)"],
      ["placement", "Not Running: Insufficient amount of resource: ncpus (R: 2 A: 1 T: 4)"],
    ],
  );
  assert.deepEqual(told.why, told.reasons[0]);
  assert.deepEqual(
    told.nodes.map(({ hosts, examples, has, free, state, copies_now, copies_empty, why }) => [
      hosts,
      examples.join(),
      has,
      free,
      state,
      copies_now,
      copies_empty,
      why?.text ?? "",
    ]),
    [
      [1, "a", "ncpus=4", "ncpus=1", null, [0], [2], "Not Running: Insufficient amount of resource: ncpus (R: 2 A: 1 T: 4)"],
      [1, "b", "ncpus=4", "ncpus=0", "job-busy", [0], [2], "Not Running: Node is in an ineligible state: job-busy"],
      [1, "c", "ncpus=8", "ncpus=0", "offline", [0], [0], "Not Running: Node is in an ineligible state: offline"],
      [1, "d", "ncpus=2", "ncpus=2", null, [1], [1], ""],
    ],
  );
  assert.deepEqual(
    told.obstacles.map(({ kind, id, to_s, vnodes }) => [kind, id, to_s, vnodes]),
    [
      ["job", "2", 50, 1],
      ["job", "1", 100, 1],
    ].map(([kind, id, to_s, vnodes]) => [kind, id, Math.max(Number(to_s), NOW_S + 1), vnodes]),
  );
  assert.equal(told.earliest?.start_s, NOW_S + 1, "what is past its walltime is over a second from now");
  assert.equal(told.jobs_before, 0);
  assert.deepEqual(told.chunks, ["2:ncpus=2"]);
  assert.equal(told.walltime_s, 60);
});

test("the earliest start: after the jobs that end, kept by published plans, none for what never runs", () => {
  const running = (id: string, cpus: number, wall: number): string => `${id} R (a:ncpus=${cpus}) walltime=${wall} stime=${NOW_S}`;
  const world: World = {
    nodes: "a ncpus=4",
    jobs: `${running("1", 2, 100)}; ${running("2", 2, 300)}; 3 ncpus=3 walltime=50; 4 ncpus=2 walltime=1000; 5 ncpus=9`,
  };
  const strict = { strict_ordering: true };
  const third = explain(world, "3", strict);
  assert.equal(third.earliest?.start_s, NOW_S + 300);
  assert.deepEqual(
    third.earliest?.after.map(({ id }) => id),
    ["2", "1"],
  );
  const fourth = explain(world, "4", strict);
  assert.equal(fourth.earliest?.start_s, NOW_S + 350, "behind the top job's plan");
  assert.deepEqual(
    fourth.earliest?.after.map(({ kind, id, to_s }) => [kind, id, to_s - NOW_S]),
    [
      ["top job", "3", 350],
      ["job", "2", 300],
      ["job", "1", 100],
    ],
    "what it waits for last is the end of that plan",
  );
  assert.deepEqual(
    fourth.obstacles.map(({ kind, id }) => [kind, id]),
    [
      ["top job", "3"],
      ["job", "1"],
      ["job", "2"],
    ],
  );
  assert.equal(explain(world, "4").earliest?.start_s, NOW_S + 100, "without strict order nothing is kept for the third");
  const never = explain(world, "5", strict);
  assert.deepEqual([never.verdict, never.earliest, never.nodes[0]?.copies_empty], ["never", null, [0]]);
  assert.match(never.why?.text ?? "", /^Can Never Run: Insufficient amount of resource: ncpus \(R: 9 A: 4 T: 4\)/);
});

test("a scheduler that has nothing to schedule on says so", () => {
  const told = explain({ nodes: "", jobs: "1 ncpus=1" }, "1");
  assert.deepEqual([told.verdict, told.why?.text, told.reasons.length], ["waits", "Not Running: Scheduler default has no vnodes", 1]);
});

test("a limit, a stopped queue and a lack of cpus are all named; the first is the comment", () => {
  const queues: SchedQueue[] = [queue("workq", { max_run: { "u:PBS_GENERIC": 1 } }), queue("late", { started: false })];
  const world: World = { nodes: "a ncpus=2", jobs: "1 R (a:ncpus=2) walltime=10; 2 ncpus=1; 3 ncpus=1 @late", queues };
  const limited = explain(world, "2");
  assert.deepEqual(
    limited.reasons.map(({ stage }) => stage),
    ["totals", "limits", "placement"],
  );
  assert.equal(limited.why?.text, limited.reasons[0]?.text);
  assert.deepEqual([limited.reasons[1]?.why.have, limited.reasons[1]?.why.total], ["1", "1"]);
  const stopped = explain(world, "3");
  assert.equal(stopped.why?.text, "Not Running: Queue not started.");
});

test("who may not see other users' jobs is not told their ids", () => {
  const world: World = { nodes: "a ncpus=4", jobs: `1 R (a:ncpus=4) u=bob walltime=100 stime=${NOW_S}; 2 ncpus=4 walltime=50` };
  const told = explain(world, "2", {}, { sees_others: false });
  assert.deepEqual([told.obstacles[0]?.id, told.earliest?.after[0]?.id], [null, null]);
  assert.ok(!JSON.stringify({ ...told, job: "" }).includes('"1"'));
  assert.equal(explain(world, "2").obstacles[0]?.id, "1");
});

test("jobs that run, are held or unknown", () => {
  const world: World = { nodes: "a ncpus=4", jobs: `1 R (a:ncpus=1) walltime=100 stime=${NOW_S - 10}; 2 H ncpus=1` };
  const running = explain(world, "1");
  const { verdict, running: where } = running;
  assert.deepEqual([verdict, where], ["runs", { since_s: NOW_S - 10, end_s: NOW_S + 90, last_s: NOW_S + 90, exec_vnode: "(a:ncpus=1)" }]);
  assert.deepEqual([explain(world, "2").verdict, explain(world, "2").earliest], ["held", null]);
  const policies = book();
  const input = { now_s: NOW_S, job: "9", memory: NO_MEMORY, history: new Map(), sees_others: true };
  assert.equal(explainJob(universeOf(world, policies), policies, input), null);
});

test("a job that runs past its soft_walltime: when it is expected to end, and when it must", () => {
  const told = explain({ nodes: "a ncpus=4", jobs: `1 R (a:ncpus=1) walltime=600 %soft_walltime=50 stime=${NOW_S - 60}` }, "1");
  assert.deepEqual([told.running?.end_s, told.running?.last_s], [NOW_S + 40, NOW_S + 540]);
  assert.match(explanationText(told), / {2}until +.* at the latest\n {2}expected end +.* \(soft_walltime\)\n/);
});

test("an array and its subjobs: a subjob that waits is queued, behind those of its array that come first", () => {
  const world: World = {
    nodes: "a ncpus=2",
    jobs: `9 R (a:ncpus=2) walltime=100 stime=${NOW_S}; 1[].s B ncpus=2 walltime=50 sub=3-9:2,12`,
  };
  const array = explain(world, "1[].s");
  assert.deepEqual([array.state, array.subjobs_before, array.jobs_before, array.earliest?.start_s], ["B", undefined, 0, NOW_S + 100]);
  const last = explain(world, "1[12].s");
  assert.deepEqual([last.state, last.subjobs_before, last.jobs_before], ["Q", 4, 0]);
  assert.match(explanationText(last), /^Job 1\[12\]\.s .*state Q: it waits\n(.*\n)* {2}before it +0 waiting jobs, 4 of its array\n/);
});

test("a job of a reservation that has not begun is told when it does, not how many stand before it", () => {
  const queues = [queue("workq"), queue("R5", { started: false })];
  const resvs = `R5 ncpus=2 ${NOW_S + 500}-${NOW_S + 900}=(a:ncpus=2)`;
  const told = explain({ nodes: "a ncpus=4", jobs: "1 in=R5 ncpus=2 walltime=50", queues, resvs }, "1");
  assert.deepEqual([told.why?.text, told.resv], ["Not Running: Queue not started.", { id: "R5", from_s: NOW_S + 500, to_s: NOW_S + 900 }]);
  const text = explanationText(told);
  assert.match(text, /\n {2}reservation +R5, .* - .*\n/);
  assert.doesNotMatch(text, /before it/);
});

test("what keeps a job from its scheduler is laid out: holds, a time, other jobs", () => {
  const told = explain({ nodes: "a ncpus=4", jobs: "2 H ncpus=1" }, "2");
  const kept = { holds: "us", until_s: NOW_S, after: [{ type: "afterok", id: "1.s", state: "R" }], on: 2 };
  const rows = explanationText({ ...told, kept })
    .split("\n")
    .slice(2)
    .map((line) => line.trim().replace(/ {2,}/, ": "));
  assert.deepEqual(
    rows.map((line) => line.replace(/(waits until: ).*/, "$1T")),
    [
      "held by: its owner or an operator (qhold -h u)",
      "waits until: T",
      "waits for: afterok: job 1.s, state R",
      "waits for: 2 jobs to name it (depend=on)",
      "",
    ],
  );
  assert.match(explanationText({ ...told, kept: { ...kept, after: [], on: 0 } }), /\n {2}held by +the system or a manager/);
});

test("how estimates moved is kept, within bounds", () => {
  const history: EstimateHistory = new Map();
  const estimate = (job: string, start_s: number | null) => ({ kind: "estimate", job, start_s, exec_vnode: null, topjob: true }) as const;
  const note = (now_s: number, job: string, start_s: number | null, ok = true): void =>
    noteEstimates(history, { decisions: [estimate(job, start_s)], verdicts: [ok ? { ok } : { ok, code: 1, text: "" }], now_s });
  note(1, "1", 100);
  note(2, "1", 100);
  note(3, "1", 90, false);
  note(4, "1", null);
  assert.deepEqual(estimatesOf(history, "1"), [
    { at_s: 1, start_s: 100 },
    { at_s: 4, start_s: null },
  ]);
  for (let at = 0; at < 100; at++) note(10 + at, "1", 1000 + at);
  assert.equal(estimatesOf(history, "1").length, 20);
  assert.deepEqual([estimatesOf(history, "1")[0]?.start_s, estimatesOf(history, "1").at(-1)?.start_s], [100, 1099]);
  for (let job = 0; job < 10_001; job++) note(200, `j${job}`, 5);
  assert.deepEqual([history.size, estimatesOf(history, "1").length], [10_000, 0]);
  noteEstimates(history, { decisions: [{ kind: "run", job: "j5", exec_vnode: "" }], verdicts: [{ ok: true }], now_s: 300 });
  forgetEstimates(history, (job) => job === "j5" || job === "j6");
  assert.deepEqual([...history.keys()], ["j6"]);
});
