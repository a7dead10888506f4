// Schedulers that stop answering: messages about them and their jobs, the fate of their decisions, and the end of their
// process.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { Explanation } from "#protocol/explanation.ts";
import type { Attrs } from "#server/state/state.ts";
import {
  ALICE,
  addHost,
  addJob,
  addSched,
  advance,
  apply,
  ask,
  cycle,
  type Harness,
  harness,
  logsOf,
  outcome,
  ROOT,
  restart,
  sched,
  schedHello,
  settle,
  stateOf,
  statusOf,
} from "../harness.ts";

const LINK = 1;
const PID = 4711;

/** Host n1, the default scheduler connected and idle. */
function world(): Harness {
  const h = harness();
  addHost(h, "n1");
  schedHello(h, LINK);
  cycle(h, LINK);
  return h;
}

/** SIGSTOP: the scheduler answers nothing, and the shell sees that it is stopped. */
function stop(h: Harness): void {
  h.silent.add(LINK);
  h.sights.set("default", { pid: PID, process: "stopped" });
}

const shown = (h: Harness, name = "default"): string => {
  const { state, comment } = h.core.state.scheds.get(name)?.attrs ?? {};
  return comment === undefined ? String(state) : `${state}: ${comment}`;
};
const done = (h: Harness, ...kinds: string[]): string[] => h.actions.flatMap(({ kind }) => (kinds.includes(kind) ? [kind] : []));
const killed = (h: Harness): number[] => h.actions.flatMap((action) => (action.kind === "kill-sched" ? [action.pid] : []));
const setServer = (h: Harness, value: string): string =>
  outcome(h, ROOT, {
    kind: "manager",
    verb: "set",
    object: "server",
    name: "",
    attrs: [{ name: "sched_silence_timeout", op: "=", value }],
  });
/**
 * Seconds until the displayed state of the scheduler changes; infinite: not within 500 s (the next cycle comes after
 * scheduler_iteration, 600 s).
 */
function secondsUntilChange(h: Harness): number {
  const before = shown(h);
  for (let seconds = 1; seconds <= 500; seconds++) {
    advance(h, 1);
    if (shown(h) !== before) return seconds;
  }
  return Number.POSITIVE_INFINITY;
}
const commentOf = (h: Harness, job: string): unknown =>
  (statusOf(h, ROOT, { kind: "status", object: "job", ids: [job] })[0] as { attrs: { [name: string]: unknown } }).attrs["comment"];

test("a stopped scheduler is down within 45 seconds, its connection ends, and its jobs, explain and qrun say so", () => {
  const h = world();
  advance(h, 500);
  assert.equal(shown(h), "idle", "a scheduler that answers is there");
  stop(h);
  const seconds = secondsUntilChange(h);
  assert.ok(seconds > 30 && seconds <= 45, `${seconds}`);
  assert.equal(shown(h), "down: NEEDS_ATTENTION: has not answered for 45 seconds, process 4711 is stopped");
  assert.deepEqual(done(h, "drop-link"), ["drop-link"]);
  const job = addJob(h);
  const why = "Scheduler default has not answered for 45 seconds, process 4711 is stopped";
  const remedy = "kill -CONT 4711; else it is ended and started anew in 45 s";
  assert.equal(commentOf(h, job), `Not Running: ${why} (to mend: ${remedy})`);
  const answer = ask(h, ROOT, { kind: "explain-job", job });
  assert.ok(answer?.ok);
  const { why: told, remedy: mend } = answer.value as Explanation;
  assert.deepEqual([told?.text, mend], [`Not Running: ${why}`, remedy]);
  assert.equal(outcome(h, ROOT, { kind: "run-job", job }), "15099 Could not contact Scheduler");
  assert.ok(h.logs.some(({ text }) => text === `Unable to reach scheduler associated with job ${job}`));
});

