// The test runner's watch: a slow run continues; a run without progress is ended.

import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { watchSilence } from "../../scripts/lib/silence.mjs";

const MINUTE = 60_000;

function watched(t: TestContext): { pass(minutes: number): void; progress(): void; stop(): void; hung(): number } {
  t.mock.timers.enable({ apis: ["setInterval"] });
  let ended = 0;
  let hung = 0;
  const stop = watchSilence({
    silence_ms: 10 * MINUTE,
    progress: () => ended,
    hang: () => {
      hung += 1;
    },
  });
  return {
    pass: (minutes) => t.mock.timers.tick(minutes * MINUTE),
    progress: () => {
      ended += 1;
    },
    stop,
    hung: () => hung,
  };
}

test("a run in which a test ends every nine minutes goes on for hours", (t) => {
  const run = watched(t);
  for (let at = 0; at < 30; at += 1) {
    run.pass(9);
    run.progress();
  }
  assert.equal(run.hung(), 0);
});

test("a run in which nothing ends for ten minutes hangs, and is told once", (t) => {
  const run = watched(t);
  run.pass(5);
  run.progress();
  run.pass(9);
  assert.equal(run.hung(), 0);
  run.pass(2);
  assert.equal(run.hung(), 1);
  run.pass(60);
  assert.equal(run.hung(), 1);
});

test("a run that has ended is not told to hang", (t) => {
  const run = watched(t);
  run.stop();
  run.pass(60);
  assert.equal(run.hung(), 0);
});
