// Routing queues: the destinations of jobs, retries, and the end of retries (docs/reference/attributes.md 4).

import assert from "node:assert/strict";
import { test } from "node:test";
import type { Attrs } from "#server/state/state.ts";
import {
  ALICE,
  addJob,
  addQueue,
  advance,
  apply,
  ask,
  type Harness,
  harness,
  jobAttrs,
  lettersOf,
  logsOf,
  restart,
  START_S,
  stateOf,
} from "../harness.ts";

/** workq, a disabled queue off, and a routing queue r. */
function world(destinations: string[], attrs: Attrs = {}): Harness {
  const h = harness();
  addQueue(h, "off", { enabled: false });
  addQueue(h, "r", { queue_type: "Route", route_destinations: destinations, ...attrs });
  return h;
}

const where = (h: Harness, job: string): string => `${jobAttrs(h, job).queue} ${stateOf(h, job)}`;

// biome-ignore format: a table
const ROUTES: readonly [destinations: string[], attrs: Attrs, job: Attrs, expected: string][] = [
  [["workq"],                 {},                          {},                  "workq Q 10"],
  [["nosuch", "workq"],       {},                          {},                  "workq Q 10"],
  [["off", "workq"],          {},                          {},                  "workq Q 10"],
  [["workq@svr"],             {},                          {},                  "workq Q 10"],
  [["workq@elsewhere"],       {},                          {},                  "r F 91"],
  [["nosuch"],                {},                          {},                  "r F 91"],
  [["off"],                   {},                          {},                  "r Q 10"],
  [["off", "nosuch"],         {},                          {},                  "r Q 10"],
  [["workq"],                 { started: false },          {},                  "r Q 10"],
  [["workq"],                 {},                          { Hold_Types: "u" }, "r H 20"],
  [["workq"],                 { route_held_jobs: true },   { Hold_Types: "u" }, "workq H 20"],
  [["workq"],                 {},                          { Execution_Time: START_S + 50 }, "r W 30"],
  [["workq"],                 { route_waiting_jobs: true },{ Execution_Time: START_S + 50 }, "workq W 30"],
];
for (const [destinations, attrs, job_attrs, expected] of ROUTES) {
  test(`a job ${JSON.stringify(job_attrs)} in a queue to ${destinations.join()} ${JSON.stringify(attrs)}: ${expected}`, () => {
    const h = world(destinations, attrs);
    const job = addJob(h, { queue: "r", ...job_attrs });
    assert.equal(where(h, job), expected);
  });
}

test("the way is logged, and each queue has its Q record", () => {
  const h = world(["workq"]);
  const job = addJob(h, { queue: "r" });
  assert.deepEqual(logsOf(h, job), [
    "enqueuing into r, state Q hop 1",
    "Job Queued at request of alice@svr, owner = alice@svr, job name = STDIN, queue = r",
    "dequeuing from r, state Q",
    "enqueuing into workq, state Q hop 2",
  ]);
  assert.equal(lettersOf(h, job), "QQ");
  assert.equal(jobAttrs(h, job).etime, START_S);
});

test("a job no queue takes now is tried again after route_retry_time", () => {
  const h = world(["off"], { route_retry_time: 20 });
  const job = addJob(h, { queue: "r" });
  apply(h, { kind: "changed", object: "queue", name: "off", set: { enabled: true }, unset: [] });
  advance(h, 19);
  assert.equal(where(h, job), "r Q 10");
  advance(h, 1);
  assert.equal(where(h, job), "off Q 10");
});

test("route_lifetime over: the job is given up, with record A", () => {
  const h = world(["off"], { route_lifetime: 45 });
  const job = addJob(h, { queue: "r" });
  advance(h, 59);
  assert.equal(where(h, job), "r Q 10");
  advance(h, 1);
  assert.equal(where(h, job), "r F 91");
  assert.ok(logsOf(h, job).includes("Route queue lifetime exceeded"));
  assert.equal(lettersOf(h, job), "QA");
});

test("a job that all refuse for good is given up with record A", () => {
  const h = world(["nosuch"]);
  const job = addJob(h, { queue: "r" });
  assert.ok(logsOf(h, job).includes("Job rejected by all possible destinations"));
  assert.equal(lettersOf(h, job), "QA");
});

test("queues that route in a circle give the job up after ten hops", () => {
  const h = world(["s"]);
  addQueue(h, "s", { queue_type: "Route", route_destinations: ["r"] });
  const job = addJob(h, { queue: "r" });
  assert.equal(stateOf(h, job), "F 91");
  assert.ok(logsOf(h, job).includes("Job routing over too many hops"));
});

test("a routing queue that is started sends its jobs on", () => {
  const h = world(["workq"], { started: false });
  const jobs = [addJob(h, { queue: "r" }), addJob(h, { queue: "r" })];
  apply(h, { kind: "changed", object: "queue", name: "r", set: { started: true }, unset: [] });
  assert.deepEqual(
    jobs.map((job) => where(h, job)),
    ["workq Q 10", "workq Q 10"],
  );
});

test("a release in a routing queue sends the job on", () => {
  const h = world(["workq"]);
  const job = addJob(h, { queue: "r", Hold_Types: "u" });
  ask(h, ALICE, { kind: "release-job", job, holds: "u" });
  assert.equal(where(h, job), "workq Q 10");
});

test("after a restart jobs in routing queues are tried again", () => {
  const h = world(["off"]);
  const job = addJob(h, { queue: "r" });
  apply(h, { kind: "changed", object: "queue", name: "off", set: { enabled: true }, unset: [] });
  restart(h);
  advance(h, 0);
  assert.equal(where(h, job), "off Q 10");
});
