// Explanations of jobs in random worlds, compared with the decisions of a cycle.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { Snapshot } from "#protocol/sched-link.ts";
import { SCHED_COMMAND } from "#protocol/sched-link.ts";
import { cycle } from "#sched/cycle/cycle.ts";
import { NO_MEMORY } from "#sched/cycle/result.ts";
import { explainJob } from "#sched/explain/explain.ts";
import { createUniverse } from "#sched/mirror/mirror.ts";
import { type Prng, prng } from "#support/prng.ts";
import { describeUniverse } from "../describe.ts";
import { randomPolicy, randomSnapshot } from "../random-world.ts";
import { book, queue } from "../world.ts";

const NOW_S = 1_000_000;
const SEEDS = Number(process.env["PARTITA_SEEDS"] ?? 300);

test("explanations say what a cycle does: who starts, and the comment of who does not; the universe is as it was", () => {
  let [starting, waiting, preempting] = [0, 0, 0];
  for (let seed = 1; seed <= SEEDS; seed++) {
    const random = prng(`explain ${seed}`);
    const snapshot = withExpress(random, randomSnapshot(random));
    const policies = book({ ...randomPolicy(random), backfill: random.chance(0.5) });
    const make = () => createUniverse(snapshot, { policy: policies.prime, times_matter: false });
    const outcome = new Map<string, string>();
    for (const decision of cycle(make(), policies, { now_s: NOW_S, command: SCHED_COMMAND.TIME }).decisions) {
      if (decision.kind === "run") outcome.set(decision.job, "starts");
      if (decision.kind === "comment") outcome.set(decision.job, decision.comment);
    }
    const universe = make();
    const before = describeUniverse(universe);
    for (const job of snapshot.jobs) {
      if (job.state !== "Q") continue;
      const input = { now_s: NOW_S, job: job.id, memory: NO_MEMORY, history: new Map(), sees_others: true };
      const explanation = explainJob(universe, policies, input);
      const expected = outcome.get(job.id);
      if (expected === undefined) continue; // its comment is already right
      const { verdict } = explanation ?? {};
      const said = verdict === "starts" || verdict === "preempts" ? "starts" : explanation?.why?.text;
      if (verdict === "preempts") preempting++;
      assert.equal(verdict === "preempts", explanation?.preempts.length !== 0);
      assert.equal(said, expected, `seed=explain ${seed}: job ${job.id}`);
      if (said === "starts") starting++;
      else waiting++;
    }
    assert.deepEqual(describeUniverse(universe), before, `seed=explain ${seed}`);
  }
  const counts = `${starting} start, ${waiting} wait, ${preempting} preempt: too few of one kind`;
  assert.ok(starting > SEEDS / 2 && waiting > SEEDS / 2 && preempting > SEEDS / 20, counts);
});

/** In some worlds an express queue contains some of the waiting jobs. */
function withExpress(random: Prng, snapshot: Snapshot): Snapshot {
  if (random.chance(0.5)) return snapshot;
  const jobs = snapshot.jobs.map((job) => (job.state === "Q" && random.chance(0.3) ? { ...job, queue: "express" } : job));
  return { ...snapshot, queues: [...snapshot.queues, queue("express", { Priority: 150 })], jobs };
}
