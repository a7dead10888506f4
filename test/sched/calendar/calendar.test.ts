// The calendar, forecasts and the search for the first start, without a cycle.

import assert from "node:assert/strict";
import { test } from "node:test";
import { book as enter, putRunningJob, unbook } from "#sched/calendar/calendar.ts";
import { createForecast } from "#sched/calendar/forecast.ts";
import { findStart } from "#sched/calendar/start-search.ts";
import { placedText } from "#sched/place/placement.ts";
import type { JobEntry } from "#sched/shapes/job-line.ts";
import { holdingOfChunks, readHolding } from "#sched/shapes/running.ts";
import type { Universe } from "#sched/shapes/universe.ts";
import type { NodeSet } from "#sched/shapes/vnode.ts";
import { describeUniverse } from "../describe.ts";
import { universeOf } from "../world.ts";

const NODES = "n0 ncpus=4; n1 ncpus=4; n2 ncpus=4; n3 ncpus=4";
const RUNNING = `j0 R (n0:ncpus=4) walltime=18; j1 R (n3:ncpus=1) walltime=7; j2 R (n2:ncpus=4)+(n3:ncpus=2) walltime=22`;

const setOf = (universe: Universe): NodeSet => [...universe.sets.values()][0] as NodeSet;

function startOf(universe: Universe, job: string, walltime_s: number, more: object = {}): string {
  unbook(universe, job);
  const entry = universe.entries.get(job) as JobEntry;
  const wanted = { set: setOf(universe), request: entry.request, job: entry.job, most_s: walltime_s, grace_s: 0 };
  const found = findStart(universe, wanted, { now_s: 0, until_s: 1000, ...more });
  if (found.start_s === null) return found.late ? "late" : "never";
  enter(universe, {
    id: job,
    kind: "plan",
    from_s: found.start_s,
    to_s: found.start_s + walltime_s,
    holding: holdingOfChunks(entry.request.place, found.chunks),
  });
  return `${found.start_s} ${placedText(universe, found.chunks)}`;
}

test("the first start is the first time at which a job fits around what was booked before it", () => {
  const universe = universeOf({ nodes: NODES, jobs: `${RUNNING}; q0 2:ncpus=4; q1 2:ncpus=2 scatter; q2 ncpus=4; q3 2:ncpus=4` });
  const before = describeUniverse(universe);
  assert.equal(startOf(universe, "q0", 6), "18 (n0:ncpus=4)+(n1:ncpus=4)");
  assert.equal(startOf(universe, "q1", 8), "7 (n1:ncpus=2)+(n3:ncpus=2)");
  assert.equal(startOf(universe, "q2", 5, { from_s: 0 }), "0 (n1:ncpus=4)");
  assert.equal(startOf(universe, "q3", 100), "22 (n2:ncpus=4)+(n3:ncpus=4)");
  for (const id of ["q0", "q1", "q2", "q3"]) unbook(universe, id);
  assert.deepEqual(describeUniverse(universe), before);
  assert.equal(universe.calendar.on.size, 0);
});

test("a job that keeps to a placement set waits for the first one that is free, also of what is booked", () => {
  const nodes = "a0 ncpus=4 rack=A; b0 ncpus=4 rack=B; a1 ncpus=4 rack=A; b1 ncpus=4 rack=B";
  const server = { node_group_enable: true, node_group_key: ["rack"] };
  const resources = [{ name: "rack", type: "string_array", flags: "h" }];
  const jobs = "j0 R (a0:ncpus=4) walltime=20; j1 R (b1:ncpus=1) walltime=7; q0 2:ncpus=4; q1 2:ncpus=4; q2 3:ncpus=4";
  const universe = universeOf({ nodes, jobs, server, resources });
  const before = describeUniverse(universe);
  assert.equal(startOf(universe, "q0", 6), "7 (b0:ncpus=4)+(b1:ncpus=4)");
  assert.equal(startOf(universe, "q1", 8), "13 (b0:ncpus=4)+(b1:ncpus=4)");
  assert.equal(startOf(universe, "q2", 5), "21 (a0:ncpus=4)+(b0:ncpus=4)+(a1:ncpus=4)");
  for (const id of ["q0", "q1", "q2"]) unbook(universe, id);
  assert.deepEqual(describeUniverse(universe), before);
});

test("a forecast shows a time and goes back", () => {
  const universe = universeOf({ nodes: NODES, jobs: RUNNING });
  const set = setOf(universe);
  const before = describeUniverse(universe);
  const forecast = createForecast(universe, set, 0);
  const free = (at_s: number): number => {
    forecast.goTo(at_s);
    return set.free[universe.space.ncpus] as number;
  };
  assert.deepEqual([0, 7, 18, 22, 18, 6].map(free), [5, 6, 10, 16, 10, 5]);
  forecast.close();
  assert.deepEqual(describeUniverse(universe), before);
});

