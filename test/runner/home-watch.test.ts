// When a runner takes the home of its complex as gone (src/runner/home-watch.ts).

import assert from "node:assert/strict";
import { test } from "node:test";
import { homeWatch, MISSES_MAX } from "#runner/home-watch.ts";

test("runner: the home is gone when several looks in succession miss it, not when single ones do", () => {
  let is_there = true;
  const isGone = homeWatch(() => is_there);
  const looks = (count: number): readonly boolean[] => Array.from({ length: count }, isGone);
  assert.ok(MISSES_MAX > 2);
  for (let round = 0; round < 3; round++) {
    is_there = false;
    assert.ok(!looks(MISSES_MAX - 1).includes(true));
    is_there = true;
    assert.deepEqual(looks(1), [false]);
  }
  is_there = false;
  assert.deepEqual(looks(MISSES_MAX).lastIndexOf(false), MISSES_MAX - 2);
});
