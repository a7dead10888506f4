// The wall clock is set while the server runs: durations are not affected, and events due at a time of day happen at that time.

import assert from "node:assert/strict";
import { test } from "node:test";
import { manualClock } from "#support/clock.ts";
import { clockJumps, watchedClock } from "#support/clock-jumps.ts";
import { addHost, addJob, advance, askOk, type Harness, harness, ROOT, runOn, settle, stateOf } from "../harness.ts";

const TWO_DAYS_S = 172_800;
function setClock(h: Harness, by_s: number): void {
  h.now_ms += by_s * 1000;
  h.core.clockSet(by_s * 1000, h.now_ms);
  h.core.tick(h.now_ms);
  settle(h);
}
const node = (h: Harness): unknown => h.core.state.vnodes.get("n1")?.attrs["state"];

for (const by_s of [TWO_DAYS_S, -TWO_DAYS_S]) {
  test(`the clock is set by ${by_s} seconds: no mom is silent for it, and none that was is waited for longer`, () => {
    const h = harness();
    const link = addHost(h, "n1");
    const job = addJob(h);
    runOn(h, job, "n1", link);
    h.core.momLost(link, h.now_ms);
    settle(h);
    advance(h, 300);
    setClock(h, by_s);
    assert.equal(stateOf(h, job), "R 42", "node_fail_requeue is not over");
    advance(h, 11);
    assert.equal(stateOf(h, job), "Q 10", "it is, by the time that has passed");
    const other = addHost(h, "n2");
    advance(h, 20);
    setClock(h, by_s);
    assert.deepEqual(h.core.state.vnodes.get("n2")?.attrs["state"], []);
    h.silent.add(other);
    advance(h, 45);
    assert.deepEqual(h.core.state.vnodes.get("n2")?.attrs["state"], ["state-unknown"]);
    assert.ok(h.logs.some(({ text }) => text === `the system clock was set ${TWO_DAYS_S} seconds ${by_s < 0 ? "back" : "forward"}`));
  });
}

test("the clock is set back by two days: crashes of a scheduler are forgotten after an hour as before", () => {
  const h = harness();
  const hour_s = 3600;
  const crash = (): void => {
    h.core.schedExited("default", { code: null, signal: "SIGSEGV", stopped: false }, h.now_ms);
    settle(h);
  };
  for (let at = 0; at < 3; at++) crash();
  const runtime = h.core.kernel.scheds.by_name.get("default");
  assert.deepEqual([runtime?.crashes.length, runtime?.attention], [3, true]);
  setClock(h, -TWO_DAYS_S);
  advance(h, hour_s + 1);
  crash();
  assert.deepEqual([runtime?.crashes.length, runtime?.attention], [1, false]);
});

test("a job that waits for a time of the day begins to be eligible when the clock shows it", () => {
  const h = harness();
  addHost(h, "n1");
  const job = addJob(h, { Execution_Time: Math.floor(h.now_ms / 1000) + 3600 });
  askOk(h, ROOT, { kind: "release-job", job, holds: "n" });
  setClock(h, 3601);
  assert.equal(stateOf(h, job), "Q 10");
  assert.deepEqual(node(h), []);
});

test("only a clock that was set is one: drift and waiting are not", () => {
  const clock = manualClock(1_000_000);
  const look = clockJumps(clock.now_ms, clock.monotonic_ms);
  clock.advance(86_400_000);
  assert.equal(look(), 0, "a day has passed");
  for (let second = 0; second < 10; second++) {
    clock.advance(1000);
    clock.jump(clock.now_ms() + 200);
    assert.equal(look(), 0, "it drifts");
  }
  clock.jump(clock.now_ms() - 5000);
  assert.equal(look(), -5000);
  assert.equal(look(), 0, "told once");
});

test("the core hears that the clock was set before it is told a time of after", () => {
  const clock = manualClock(1_000_000);
  const told: string[] = [];
  const now = watchedClock((by_ms, at_ms) => void told.push(`set ${by_ms} ${at_ms}`), {
    wall_ms: clock.now_ms,
    steady_ms: clock.monotonic_ms,
  });
  told.push(`now ${now()}`);
  clock.advance(10);
  clock.jump(5_000_010);
  told.push(`now ${now()}`);
  assert.deepEqual(told, ["now 1000000", "set 4000000 5000010", "now 5000010"]);
});
