// Simulated complexes, one for each seed (src/sim/README.md), fifty in a test. A failure names the seed, the step and the
// command that repeats it.

import assert from "node:assert/strict";
import { failureText } from "#sim/failure.ts";
import { runSeed } from "#sim/run.ts";

export const OPTIONS = { keep: 40, onLine: null, jobs_max: Number.POSITIVE_INFINITY, faults: true, ops: true, scale: 1 };
export const GROUP = 50;

/** Runs the seeds of a group. first: the first seed. */
export async function runGroup(first: number): Promise<void> {
  let runs = 0;
  let faults = 0;
  for (let seed = first; seed < first + GROUP; seed++) {
    const result = await runSeed(seed, OPTIONS);
    assert.ok(result.ok, failureText(result, ""));
    runs += result.counts.runs;
    faults += result.counts.faults;
  }
  // A group in which almost nothing happens would prove nothing.
  assert.ok(runs > GROUP && faults > GROUP, `${runs} runs, ${faults} faults`);
}
