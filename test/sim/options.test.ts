// The command line of `npm run sim`: each option reaches the run, and the replay of a failure names those that make another world.

import assert from "node:assert/strict";
import { test } from "node:test";
import { readArgs } from "#sim/options.ts";

test("options reach the run, and those that change a seed's world are named for the replay", () => {
  const { options, given, seeds, all } = readArgs([
    "--seeds",
    "3-7",
    "--promises",
    "--jobs",
    "4",
    "--faults",
    "kill-mom,set-clock",
    "--cuts",
    "--pair",
    "--all",
  ]);
  assert.deepEqual(options, {
    keep: 60,
    jobs_max: 4,
    faults: ["kill-mom", "set-clock"],
    scale: 1,
    ops: true,
    promises: true,
    cuts: true,
    pair: true,
  });
  assert.equal(given, " --jobs 4 --faults kill-mom,set-clock --promises --cuts --pair");
  assert.deepEqual([seeds, all], [[3, 7], true]);
  const bare = readArgs([]);
  assert.equal(bare.given, "");
  const { promises, cuts, pair, faults } = bare.options;
  assert.deepEqual([promises, cuts, pair, faults, bare.seeds, bare.seconds], [false, false, false, true, undefined, undefined]);
});

test("what cannot be understood is told", () => {
  assert.throws(() => readArgs(["--seeds", "3"]), /--seeds wants A-B, not 3/);
  assert.throws(() => readArgs(["--faults", "rain"]), /--faults: there is no rain/);
});
