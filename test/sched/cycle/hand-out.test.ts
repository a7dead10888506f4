// Runners take the jobs of their bucket only, and the lists from which the server gives them their next jobs (src/sched/cycle/hand-out.ts).

import assert from "node:assert/strict";
import { test } from "node:test";
import type { Policy } from "#sched/shapes/policy.ts";
import type { PolicyBook } from "#sched/shapes/policy-book.ts";
import { queue, run, type World } from "../world.ts";

const bucket = (ncpus = 1, owner = "alice"): string => `${owner}:workq:_pbs_project_default:ncpus=${ncpus}:walltime=00:01:04`;
const runner = (name: string, ncpus = 1, owner = "alice"): string =>
  `${name} ncpus=${ncpus} :max_running=1 :runner_bucket=${bucket(ncpus, owner)}`;
const busy = (id: string, name: string): string => `${id} R (${name}:ncpus=1) walltime=60 stime=999990`;
const world = (nodes: string, jobs: string, more: Partial<World> = {}): World => ({
  nodes,
  jobs,
  queues: [queue("workq", { elastic: true })],
  ...more,
});

test("a runner takes the jobs of its bucket only", () => {
  const started = (jobs: string): readonly string[] =>
    run(world(runner("r1"), jobs)).decisions.flatMap((decision) => (decision.kind === "run" ? [decision.job] : []));
  assert.deepEqual(started("1 ncpus=1 walltime=60"), ["1"]);
  for (const other of [
    "1 ncpus=1",
    "1 ncpus=1 walltime=600",
    "1 ncpus=1 walltime=60 u=bob",
    "1 ncpus=1 walltime=60 p=other",
    "1 ncpus=1 walltime=60 opts=-q",
  ])
    assert.deepEqual(started(other), [], other);
});

/** `BUCKET: IDS`; the bucket by its number of cpus. */
function lists(of: World, policy: Partial<Policy> = {}, more: Partial<PolicyBook> = {}): readonly string[] {
  return run(of, policy, {}, more).hand_outs.map(({ bucket: name, jobs }) => `${/ncpus=(\d+)/.exec(name)?.[1]}: ${jobs.join(" ")}`);
}

const WAITING = "2 ncpus=1 walltime=60; 3 ncpus=2 walltime=60; 4 ncpus=1 walltime=60; 5 ncpus=1 walltime=58; 6 ncpus=1 walltime=600";

// biome-ignore format: one case per row
const CASES: readonly [what: string, of: World, wanted: readonly string[], policy?: Partial<Policy>, more?: Partial<PolicyBook>][] = [
  ["the waiting jobs of a runner's bucket, in their order", world(runner("r1"), `${busy("1", "r1")}; ${WAITING}`), ["1: 2 4 5"]],
  ["none without runners", world("a ncpus=1", `1 R (a:ncpus=1) walltime=60; ${WAITING}`), []],
  ["a job that this cycle starts is not listed", world(runner("r1"), WAITING), ["1: 4 5"]],
  ["another owner's jobs are not listed", world(runner("r1", 1, "bob"), WAITING), []],
  ["a limit that is reached stays reached: the next job takes the place of the one that ends",
    world(runner("r1"), `${busy("1", "r1")}; ${WAITING}`, { queues: [queue("workq", { elastic: true, max_run: { "o:PBS_ALL": 1 } })] }), ["1: 2 4 5"]],
  ["beyond a limit, none is listed",
    world(`${runner("r1")}; ${runner("r2")}`, `${busy("1", "r1")}; ${busy("9", "r2")}; ${WAITING}`, { queues: [queue("workq", { elastic: true, max_run: { "o:PBS_ALL": 1 } })] }), []],
  ["subjobs, one by one, those that start now left out", world(runner("r1"), "5[] sub=1-4 ncpus=1 walltime=60"), ["1: 5[2] 5[3] 5[4]"]],
  ["an array with a limit of its own is left to the cycle", world(runner("r1"), `${busy("1", "r1")}; 5[] sub=1-4%2 ncpus=1 walltime=60`), []],
  ["with strict_ordering, only the first jobs, as long as they are of one bucket", world(runner("r1"), `${busy("1", "r1")}; ${WAITING}`), ["1: 2"], { strict_ordering: true }],
  ["a bucket that is second gets none then", world(runner("r1"), `${busy("1", "r1")}; 2 ncpus=2 walltime=60; 3 ncpus=1 walltime=60`), [], { strict_ordering: true }],
  ["with dedicated time ahead, none", world(runner("r1"), `${busy("1", "r1")}; ${WAITING}`), [], {}, { dedicated: [{ from_s: 2_000_000, to_s: 2_100_000 }] }],
  ["a queue that is not started", world(runner("r1"), `${busy("1", "r1")}; ${WAITING}`, { queues: [queue("workq", { elastic: true, started: false })] }), []],
];

test("lists for runners", () => {
  for (const [what, of, wanted, policy, more] of CASES) assert.deepEqual(lists(of, policy, more), wanted, what);
});

test("a list has at most 50 jobs, and 50 more for each runner of the bucket", () => {
  const jobs = Array.from({ length: 300 }, (_, at) => `${at + 2} ncpus=1 walltime=60`).join("; ");
  const of = world(
    `${runner("r1")}; ${runner("r2")}; ${runner("r3", 2)}`,
    `${busy("1", "r1")}; ${jobs}; 900 ncpus=2 walltime=60; 901 ncpus=2 walltime=60`,
  );
  assert.deepEqual(
    run(of).hand_outs.map(({ jobs: listed }) => listed.length),
    [150, 1],
  );
});
