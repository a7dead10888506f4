// Placement sets (docs/reference/scheduler.md 5): nodes | jobs | attributes => decisions.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { Policy } from "#sched/shapes/policy.ts";
import type { World } from "../world.ts";
import { decisionTexts, logTexts, QUEUE, queue, run } from "../world.ts";

type Row = readonly [
  title: string,
  nodes: string,
  jobs: string,
  attrs: { readonly [name: string]: unknown },
  expected: readonly string[],
  world?: Partial<World>,
  policy?: Partial<Policy>,
];

const RACKS = "a1 ncpus=2 rack=A; b1 ncpus=2 rack=B; a2 ncpus=2 rack=A; b2 ncpus=2 rack=B; b3 ncpus=2 rack=B";
const VA =
  "H ncpus=0 host=H; c1 ncpus=2 host=H cab=left; c2 ncpus=2 host=H cab=left; c3 ncpus=2 host=H cab=right; c4 ncpus=2 host=H cab=right";
const KEY = { node_group_enable: true, node_group_key: ["rack"] };
const DEFINED = [
  { name: "rack", type: "string_array", flags: "h" },
  { name: "cab", type: "string_array", flags: "h" },
  { name: "sw", type: "string", flags: "h" },
];
const CAB = { node_group_enable: true, node_group_key: ["cab"] };
const NO_SPAN = { sched: { do_not_span_psets: true } };

// biome-ignore format: a table
const ROWS: readonly Row[] = [
  ["the smallest set that has room",            RACKS, "1 2:ncpus=2; 2 3:ncpus=2", KEY, ["1=(a1:ncpus=2)+(a2:ncpus=2)", "2=(b1:ncpus=2)+(b2:ncpus=2)+(b3:ncpus=2)"]],
  ["switched off",                              RACKS, "1 2:ncpus=2", { ...KEY, node_group_enable: false }, ["1=(a1:ncpus=2)+(b1:ncpus=2)"]],
  ["no key",                                    RACKS, "1 2:ncpus=2", { node_group_enable: true }, ["1=(a1:ncpus=2)+(b1:ncpus=2)"]],
  ["larger than any set: all vnodes",           RACKS, "1 4:ncpus=2", KEY, ["1=(a1:ncpus=2)+(b1:ncpus=2)+(a2:ncpus=2)+(b2:ncpus=2)"]],
  ["larger than any set, may not span",         RACKS, "1 4:ncpus=2", KEY, ["1: Can Never Run: can't fit in the largest placement set, and can't span psets"], NO_SPAN],
  ["a suspended job resumes where it was",      RACKS, "1 S (a1:ncpus=2)+(b1:ncpus=2)", KEY, ["1=(a1:ncpus=2)+(b1:ncpus=2)"], NO_SPAN],
  ["a set could hold it: it waits",             RACKS, "8 R (b1:ncpus=1); 1 3:ncpus=2", KEY, ["1: Not Running: Placement set rack=\"A\" has too few free resources"]],
  ["the first of equal sets is the one with less free", "a1 ncpus=4 rack=A; b1 ncpus=4 rack=B", "8 R (b1:ncpus=1); 1 ncpus=1", KEY, ["1=(b1:ncpus=1)"]],
  ["then the one with less memory",             "a1 ncpus=4 mem=2gb rack=A; b1 ncpus=4 mem=1gb rack=B", "1 ncpus=1", KEY, ["1=(b1:ncpus=1)"]],
  ["then the one defined first",                "a1 ncpus=4 rack=Z; b1 ncpus=4 rack=B", "1 ncpus=1", KEY, ["1=(a1:ncpus=1)"]],
  ["vnodes without a value are a set",          "a1 ncpus=2 rack=A; x1 ncpus=1; x2 ncpus=1; a2 ncpus=2 rack=A", "1 2:ncpus=1 scatter", KEY, ["1=(x1:ncpus=1)+(x2:ncpus=1)"]],
  ["but for only_explicit_psets",               "a1 ncpus=2 rack=A; x1 ncpus=1; x2 ncpus=1; a2 ncpus=2 rack=A", "1 2:ncpus=1 scatter", KEY, ["1=(a1:ncpus=1)+(a2:ncpus=1)"], { sched: { only_explicit_psets: true } }],
  ["a vnode of two sets",                       "a1 ncpus=2 rack=A; ab ncpus=2 rack=A,B; b1 ncpus=1 rack=B", "1 2:ncpus=1+1:ncpus=1; 2 2:ncpus=1", KEY, ["1=(ab:ncpus=1)+(ab:ncpus=1)+(b1:ncpus=1)", "2=(a1:ncpus=1)+(a1:ncpus=1)"]],
  ["two resources: sets of both",               "a1 ncpus=2 rack=A sw=1; a2 ncpus=2 rack=A sw=2; b1 ncpus=2 rack=B sw=2", "1 2:ncpus=2; 2 ncpus=2", { ...KEY, node_group_key: ["rack", "sw"] }, ["1=(a1:ncpus=2)+(a2:ncpus=2)", "2=(b1:ncpus=2)"]],
  ["the job's own grouping",                    RACKS, "1 3:ncpus=2 free:group=rack", {}, ["1=(b1:ncpus=2)+(b2:ncpus=2)+(b3:ncpus=2)"]],
  ["goes before the server's",                  "a1 ncpus=2 rack=A sw=1; b1 ncpus=2 rack=B sw=1; a2 ncpus=2 rack=A sw=2", "1 2:ncpus=2 free:group=sw", KEY, ["1=(a1:ncpus=2)+(b1:ncpus=2)"]],
  ["of a resource that no vnode has",           RACKS, "1 2:ncpus=2 free:group=cab", {}, ["1=(a1:ncpus=2)+(b1:ncpus=2)"]],
  ["the queue's key goes before the server's",  "a1 ncpus=2 rack=A sw=1; b1 ncpus=2 rack=B sw=1; a2 ncpus=2 rack=A sw=2", "1 2:ncpus=2 @q2; 2 ncpus=1", KEY, ["1=(a1:ncpus=2)+(b1:ncpus=2)", "2=(a2:ncpus=1)"], { queues: [QUEUE, queue("q2", { node_group_key: ["sw"], Priority: 5 })] }],
  ["the queue's key alone",                     RACKS, "1 2:ncpus=2 @q2; 2 ncpus=1", { node_group_enable: true }, ["1=(a1:ncpus=2)+(a2:ncpus=2)", "2=(b1:ncpus=1)"], { queues: [QUEUE, queue("q2", { node_group_key: ["rack"], Priority: 5 })] }],
  ["a set down",                                "a1 ncpus=2 rack=A :offline; b1 ncpus=2 rack=B; b2 ncpus=2 rack=B", "1 ncpus=1", KEY, ["1=(b1:ncpus=1)"]],
  ["too little in all: the plain reason",       RACKS, "9 R (a1:ncpus=1); 1 5:ncpus=2", KEY, ["1: Not Running: Insufficient amount of resource: ncpus (R: 10 A: 9 T: 10)"]],
  ["exclusive jobs",                            RACKS, "9 R (a1:ncpus=1); 1 2:ncpus=1 scatter:excl", KEY, ["1=(b1:ncpus=1)+(b2:ncpus=1)"]],
  ["pack: a host of a set",                     "a1 ncpus=2 rack=A; b1 ncpus=4 rack=B", "1 2:ncpus=2 pack", KEY, ["1=(b1:ncpus=2)+(b1:ncpus=2)"]],

  // --- vnodes of one host in several sets (sched-psets-span)
  ["span: larger than the largest set",         VA, "1 3:ncpus=2", CAB, ["1: Can Never Run: can't fit in the largest placement set, and can't span psets"], NO_SPAN],
  ["span: allowed",                             VA, "1 3:ncpus=2", CAB, ["1=(c1:ncpus=2)+(c2:ncpus=2)+(c3:ncpus=2)"]],
  ["span: the sets' vnodes of a shared host",   VA, "9 R (c1:ncpus=1); 1 2:ncpus=2", CAB, ["1=(c3:ncpus=2)+(c4:ncpus=2)"], NO_SPAN],
  ["span: nothing free for now",                VA, "9 R (c1:ncpus=1); 8 R (c3:ncpus=2)+(c4:ncpus=2); 1 2:ncpus=1 scatter:group=cab", {}, ["1: Not Running: Placement set cab=\"\" has too few free resources"], NO_SPAN],
  ["span: not even all together",               VA, "9 R (c1:ncpus=1); 8 R (c3:ncpus=2)+(c4:ncpus=2); 1 2:ncpus=2 free:group=cab", {}, ["1: Not Running: Insufficient amount of resource: ncpus (R: 4 A: 3 T: 8)"], NO_SPAN],
  ["a chunk is split over the vnodes of its set", VA, "9 R (c1:ncpus=2); 1 1:ncpus=3", CAB, ["1=(c3:ncpus=2+c4:ncpus=1)"]],
  ["exclhost closes the vnodes of other sets, too", VA, "1 1:ncpus=1 exclhost; 2 ncpus=1", CAB, ["1=(c1:ncpus=1)", "2: Not Running: Not enough free nodes available"]],

  // --- round_robin: each set has its own turn
  ["round robin inside a set",                  RACKS, "1 ncpus=1; 2 ncpus=1; 3 ncpus=1", KEY, ["1=(a1:ncpus=1)", "2=(a2:ncpus=1)", "3=(a1:ncpus=1)"], {}, { smp_cluster_dist: "round_robin" }],
  ["round robin goes on behind what is full",   RACKS, "9 R (a2:ncpus=2); 1 ncpus=1; 2 ncpus=1; 3 ncpus=1; 4 ncpus=1", KEY, ["1=(a1:ncpus=1)", "2=(a1:ncpus=1)", "3=(b1:ncpus=1)", "4=(b2:ncpus=1)"], {}, { smp_cluster_dist: "round_robin" }],
];

