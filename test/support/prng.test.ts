import assert from "node:assert/strict";
import { test } from "node:test";
import { manualClock } from "#support/clock.ts";
import { prng } from "#support/prng.ts";

test("prng: one seed, one sequence; another seed, another", () => {
  const take = (seed: number | string): number[] => {
    const random = prng(seed);
    return Array.from({ length: 20 }, () => random.next());
  };
  assert.deepEqual(take(1), take(1));
  assert.deepEqual(take("1"), take(1));
  assert.notDeepEqual(take(1), take(2));
  assert.ok(take(0).every((value) => value >= 0 && value < 1) && new Set(take(0)).size === 20);
});

test("prng: a split does not depend on how much the parent was used", () => {
  const [one, other] = [prng(7), prng(7)];
  for (let at = 0; at < 10; at++) one.next();
  assert.equal(one.split("net").next(), other.split("net").next());
  assert.notEqual(one.split("net").next(), one.split("disk").next());
});

test("prng: whole numbers cover their range evenly, shuffles keep the items", () => {
  const random = prng("even");
  const counts = new Map<number, number>();
  for (let at = 0; at < 6000; at++) {
    const value = random.int(1, 6);
    counts.set(value, (counts.get(value) ?? 0) + 1);
  }
  assert.deepEqual([...counts.keys()].sort(), [1, 2, 3, 4, 5, 6]);
  assert.ok([...counts.values()].every((count) => count > 850 && count < 1150));
  assert.deepEqual(random.shuffle([1, 2, 3, 4, 5]).sort(), [1, 2, 3, 4, 5]);
  assert.throws(() => random.pick([]), RangeError);
});

test("manual clock: advancing moves both clocks, a jump only the wall clock", () => {
  const clock = manualClock(1_000_500);
  assert.deepEqual([clock.now_s(), clock.now_ms(), clock.monotonic_ms()], [1000, 1_000_500, 0]);
  clock.advance(600);
  assert.deepEqual([clock.now_s(), clock.monotonic_ms()], [1001, 600]);
  clock.jump(5_000);
  assert.deepEqual([clock.now_s(), clock.monotonic_ms()], [5, 600]);
  assert.throws(() => clock.advance(-1), RangeError);
});
