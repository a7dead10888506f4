// A mom that was stopped or has lost its server: which jobs it may start, and which starts it confirms.

import assert from "node:assert/strict";
import { test } from "node:test";
import { stallWatch } from "#mom/driver/stall.ts";
import { steadyRecord, steadyRun, steadyTime } from "#mom/driver/steady-time.ts";
import { exited, finished, job, OWNER, prepared, started, world } from "../world.ts";

const welcome = (kill: readonly string[] = []) => ({ kind: "welcome", data: { keep: [], kill, acknowledged: [] } }) as const;

test("a mom that does nothing for a third of the server's patience has stood still", () => {
  const watch = stallWatch(0);
  assert.deepEqual([watch.look(1000), watch.look(16_000), watch.look(31_001), watch.look(31_002)], [0, 0, 15_001, 0]);
  watch.setSilence(3);
  assert.equal(watch.period_ms, 250);
  assert.deepEqual([watch.look(32_000), watch.look(33_001)], [0, 1001]);
  watch.setSilence(0);
  assert.equal(watch.look(1e9), 0);
});

test("a mom says which starts it has taken; a stale one is not among them", () => {
  const w = world();
  w.on({ kind: "start", job: job({ run_count: 2 }), owner: OWNER });
  w.on({ kind: "start", job: job({ run_count: 1 }), owner: OWNER });
  const runs = [
    { job: "1.n1", run_count: 2 },
    { job: "1.n1", run_count: 1 },
    { job: "7.n1", run_count: 1 },
  ];
  assert.deepEqual(w.on({ kind: "starts-read", runs }), ["send"]);
  const said = w.actions.at(-1);
  assert.ok(said?.kind === "send" && said.type === "mom-accepted");
  assert.deepEqual(said.data.runs, [{ job: "1.n1", run_count: 2 }]);
});

test("without a server nothing is started: what is ready waits for the welcome", () => {
  const w = world();
  const j = job();
  w.on({ kind: "start", job: j, owner: OWNER });
  w.on({ kind: "disconnected" });
  assert.deepEqual(w.on(prepared(j)), []);
  w.on({ kind: "connected" });
  assert.deepEqual(w.on(welcome()), ["start 1.n1"]);
});

test("a run that was ready and is not wanted any more is never started", () => {
  for (const how of ["kill", "terminate", "stop"] as const) {
    const w = world();
    const j = job();
    w.on({ kind: "start", job: j, owner: OWNER });
    w.on({ kind: "disconnected" });
    w.on(prepared(j));
    const words =
      how === "kill"
        ? w.on(welcome(["1.n1"]))
        : how === "terminate"
          ? w.on({ kind: "terminate", data: { job: "1.n1", run_count: 1, why: "delete", kill_delay_s: 5 } })
          : w.on({ kind: "stop", manner: "kill" });
    assert.deepEqual(
      words.map((word) => word.split(" ")[0]),
      ["finish"],
      how,
    );
    const more = w.on(welcome());
    assert.ok(![...words, ...more].some((word) => word.startsWith("start")), how);
  }
});

test("a run that was recovered is not started before the server has said that it wants it", () => {
  const first = world();
  const j = job();
  first.on({ kind: "start", job: j, owner: OWNER });
  const w = world({ welcomed: false });
  w.on({ kind: "recovered", saved: [...first.records.values()] });
  assert.deepEqual(w.on({ kind: "starter-state", data: { pid: 1, runs: [], last: [] } }), ["prepare 1.n1"]);
  assert.deepEqual(w.on(prepared(j)), []);
  w.on({ kind: "connected" });
  assert.deepEqual(w.on(welcome()), ["start 1.n1"]);
});

test("times of the wall clock that an earlier release has left are read as they were meant", () => {
  const ahead_ms = Date.now() - 5_000_000;
  assert.equal(steadyTime(Date.now() - 1000, ahead_ms) > 4_990_000, true);
  assert.equal(steadyTime(123_456, ahead_ms), 123_456);
  const run = { job: "1.n1", run_count: 1, pid: 5, at_ms: 1000, state: "running" } as const;
  assert.deepEqual(steadyRun(run, ahead_ms), run);
  const w = world();
  const j = job();
  w.on({ kind: "start", job: j, owner: OWNER });
  w.on(prepared(j));
  w.on(started(j, w.now_ms));
  w.on({ kind: "terminate", data: { job: "1.n1", run_count: 1, why: "delete", kill_delay_s: 9 } });
  const saved = w.records.get("1.n1");
  assert.ok(saved !== undefined);
  assert.deepEqual(steadyRecord(saved, ahead_ms), saved);
  w.on(exited(j, w.now_ms, { signal: 15 }));
  w.on(finished(j));
});

test("on another host than its server a mom starts nothing before the server has answered what it accepted", () => {
  const w = world();
  w.on({ kind: "connected" });
  w.on({ kind: "welcome", data: { keep: [], kill: [], acknowledged: [], confirms: true } });
  const [first, second] = [job(), job({ id: "2.n1" })];
  for (const each of [first, second]) w.on({ kind: "start", job: each, owner: OWNER });
  assert.deepEqual(w.on(prepared(first)), []);
  assert.deepEqual(w.on({ kind: "confirmed", runs: [{ job: "1.n1", run_count: 2 }] }), [], "another run");
  assert.deepEqual(w.on({ kind: "confirmed", runs: [{ job: "1.n1", run_count: 1 }] }), ["start 1.n1"]);
  // The answer may be there first.
  w.on({ kind: "confirmed", runs: [{ job: "2.n1", run_count: 1 }] });
  assert.deepEqual(w.on(prepared(second)), ["start 2.n1"]);
  // After a new hello, the welcome is the answer.
  const third = job({ id: "3.n1" });
  w.on({ kind: "start", job: third, owner: OWNER });
  w.on({ kind: "disconnected" });
  w.on(prepared(third));
  w.on({ kind: "connected" });
  assert.deepEqual(w.on({ kind: "welcome", data: { keep: ["3.n1"], kill: [], acknowledged: [], confirms: true } }), ["start 3.n1"]);
});

test("a later run of a job, which waits for the earlier one, needs an answer of its own", () => {
  const w = world();
  w.on({ kind: "welcome", data: { keep: [], kill: [], acknowledged: [], confirms: true } });
  const [earlier, later] = [job(), job({ run_count: 2 })];
  w.on({ kind: "start", job: earlier, owner: OWNER });
  w.on(prepared(earlier));
  w.on({ kind: "confirmed", runs: [{ job: "1.n1", run_count: 1 }] });
  w.on(started(earlier, 0));
  w.on({ kind: "start", job: later, owner: OWNER });
  w.on(exited(earlier, 1000, { signal: 9 }));
  w.on(finished(earlier));
  assert.deepEqual(w.on(prepared(later)), []);
  assert.deepEqual(w.on({ kind: "confirmed", runs: [{ job: "1.n1", run_count: 2 }] }), ["start 1.n1"]);
});