for (const [title, nodes, jobs, server, expected, world, policy] of ROWS) {
  test(`placement sets: ${title}`, () => {
    assert.deepEqual(decisionTexts(run({ nodes, jobs, server, resources: DEFINED, ...world }, policy)), expected);
  });
}

test("placement sets: the log tells which sets were looked at, at DEBUG3 only", () => {
  const world: World = { nodes: RACKS, jobs: "1 4:ncpus=2", server: KEY, resources: DEFINED };
  const lines = (log_events: number) =>
    logTexts(run({ ...world, sched: { log_events } })).filter((text) => text.includes(";1;") && !text.includes("Considering"));
  assert.deepEqual(lines(2047), [
    '0400;Node;1;Evaluating placement set: rack="A"',
    '0400;Node;1;Evaluating placement set: rack="B"',
    "0400;Node;1;Request won't fit into any placement sets, will use all nodes",
  ]);
  assert.deepEqual(lines(767), []);
});

test("placement sets: round robin remembers its place in each set from cycle to cycle", () => {
  const world: World = { nodes: RACKS, jobs: "1 ncpus=1 free:group=rack", server: {}, resources: DEFINED };
  const policy: Partial<Policy> = { smp_cluster_dist: "round_robin" };
  const first = run(world, policy);
  assert.deepEqual(decisionTexts(first), ["1=(a1:ncpus=1)"]);
  assert.deepEqual(decisionTexts(run(world, policy, { memory: first.memory })), ["1=(a2:ncpus=1)"]);
});
