// Preemption in the server (docs/reference/scheduler.md 8): which method succeeds, when later decisions are processed, and that
// any failure in between neither gives resources twice nor loses them.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { MomToServer, ServerToMom } from "#protocol/mom-link.ts";
import type { Decision, ServerToSched, Verdict } from "#protocol/sched-link.ts";
import type { Attrs } from "#server/state/state.ts";
import type { Harness } from "../harness.ts";
import {
  addHost,
  addJob,
  addQueue,
  addSched,
  advance,
  apply,
  ask,
  commandsTo,
  cycle,
  harness,
  jobAttrs,
  jobOwn,
  lettersOf,
  logsOf,
  mom,
  momHello,
  obit,
  outcome,
  ROOT,
  restart,
  runOn,
  START_S,
  sched,
  schedHello,
  settle,
  stateOf,
} from "../harness.ts";

const SCHED = 1;
const WANTS_3 = { Resource_List: { ncpus: 3, nodect: 1, place: "free", select: "1:ncpus=3" }, schedselect: "1:ncpus=3" };

type World = { readonly h: Harness; readonly victim: string; readonly urgent: string; readonly link: number };

/** A job of 3 cpus runs on n1, which has 4; another job of 3 waits; the scheduler is in a cycle. */
function world(victim: Attrs = {}, server: Attrs = {}): World {
  const h = harness({ server });
  const link = addHost(h, "n1");
  const job = addJob(h, { ...WANTS_3, ...victim });
  runOn(h, job, "n1", link, 3);
  const urgent = addJob(h, WANTS_3);
  schedHello(h, SCHED);
  return { h, victim: job, urgent, link };
}

/** Sends decisions of the present cycle. Returns the verdicts if they come at once, or null. */
function decide(h: Harness, ...decisions: Decision[]): readonly Verdict[] | null {
  const from = h.to_scheds.length;
  const given = h.to_scheds.filter((frame) => frame.type === "sched-cycle").at(-1)?.data as ServerToSched["sched-cycle"];
  sched(h, SCHED, "sched-decisions", { cycle: given.cycle, decisions });
  return verdictsSince(h, from);
}

function verdictsSince(h: Harness, from: number): readonly Verdict[] | null {
  const frame = h.to_scheds.slice(from).find(({ type }) => type === "sched-verdicts");
  return frame === undefined ? null : (frame.data as ServerToSched["sched-verdicts"]).verdicts;
}

const preempt = (job: string, methods: string): Decision => ({ kind: "preempt", job, methods, for: "x" });
const run = (job: string, exec_vnode = "(n1:ncpus=3)"): Decision => ({ kind: "run", job, exec_vnode });

/** Answers the last signal sent to a mom. Returns the verdicts that follow, or null. */
function answer(h: Harness, link: number, ok = true): readonly Verdict[] | null {
  const from = h.to_scheds.length;
  const frame = h.to_moms.findLast(({ type }) => type === "mom-signal")?.data as ServerToMom["mom-signal"];
  mom(h, link, "mom-result", ok ? { token: frame.token, ok } : { token: frame.token, ok, code: 15016 });
  return verdictsSince(h, from);
}

function ended(h: Harness, link: number, job: string, exit_status: number): readonly Verdict[] | null {
  const from = h.to_scheds.length;
  obit(h, link, job, exit_status);
  return verdictsSince(h, from);
}

const signals = (h: Harness): string[] =>
  h.to_moms.flatMap(({ type, data }) => (type === "mom-signal" ? [(data as ServerToMom["mom-signal"]).signal] : []));
const assigned = (h: Harness): number | undefined => h.core.state.vnodes.get("n1")?.assigned.get("ncpus");

test("suspend: what follows waits for the mom's answer and then has the room", () => {
  const { h, victim, urgent, link } = world();
  assert.equal(decide(h, preempt(victim, "SCR"), run(urgent)), null);
  assert.deepEqual([stateOf(h, victim), stateOf(h, urgent), assigned(h)], ["R 42", "Q 10", 3]);
  h.now_ms += 2000;
  assert.deepEqual(answer(h, link), [{ ok: true, method: "S" }, { ok: true }]);
  assert.deepEqual([stateOf(h, victim), stateOf(h, urgent), assigned(h)], ["S 45", "R 41", 3]);
  assert.equal(jobAttrs(h, victim)["ptime"], START_S, "when it was decided, not when it was done");
  assert.equal(jobOwn(h, victim).preempting, undefined);
  assert.equal(lettersOf(h, victim), "QSz");
});

