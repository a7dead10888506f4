import assert from "node:assert/strict";
import { test } from "node:test";
import { AssertionFailed, mustGet, nth, present } from "#support/assert.ts";

/** That a call fails as an assertion, with this text. */
const fails = (call: () => unknown, message: string): void =>
  assert.throws(call, (error) => error instanceof AssertionFailed && error.message === message);

test("assert: values that are there come back, also those that count as false", () => {
  assert.equal(present(0, "amount"), 0);
  assert.equal(present("", "name"), "");
  assert.equal(nth([3, 0], 1), 0);
  assert.equal(nth("pbs", 2), "s");
  assert.equal(nth(new Float64Array([0.5]), 0), 0.5);
  assert.equal(mustGet(new Map([["a", false]]), "a"), false);
});

test("assert: a missing value, element or entry is an assertion that names it", () => {
  fails(() => present(undefined, "queue of 1.svr"), "missing: queue of 1.svr");
  fails(() => present(null, "pipe"), "missing: pipe");
  fails(() => nth([1, 2], 2), "missing: element 2 of 2");
  fails(() => nth([], -1), "missing: element -1 of 0");
  fails(() => mustGet(new Map<string, number>(), "workq"), "missing: entry workq");
});
