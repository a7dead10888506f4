// job_run_wait: when a scheduler learns the result of a start, and what it may do meanwhile. The test plays hooks and the mom.

import assert from "node:assert/strict";
import { test } from "node:test";
import { type HookOutcome, NO_REQUESTS } from "#hooks/run/hook-input.ts";
import { alterHook, freshHook } from "#model/tables/hook.ts";
import type { Decision, ServerToSched, Verdict } from "#protocol/sched-link.ts";
import { HAND_PATIENCE_S } from "#server/jobs/start-wait.ts";
import {
  addHost,
  addJob,
  advance,
  apply,
  ask,
  commandsTo,
  cycle,
  type Harness,
  harness,
  jobAttrs,
  mom,
  obit,
  ROOT,
  sched,
  schedHello,
  schedLost,
  settle,
  stateOf,
  statusOf,
} from "../harness.ts";

const SCHED = 1;

/** A host, a scheduler in its first cycle, and a job; optionally with a runjob hook. */
function world(job_run_wait: string, hook = false): { h: Harness; job: string; link: number } {
  const h = harness();
  const link = addHost(h, "n1");
  if (hook) {
    const terms = [{ name: "event", op: "=" as const, value: "runjob" }];
    apply(h, {
      kind: "hook-put",
      name: "h",
      attrs: alterHook(freshHook(), terms),
      script: { language: "python", content: "cGFzcw==" },
      config: null,
    });
  }
  setWait(h, "job_run_wait", job_run_wait);
  const job = addJob(h);
  schedHello(h, SCHED);
  return { h, job, link };
}

function setWait(h: Harness, name: string, value: string): void {
  const answer = ask(h, ROOT, { kind: "manager", verb: "set", object: "sched", name: "default", attrs: [{ name, op: "=", value }] });
  assert.equal(answer?.ok, true);
}

const run = (job: string): Decision => ({ kind: "run", job, exec_vnode: "(n1:ncpus=1)" });
const cycleNow = (h: Harness): number =>
  (h.to_scheds.filter(({ type }) => type === "sched-cycle").map(({ data }) => data) as ServerToSched["sched-cycle"][]).at(-1)?.cycle ?? 0;
const decide = (h: Harness, ...decisions: Decision[]): void => sched(h, SCHED, "sched-decisions", { cycle: cycleNow(h), decisions });
const endCycle = (h: Harness): void => sched(h, SCHED, "sched-cycle-end", { cycle: cycleNow(h), jobs_considered: 1, cycle_ms: 1 });
/** null: no verdicts yet */
function verdicts(h: Harness): readonly Verdict[] | null {
  const frame = h.to_scheds.findLast(({ type }) => type === "sched-verdicts");
  return frame === undefined ? null : (frame.data as ServerToSched["sched-verdicts"]).verdicts;
}
function reply(h: Harness, end: Partial<HookOutcome> = {}): void {
  const at = h.actions.findIndex((action) => action.kind === "run-hook");
  const [asked] = h.actions.splice(at, 1);
  assert.ok(asked?.kind === "run-hook");
  h.core.hookEnded(asked.run, { kind: "accept", changes: {}, requests: NO_REQUESTS, logs: [], ...end } as HookOutcome, h.now_ms);
  settle(h);
}
const REFUSES = { kind: "reject", message: "not today" } as Partial<HookOutcome>;
const started = (h: Harness, link: number, job: string): void =>
  mom(h, link, "mom-started", { job, run_count: 1, session_id: 1, jobdir: "/" });
const REFUSED_BY_HOOK = { ok: false, code: 15136, text: "not today" };

// --- without hooks

test("runjob_hook, none: without hooks the verdict comes at once", () => {
  for (const wait of ["runjob_hook", "none"]) {
    const { h, job } = world(wait);
    decide(h, run(job));
    assert.deepEqual([verdicts(h), stateOf(h, job)], [[{ ok: true }], "R 41"], wait);
  }
});

