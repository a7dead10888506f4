// The first half of a thousand simulated complexes, and the property of a seed: it gives the same history every time.
// seeds-501.test.ts runs the second half in another process.

import assert from "node:assert/strict";
import { test } from "node:test";
import { runSeed } from "#sim/run.ts";
import { GROUP, OPTIONS, runGroup } from "./seed-groups.ts";

for (let first = 1; first <= 500; first += GROUP)
  test(`seeds ${first} to ${first + GROUP - 1}: every job is accounted for, whatever breaks`, () => runGroup(first));

test("a seed gives the same history every time", async () => {
  const history = async (seed: number): Promise<string> => {
    const lines: string[] = [];
    const { traceText } = await import("#sim/world.ts");
    const result = await runSeed(seed, { ...OPTIONS, onLine: (line) => lines.push(traceText(line)) });
    assert.ok(result.ok, result.text);
    return lines.join("\n");
  };
  for (const seed of [3, 7, 40]) assert.equal(await history(seed), await history(seed), `seed ${seed}`);
});

test("options make a seed's world smaller", async () => {
  for (const seed of [5, 12, 33]) {
    const small = await runSeed(seed, { ...OPTIONS, jobs_max: 2, faults: false, ops: false });
    assert.ok(small.ok, small.text);
    assert.ok(small.counts.jobs <= 2 && small.counts.faults === 0, JSON.stringify(small.counts));
  }
});
