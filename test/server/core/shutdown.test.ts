// qterm: the fate of running jobs.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { Attrs } from "#server/state/state.ts";
import {
  ALICE,
  addHost,
  addJob,
  ask,
  type Harness,
  harness,
  jobOwn,
  mom,
  obit,
  outcome,
  ROOT,
  runOn,
  settle,
  stateOf,
} from "../harness.ts";

/** Jobs with these attributes, running on n1. */
function running(...each: readonly Attrs[]) {
  const h = harness();
  const link = addHost(h, "n1");
  const jobs = each.map((attrs) => {
    const job = addJob(h, attrs);
    runOn(h, job, "n1", link);
    return job;
  });
  h.to_moms.length = 0;
  return { h, link, jobs };
}
const qterm = (h: Harness, manner: "quick" | "delay" | "immediate", moms = false) =>
  ask(h, ROOT, { kind: "shutdown", manner, scheds: false, moms });
const ended = (h: Harness): boolean => h.actions.some((action) => action.kind === "shutdown");
/** The requests to the mom: the signal, or the reason why a job must end. */
const told = (h: Harness): string[] =>
  h.to_moms.flatMap(({ type, data }) => {
    const { job, signal, why } = data as { readonly job: string; readonly signal?: string; readonly why?: string };
    return type === "mom-signal" || type === "mom-terminate" ? [`${job} ${signal ?? why}`] : [];
  });
/** The mom answers all checkpoint requests. */
function answer(h: Harness, link: number, ok: boolean): void {
  for (const { type, data } of [...h.to_moms])
    if (type === "mom-signal") mom(h, link, "mom-result", { token: (data as { token: number }).token, ok, ...(ok ? {} : { code: 15029 }) });
}

test("users are refused; quick ends at once and leaves jobs running", () => {
  const {
    h,
    jobs: [job = ""],
  } = running({});
  const quick = { kind: "shutdown", manner: "quick", scheds: false, moms: false } as const;
  assert.equal(outcome(h, ALICE, quick), "15007 Unauthorized Request ");
  assert.equal(outcome(h, ROOT, quick), "ok");
  assert.deepEqual(h.actions.at(-1), quick);
  assert.equal(stateOf(h, job), "R 42");
  assert.equal(outcome(h, ALICE, { kind: "hold-job", job, holds: "u" }), "15060 Request not allowed: Server shutting down");
  assert.equal(h.core.state.server["server_state"], "Terminating");
});

test("delay: what its mom can save, or what may be rerun, goes back to the queue; the rest is waited for", () => {
  const { h, link, jobs } = running({}, { Rerunable: false }, { Checkpoint: "n" });
  const [job = "", stays = "", unsaved = ""] = jobs;
  qterm(h, "delay");
  assert.deepEqual(told(h), [`${job} checkpoint`, `${stays} checkpoint`, `${unsaved} rerun`]);
  answer(h, link, false);
  assert.deepEqual(told(h).slice(3), [`${job} rerun`]);
  for (const id of [job, unsaved]) obit(h, link, id, -11);
  assert.deepEqual([stateOf(h, job), stateOf(h, unsaved), stateOf(h, stays), ended(h)], ["Q 10", "Q 10", "R 42", false]);
  assert.equal(h.core.state.server["server_state"], "Terminating_Delayed");
  obit(h, link, stays, 0);
  assert.equal(ended(h), true);
});

test("saved jobs wait for the next start of the server, whether they may be rerun or not", () => {
  const { h, link, jobs } = running({}, { Rerunable: false });
  qterm(h, "immediate");
  answer(h, link, true);
  for (const id of jobs) obit(h, link, id, -12);
  for (const id of jobs) assert.deepEqual([stateOf(h, id), jobOwn(h, id).checkpointed], ["Q 10", "n1"]);
  assert.equal(ended(h), true);
});

test("immediate kills what can neither be saved nor rerun, also where saving comes to nothing later", () => {
  const { h, link, jobs } = running({ Rerunable: false, Checkpoint: "n" }, { Rerunable: false });
  const [job = "", late = ""] = jobs;
  qterm(h, "immediate", true);
  assert.deepEqual(told(h), [`${job} delete`, `${late} checkpoint`]);
  answer(h, link, true);
  mom(h, link, "mom-kept", { job: late, run_count: 1, why: "checkpoint", text: "checkpoint_abort failed" });
  assert.deepEqual(told(h).slice(2), [`${late} delete`]);
  for (const id of jobs) obit(h, link, id, 271);
  for (const id of jobs) assert.equal(stateOf(h, id), "F 91");
  assert.equal(h.to_moms.at(-1)?.type, "mom-quit");
  assert.equal(ended(h), true);
});

test("a suspended job that may be rerun is, and is not killed", () => {
  const { h, link, jobs } = running({});
  const [job = ""] = jobs;
  ask(h, ROOT, { kind: "signal-job", job, signal: "suspend" });
  answer(h, link, true);
  assert.equal(stateOf(h, job), "S 43");
  qterm(h, "immediate");
  assert.deepEqual(told(h).slice(1), [`${job} rerun`]);
  obit(h, link, job, -11);
  assert.equal(stateOf(h, job), "Q 10");
  assert.equal(ended(h), true);
});

test("a mom that is away holds the server until it is asked a second time; what becomes of her jobs is found out later", () => {
  const { h, link, jobs } = running({}, { Rerunable: false });
  h.core.momLost(link, h.now_ms);
  settle(h);
  qterm(h, "immediate");
  assert.equal(ended(h), false);
  qterm(h, "immediate");
  assert.equal(ended(h), true);
  assert.equal(stateOf(h, jobs[0] as string), "R 60");
});
