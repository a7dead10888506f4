// Signals and messages that a mom does not answer.

import assert from "node:assert/strict";
import { test } from "node:test";
import { addHost, addJob, advance, ask, harness, jobAttrs, momHello, ROOT, runOn } from "../harness.ts";

test("a signal to a mom that is lost is forgotten, also if the job has left the host meanwhile", () => {
  const h = harness();
  const link = addHost(h, "n1");
  const job = addJob(h, {});
  runOn(h, job, "n1", link);
  const token = h.next_token;
  assert.equal(ask(h, ROOT, { kind: "signal-job", job, signal: "TERM" }), undefined);
  advance(h, 3600);
  assert.equal(h.answers.get(token)?.ok, false, "the mom has not answered in time");
  ask(h, ROOT, { kind: "rerun-job", job, force: true });
  assert.equal(jobAttrs(h, job).job_state, "Q");
  assert.equal(h.core.kernel.moms.questions.size, 1, "the mom may still answer");
  h.driver.momLost(link);
  assert.equal(h.core.kernel.moms.questions.size, 0);
});

test("a signal to a mom that connects again is forgotten, also if the server has not noticed the loss of the former connection", () => {
  const h = harness();
  const link = addHost(h, "n1");
  const job = addJob(h, {});
  runOn(h, job, "n1", link);
  const token = h.next_token;
  assert.equal(ask(h, ROOT, { kind: "signal-job", job, signal: "TERM" }), undefined);
  momHello(h, link + 10, "n1", [{ job, run_count: 1, state: "running", session_id: 4711 }]);
  assert.equal(h.answers.get(token)?.ok, false, "nobody answers it any more");
  assert.equal(h.core.kernel.moms.questions.size, 0);
});