test("who had asked before it was noticed is answered then: explain with the reason, qrun with 15099", () => {
  const h = world();
  const job = addJob(h);
  stop(h);
  const [explain, qrun] = [h.next_token++, h.next_token++];
  h.core.request(ALICE, { kind: "explain-job", job }, explain, h.now_ms);
  h.core.request(ROOT, { kind: "run-job", job }, qrun, h.now_ms);
  settle(h);
  assert.deepEqual([h.answers.has(explain), h.answers.has(qrun)], [false, false]);
  advance(h, 46);
  const answer = h.answers.get(explain);
  assert.ok(answer?.ok);
  assert.match((answer.value as Explanation).why?.text ?? "", /^Not Running: Scheduler default has not answered for \d+ seconds/);
  assert.deepEqual(h.answers.get(qrun), { ok: false, code: 15099, text: "Could not contact Scheduler" });
});

test("it goes on before it is noticed: what it decided is checked as ever; after that: nothing of it counts before its hello", () => {
  const h = world();
  const job = addJob(h);
  const run = { kind: "run", job, exec_vnode: "(n1:ncpus=1)" } as const;
  h.silent.add(LINK);
  advance(h, 30);
  assert.equal(outcome(h, ROOT, { kind: "delete-job", job }), "ok");
  assert.deepEqual(
    cycle(h, LINK, [run]).map(({ ok }) => ok),
    [false],
  );
  const other = addJob(h);
  stop(h);
  advance(h, 46);
  sched(h, LINK, "sched-decisions", {
    cycle: h.core.kernel.scheds.by_name.get("default")?.cycle ?? 0,
    decisions: [{ ...run, job: other }],
  });
  assert.equal(stateOf(h, other), "Q 10", "its connection has ended");
  h.silent.clear();
  schedHello(h, LINK + 1);
  assert.equal(shown(h), "scheduling");
  assert.equal(h.to_scheds.findLast(({ type }) => type === "sched-snapshot")?.link, LINK + 1);
  assert.deepEqual(
    cycle(h, LINK + 1, [{ ...run, job: other }]).map(({ ok }) => ok),
    [true],
  );
  advance(h, 500);
  assert.deepEqual(killed(h), []);
});

test("a process that is still stopped after as long again is killed, and another one started; that counts as a crash", () => {
  const h = world();
  stop(h);
  h.actions.length = 0;
  advance(h, 46);
  assert.deepEqual(killed(h), []);
  advance(h, 45);
  assert.deepEqual(killed(h), [PID]);
  assert.ok(logsOf(h, "default").includes("has not answered for 90 seconds, process 4711 is stopped: it is ended by SIGKILL"));
  h.core.schedExited("default", { code: null, signal: "SIGKILL", stopped: false, pid: PID }, h.now_ms);
  settle(h);
  assert.deepEqual(done(h, "start-sched"), ["start-sched"]);
  assert.equal(shown(h), "down");
  assert.equal(h.core.kernel.scheds.by_name.get("default")?.crashes.length, 1);
  h.sights.clear();
  schedHello(h, 2);
  assert.equal(shown(h), "scheduling");
  advance(h, 500);
  assert.deepEqual(killed(h), [PID], "once");
});

test("a process that runs again when it would be killed may end its cycle first, and is killed if it never answers", () => {
  const h = world();
  stop(h);
  advance(h, 46);
  h.sights.set("default", { pid: PID, process: "runs" });
  advance(h, 45);
  assert.deepEqual(killed(h), []);
  assert.ok(logsOf(h, "default").includes("process 4711 goes on; it is ended in 1200 s unless it answers"));
  advance(h, 1100);
  assert.deepEqual(killed(h), []);
  advance(h, 100);
  assert.deepEqual(killed(h), [PID]);
});

