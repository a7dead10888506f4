// The phase of a job: every state and substate of a job has exactly one phase, and every transition to a phase leads to that
// phase.

import assert from "node:assert/strict";
import { test } from "node:test";
import { JOB_STATES, type JobState, SUBSTATE } from "#model/job-state.ts";
import {
  type HowOver,
  isForSched,
  isPlanned,
  isRunning,
  isSuspended,
  isWaiting,
  isWithMom,
  OVER,
  type PhaseName,
  phaseName,
  phaseOf,
  RUN_PHASE,
} from "#server/state/job-phase.ts";
import type { JobAttrs } from "#server/state/state.ts";

const job = (job_state: string, substate: number, more: object = {}) => ({
  attrs: { job_state, substate, Hold_Types: "n", ...more } as JobAttrs,
});

// biome-ignore format: a table
const ROWS: readonly (readonly [state: JobState, substate: keyof typeof SUBSTATE, phase: PhaseName, questions: string])[] = [
  ["T", "TRANSIT_IN",      "transit",   "waiting"],
  ["Q", "QUEUED",          "queued",    "waiting forSched planned"],
  ["H", "HELD",            "held",      "waiting"],
  ["H", "DEPEND_HOLD",     "held",      "waiting"],
  ["W", "WAITING",         "waiting",   "waiting"],
  ["W", "STAGE_FAIL",      "waiting",   "waiting"],
  ["B", "BEGUN",           "begun",     "planned"],
  ["R", "PRE_RUN",         "starting",  "withMom running"],
  ["R", "RUNNING",         "running",   "withMom running"],
  ["U", "RUNNING",         "running",   "withMom running"],
  ["R", "RERUN",           "rerunning", "withMom running"],
  ["S", "SUSPENDED",       "suspended", "withMom suspended"],
  ["S", "SCHED_SUSPENDED", "resumable", "withMom suspended forSched planned"],
  ["E", "EXITING",         "exiting",   "withMom"],
  ["F", "FINISHED",        "over",      ""],
  ["F", "TERMINATED",      "over",      ""],
  ["X", "FINISHED",        "over",      ""],
  ["M", "MOVED",           "over",      ""],
];

for (const [state, substate, phase, questions] of ROWS)
  test(`${state} ${SUBSTATE[substate]} is ${phase}`, () => {
    const it = job(state, SUBSTATE[substate]);
    assert.equal(phaseName(it), phase);
    assert.equal(phaseOf(it).name, phase);
    const asked = {
      waiting: isWaiting,
      withMom: isWithMom,
      running: isRunning,
      suspended: isSuspended,
      forSched: isForSched,
      planned: isPlanned,
    };
    const yes = Object.entries(asked).flatMap(([word, ask]) => (ask(it) ? [word] : []));
    assert.equal(yes.join(" "), questions);
  });

test("every state has a row", () => {
  assert.deepEqual([...new Set(ROWS.map(([state]) => state))].sort(), Object.keys(JOB_STATES).sort());
});

test("what puts a job into a phase puts it there", () => {
  for (const [name, attrs] of Object.entries(RUN_PHASE)) assert.equal(phaseName({ attrs }), name);
  for (const [how, { job_state, substate }] of Object.entries(OVER)) {
    const phase = phaseOf(job(job_state, substate, { Exit_status: 3 }));
    assert.deepEqual(phase, { name: "over", how: how as HowOver, exit_status: 3 });
  }
});

test("a phase carries what is valid in it", () => {
  assert.deepEqual(phaseOf(job("H", SUBSTATE.DEPEND_HOLD, { Hold_Types: "s" })), { name: "held", holds: "s", dependent: true });
  assert.deepEqual(phaseOf(job("W", SUBSTATE.WAITING, { Execution_Time: 7 })), { name: "waiting", until_s: 7 });
  assert.deepEqual(phaseOf(job("R", SUBSTATE.RUNNING, { exec_vnode: "(n1:ncpus=1)", stime: 5, run_count: 2 })), {
    name: "running",
    exec_vnode: "(n1:ncpus=1)",
    start_s: 5,
    run_count: 2,
  });
});
