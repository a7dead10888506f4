// Questions of clients to schedulers: whose question is next, and what happens to questions of clients that are gone.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { ServerToSched } from "#protocol/sched-link.ts";
import type { Peer } from "#server/engine/identity.ts";
import { ALICE, addJob, advance, ask, BOB, type Harness, harness, ROOT, sched, schedHello, schedLost } from "../harness.ts";

/** Asks why a job waits. Returns the token of the request. */
function explain(h: Harness, job: string, who: Peer): number {
  const token = h.next_token;
  assert.equal(ask(h, who, { kind: "explain-job", job }), undefined, "the scheduler must answer first");
  return token;
}

const sent = (h: Harness): number[] =>
  h.to_scheds.flatMap(({ type, data }) => (type === "sched-ask" ? [(data as ServerToSched["sched-ask"]).token] : []));

/** The scheduler answers the question that it was sent last. Returns the tokens of all questions that it has been sent. */
function answerLast(h: Harness): number[] {
  sched(h, 1, "sched-answer", { token: sent(h).at(-1) ?? 0, value: null });
  return sent(h);
}

test("a scheduler gets one question at a time, and users take turns", () => {
  const h = harness();
  schedHello(h, 1);
  const job = addJob(h, {});
  const [a1 = 0, a2 = 0, a3 = 0] = [1, 2, 3].map(() => explain(h, job, ALICE));
  const [b1 = 0, b2 = 0] = [1, 2].map(() => explain(h, job, BOB));
  const r1 = explain(h, job, ROOT);
  assert.deepEqual(sent(h), [a1]);
  for (let answers = 0; answers < 5; answers++) answerLast(h);
  assert.deepEqual(sent(h), [a1, b1, r1, a2, b2, a3]);
  assert.deepEqual(answerLast(h), [a1, b1, r1, a2, b2, a3], "all are answered");
  assert.equal([...h.answers.keys()].filter((token) => sent(h).includes(token)).length, 6);
});

test("users who ask again as soon as they are answered do not keep a third user waiting", () => {
  const h = harness();
  schedHello(h, 1);
  const job = addJob(h, {});
  explain(h, job, ALICE);
  explain(h, job, BOB);
  const waiting = [1, 2, 3].map(() => explain(h, job, ROOT));
  for (let round = 0; round < 9; round++) {
    const user = round % 2 === 0 ? ALICE : BOB;
    answerLast(h);
    explain(h, job, user);
  }
  assert.deepEqual(
    sent(h).filter((token) => waiting.includes(token)),
    waiting,
  );
});

test("a client that asks and hangs up fills no queue of the scheduler", () => {
  const h = harness();
  schedHello(h, 1);
  const job = addJob(h, {});
  const first = explain(h, job, ALICE);
  h.core.clientLost([first]);
  for (let again = 0; again < 100; again++) h.core.clientLost([explain(h, job, ALICE)]);
  const last = explain(h, job, ALICE);
  assert.deepEqual(sent(h), [first], "the scheduler has not answered the first one yet");
  assert.deepEqual(answerLast(h), [first, last]);
});

test("a question that waits too long for its turn, or whose scheduler is lost, is answered without the scheduler", () => {
  const h = harness();
  schedHello(h, 1);
  const job = addJob(h, {});
  const [first, second] = [explain(h, job, ALICE), explain(h, job, BOB)];
  advance(h, 61);
  assert.deepEqual([h.answers.has(first), h.answers.has(second), sent(h)], [true, true, [first]]);
  const third = explain(h, job, ALICE);
  assert.deepEqual(sent(h), [first], "the scheduler still works on the first");
  schedLost(h, 1);
  assert.equal(h.answers.has(third), true);
  schedHello(h, 2);
  const fourth = explain(h, job, BOB);
  assert.deepEqual(sent(h), [first, fourth]);
});
