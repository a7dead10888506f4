// Simulated complexes whose hosts are cut off again and again, with one server (--cuts) and with two (--pair). A job never has two runs at a time, nothing is lost,
// and everything comes to rest. A failure names the seed, the step and the command that repeats it.

import assert from "node:assert/strict";
import { test } from "node:test";
import { failureText } from "#sim/failure.ts";
import { type RunResult, runSeed } from "#sim/run.ts";
import { OPTIONS } from "./seed-groups.ts";

const SEEDS = 12;
const GROUP = 4;

async function run(seed: number, kind: "cuts" | "pair"): Promise<RunResult> {
  const result = await runSeed(seed, { ...OPTIONS, [kind]: true });
  assert.ok(result.ok, failureText(result, ` --${kind}`));
  return result;
}

for (let first = 1; first <= SEEDS; first += GROUP) {
  const seeds = Array.from({ length: GROUP }, (_, at) => first + at);

  test(`hosts that are cut off, seeds ${first} to ${first + GROUP - 1}: every job runs once at a time`, async () => {
    for (const seed of seeds) await run(seed, "cuts");
  });

  test(`two servers that are cut off from everything, seeds ${first} to ${first + GROUP - 1}: every job is accounted for exactly once`, async () => {
    let takeovers = 0;
    for (const seed of seeds) takeovers += (await run(seed, "pair")).counts.takeovers;
    // Without take-overs these worlds would prove nothing.
    assert.ok(takeovers >= GROUP, `${takeovers} take-overs`);
  });
}

test("output that a mother superior has kept of a run that ended without its word is removed when the job is deleted", async () => {
  await run(40441, "pair");
  // A lower node_fail_requeue was set while a host was cut off, and then the other server took over.
  await run(9000129, "pair");
  // A sister had ended its part before the first host began the run.
  await run(9000598, "pair");
});
