// A thousand simulated complexes, a seed each (src/sim/README.md). A failure names the seed, the step and the command that replays it.

import assert from "node:assert/strict";
import { test } from "node:test";
import { failureText } from "#sim/failure.ts";
import { runSeed } from "#sim/run.ts";

const OPTIONS = { keep: 40, onLine: null, jobs_max: Number.POSITIVE_INFINITY, faults: true, ops: true };
const GROUP = 50;

for (let first = 1; first <= 1000; first += GROUP) {
  test(`seeds ${first} to ${first + GROUP - 1}: every job is accounted for, whatever breaks`, async () => {
    let runs = 0;
    let faults = 0;
    for (let seed = first; seed < first + GROUP; seed++) {
      const result = await runSeed(seed, OPTIONS);
      assert.ok(result.ok, failureText(result, ""));
      runs += result.counts.runs;
      faults += result.counts.faults;
    }
    // A group in which next to nothing happens would prove nothing.
    assert.ok(runs > GROUP && faults > GROUP, `${runs} runs, ${faults} faults`);
  });
}

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
