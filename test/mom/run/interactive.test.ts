// Interactive jobs in the mom's core: where they run, and their end with their terminal.

import assert from "node:assert/strict";
import { test } from "node:test";
import { jobEnvironment } from "#mom/job/environment.ts";
import { filePlan } from "#mom/job/plan.ts";
import { placeholderSpec } from "#mom/job/sister.ts";
import type { StarterRun } from "#mom/job/starter-link.ts";
import type { MomEvent } from "#mom/run/event.ts";
import { CONFIG, exited, finished, job, OWNER, prepared, run, started, world } from "../world.ts";

const TICKET = { socket: "partita-qsub-1-ab", secret: "0123456789abcdef".repeat(4) };
const J = job({ script: null, attrs: { interactive: 1, terminal: TICKET, Rerunable: false } });
const PTY = "/dev/pts/7";
const onTerminal = (at_ms: number): MomEvent => ({ kind: "started", run: { job: J.id, run_count: 1, pid: 4711, at_ms, terminal: PTY } });
const HUNG_UP: MomEvent = { kind: "hung-up", run: { job: J.id, run_count: 1 } };
const DELETE: MomEvent = { kind: "terminate", data: { job: J.id, run_count: 1, why: "delete", kill_delay_s: 10 } };

function running() {
  const w = world();
  w.on({ kind: "start", job: J, owner: OWNER });
  w.on(prepared(J));
  w.on(onTerminal(w.now_ms));
  return w;
}

test("the starter gets the ticket; nothing is spooled, nothing is typed for the user", () => {
  const w = world();
  w.on({ kind: "start", job: J, owner: OWNER });
  w.on(prepared(J));
  const spec = w.actions.flatMap((action) => (action.kind === "start" ? [action.spec] : []))[0];
  assert.deepEqual(spec?.terminal, TICKET);
  assert.equal(spec?.stdin, null);
  assert.equal(spec?.login, true);
  assert.ok(!JSON.stringify({ ...spec, terminal: null }).includes(TICKET.secret), "the secret is nowhere else");
  const plan = filePlan(J, OWNER, CONFIG.facts);
  assert.deepEqual([plan.stdout.how, plan.stderr.how, plan.script], ["null", "null", null]);
  assert.deepEqual(placeholderSpec(spec as NonNullable<typeof spec>).terminal, null, "a sister calls nobody");
});

test("Join_Path has nothing to join", () => {
  const joined = job({ attrs: { interactive: 1, terminal: TICKET, Join_Path: "oe" } });
  const plan = filePlan(joined, OWNER, CONFIG.facts);
  assert.deepEqual([plan.stdout.how, plan.stderr.how], ["null", "null"]);
});

test("PBS_ENVIRONMENT tells an interactive job from a batch job", () => {
  const facts = { home: "/", jobdir: "/", tmpdir: "/", nodefile: "/", user: "alice", shell: "/bin/sh", port: 1, site: [] };
  assert.ok(jobEnvironment(J, facts).includes("PBS_ENVIRONMENT=PBS_INTERACTIVE"));
  assert.ok(jobEnvironment(job({ attrs: { interactive: 0 } }), facts).includes("PBS_ENVIRONMENT=PBS_BATCH"));
});

// biome-ignore format: one row a case
const TICKETS: readonly (readonly [what: string, terminal: unknown])[] = [
  ["none",              undefined],
  ["no object",         "x"],
  ["a path",            { ...TICKET, socket: "/run/docker.sock" }],
  ["a short secret",    { ...TICKET, secret: "ab" }],
];
for (const [what, terminal] of TICKETS)
  test(`an interactive job without a usable ticket never starts: ${what}`, () => {
    const w = world();
    w.on({ kind: "start", job: job({ attrs: { interactive: 1, terminal } }), owner: OWNER });
    assert.deepEqual(w.on(prepared(J)), ["finish 1.n1 deliver"]);
    assert.deepEqual(w.on(finished(J)), ["mom-obit 1.n1 -1"]);
  });

test("its terminal goes: SIGHUP, after kill_delay SIGKILL, and its own status", () => {
  const w = running();
  assert.deepEqual(w.on(HUNG_UP), ["signal 1.n1 1"]);
  assert.deepEqual(w.on(HUNG_UP), []);
  w.now_ms += 9000;
  assert.deepEqual(w.on({ kind: "tick" }), []);
  w.now_ms += 1000;
  assert.deepEqual(w.on({ kind: "tick" }), ["signal 1.n1 9"]);
  w.on(exited(J, w.now_ms, { signal: 9 }));
  assert.deepEqual(w.on(finished(J)), ["mom-obit 1.n1 265"]);
});