test("execjob_hook: the verdict waits until the mom has started the job, others need not wait with it", () => {
  const { h, job, link } = world("execjob_hook");
  const other = addJob(h);
  decide(h, run(job), { kind: "comment", job: other, comment: "Not Running: x", why: { code: "X" } });
  assert.deepEqual([verdicts(h), stateOf(h, job), jobAttrs(h, other).comment], [null, "R 41", "Not Running: x"]);
  started(h, link, job);
  assert.deepEqual(verdicts(h), [{ ok: true }, { ok: true }]);
});

// biome-ignore format: a table
const CAME_BACK: readonly (readonly [what: string, exit_status: number, verdict: Verdict])[] = [
  ["an execjob hook refuses",          -16, { ok: false, code: 15136, text: "hook error" }],
  ["an execjob hook fails",            -22, { ok: false, code: 15136, text: "hook error" }],
  ["the mom cannot start it",           -3, { ok: false, code: 15041, text: "Execution server rejected request" }],
  ["it was over before that was told",   0, { ok: true }],
];
for (const [what, exit_status, verdict] of CAME_BACK) {
  test(`execjob_hook: ${what}`, () => {
    const { h, job, link } = world("execjob_hook");
    decide(h, run(job));
    obit(h, link, job, exit_status);
    assert.deepEqual(verdicts(h), [verdict]);
    assert.equal(h.core.kernel.jobs.starting.size, 0);
  });
}

test("execjob_hook: a mom that is lost is not waited for, nor one that is silent for longer than sched_cycle_length", () => {
  for (const happens of [
    ({ h, link }: { h: Harness; link: number }) => {
      h.core.momLost(link, h.now_ms);
      settle(h);
    },
    ({ h }: { h: Harness }) => {
      advance(h, 1199);
      assert.equal(verdicts(h), null);
      advance(h, 1);
    },
  ]) {
    const w = world("execjob_hook");
    decide(w.h, run(w.job));
    happens(w);
    assert.deepEqual([verdicts(w.h), stateOf(w.h, w.job)], [[{ ok: true }], "R 41"]);
  }
});

test("execjob_hook: a scheduler that is lost meanwhile is told nothing of it when it is back", () => {
  const { h, job, link } = world("execjob_hook");
  decide(h, run(job));
  schedLost(h, SCHED);
  schedHello(h, SCHED + 1);
  started(h, link, job);
  assert.deepEqual([verdicts(h), h.core.kernel.jobs.starting.size, stateOf(h, job)], [null, 0, "R 42"]);
});

test("throughput_mode False means execjob_hook, True runjob_hook", () => {
  const { h, job, link } = world("runjob_hook");
  setWait(h, "throughput_mode", "False");
  decide(h, run(job));
  assert.equal(verdicts(h), null);
  started(h, link, job);
  assert.deepEqual(verdicts(h), [{ ok: true }]);
  const other = addJob(h);
  setWait(h, "throughput_mode", "True");
  endCycle(h);
  decide(h, run(other));
  assert.deepEqual([verdicts(h), stateOf(h, other)], [[{ ok: true }], "R 41"]);
});

// --- with a runjob hook

test("runjob_hook: the verdict waits for the hook, and is what it says", () => {
  for (const [answer, verdict, state] of [
    [{}, { ok: true }, "R 41"],
    [REFUSES, REFUSED_BY_HOOK, "Q 10"],
  ] as const) {
    const { h, job } = world("runjob_hook", true);
    decide(h, run(job));
    assert.deepEqual([verdicts(h), stateOf(h, job)], [null, "Q 10"]);
    reply(h, answer);
    assert.deepEqual([verdicts(h), stateOf(h, job)], [[verdict], state]);
  }
});

test("execjob_hook: hook first, then the mom", () => {
  const { h, job, link } = world("execjob_hook", true);
  decide(h, run(job));
  reply(h);
  assert.deepEqual([verdicts(h), stateOf(h, job)], [null, "R 41"]);
  started(h, link, job);
  assert.deepEqual(verdicts(h), [{ ok: true }]);
});

