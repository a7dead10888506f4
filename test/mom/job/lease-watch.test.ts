// The lease of a starter: which runs it kills, and when.

import assert from "node:assert/strict";
import { test } from "node:test";
import { LeaseWatch } from "#mom/job/lease-watch.ts";
import type { Lease } from "#mom/job/starter-link.ts";

const contact = { answered_ms: 0, requeue_s: 310, sister_s: 300 };
const leaseOf = (...runs: Lease["runs"]): Lease => ({ contact, runs });
const living = (): boolean => true;
const A = { job: "1.n1", run_count: 1 };
const B = { job: "2.n1", run_count: 3 };

test("each run is killed once, when its time is over", () => {
  const watch = new LeaseWatch();
  assert.deepEqual([watch.lease, watch.next_ms(), watch.overdue(1e9, living)], [null, null, []]);
  watch.take(leaseOf({ ...A, until_ms: 100 }, { ...B, until_ms: 200 }));
  assert.deepEqual([watch.next_ms(), watch.overdue(99, living)], [100, []]);
  assert.deepEqual([watch.overdue(100, living), watch.next_ms(), watch.isCutOff(A), watch.isCutOff(B)], [[A], 200, true, false]);
  assert.deepEqual([watch.overdue(150, living), watch.overdue(200, living), watch.next_ms()], [[], [B], null]);
  watch.forget(A);
  assert.equal(watch.isCutOff(A), false);
  assert.deepEqual(watch.lease?.contact, contact);
});

test("a new lease replaces the old one, but a run that is being killed stays so", () => {
  const watch = new LeaseWatch();
  watch.take(leaseOf({ ...A, until_ms: 100 }, { ...B, until_ms: 100 }));
  watch.take(leaseOf({ ...A, until_ms: 500 }));
  assert.deepEqual([watch.overdue(300, living), watch.overdue(500, living)], [[], [A]]);
  watch.take(leaseOf({ ...A, until_ms: 900 }));
  assert.deepEqual([watch.isCutOff(A), watch.next_ms(), watch.overdue(900, living)], [true, null, []]);
});

test("a run without a process is not killed, also if it is started afterwards with a later time", () => {
  const watch = new LeaseWatch();
  watch.take(leaseOf({ ...A, until_ms: 100 }));
  assert.deepEqual([watch.overdue(100, () => false), watch.isCutOff(A)], [[], false]);
  watch.add({ ...A, until_ms: 300 });
  assert.deepEqual([watch.next_ms(), watch.overdue(300, living)], [300, [A]]);
});