test("the suspended job goes on when there is room: its cpus are its own before the mom has answered", () => {
  const { h, victim, urgent, link } = world();
  decide(h, preempt(victim, "S"), run(urgent));
  answer(h, link);
  sched(h, SCHED, "sched-cycle-end", { cycle: 1, jobs_considered: 2, cycle_ms: 1 });
  assert.equal(cycle(h, SCHED, [run(victim)])[0]?.ok, false, "no room yet");
  mom(h, link, "mom-started", { job: urgent, run_count: 1, session_id: 2, jobdir: "/" });
  obit(h, link, urgent);
  const other = addJob(h, WANTS_3);
  assert.deepEqual(
    cycle(h, SCHED, [run(victim), run(other)]).map(({ ok }) => ok),
    [true, false],
  );
  assert.deepEqual([stateOf(h, victim), assigned(h)], ["R 42", 3]);
  answer(h, link);
  assert.deepEqual([stateOf(h, victim), jobAttrs(h, victim)["ptime"], jobOwn(h, victim).resuming], ["R 42", undefined, undefined]);
  assert.match(jobAttrs(h, victim).comment ?? "", /^Job run at .* on \(n1:ncpus=3\)$/);
  assert.equal(lettersOf(h, victim), "QSzr");
});

test("a suspended job that was a top job is none when it goes on, and keeps no estimate", () => {
  const { h, victim, link } = world();
  decide(h, preempt(victim, "S"));
  answer(h, link);
  sched(h, SCHED, "sched-cycle-end", { cycle: 1, jobs_considered: 2, cycle_ms: 1 });
  const estimate = { kind: "estimate", job: victim, start_s: START_S + 60, exec_vnode: "(n1:ncpus=3)", topjob: true } as const;
  assert.deepEqual(cycle(h, SCHED, [estimate]), [{ ok: true }]);
  assert.equal(jobAttrs(h, victim)["topjob"], true);
  assert.deepEqual(cycle(h, SCHED, [run(victim)]), [{ ok: true }]);
  answer(h, link);
  const { job_state, topjob, estimated } = jobAttrs(h, victim);
  assert.deepEqual([job_state, topjob, estimated], ["R", undefined, undefined]);
});

for (const clears of [false, true])
  test(`a top job that is held is none any more${clears ? ", and clear_topjob_estimates_enable takes its estimate, too" : ""}`, () => {
    const { h, urgent } = world();
    apply(h, { kind: "server-changed", set: { clear_topjob_estimates_enable: clears }, unset: [] });
    const estimate = { kind: "estimate", job: urgent, start_s: START_S + 60, exec_vnode: "(n1:ncpus=3)", topjob: true } as const;
    assert.deepEqual(cycle(h, SCHED, [estimate]), [{ ok: true }]);
    assert.equal(outcome(h, ROOT, { kind: "hold-job", job: urgent, holds: "u" }), "ok");
    const { job_state, topjob, estimated } = jobAttrs(h, urgent);
    const kept = { start_time: START_S + 60, exec_vnode: "(n1:ncpus=3)" };
    assert.deepEqual([job_state, topjob, estimated], ["H", undefined, clears ? undefined : kept]);
  });

test("a mom that refuses to let it go on puts it back, and it keeps its place in the order", () => {
  const { h, victim, link } = world();
  decide(h, preempt(victim, "S"));
  answer(h, link);
  sched(h, SCHED, "sched-cycle-end", { cycle: 1, jobs_considered: 2, cycle_ms: 1 });
  assert.deepEqual(cycle(h, SCHED, [run(victim)]), [{ ok: true }]);
  answer(h, link, false);
  assert.deepEqual([stateOf(h, victim), assigned(h), jobAttrs(h, victim)["ptime"]], ["S 45", undefined, START_S]);
});

test("a scheduler does not resume what an operator suspended, and no job of another's queue", () => {
  const { h, victim, link } = world();
  ask(h, ROOT, { kind: "signal-job", job: victim, signal: "suspend" });
  answer(h, link);
  assert.deepEqual(decide(h, run(victim))?.[0], { ok: false, code: 15016, text: "Request invalid for state of job" });
});