test("none: the cycle goes on before the hook has answered; the next one begins when it has", () => {
  const { h, job } = world("none", true);
  decide(h, run(job));
  assert.deepEqual([verdicts(h), stateOf(h, job)], [[{ ok: true }], "Q 10"]);
  addJob(h);
  const cycles = commandsTo(h, SCHED).length;
  endCycle(h);
  assert.equal(commandsTo(h, SCHED).length, cycles, "the mirror does not show the job running yet");
  reply(h);
  assert.equal(stateOf(h, job), "R 41");
  assert.equal(commandsTo(h, SCHED).length, cycles + 1);
});

test("none: a job that the hook refuses is told so, and looked at again in the next cycle", () => {
  const { h, job } = world("none", true);
  decide(h, run(job));
  endCycle(h);
  reply(h, REFUSES);
  assert.deepEqual([stateOf(h, job), jobAttrs(h, job).comment], ["Q 10", "Not Running: PBS Error: not today"]);
  assert.equal(h.core.kernel.scheds.by_name.get("default")?.asking.size, 0);
});

test("none: what was accepted is carried out even if the scheduler is lost, whose next cycle waits for it", () => {
  const { h, job } = world("none", true);
  decide(h, run(job));
  schedLost(h, SCHED);
  schedHello(h, SCHED + 1);
  assert.equal(commandsTo(h, SCHED + 1).length, 0);
  reply(h);
  assert.deepEqual([stateOf(h, job), commandsTo(h, SCHED + 1).length], ["R 41", 1]);
});

test("none: who starts a job by hand hears what the hook says", () => {
  const { h, job } = world("none", true);
  decide(h);
  endCycle(h);
  for (let given = commandsTo(h, SCHED).length; given > 1 && h.core.kernel.scheds.by_name.get("default")?.busy === true; given--)
    endCycle(h);
  const token = h.next_token;
  ask(h, ROOT, { kind: "run-job", job });
  decide(h, run(job));
  assert.equal(verdicts(h)?.length ?? 0, 0);
  reply(h, REFUSES);
  endCycle(h);
  assert.deepEqual(h.answers.get(token), { ok: false, code: 15136, text: "not today" });
});

test("qrun is answered when the mom has taken the job or sent it back, or is lost, and after a while in any case; with -a at once", () => {
  const started = (h: Harness, link: number, job: string): void =>
    mom(h, link, "mom-started", { job, run_count: 1, session_id: 2, jobdir: "/" });
  const rows: readonly (readonly [what: string, then: (h: Harness, link: number, job: string) => void, answer: object | undefined])[] = [
    ["it says nothing", () => undefined, undefined],
    ["started", started, { ok: true }],
    ["over before that was told", (h, link, job) => obit(h, link, job, 0), { ok: true }],
    ["sent back", (h, link, job) => obit(h, link, job, -3), { ok: false, code: 15041, text: "Execution server rejected request" }],
    ["a hook's no", (h, link, job) => obit(h, link, job, -16), { ok: false, code: 15136, text: "hook error" }],
    ["lost", (h, link) => h.core.momLost(link, h.now_ms), { ok: true }],
    ["deleted", (h, _, job) => void ask(h, ROOT, { kind: "delete-job", job, force: true }), { ok: true }],
    ["silent", (h) => advance(h, HAND_PATIENCE_S), { ok: true }],
  ];
  for (const by_sched of [true, false]) {
    for (const [what, then, answer] of rows) {
      const { h, job, link } = world("none");
      if (by_sched) endCycle(h);
      const token = h.next_token;
      ask(h, ROOT, { kind: "run-job", job, ...(by_sched ? {} : { exec_vnode: "(n1:ncpus=1)" }) });
      if (by_sched) decide(h, run(job));
      if (by_sched) endCycle(h);
      assert.deepEqual([stateOf(h, job), h.answers.get(token)], ["R 41", undefined], what);
      then(h, link, job);
      settle(h);
      assert.partialDeepStrictEqual({ answer: h.answers.get(token) }, { answer }, what);
      assert.equal(h.core.kernel.jobs.starting.size, answer === undefined ? 1 : 0, what);
    }
  }
  const { h, job } = world("none");
  assert.deepEqual(ask(h, ROOT, { kind: "run-job", job, exec_vnode: "(n1:ncpus=1)", async: true })?.ok, true);
});

