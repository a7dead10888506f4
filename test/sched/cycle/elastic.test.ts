// Partitions to which runners can come, and runners with an end (docs/runners.md).

import assert from "node:assert/strict";
import { test } from "node:test";
import { SCHED_COMMAND } from "#protocol/sched-link.ts";
import { cycle } from "#sched/cycle/cycle.ts";
import { applyDelta } from "#sched/mirror/mirror.ts";
import { commentText } from "#sched/shapes/reasons.ts";
import type { World } from "../world.ts";
import { book, queue, run, universeOf } from "../world.ts";

const comments = (world: World): readonly string[] =>
  run(world).decisions.flatMap((decision) => (decision.kind === "comment" ? [`${decision.job}: ${commentText(decision.why)}`] : []));

test("elastic: what no vnode has is not now, because the next runner may have it", () => {
  const world = { nodes: "a ncpus=1", jobs: "1 ncpus=4 walltime=60" };
  assert.match(comments(world)[0] ?? "", /^1: Can Never Run/);
  const elastic = { ...world, queues: [queue("workq", { elastic: true })] };
  assert.match(comments(elastic)[0] ?? "", /^1: Not Running: Insufficient amount of resource: ncpus/);
});

test("elastic: a runner takes no job that could outlive it", () => {
  const now_s = 1_000_000;
  const jobs = "1 ncpus=1 walltime=601; 2 ncpus=1; 3 ncpus=1 walltime=600";
  const policies = book();
  const universe = universeOf(
    { nodes: `r ncpus=4 :runner_end=${now_s + 600}`, jobs, queues: [queue("workq", { elastic: true })] },
    policies,
  );
  const started = (): readonly string[] =>
    cycle(universe, policies, { now_s, command: SCHED_COMMAND.CMD }).decisions.flatMap((decision) =>
      decision.kind === "run" ? [decision.job] : [],
    );
  assert.deepEqual(started(), ["3"]);
  const node = universe.nodes.get("r");
  assert.ok(node !== undefined);
  applyDelta(universe, { revision: 2, changes: [{ put: "node", value: { ...node, attrs: { ...node.attrs, runner_end: undefined } } }] });
  assert.deepEqual(started(), ["1", "2", "3"]);
  applyDelta(universe, { revision: 3, changes: [{ put: "node", value: node }] });
  assert.deepEqual(started(), ["3"]);
  applyDelta(universe, { revision: 4, changes: [{ drop: "node", id: "r" }] });
  assert.deepEqual(started(), []);
  assert.equal(universe.calendar.bookings.size, 0);
});
