// A mom whose server does not answer: which runs it ends, when, and what the server is told afterwards.

import assert from "node:assert/strict";
import { test } from "node:test";
import { leaseOf } from "#mom/run/cut-off.ts";
import type { MomEvent } from "#mom/run/event.ts";
import { acknowledged, exited, finished, job, OWNER, prepared, run, started, type World, world } from "../world.ts";

const S = 1000;
const START_MS = 1_000_000;
const contact = (at_ms: number, requeue_s = 310, sister_s = 300): MomEvent => ({
  kind: "contact",
  at_ms,
  grace: { number: 1, requeue_s, sister_s },
});

/** Ticks at a time after the last contact. */
function at(w: World, after_s: number): string[] {
  w.now_ms = START_MS + after_s * S;
  return w.on({ kind: "tick" });
}

/** A world with a running job, whose server answered what was sent at START_MS. */
function running(attrs: Readonly<Record<string, unknown>> = {}, requeue_s = 310): World {
  const w = world();
  w.on(contact(START_MS, requeue_s));
  run(w, job({ attrs }));
  return w;
}

const obitOf = (w: World) => w.actions.flatMap((action) => (action.kind === "send" && action.type === "mom-obit" ? [action.data] : []));

test("a rerunnable job is killed a margin before its grace is over, and is reported as lost by its host", () => {
  const w = running();
  assert.deepEqual(at(w, 289), []);
  assert.deepEqual(at(w, 290), ["signal 1.n1 9"]);
  assert.ok(w.logged().some((text) => text.includes("has not answered for 290 seconds")));
  assert.deepEqual(at(w, 291), [], "it is killed once");
  assert.deepEqual(w.on(exited(job(), w.now_ms, { signal: 9 })), ["finish 1.n1 keep"], "its output is kept for the next run");
  assert.deepEqual(w.on(finished(job())), ["mom-obit 1.n1 -20"]);
  assert.equal(obitOf(w).at(-1)?.message, "ended by its host, which was cut off from the server for too long");
  assert.deepEqual(w.on(acknowledged(job())), ["drop 1.n1 1"]);
});

// biome-ignore format: a table
const GRACES: readonly (readonly [what: string, attrs: Readonly<Record<string, unknown>>, requeue_s: number, ends_s: number | null])[] = [
  ["the default", {}, 310, 290],
  ["a short grace", {}, 10, 7.5],
  ["node_fail_requeue 0", {}, 0, null],
  ["a job that cannot be rerun", { Rerunable: false }, 310, null],
];
for (const [what, attrs, requeue_s, ends_s] of GRACES) {
  test(`${what}: ${ends_s === null ? "the job goes on for ever" : `the job ends after ${ends_s} s`}`, () => {
    const w = running(attrs, requeue_s);
    assert.deepEqual(at(w, (ends_s ?? 1e6) - 0.001), []);
    assert.deepEqual(at(w, ends_s ?? 1e6 + 1), ends_s === null ? [] : ["signal 1.n1 9"]);
    const [leased] = leaseOf(w.state)?.runs ?? [];
    const margin_s = requeue_s - (ends_s ?? 0);
    assert.equal(leased?.until_ms, ends_s === null ? undefined : START_MS + (requeue_s - margin_s / 2) * S);
  });
}

test("time counts from when an answered message left; an answer to an older message changes nothing", () => {
  const w = running();
  w.now_ms = START_MS + 200 * S;
  w.on(contact(START_MS + 100 * S));
  w.on(contact(START_MS + 50 * S));
  assert.deepEqual(at(w, 389), []);
  assert.deepEqual(at(w, 390), ["signal 1.n1 9"]);
});

test("a mom that nobody has answered yet ends nothing; that no server runs counts as an answer", () => {
  const w = world();
  run(w, job());
  w.on({ kind: "contact", at_ms: START_MS, grace: null });
  assert.deepEqual(at(w, 1e6), []);
  const other = running();
  other.now_ms = START_MS + 280 * S;
  other.on({ kind: "contact", at_ms: other.now_ms, grace: null });
  assert.deepEqual(at(other, 569), []);
  assert.deepEqual(at(other, 570), ["signal 1.n1 9"]);
});

test("on a sister the time of sisters counts", () => {
  const w = world();
  w.on(contact(START_MS, 0, 20));
  run(w, job({ exec_host: "n0/0+n1/0", exec_vnode: "(n0:ncpus=1)+(n1:ncpus=1)" }));
  assert.deepEqual(at(w, 14.9), []);
  assert.deepEqual(at(w, 15), ["signal 1.n1 9"]);
});

test("a run that has not started is never started; one that is being started is killed when it has", () => {
  const w = world();
  w.on(contact(START_MS, 20));
  w.on({ kind: "start", job: job(), owner: OWNER });
  at(w, 15);
  assert.deepEqual(w.on(prepared(job())), ["finish 1.n1 keep"]);
  assert.deepEqual(w.on(finished(job())), ["mom-obit 1.n1 -20"]);
  const later = world();
  later.on(contact(START_MS, 20));
  later.on({ kind: "start", job: job(), owner: OWNER });
  later.on(prepared(job()));
  assert.deepEqual(at(later, 15), []);
  assert.ok(later.on(started(job(), later.now_ms)).includes("signal 1.n1 9"));
});

test("any event ends what is overdue, before it has an effect of its own", () => {
  const w = running();
  w.now_ms = START_MS + 1000 * S;
  assert.deepEqual(w.on({ kind: "connected" }), ["signal 1.n1 9", "hello"]);
});

test("a run that somebody has deleted, or that is over, is left alone", () => {
  const w = running();
  w.on({ kind: "terminate", data: { job: "1.n1", run_count: 1, why: "delete", kill_delay_s: 1000 } });
  assert.deepEqual(at(w, 300), []);
  const over = running();
  over.on(exited(job(), over.now_ms, { code: 0 }));
  at(over, 300);
  over.on(finished(job()));
  assert.equal(obitOf(over).at(-1)?.exit_status, 0);
});

test("a run that the starter has killed, because the mom was stopped, is reported like one that the mom has ended", () => {
  const w = running();
  w.now_ms = START_MS + 280 * S;
  const { run: exit, ...event } = exited(job(), w.now_ms, { signal: 9 }) as Extract<MomEvent, { kind: "exited" }>;
  w.on({ ...event, run: { ...exit, cut_off: true } });
  assert.deepEqual(w.on(finished(job())), ["mom-obit 1.n1 -20"]);
});

test("a mom that was started again goes by the contact that the starter knows", () => {
  const first = running();
  const lease = leaseOf(first.state);
  assert.ok(lease !== null);
  const next = world({ welcomed: false });
  next.now_ms = START_MS + 280 * S;
  next.on({ kind: "recovered", saved: [...first.records.values()] });
  const runs = [{ job: "1.n1", run_count: 1, pid: 4711, at_ms: START_MS, state: "running" }] as const;
  next.on({ kind: "starter-state", data: { pid: 1, runs, last: [], leases: true, lease } });
  assert.deepEqual(at(next, 289), []);
  assert.deepEqual(at(next, 290), ["signal 1.n1 9"]);
});