test("how long a job has stood still is known to its scheduler, over several pauses, also when its mom first refuses to let it go on", () => {
  const { h, victim, link } = world();
  const pause = (): void => {
    decide(h, preempt(victim, "S"));
    answer(h, link);
    advance(h, 100);
  };
  pause();
  decide(h, run(victim));
  answer(h, link, false);
  assert.deepEqual([stateOf(h, victim), jobOwn(h, victim).paused], ["S 45", 100]);
  advance(h, 7);
  decide(h, run(victim));
  answer(h, link);
  assert.deepEqual([stateOf(h, victim), jobOwn(h, victim).paused, jobOwn(h, victim).paused_since], ["R 42", 107, undefined]);
  advance(h, 1000);
  pause();
  decide(h, run(victim));
  answer(h, link);
  const told = h.to_scheds.flatMap(({ type, data }) => (type === "sched-delta" ? (data as ServerToSched["sched-delta"]).changes : []));
  const jobs = told.flatMap((change) =>
    "put" in change && change.put === "job" && change.value.id === victim ? [change.value.paused_s] : [],
  );
  assert.equal(jobs.at(-1), 207);
  assert.deepEqual(ended(h, link, victim, 0), null);
  assert.equal(jobOwn(h, victim).paused, undefined);
});

test("methods in their order: a refusal of the mom leads to the next one", () => {
  const { h, victim, urgent, link } = world();
  assert.equal(decide(h, preempt(victim, "SCR"), run(urgent)), null);
  assert.equal(answer(h, link, false), null);
  assert.deepEqual(signals(h), ["suspend", "checkpoint"]);
  assert.equal(answer(h, link, false), null);
  assert.equal(stateOf(h, victim), "R 60");
  assert.deepEqual(ended(h, link, victim, -11), [{ ok: true, method: "R" }, { ok: true }]);
  assert.deepEqual([stateOf(h, victim), jobAttrs(h, victim)["ptime"], lettersOf(h, victim)], ["Q 10", START_S, "QSR"]);
});

test("checkpoint: the mom ends the run and the job is queued again", () => {
  const { h, victim, urgent, link } = world();
  decide(h, preempt(victim, "C"), run(urgent));
  assert.equal(answer(h, link), null);
  assert.deepEqual(ended(h, link, victim, -12), [{ ok: true, method: "C" }, { ok: true }]);
  assert.equal(stateOf(h, victim), "Q 10");
});

test("methods a job does not allow are passed over; when none is left the verdict says so and the run is refused", () => {
  const { h, victim, urgent } = world({ Rerunable: false, Checkpoint: "n" });
  const verdicts = decide(h, preempt(victim, "CR"), run(urgent));
  assert.deepEqual(verdicts?.[0], { ok: false, code: 15016, text: "Job failed to be preempted" });
  assert.equal(verdicts?.[1]?.ok, false);
  assert.ok(logsOf(h, victim).includes("Job failed to be preempted"));
  assert.deepEqual([stateOf(h, victim), jobOwn(h, victim).preempting], ["R 42", undefined]);
});

test("requeue: a preempted job starts anew as often as it must, and loses its place among the preempted when it runs", () => {
  const { h, victim, link } = world();
  for (let times = 1; times <= 30; times++) {
    assert.equal(decide(h, preempt(victim, "R")), null);
    assert.deepEqual(ended(h, link, victim, -11), [{ ok: true, method: "R" }]);
    assert.equal(stateOf(h, victim), "Q 10");
    assert.deepEqual(decide(h, run(victim)), [{ ok: true }]);
    assert.equal(jobAttrs(h, victim)["ptime"], undefined);
    mom(h, link, "mom-started", { job: victim, run_count: times + 1, session_id: 1, jobdir: "/" });
  }
});

test("delete: killed at once, told like the end of any job, and in the history", () => {
  const { h, victim, urgent, link } = world();
  assert.equal(decide(h, preempt(victim, "D"), run(urgent)), null);
  assert.deepEqual(h.to_moms.at(-1)?.data, { job: victim, run_count: 1, why: "delete", kill_delay_s: 0 });
  assert.deepEqual(ended(h, link, victim, 265), [{ ok: true, method: "D" }, { ok: true }]);
  assert.equal(stateOf(h, victim), "F 93");
  assert.match(jobAttrs(h, victim).comment ?? "", /^Job run at .* and failed$/);
  assert.deepEqual(logsOf(h, victim).slice(-5), [
    "delete job request received",
    "Job sent signal TermJob on delete",
    "Job to be deleted at request of Scheduler@svr",
    "Obit received momhop:1 serverhop:1 state:R substate:42",
    "Exit_status=265 resources_used.cput=00:00:00 resources_used.mem=0kb resources_used.ncpus=1 resources_used.walltime=00:00:10",
  ]);
});

