// The live scheduler on a virtual clock starts the same jobs at the same times as a replay of the same trace, so results for
// one hold for the other. One vnode represents the pool of equal slots. There is one cycle for each instant: ends, then
// submissions.

import assert from "node:assert/strict";
import { test } from "node:test";
import { algorithmNamed } from "#replay/algorithm.ts";
import { replay } from "#replay/replay.ts";
import type { TraceJob } from "#replay/trace.ts";
import type { Policy } from "#sched/shapes/policy.ts";
import type { PolicyBook } from "#sched/shapes/policy-book.ts";
import { prng } from "#support/prng.ts";
import type { ResvWorld } from "../resv/resv-world.ts";
import { createWorld, endJob, putJob, schedule } from "../resv/resv-world.ts";
import { book, jobOf } from "../world.ts";

const SEEDS = Number(process.env["PARTITA_SEEDS"] ?? 12);
const JOBS = 60;
const PROCS = 16;

type Way = { readonly name: string; readonly policy?: Partial<Policy>; readonly depth?: number; readonly more?: Partial<PolicyBook> };
const CONS: Partial<PolicyBook> = { module_options: new Map([["backfill", new Map([["policy", "cons"]])]]) };
const WAYS: readonly Way[] = [
  { name: "fcfs", policy: { backfill: false } },
  { name: "easy", depth: 1 },
  { name: "depth3", depth: 3 },
  { name: "depthinf", depth: 1_000_000 },
  { name: "cons", more: CONS },
];

/** A trace in which jobs wait, request more time than they need, and sometimes end at the same time. */
function randomTrace(seed: number): TraceJob[] {
  const random = prng(`trace ${seed}`);
  let submit_s = 0;
  return Array.from({ length: JOBS }, (_, at) => {
    submit_s += random.chance(0.4) ? 0 : random.int(1, 12);
    const est_s = random.pick([5, 10, 20, 20, 40, 80]);
    const run_s = random.chance(0.3) ? est_s : random.int(1, est_s);
    return { id: at + 1, submit_s, procs: random.chance(0.2) ? random.int(8, PROCS) : random.int(1, 6), est_s, run_s, partition: -1 };
  });
}

/** The start of each job by the live scheduler. */
function liveStarts(jobs: readonly TraceJob[], { policy, depth, more }: Way): number[] {
  const policies = book({ strict_ordering: true, resources: new Set(["ncpus"]), ...policy }, more);
  const node = { name: "pool", host: "pool", ncpus: PROCS, mem_kb: 1024, up: true };
  const server = depth === undefined ? {} : { backfill_depth: depth };
  const world = createWorld([node], policies, { server, sched: { opt_backfill_fuzzy: "off" } });
  const starts = jobs.map(() => Number.NaN);
  const ends = new Map<string, number>();
  for (let next = 0; next < jobs.length || world.jobs.size > 0; ) {
    const now_s = Math.min(jobs[next]?.submit_s ?? Number.POSITIVE_INFINITY, ...ends.values(), nextPlan(world));
    assert.ok(now_s < Number.POSITIVE_INFINITY, "nothing will ever happen");
    world.now_s = now_s;
    for (const [id, end_s] of ends) {
      if (end_s !== now_s) continue;
      ends.delete(id);
      endJob(world, id);
    }
    for (; jobs[next]?.submit_s === now_s; next++) {
      const { id, procs, est_s } = jobs[next] as TraceJob;
      putJob(world, { ...jobOf(`${id} ncpus=${procs} walltime=${est_s}`, id), qtime_s: now_s });
    }
    for (const decision of schedule(world).decisions) {
      if (decision.kind !== "run") continue;
      const at = Number(decision.job) - 1;
      starts[at] = now_s;
      ends.set(decision.job, now_s + (jobs[at] as TraceJob).run_s);
    }
  }
  return starts;
}

/** Kept plans begin at their time even if nothing ends then. */
function nextPlan({ jobs, now_s }: ResvWorld): number {
  let next_s = Number.POSITIVE_INFINITY;
  for (const { topjob, estimated } of jobs.values()) {
    const start_s = estimated?.start_time ?? 0;
    if (topjob === true && start_s > now_s) next_s = Math.min(next_s, start_s);
  }
  return next_s;
}

for (const way of WAYS) {
  test(`the live scheduler starts what a replay starts: ${way.name}`, () => {
    for (let seed = 1; seed <= SEEDS; seed++) {
      const jobs = randomTrace(seed);
      const algorithm = algorithmNamed(way.name);
      assert.ok(algorithm !== null);
      const { starts_s } = replay({ jobs, pools: [{ procs: PROCS }], algorithm });
      assert.deepEqual(liveStarts(jobs, way), starts_s, `trace ${seed}`);
    }
  });
}
