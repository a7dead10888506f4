// Jobs over several hosts as the server sees them: what it believes of sisters after it was killed.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { MomToServer } from "#protocol/mom-link.ts";
import type { Attrs } from "#server/state.ts";
import { addHost, addJob, ask, type Harness, harness, jobAttrs, logsOf, mom, momHello, ROOT, restart, stateOf } from "./harness.ts";

const MOTHER = 100;
const SISTER = 101;

/** A job that runs on n1 and n2. */
function running(attrs: Attrs = {}): { readonly h: Harness; readonly job: string } {
  const h = harness();
  assert.deepEqual([addHost(h, "n1"), addHost(h, "n2")], [MOTHER, SISTER]);
  const job = addJob(h, attrs);
  const answer = ask(h, ROOT, { kind: "run-job", job, exec_vnode: "(n1:ncpus=1)+(n2:ncpus=1)" });
  assert.equal(answer?.ok, true, JSON.stringify(answer));
  for (const link of [SISTER, MOTHER]) mom(h, link, "mom-started", { job, run_count: 1, session_id: link, jobdir: "/home/x" });
  assert.equal(stateOf(h, job), "R 42");
  return { h, job };
}

const held = (job: string): MomToServer["mom-hello"]["jobs"] => [{ job, run_count: 1, state: "running", session_id: 9 }];

for (const first of ["mother superior", "sister"] as const) {
  test(`a sister that lost the job while the server was away ends the run, if the ${first} says hello first`, () => {
    const { h, job } = running();
    restart(h);
    const hellos = [() => momHello(h, MOTHER, "n1", held(job)), () => momHello(h, SISTER, "n2")];
    for (const hello of first === "sister" ? hellos.reverse() : hellos) hello();
    assert.ok(logsOf(h, job).some((text) => text.startsWith("Job is ended, its sister n2 was lost")));
    assert.equal(stateOf(h, job), "R 60");
    mom(h, MOTHER, "mom-obit", { job, run_count: 1, exit_status: -11, used: {} });
    assert.equal(stateOf(h, job), "Q 10");
  });
}

test("what a sister reports again and again before the mother superior has spoken is not added up", () => {
  const { h, job } = running();
  const usage = (link: number, cput: number): void => mom(h, link, "mom-usage", { jobs: [{ job, run_count: 1, used: { cput } }] });
  const cput = (): unknown => (jobAttrs(h, job)["resources_used"] as { cput?: number } | undefined)?.cput;
  usage(MOTHER, 100);
  usage(SISTER, 20);
  assert.equal(cput(), 120);
  restart(h);
  momHello(h, SISTER, "n2", held(job));
  for (const told of [21, 22, 23]) usage(SISTER, told);
  assert.equal(cput(), 120, "the last sum stands");
  momHello(h, MOTHER, "n1", held(job));
  usage(MOTHER, 110);
  assert.equal(cput(), 133);
});

test("a sister that the job goes on without is missed once, and her vnodes can be released though she is gone", () => {
  const { h, job } = running({ tolerate_node_failures: "all", schedselect: "2:ncpus=1" });
  const gone = (): void => mom(h, SISTER, "mom-obit", { job, run_count: 1, exit_status: 265, used: {} });
  gone();
  gone();
  assert.equal(logsOf(h, job).filter((text) => text.startsWith("Job goes on without its sister n2")).length, 1);
  assert.equal(ask(h, ROOT, { kind: "release-nodes", job, nodes: ["n2"] })?.ok, true);
  assert.equal(jobAttrs(h, job).exec_vnode, "(n1:ncpus=1)");
  assert.equal(stateOf(h, job), "R 42");
});
