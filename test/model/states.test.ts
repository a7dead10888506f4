import assert from "node:assert/strict";
import { test } from "node:test";
import {
  canFollow,
  isFinished,
  isJobState,
  JOB_STATES,
  type JobState,
  NEXT_STATES,
  restingState,
  SUBSTATE,
  stateCountText,
} from "#model/job-state.ts";

test("transitions of jobs name states only, and nothing leaves the history but a subjob with its array", () => {
  for (const [from, next] of Object.entries(NEXT_STATES)) for (const to of next) assert.ok(isJobState(to) && to !== from, `${from} ${to}`);
  assert.ok((["F", "M"] as const).every((state) => NEXT_STATES[state] === ""));
  const reachable = new Set<JobState>(["T"]);
  for (const state of reachable) for (const next of NEXT_STATES[state]) reachable.add(next as JobState);
  assert.equal(reachable.size, Object.keys(JOB_STATES).length);
  const table: [JobState, JobState, boolean][] = [
    ["Q", "R", true],
    ["R", "E", true],
    ["E", "F", true],
    ["F", "Q", false],
    ["E", "R", false],
    ["H", "R", true],
    ["W", "R", false],
    ["R", "R", true],
    ["M", "Q", false],
  ];
  for (const [from, to, allowed] of table) assert.equal(canFollow(from, to), allowed, `${from} ${to}`);
  assert.deepEqual(["F", "M", "X", "R"].map(isFinished), [true, true, true, false]);
  assert.equal(isJobState("toString"), false);
});

test("a job at rest is held, waiting or queued", () => {
  assert.deepEqual(restingState({ held: true, waits: true }), { state: "H", substate: 20 });
  assert.deepEqual(restingState({ held: true, dependent: true, waits: false }), { state: "H", substate: 22 });
  assert.deepEqual(restingState({ held: false, waits: true }), { state: "W", substate: 30 });
  assert.deepEqual(restingState({ held: false, waits: false }), { state: "Q", substate: SUBSTATE.QUEUED });
});

test("state_count ends in a blank and counts suspended jobs as running", () => {
  assert.equal(
    stateCountText(
      new Map([
        ["Q", 2],
        ["S", 1],
        ["R", 3],
        ["X", 9],
      ]),
    ),
    "Transit:0 Queued:2 Held:0 Waiting:0 Running:4 Exiting:0 Begun:0 ",
  );
});
