// How often something may happen per second.

import assert from "node:assert/strict";
import { test } from "node:test";
import { rateBucket } from "#protocol/bounds/rate.ts";

test("a bucket that was used says when it is full again, and not before", async () => {
  const bucket = rateBucket<string>(
    () => 100,
    () => undefined,
  );
  let is_full = false;
  bucket.whenFull(() => {
    is_full = true;
  });
  assert.ok(is_full, "nothing was taken");
  const begin_ms = performance.now();
  for (let taken = 0; taken < 50; taken++) bucket.spend();
  await new Promise<void>((resolve) => {
    // The timer of the bucket keeps no process alive.
    const alive = setInterval(() => undefined, 1000);
    bucket.whenFull(() => {
      clearInterval(alive);
      resolve();
    });
  });
  assert.ok(performance.now() - begin_ms >= 490);
});