test("a deleted victim whose run is lost does not come back", () => {
  const { h, victim, link } = world();
  decide(h, preempt(victim, "D"));
  assert.deepEqual(ended(h, link, victim, -4), [{ ok: true, method: "D" }]);
  assert.equal(stateOf(h, victim), "F 91");
});

test("a victim that ends meanwhile is out of the way", () => {
  const { h, victim, urgent, link } = world();
  assert.equal(decide(h, preempt(victim, "S"), run(urgent)), null);
  assert.deepEqual(ended(h, link, victim, 0), [{ ok: true }, { ok: true }]);
  assert.deepEqual([stateOf(h, victim), stateOf(h, urgent)], ["F 92", "R 41"]);
});

test("several victims are asked together; the run waits for the last of them", () => {
  const h = harness();
  const link = addHost(h, "n1");
  const [a, b] = [addJob(h), addJob(h)];
  for (const job of [a, b]) runOn(h, job, "n1", link);
  const urgent = addJob(h, WANTS_3);
  schedHello(h, SCHED);
  assert.equal(decide(h, preempt(a, "S"), preempt(b, "R"), run(urgent)), null);
  assert.equal(ended(h, link, b, -11), null);
  assert.deepEqual(answer(h, link), [{ ok: true, method: "S" }, { ok: true, method: "R" }, { ok: true }]);
});

test("decisions before a preemption are carried out at once, those behind it in their order", () => {
  const { h, victim, urgent, link } = world();
  const small = addJob(h);
  assert.equal(
    decide(h, run(small, "(n1:ncpus=1)"), preempt(victim, "S"), {
      kind: "comment",
      job: urgent,
      comment: "Not Running: x",
      why: { code: "X" },
    }),
    null,
  );
  assert.equal(stateOf(h, small), "R 41");
  assert.equal(jobAttrs(h, urgent).comment, undefined);
  assert.deepEqual(answer(h, link), [{ ok: true }, { ok: true, method: "S" }, { ok: true }]);
  assert.equal(jobAttrs(h, urgent).comment, "Not Running: x");
});

test("a scheduler's comment on the job it suspended", () => {
  const { h, victim, link } = world();
  const comment = "Not Running: Insufficient amount of resource: ncpus (R: 3 A: 1 T: 4)";
  decide(h, preempt(victim, "S"), { kind: "comment", job: victim, comment, why: { code: "X" } });
  assert.deepEqual(answer(h, link)?.[1], { ok: true });
  assert.equal(jobAttrs(h, victim).comment, comment);
});

// --- refused at once

const REFUSED: readonly (readonly [what: string, make: (w: World) => string, code: number])[] = [
  ["an unknown job", () => "99.svr", 15001],
  ["a job that waits", ({ urgent }) => urgent, 15016],
  [
    "a job being deleted",
    ({ h, victim }) => {
      ask(h, ROOT, { kind: "delete-job", job: victim });
      return victim;
    },
    15016,
  ],
  [
    "a job being rerun",
    ({ h, victim }) => {
      ask(h, ROOT, { kind: "rerun-job", job: victim });
      return victim;
    },
    15016,
  ],
  [
    "a job of another scheduler",
    ({ h, link }) => {
      addSched(h, "s1", { partition: ["p1"] });
      addQueue(h, "q1", { partition: "p1" });
      const job = addJob(h, { queue: "q1" });
      runOn(h, job, "n1", link);
      return job;
    },
    15007,
  ],
  [
    "a job whose mom is away",
    ({ h, link, victim }) => {
      h.core.momLost(link, h.now_ms);
      return victim;
    },
    15070,
  ],
];

for (const [what, make, code] of REFUSED) {
  test(`refused at once: ${what}`, () => {
    const w = world();
    const job = make(w);
    assert.deepEqual(
      decide(w.h, preempt(job, "SCRD"))?.map((verdict) => (verdict.ok ? 0 : verdict.code)),
      [code],
    );
  });
}

// --- failures in between

test("a mom that is lost: the preemption fails, no other method is tried; its hello tells what it did", () => {
  const { h, victim, urgent, link } = world();
  decide(h, preempt(victim, "SR"), run(urgent));
  const from = h.to_scheds.length;
  h.core.momLost(link, h.now_ms);
  settle(h);
  momHello(h, link + 1, "n1", [{ job: victim, run_count: 1, state: "suspended" }]);
  assert.deepEqual(
    verdictsSince(h, from)?.map(({ ok }) => ok),
    [false, false],
  );
  assert.deepEqual([stateOf(h, victim), jobAttrs(h, victim)["ptime"], jobOwn(h, victim).preempting], ["S 45", START_S, undefined]);
});

