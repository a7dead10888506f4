// Buckets of hosts with several vnodes are derived from the hosts' former buckets. The result equals freshly made buckets.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { SchedNode, Snapshot } from "#protocol/sched-link.ts";
import { applyDelta, createUniverse } from "#sched/mirror/mirror.ts";
import type { Universe } from "#sched/shapes/universe.ts";
import type { Prng } from "#support/prng.ts";
import { prng } from "#support/prng.ts";
import { book, snapshotOf } from "../world.ts";

const POLICY = book({
  resources: new Set(["ncpus", "mem", "part"]),
  node_sort_key: [{ key: "ncpus", high: true, amount: "unused" }],
}).prime;
/** its amounts are fractions, whose sums depend on the order of addition */
const PART = { name: "part", type: "float", flags: "nh" };

/** Three hosts whose vnodes are defined in turn. */
function complex(): Snapshot {
  const names = Array.from({ length: 18 }, (_, at) => `v${at} ncpus=8 mem=${at + 1}gb host=h${at % 3}`);
  const snapshot = snapshotOf({ nodes: names.join("; "), jobs: "1 ncpus=1", resources: [PART] });
  return { ...snapshot, nodes: snapshot.nodes.map((node, at) => withPart(node, at % 3 === 0 ? 0 : at / 10)) };
}

function withPart(node: SchedNode, part: number): SchedNode {
  const available = { ...(node.attrs["resources_available"] as object), part };
  return { ...node, attrs: { ...node.attrs, resources_available: available } };
}

function changed(random: Prng, node: SchedNode): SchedNode {
  switch (random.pick(["used", "used", "used", "state", "amount", "limit"])) {
    case "state":
      return { ...node, attrs: { ...node.attrs, state: random.chance(0.5) ? [] : ["offline"] } };
    case "amount":
      return withPart(node, random.pick([0, 0.1, 0.3, 1, 2]));
    case "limit":
      return { ...node, attrs: { ...node.attrs, no_multinode_jobs: random.chance(0.3) } };
    default:
      return { ...node, assigned: { ncpus: random.int(0, 8), mem: random.int(0, 1000), part: random.pick([0, 0.1, 0.2, 0.7]) } };
  }
}

function bucketsOf(universe: Universe): Record<string, unknown> {
  const hosts = [...universe.sets.values()].flatMap((set) => [...set.hosts.values()]);
  return Object.fromEntries(
    hosts.map(({ name, bucket }) => {
      assert.ok(bucket !== null);
      const { walk, ranks, rank, used, total, free, free_count, open } = bucket;
      return [name, { walk, ranks, rank, used, total, free, free_count, open }];
    }),
  );
}

test("host buckets: after any changes of vnodes they are what a universe made at once has", () => {
  for (let seed = 1; seed <= 30; seed++) {
    const random = prng(`buckets ${seed}`);
    let snapshot = complex();
    const universe = createUniverse(snapshot, { policy: POLICY, times_matter: false });
    for (let step = 1; step <= 40; step++) {
      const before = random.pick(snapshot.nodes);
      const value = changed(random, before);
      snapshot = { ...snapshot, nodes: snapshot.nodes.map((node) => (node === before ? value : node)) };
      applyDelta(universe, { revision: step + 1, changes: [{ put: "node", value }] });
      const fresh = createUniverse(snapshot, { policy: POLICY, times_matter: false });
      assert.deepEqual(bucketsOf(universe), bucketsOf(fresh), `seed ${seed}, step ${step}`);
    }
  }
});
