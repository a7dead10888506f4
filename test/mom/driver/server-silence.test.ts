// When a mom asks a server that does not answer, and when it connects anew.

import assert from "node:assert/strict";
import { test } from "node:test";
import { anewAfter_ms, askEvery_ms, ServerSilence } from "#mom/driver/server-silence.ts";

test("the interval of questions follows the shortest grace and the interval of reports", () => {
  const rows = [
    [310, 300, null, 10_000],
    [310, 300, 15, 37_500],
    [310, 300, 300, 50_000],
    [0, 300, null, 10_000],
    [10, 300, null, 10_000 / 6],
    [10, 300, 15, 10_000 / 6],
    [2, 300, null, 500],
  ] as const;
  for (const [requeue_s, sister_s, every_s, expected_ms] of rows)
    assert.equal(askEvery_ms({ requeue_s, sister_s }, every_s), expected_ms, `${requeue_s} ${every_s}`);
});

test("an answer counts from the time at which what it answers has left; answers in the wrong order and twice count once", () => {
  const silence = new ServerSilence();
  silence.helloLeft(0);
  const [first, second] = [silence.next(100), silence.next(200)];
  assert.deepEqual([silence.heard(second), silence.heard(first), silence.heard(second), silence.heard(99)], [200, null, null, null]);
  const third = silence.next(300);
  silence.helloLeft(400);
  assert.equal(silence.heard(third), null, "it was sent on an earlier connection");
});

test("a connection is made anew after the server would have given it up", () => {
  assert.deepEqual([anewAfter_ms(45, null), anewAfter_ms(45, 15), anewAfter_ms(10, 15), anewAfter_ms(0, 15)], [90_000, 90_000, 70_000, 0]);
});

test("the mom asks again and again, and connects anew after a time", () => {
  const silence = new ServerSilence();
  silence.helloLeft(0);
  const due = (now_ms: number, answered_ms = 0): string | null => silence.due(now_ms, answered_ms, 45_000, 10_000);
  assert.deepEqual([due(9999), due(10_000), due(10_500), due(20_000)], [null, "ask", null, "ask"]);
  silence.heard(silence.next(20_000));
  assert.deepEqual([due(29_999, 20_000), due(30_000, 20_000)], [null, "ask"]);
  assert.deepEqual([due(64_999, 20_000), due(65_000, 20_000)], ["ask", "connect anew"]);
});

test("a mom that stood still asks before it connects anew", () => {
  const silence = new ServerSilence();
  silence.helloLeft(0);
  assert.equal(silence.due(1_000_000, 0, 45_000, 10_000), "ask");
  assert.equal(silence.due(1_010_000, 0, 45_000, 10_000), "ask");
  assert.equal(silence.due(1_015_000, 0, 45_000, 10_000), "connect anew");
});

test("a hello without a welcome is given up after the same time; without a time never", () => {
  const silence = new ServerSilence();
  silence.helloLeft(1000);
  assert.deepEqual([silence.due(45_999, 0, 45_000, null), silence.due(46_000, 0, 45_000, null)], [null, "connect anew"]);
  assert.equal(silence.due(1e9, 0, 0, null), null);
});

test("an older grace does not replace a newer one, and each connection begins anew", () => {
  const silence = new ServerSilence();
  silence.helloLeft(0);
  const grace = (number: number) => ({ number, requeue_s: 310, sister_s: 300 });
  assert.deepEqual(
    [silence.newest(undefined), silence.newest(grace(2))?.number, silence.newest(grace(1)), silence.grace],
    [null, 2, null, 2],
  );
  silence.helloLeft(1);
  assert.deepEqual([silence.grace, silence.newest(grace(1))?.number], [0, 1]);
});