test("a mom that comes back without having stopped the job: it runs on as if nothing had been", () => {
  const { h, victim, link } = world();
  decide(h, preempt(victim, "S"));
  h.core.momLost(link, h.now_ms);
  momHello(h, link + 1, "n1", [{ job: victim, run_count: 1, state: "running" }]);
  assert.deepEqual([stateOf(h, victim), jobOwn(h, victim).preempting], ["R 42", undefined]);
});

test("a mom that is silent: the next method after half a minute, and none after job_requeue_timeout; what it does late still counts", () => {
  const { h, victim, urgent, link } = world({ Rerunable: false, Checkpoint: "n" });
  decide(h, preempt(victim, "SR"), run(urgent));
  const from = h.to_scheds.length;
  advance(h, 30);
  assert.equal(verdictsSince(h, from)?.[0]?.ok, false);
  answer(h, link);
  assert.deepEqual([stateOf(h, victim), jobAttrs(h, victim)["ptime"]], ["S 45", START_S]);
});

test("a run that does not come to its end in time", () => {
  const { h, victim, urgent, link } = world();
  decide(h, preempt(victim, "R"), run(urgent));
  const from = h.to_scheds.length;
  advance(h, 45);
  assert.deepEqual(
    verdictsSince(h, from)?.map(({ ok }) => ok),
    [false, false],
  );
  obit(h, link, victim, -11);
  assert.deepEqual([stateOf(h, victim), jobAttrs(h, victim)["ptime"]], ["Q 10", START_S]);
});

type Crash = readonly [when: string, methods: string, reached: MomToServer["mom-hello"]["jobs"][number]["state"] | "gone", after: string];
// biome-ignore format: a table
const CRASHES: readonly Crash[] = [
  ["the mom had suspended it",           "S", "suspended", "S 45"],
  ["the mom had not heard",              "S", "running",   "R 42"],
  ["the run was to be repeated",         "R", "running",   "R 60"],
  ["the run had ended",                  "R", "gone",      "Q 10"],
  ["it was to be deleted",               "D", "running",   "R 42"],
  ["it had been deleted",                "D", "gone",      "F 91"],
];

for (const [when, methods, reached, after] of CRASHES) {
  test(`the server is killed while ${methods} is under way: ${when}`, () => {
    const { h, victim } = world();
    decide(h, preempt(victim, methods));
    restart(h);
    momHello(h, 200, "n1", reached === "gone" ? [] : [{ job: victim, run_count: 1, state: reached, session_id: 1 }]);
    assert.equal(stateOf(h, victim), after);
    if (after === "S 45" || after === "Q 10") assert.equal(jobAttrs(h, victim)["ptime"], START_S);
  });
}

for (const [reached, after] of [
  ["suspended", "S 45"],
  ["running", "R 42"],
] as const) {
  test(`the server is killed while a job is let go on, mom: ${reached}`, () => {
    const { h, victim, link } = world();
    decide(h, preempt(victim, "S"));
    answer(h, link);
    assert.deepEqual(decide(h, run(victim)), [{ ok: true }]);
    restart(h);
    assert.equal(assigned(h), 3, "nobody else gets its cpus while that is not known");
    momHello(h, 200, "n1", [{ job: victim, run_count: 1, state: reached, session_id: 1 }]);
    assert.deepEqual([stateOf(h, victim), assigned(h)], [after, after === "S 45" ? undefined : 3]);
    assert.equal(lettersOf(h, victim), after === "S 45" ? "QSz" : "QSzr");
  });
}

test("a scheduler that is lost: what was begun comes to its end, its other decisions are forgotten", () => {
  const { h, victim, urgent, link } = world();
  decide(h, preempt(victim, "SR"), run(urgent));
  h.core.schedLost(SCHED, h.now_ms);
  answer(h, link);
  assert.deepEqual([stateOf(h, victim), stateOf(h, urgent)], ["S 45", "Q 10"]);
  schedHello(h, SCHED);
  assert.deepEqual(cycle(h, SCHED, [run(urgent)]), [{ ok: true }]);
});

// --- qrun