test("qrun of a job that a cycle under way starts: the scheduler and who asked both wait, each no longer than he would alone", () => {
  const rows: readonly (readonly [
    what: string,
    then: (h: Harness, link: number, job: string) => void,
    answer: object,
    verdict: object | null,
  ])[] = [
    [
      "started",
      (h, link, job) => mom(h, link, "mom-started", { job, run_count: 1, session_id: 2, jobdir: "/" }),
      { ok: true },
      { ok: true },
    ],
    ["sent back", (h, link, job) => obit(h, link, job, -3), { ok: false, code: 15041 }, { ok: false, code: 15041 }],
    ["silent", (h) => advance(h, HAND_PATIENCE_S), { ok: true }, null],
  ];
  for (const [what, then, answer, verdict] of rows) {
    const { h, job, link } = world("execjob_hook");
    const token = h.next_token;
    ask(h, ROOT, { kind: "run-job", job });
    decide(h, run(job));
    assert.deepEqual([stateOf(h, job), h.answers.get(token), verdicts(h)], ["R 41", undefined, null], what);
    then(h, link, job);
    settle(h);
    assert.partialDeepStrictEqual({ answer: h.answers.get(token) }, { answer }, what);
    assert.partialDeepStrictEqual({ verdict: verdicts(h)?.[0] ?? null }, { verdict }, what);
    assert.equal(h.core.kernel.jobs.starting.size, verdict === null ? 1 : 0, what);
  }
  const { h, job, link } = world("execjob_hook");
  const token = h.next_token;
  ask(h, ROOT, { kind: "run-job", job });
  decide(h, run(job));
  schedLost(h, SCHED);
  mom(h, link, "mom-started", { job, run_count: 1, session_id: 2, jobdir: "/" });
  assert.deepEqual([h.answers.get(token)?.ok, h.core.kernel.jobs.starting.size], [true, 0], "the scheduler is lost");
});

test("a client that is gone does not wait for its qrun", () => {
  const { h, job } = world("none");
  const token = h.next_token;
  ask(h, ROOT, { kind: "run-job", job, exec_vnode: "(n1:ncpus=1)" });
  h.core.clientLost([token]);
  assert.equal(h.core.kernel.jobs.starting.size, 0);
});

test("what a job with a soft_walltime is expected to take now is published while it runs, and told back to its scheduler", () => {
  const { h, job, link } = world("none");
  const extend = (soft_walltime_s: number): Decision => ({ kind: "extend", job, soft_walltime_s });
  assert.deepEqual(cycle(h, SCHED, [extend(120)]), [{ ok: false, code: 15016, text: "Request invalid for state of job" }]);
  decide(h, run(job));
  endCycle(h);
  mom(h, link, "mom-started", { job, run_count: 1, session_id: 2, jobdir: "/" });
  assert.deepEqual(cycle(h, SCHED, [extend(120)]), [{ ok: true }]);
  assert.deepEqual(jobAttrs(h, job)["estimated"], { soft_walltime: 120 });
  const [shown] = statusOf(h, ROOT, { kind: "status", object: "job", ids: [job], attrs: ["estimated"] }) as {
    readonly attrs: { readonly estimated?: unknown };
  }[];
  assert.deepEqual(shown?.attrs.estimated, { soft_walltime: "00:02:00" });
  obit(h, link, job);
  assert.equal(cycle(h, SCHED, [extend(180)])[0]?.ok, false);
});
