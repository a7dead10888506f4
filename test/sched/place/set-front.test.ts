// The largest remaining amounts of a set's open hosts: a refusal is remembered, and is forgotten when a host changes.

import assert from "node:assert/strict";
import { test } from "node:test";
import { applyDelta, createUniverse } from "#sched/mirror/mirror.ts";
import { copiesOn } from "#sched/place/copy-counts.ts";
import { firstHost } from "#sched/place/node-sets.ts";
import { frontOf, isBeyond } from "#sched/place/set-front.ts";
import { precedes } from "#sched/place/walk.ts";
import type { Universe } from "#sched/shapes/universe.ts";
import type { NodeSet } from "#sched/shapes/vnode.ts";
import { prng } from "#support/prng.ts";
import { randomPolicy, randomSnapshot } from "../random-world.ts";
import { book, snapshotOf, universeOf } from "../world.ts";

const onlySet = (universe: Universe): NodeSet => [...universe.sets.values()][0] as NodeSet;

/** Whether a job's chunk exceeds the front of the only set. */
function beyond(universe: Universe, job: string): boolean {
  const set = onlySet(universe);
  frontOf(set);
  const chunk = universe.entries.get(job)?.request.chunks[0];
  assert.ok(chunk !== undefined);
  return isBeyond(universe.checks, set, chunk);
}

test("set front: what it refuses no open host could take, and it names the host that is walked first", () => {
  let [refused, taken] = [0, 0];
  for (let seed = 1; seed <= 300; seed++) {
    const random = prng(`front ${seed}`);
    const snapshot = randomSnapshot(random);
    const universe = createUniverse(snapshot, { policy: book(randomPolicy(random)).prime, times_matter: false });
    for (const set of universe.sets.values()) {
      const { first } = frontOf(set);
      for (const bucket of set.open) {
        const host = firstHost(bucket);
        assert.ok(host !== undefined && first !== null, `seed ${seed}`);
        assert.ok(
          first.host === host || precedes(first.bucket.rank, first.host, bucket.rank, host),
          `seed ${seed}: ${host.name} comes first`,
        );
      }
      for (const { request } of universe.entries.values()) {
        for (const chunk of request.chunks) {
          const fits = [...set.open].some(({ states }) => copiesOn(universe.checks, request, states, chunk) > 0);
          const no = isBeyond(universe.checks, set, chunk);
          assert.ok(!(no && fits), `seed ${seed}: ${set.key} has room for a chunk that is refused`);
          if (no) refused++;
          else if (fits) taken++;
        }
      }
    }
  }
  assert.ok(refused > 100 && taken > 100, `${refused} refused, ${taken} fit`);
});

test("set front: what no host has together is refused, though each thing is there", () => {
  const universe = universeOf({
    nodes: "a ncpus=8 mem=1gb; b ncpus=1 mem=8gb",
    jobs: "1 ncpus=4:mem=4gb; 2 ncpus=8:mem=1gb; 3 ncpus=1:mem=8gb",
  });
  assert.equal(beyond(universe, "1"), true);
  assert.equal(beyond(universe, "2"), false);
  assert.equal(beyond(universe, "3"), false);
});

test("set front: of more kinds of hosts than it keeps none is lost", () => {
  const kinds = Array.from({ length: 100 }, (_, at) => at + 1);
  const nodes = kinds.map((at) => `n${at} ncpus=${at} mem=${101 - at}gb`).join("; ");
  const jobs = kinds.map((at) => `${at} ncpus=${at}:mem=${101 - at}gb`).join("; ");
  const universe = universeOf({ nodes, jobs: `${jobs}; 101 ncpus=101:mem=1gb; 102 ncpus=1:mem=101gb; 103 ncpus=30:mem=100gb` });
  for (const at of kinds) assert.equal(beyond(universe, `${at}`), false, `kind ${at}`);
  for (const at of [101, 102, 103]) assert.equal(beyond(universe, `${at}`), true, `job ${at}`);
});

test("set front: it is forgotten when a host changes", () => {
  const universe = universeOf({ nodes: "a ncpus=2", jobs: "1 ncpus=4" });
  assert.equal(beyond(universe, "1"), true);
  const changes = snapshotOf({ nodes: "a ncpus=4", jobs: "" }).nodes.map((value) => ({ put: "node" as const, value }));
  applyDelta(universe, { revision: 2, changes });
  assert.equal(onlySet(universe).front, null);
  assert.equal(beyond(universe, "1"), false);
});