test("qrun: the answer comes when the mom has the job, after the preemption; scheduling False stays", () => {
  const { h, victim, urgent, link } = world();
  sched(h, SCHED, "sched-cycle-end", { cycle: 1, jobs_considered: 0, cycle_ms: 1 });
  for (let given = commandsTo(h, SCHED).length; given > 1; given--) cycle(h, SCHED);
  ask(h, ROOT, { kind: "manager", verb: "set", object: "server", name: "", attrs: [{ name: "scheduling", op: "=", value: "False" }] });
  const token = h.next_token;
  assert.equal(outcome(h, ROOT, { kind: "run-job", job: urgent }), "deferred");
  assert.equal(decide(h, preempt(victim, "S"), run(urgent)), null);
  assert.equal(h.answers.get(token), undefined);
  answer(h, link);
  assert.equal(h.answers.get(token), undefined, "until the mom has it");
  mom(h, link, "mom-started", { job: urgent, run_count: 1, session_id: 2, jobdir: "/" });
  assert.equal(h.answers.get(token)?.ok, true);
});

test("qrun: a start that was refused is answered at the end of the cycle, for the scheduler may try other victims", () => {
  const { h, victim, urgent, link } = world();
  sched(h, SCHED, "sched-cycle-end", { cycle: 1, jobs_considered: 0, cycle_ms: 1 });
  while (commandsTo(h, SCHED).length > 1 && h.core.kernel.scheds.by_name.get("default")?.busy === true) cycle(h, SCHED);
  const token = h.next_token;
  ask(h, ROOT, { kind: "run-job", job: urgent });
  decide(h, preempt(victim, "S"), run(urgent));
  answer(h, link, false);
  assert.equal(h.answers.get(token), undefined);
  decide(h, preempt(victim, "R"), run(urgent));
  obit(h, link, victim, -11);
  mom(h, link, "mom-started", { job: urgent, run_count: 1, session_id: 2, jobdir: "/" });
  assert.equal(h.answers.get(token)?.ok, true);
});

// --- what a suspended job keeps

test("restrict_res_to_release_on_suspend: only what it names becomes free, and is taken again", () => {
  const { h, victim, link } = world(
    {
      Resource_List: { ncpus: 3, mem: "6gb", nodect: 1, place: "free", select: "1:ncpus=3:mem=6gb" },
      schedselect: "1:ncpus=3:mem=6gb",
    },
    { restrict_res_to_release_on_suspend: ["ncpus"] },
  );
  // as the vnodes were given by hand, without mem
  ask(h, ROOT, { kind: "rerun-job", job: victim });
  obit(h, link, victim, -11);
  assert.deepEqual(decide(h, run(victim, "(n1:ncpus=3:mem=6291456kb)")), [{ ok: true }]);
  mom(h, link, "mom-started", { job: victim, run_count: 2, session_id: 1, jobdir: "/" });
  const vnode = () => [assigned(h), h.core.state.vnodes.get("n1")?.assigned.get("mem")];
  decide(h, preempt(victim, "S"));
  answer(h, link);
  assert.deepEqual(vnode(), [undefined, 6291456]);
  assert.deepEqual(
    [jobAttrs(h, victim)["resources_released"], jobAttrs(h, victim)["resource_released_list"]],
    ["(n1:ncpus=3)", { ncpus: 3 }],
  );
  assert.match(h.accounting.findLast(({ type }) => type === "z")?.text ?? "", / resources_released=\(n1:ncpus=3\)$/);
  const greedy = addJob(h, WANTS_3);
  assert.equal(decide(h, run(greedy, "(n1:ncpus=1:mem=4194304kb)"))?.[0]?.ok, false, "the memory is not free");
  assert.deepEqual(decide(h, run(victim)), [{ ok: true }]);
  answer(h, link);
  assert.deepEqual(vnode(), [3, 6291456]);
  assert.equal(jobAttrs(h, victim)["resources_released"], undefined);
});

test("an exclusive job that is suspended makes room, and does not go on beside another", () => {
  const exclusive = { Resource_List: { ncpus: 1, nodect: 1, place: "excl", select: "1:ncpus=1" }, schedselect: "1:ncpus=1" };
  const { h, victim, urgent, link } = world(exclusive);
  assert.deepEqual(h.core.state.vnodes.get("n1")?.attrs["state"], ["job-exclusive"]);
  decide(h, preempt(victim, "S"), run(urgent));
  assert.deepEqual(answer(h, link), [{ ok: true, method: "S" }, { ok: true }]);
  assert.deepEqual(h.core.state.vnodes.get("n1")?.attrs["state"], []);
  assert.equal(decide(h, run(victim))?.[0]?.ok, false);
});
