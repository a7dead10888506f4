// Limits on the requests of one user (docs/limits.md): the refusal names the limit, and the request is accepted after the limit
// is raised.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { AttrValueText, Request } from "#protocol/messages.ts";
import { LIMITS } from "#protocol/wire/limits.ts";
import { ALICE, ask, type Harness, harness, outcome, ROOT } from "../harness.ts";

const submission = (...attrs: readonly AttrValueText[]): Request => ({ kind: "queue-job", destination: "workq", attrs, script: null });
const select = (value: string): Request => submission({ name: "Resource_List", resource: "select", value });
const ids = (count: number): string => Array.from({ length: count }, (_, at) => 1000 + at).join(":");

function set(h: Harness, name: string, value: string): void {
  const attrs = [{ name, op: "=" as const, value }];
  assert.equal(ask(h, ROOT, { kind: "manager", verb: "set", object: "server", name: "", attrs })?.ok, true);
}

const ROWS: readonly (readonly [limit: string, raised: string, request: Request])[] = [
  ["max_select_chunks", "20000", select(`1${"+1".repeat(10_000)}`)],
  ["max_job_chunks", "2000000", select("1000000:ncpus=1")],
  ["max_resource_text", "20kb", submission({ name: "Resource_List", resource: "preempt_targets", value: `queue=${"q".repeat(9000)}` })],
  ["max_job_text", "8mb", submission({ name: "Variable_List", value: `A=${"x".repeat(4 * 1024 * 1024)}` })],
];

for (const [limit, raised, request] of ROWS) {
  test(`${limit}: refused with its name, taken when it is raised`, () => {
    const h = harness();
    assert.match(outcome(h, ALICE, request), new RegExp(`^15014 .*\\(${limit}\\)$`));
    set(h, limit, raised);
    assert.equal(ask(h, ALICE, request)?.ok, true);
  });
}

test("max_status_jobs: refused with its name, taken when it is raised, never below what commands ask for at once", () => {
  const h = harness();
  const jobs = Array.from({ length: 1001 }, (_, at) => String(1000 + at));
  const request: Request = { kind: "status", object: "job", ids: jobs };
  assert.equal(outcome(h, ALICE, request), "15004 Invalid request: more than 1000 jobs in one request (max_status_jobs)");
  set(h, "max_status_jobs", "1001");
  assert.doesNotMatch(outcome(h, ALICE, request), /max_status_jobs/);
  const lowered = { name: "max_status_jobs", op: "=" as const, value: String(LIMITS.job_ids_max - 1) };
  assert.match(outcome(h, ROOT, { kind: "manager", verb: "set", object: "server", name: "", attrs: [lowered] }), /^15014/);
});

test("max_criteria_text: refused with its name, taken when it is raised", () => {
  const h = harness();
  const users = Array.from({ length: 7000 }, (_, at) => `u${1000 + at}@hst`).join(",");
  const request: Request = { kind: "select-jobs", criteria: [{ name: "User_List", op: "ne", value: users }] };
  assert.equal(outcome(h, ALICE, request), "15004 Invalid request: more than 65536 characters of criteria (max_criteria_text)");
  set(h, "max_criteria_text", "100kb");
  assert.doesNotMatch(outcome(h, ALICE, request), /max_criteria_text/);
});

test("max_depend_jobs: refused with its name, whatever the jobs are", () => {
  const h = harness();
  const request = submission({ name: "depend", value: `afterok:${ids(1001)}` });
  assert.equal(outcome(h, ALICE, request), "15054 Invalid Job Dependency: more than 1000 jobs (max_depend_jobs)");
  set(h, "max_depend_jobs", "2000");
  assert.doesNotMatch(outcome(h, ALICE, request), /max_depend_jobs/);
});

test("max_depend_jobs: a job that too many jobs wait for is refused in other words than a list that is too long", () => {
  const h = harness();
  set(h, "max_depend_jobs", "1");
  ask(h, ALICE, submission());
  const dependent = (): string => outcome(h, ALICE, submission({ name: "depend", value: "afterok:1" }));
  for (let at = 0; at < 100; at++) assert.doesNotMatch(dependent(), /max_depend_jobs/);
  const text = "the jobs named have more than 100 dependencies of their own (100 times max_depend_jobs)";
  assert.equal(dependent(), `15054 Invalid Job Dependency: ${text}`);
});

test("max_depend_jobs: two stages of as many jobs, each of the second after all of the first, are taken", () => {
  const h = harness();
  set(h, "max_depend_jobs", "50");
  for (let at = 1; at <= 50; at++) ask(h, ALICE, submission());
  const all = Array.from({ length: 50 }, (_, at) => at + 1).join(":");
  for (let at = 1; at <= 50; at++) assert.match(outcome(h, ALICE, submission({ name: "depend", value: `afterok:${all}` })), /^ok/);
});

test("max_user_job_text: what a user's jobs hold of their own counts, what they share counts once", () => {
  const h = harness();
  set(h, "max_user_job_text", "100kb");
  const job = (letter: string): string => outcome(h, ALICE, submission({ name: "Variable_List", value: `A=${letter.repeat(30_000)}` }));
  const taken = ["a", "b", "c", "d"].map((letter) => /^15036 .*\(max_user_job_text\)$/.test(job(letter)));
  assert.deepEqual(taken, [false, false, false, true]);
});