test("a long cycle is not taken for silence: a process that is not stopped has sched_cycle_length besides", () => {
  const h = world();
  addJob(h);
  h.silent.add(LINK);
  advance(h, 1200);
  assert.equal(shown(h), "scheduling");
  advance(h, 60);
  assert.match(shown(h), /^down: NEEDS_ATTENTION: has not answered for 12\d\d seconds, process 4711$/);
  assert.match(String(commentOf(h, addJob(h))), /\(to mend: kill -KILL 4711; else /);
});

test("the parts of a cycle are words, too, and so are answers to questions", () => {
  const h = world();
  addJob(h);
  stop(h);
  for (let part = 0; part < 10; part++) {
    advance(h, 40);
    sched(h, LINK, "sched-decisions", { cycle: h.core.kernel.scheds.by_name.get("default")?.cycle ?? 0, decisions: [], more: true });
  }
  assert.equal(shown(h), "scheduling");
});

// biome-ignore format: a table
const TIMES: readonly [value: string, least: number, most: number][] = [
  ["4",    3,   4],
  ["200",  150, 200],
  ["0",    Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY],
];
for (const [value, least, most] of TIMES)
  test(`sched_silence_timeout ${value}: noticed after ${least} to ${most} seconds`, () => {
    const h = world();
    assert.equal(setServer(h, value), "ok");
    stop(h);
    const seconds = secondsUntilChange(h);
    assert.ok(seconds >= least && seconds <= most, `${seconds}`);
  });

test("a scheduler of an earlier release is not asked: it would not know the frame", () => {
  const h = harness();
  sched(h, LINK, "sched-hello", { name: "default", pid: PID, version: "x" });
  stop(h);
  cycle(h, LINK);
  assert.equal(secondsUntilChange(h), Number.POSITIVE_INFINITY);
  assert.deepEqual(done(h, "look-at-sched"), []);
});

test("a process that is stopped before it says hello is noticed and killed; one that takes its time is not", () => {
  for (const process of ["stopped", "runs"] as const) {
    const h = harness();
    h.sights.set("default", { pid: PID, process });
    advance(h, 46);
    assert.equal(shown(h), process === "runs" ? "down" : "down: NEEDS_ATTENTION: has not answered for 45 seconds, process 4711 is stopped");
    advance(h, 45);
    assert.deepEqual(killed(h), process === "runs" ? [] : [PID]);
  }
});

test("a scheduler that was stopped before the server was killed is noticed by the next server", () => {
  const h = world();
  stop(h);
  restart(h);
  advance(h, 100);
  assert.deepEqual(killed(h), [PID]);
});

test("what the server itself did not do for a time is no scheduler's silence", () => {
  const h = world();
  stop(h);
  advance(h, 10);
  h.now_ms += 100_000;
  h.core.tick(h.now_ms);
  settle(h);
  assert.equal(shown(h), "idle");
  assert.ok(secondsUntilChange(h) <= 45, "from then on it counts");
});

test("the comment of an administrator stays while a scheduler is silent; the server's word comes when it is unset, and goes with the silence", () => {
  const h = world();
  const change = (set: Attrs, unset: string[] = []): void => apply(h, { kind: "changed", object: "sched", name: "default", set, unset });
  change({ comment: "mine" });
  stop(h);
  advance(h, 46);
  assert.equal(shown(h), "down: mine");
  change({}, ["comment"]);
  assert.match(shown(h), /^down: NEEDS_ATTENTION: has not answered for \d+ seconds, process 4711 is stopped$/);
  h.silent.clear();
  schedHello(h, 2);
  assert.equal(shown(h), "scheduling");
});

test("a silent scheduler that is told to end is ended by its pid: it has no connection, and may be no child", () => {
  const h = world();
  addSched(h, "s1", { partition: ["p1"] });
  schedHello(h, 2, "s1");
  h.silent.add(2);
  h.sights.set("s1", { pid: PID, process: "stopped" });
  advance(h, 46);
  apply(h, { kind: "changed", object: "sched", name: "s1", set: {}, unset: ["partition"] });
  assert.deepEqual(
    h.actions.flatMap((action) => (action.kind === "stop-sched" ? [action.pid] : [])),
    [PID],
  );
});