test("jobs that should be over end a second from now; past soft_walltime they are extended by as much again", () => {
  const universe = universeOf({ nodes: "a ncpus=4", jobs: "1 R (a:ncpus=4) walltime=100 %soft_walltime=10; 2 ncpus=4" });
  assert.equal(startOf(universe, "2", 5), "10 (a:ncpus=4)");
  assert.equal(startOf(universe, "2", 5, { now_s: 9 }), "10 (a:ncpus=4)");
  assert.equal(startOf(universe, "2", 5, { now_s: 10 }), "20 (a:ncpus=4)");
  assert.equal(startOf(universe, "2", 5, { now_s: 95 }), "100 (a:ncpus=4)");
  assert.equal(startOf(universe, "2", 5, { now_s: 300 }), "301 (a:ncpus=4)");
});

test("a reservation keeps its vnodes free of jobs whose walltime reaches into it, a plan also of those that take their kill_delay", () => {
  for (const [kind, most_s, start] of [
    ["plan", 100, "60 (a:ncpus=4)"],
    ["resv", 100, "60 (a:ncpus=4)"],
    ["plan", 45, "60 (a:ncpus=4)"],
    ["resv", 45, "0 (a:ncpus=4)"],
    ["plan", 40, "0 (a:ncpus=4)"],
  ] as const) {
    const universe = universeOf({ nodes: "a ncpus=4", jobs: "1 ncpus=4" });
    enter(universe, { id: "R1", kind, from_s: 50, to_s: 60, holding: readHolding(universe.space, "(a:ncpus=1)") });
    const { request, job } = universe.entries.get("1") as JobEntry;
    const wanted = { set: setOf(universe), request, job, most_s, grace_s: 10 };
    const found = findStart(universe, wanted, { now_s: 0, from_s: 0, until_s: 1000 });
    assert.ok(found.start_s !== null);
    assert.equal(`${found.start_s} ${placedText(universe, found.chunks)}`, start);
  }
});

test("exclusive use, now and booked, closes a vnode for that time and no longer", () => {
  const universe = universeOf({
    nodes: "a ncpus=4; b ncpus=4",
    jobs: "1 R excl (a:ncpus=1) walltime=30; 2 2:ncpus=1 scatter:excl; 3 ncpus=1 excl; 4 ncpus=1",
  });
  assert.equal(startOf(universe, "2", 10), "30 (a:ncpus=1)+(b:ncpus=1)");
  assert.equal(startOf(universe, "3", 31, { from_s: 0 }), "40 (a:ncpus=1)");
  assert.equal(startOf(universe, "4", 31, { from_s: 0 }), "40 (b:ncpus=1)");
  assert.equal(startOf(universe, "4", 30, { from_s: 0 }), "0 (b:ncpus=1)");
});

test("opt_backfill_fuzzy: changes close to one another are taken as one", () => {
  const universe = universeOf({ nodes: "a ncpus=2", jobs: "1 R (a:ncpus=1) walltime=10; 2 R (a:ncpus=1) walltime=50; 3 ncpus=1" });
  assert.equal(startOf(universe, "3", 5, { fuzzy_s: 60 }), "50 (a:ncpus=1)");
  assert.equal(startOf(universe, "3", 5, { fuzzy_s: 30 }), "10 (a:ncpus=1)");
});

test("a walk ends when it is told to, and at until_s", () => {
  const universe = universeOf({ nodes: "a ncpus=1", jobs: "1 R (a:ncpus=1) walltime=10; 2 ncpus=1" });
  assert.equal(startOf(universe, "2", 5, { keepsOn: () => false }), "late");
  assert.equal(startOf(universe, "2", 5, { until_s: 10 }), "never");
});

test("jobs that come and go keep the calendar in order", () => {
  const universe = universeOf({ nodes: "a ncpus=9", jobs: "1 R (a:ncpus=4) walltime=50; 2 R (a:ncpus=5) walltime=10; 3 ncpus=9" });
  assert.equal(startOf(universe, "3", 5), "50 (a:ncpus=9)");
  const job = universe.jobs.get("1");
  assert.ok(job !== undefined);
  putRunningJob(universe, { ...job, resources: { ...job.resources, walltime: 20 } });
  assert.equal(startOf(universe, "3", 5), "20 (a:ncpus=9)");
});
