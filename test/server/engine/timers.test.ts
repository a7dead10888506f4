import assert from "node:assert/strict";
import { test } from "node:test";
import { createTimers } from "#server/engine/timers.ts";
import { prng } from "#support/prng.ts";

test("timers come in the order of their times, each once, replaced and cleared ones not", () => {
  const timers = createTimers();
  timers.set("b", 20);
  timers.set("a", 10);
  timers.set("c", 30);
  timers.set("b", 5);
  timers.clear("c");
  assert.equal(timers.next(), 5);
  assert.deepEqual(timers.due(4), []);
  assert.deepEqual(timers.due(100), ["b", "a"]);
  assert.equal(timers.next(), null);
});

test("timers agree with a sorted list over random histories", () => {
  const random = prng("timers");
  const timers = createTimers();
  const model = new Map<string, number>();
  for (let step = 0; step < 3000; step++) {
    const name = `t${random.int(0, 40)}`;
    const kind = random.int(0, 9);
    if (kind < 6) {
      const at = random.int(0, 1000);
      timers.set(name, at);
      model.set(name, at);
    } else if (kind < 8) {
      timers.clear(name);
      model.delete(name);
    } else {
      const now = random.int(0, 300);
      const due = timers.due(now);
      const expected = [...model].filter(([, at]) => at <= now);
      assert.deepEqual(
        due.map((item) => model.get(item)),
        expected.map(([, at]) => at).sort((a, b) => a - b),
      );
      assert.deepEqual([...due].sort(), expected.map(([item]) => item).sort());
      for (const item of due) model.delete(item);
    }
    assert.equal(timers.next(), model.size === 0 ? null : Math.min(...model.values()));
  }
});