test("qdel: SIGHUP besides SIGTERM, of which shells at a terminal take no notice", () => {
  assert.deepEqual(running().on(DELETE), ["signal 1.n1 15", "signal 1.n1 1"]);
  const batch = world();
  run(batch, job());
  assert.deepEqual(batch.on(DELETE), ["signal 1.n1 15"]);
});

test("a terminal that goes while the job is being ended changes nothing", () => {
  const w = running();
  w.on(DELETE);
  assert.deepEqual(w.on(HUNG_UP), []);
});

const TOLD: MomEvent = { kind: "told", run: { job: J.id, run_count: 1 } };

/** A session that has just passed its walltime of 5 s. */
function overdue() {
  const w = world();
  const limited = job({ script: null, attrs: { ...J.attrs, Resource_List: { walltime: 5 } } });
  w.on({ kind: "start", job: limited, owner: OWNER });
  w.on(prepared(limited));
  w.on(onTerminal(w.now_ms));
  w.now_ms += 6000;
  return w;
}

test("a limit is told on the terminal before the session is asked to end", () => {
  const w = overdue();
  assert.deepEqual(w.on({ kind: "tick" }), [`append ${PTY} =>> PBS: job killed: walltime 6 exceeded limit 5`]);
  w.now_ms += 5000;
  assert.deepEqual(w.on({ kind: "tick" }), []);
  assert.deepEqual(w.on(TOLD), ["signal 1.n1 15", "signal 1.n1 1"]);
  assert.deepEqual(w.on(TOLD), []);
});

test("a terminal that takes no text holds up the end of its session for ten seconds", () => {
  const w = overdue();
  w.on({ kind: "tick" });
  w.now_ms += 9999;
  assert.deepEqual(w.on({ kind: "tick" }), []);
  w.now_ms += 1;
  assert.deepEqual(w.on({ kind: "tick" }), ["signal 1.n1 15", "signal 1.n1 1"]);
});

test("qdel while a limit is being told: the session ends at once, and once", () => {
  const w = overdue();
  w.on({ kind: "tick" });
  assert.deepEqual(w.on(DELETE), ["signal 1.n1 15", "signal 1.n1 1"]);
  assert.deepEqual(w.on(TOLD), []);
});

test("what is said to the job is said on its terminal", () => {
  const w = running();
  const words = w.on({ kind: "message", data: { token: 1, job: J.id, files: "oe", message: "hello" } });
  assert.deepEqual(words, [`append ${PTY} hello`, "mom-result ok"]);
});

test("qsub that nobody answers: the job ends and is told why", () => {
  const w = world();
  w.on({ kind: "start", job: J, owner: OWNER });
  w.on(prepared(J));
  const text = "cannot open interactive qsub socket: connect ECONNREFUSED";
  assert.deepEqual(w.on({ kind: "start-failed", run: { job: J.id, run_count: 1, exit_status: -1, text, at_ms: w.now_ms } }), [
    "finish 1.n1 deliver",
  ]);
  assert.ok(w.logged().includes(text));
  assert.deepEqual(w.on(finished(J)), ["mom-obit 1.n1 -1"]);
});

test("a mom that comes back: the session goes on; one whose terminal went meanwhile is ended", () => {
  const entry: StarterRun = { job: J.id, run_count: 1, pid: 4711, at_ms: 900_000, terminal: PTY, state: "running" };
  for (const [runs, words] of [
    [[entry], []],
    [[{ ...entry, hung_up: true }], ["signal 1.n1 1"]],
  ] as const) {
    const before = running();
    const w = world({ welcomed: false });
    w.on({ kind: "recovered", saved: [...before.records.values()] });
    assert.deepEqual(w.on({ kind: "starter-state", data: { pid: 9, runs, last: [] } }), words);
    const { phase } = w.state.runs.get(J.id) ?? {};
    assert.ok(phase?.name === "running" && phase.files.stdout === PTY);
  }
});

test("a batch job that is started has no terminal", () => {
  const w = world();
  run(w, job());
  const { phase } = w.state.runs.get("1.n1") ?? {};
  assert.ok(phase?.name === "running" && phase.files.stdout.startsWith("/pbs/spool/"));
  assert.deepEqual(w.on(started(job(), w.now_ms)), []);
});
