// Run times of similar jobs, which the server adds to a scheduler's explanation.

import assert from "node:assert/strict";
import { test } from "node:test";
import { explanationText } from "#admin/explain/explanation-text.ts";
import type { Explanation, Obstacle } from "#protocol/explanation.ts";
import type { ServerToSched } from "#protocol/sched-link.ts";
import { ALICE, addHost, ask, type Harness, harness, mom, runOn, sched, schedHello } from "../harness.ts";
import { qsub } from "../requests/qsub.ts";

const TRUE = "-- /bin/true";

/** Asks about a job and answers as the scheduler. Returns the answer to the client. */
function explained(h: Harness, job: string, answer: unknown): unknown {
  const token = h.next_token;
  assert.equal(ask(h, ALICE, { kind: "explain-job", job }), undefined, "the scheduler is asked first");
  const question = h.to_scheds.filter(({ type }) => type === "sched-ask").at(-1)?.data as ServerToSched["sched-ask"];
  assert.deepEqual([question.token, question.question.kind], [token, "explain"]);
  sched(h, 1, "sched-answer", { token, value: answer });
  const told = h.answers.get(token);
  return told?.ok === true ? told.value : told;
}

const obstacle = (kind: Obstacle["kind"], id: string | null): Obstacle => ({ kind, id, from_s: 0, to_s: 1000, vnodes: 1 });

function explanation(job: string, obstacles: readonly Obstacle[]): Explanation {
  return {
    job,
    sched: "default",
    at_s: 10,
    state: "Q",
    queue: "workq",
    select: "1:ncpus=1",
    place: "free",
    walltime_s: 999,
    verdict: "waits",
    why: null,
    comment: null,
    reasons: [],
    obstacles,
    preempts: [],
    preempted_s: null,
    jobs_before: 0,
    top_job: false,
    chunks: [],
    nodes: [],
    nodes_left_out: 0,
    earliest: { start_s: 1000, exec_vnode: "(n1:ncpus=1)", after: obstacles, why: null, late: false },
    estimates: [],
    running: null,
  };
}

/** A complex in which a job of alice with name a took 100 s, with jobs a (running), b and a (an array) that wait. */
async function complex(): Promise<{ h: Harness; a: string; b: string; array: string }> {
  const h = harness();
  const link = addHost(h, "n1", { ncpus: 16 });
  schedHello(h, 1);
  const first = await qsub(h, `-N a -l walltime=999 ${TRUE}`);
  runOn(h, first, "n1", link);
  mom(h, link, "mom-obit", { job: first, run_count: 1, exit_status: 0, used: { walltime: 100.4 }, stageout_status: 1 });
  const a = await qsub(h, `-N a -l walltime=999 ${TRUE}`);
  runOn(h, a, "n1", link);
  return { h, a, b: await qsub(h, `-N b -l walltime=999 ${TRUE}`), array: await qsub(h, `-N a -J 1-5 ${TRUE}`) };
}

test("an explanation names what jobs like it and like those in its way took; reservations, hidden jobs and new names have no such time", async () => {
  const { h, a, b, array } = await complex();
  const ways = [obstacle("job", a), obstacle("top job", b), obstacle("reservation", "R9.svr"), obstacle("job", null)];
  const told = explained(h, b, explanation(b, ways)) as Explanation;
  const known = [{ ...ways[0], learned_s: 100.4 }, ...ways.slice(1)];
  assert.deepEqual(told, { ...explanation(b, []), obstacles: known, earliest: { ...explanation(b, []).earliest, after: known } });
  const text = explanationText(told);
  assert.doesNotMatch(text, /\n {2}learned /);
  assert.match(
    text,
    new RegExp(`\n {2}after +job ${a} ends .* \\(jobs like it took 00:01:40\\)\n +top job ${b} ends \\S+ \\S+ +\\d+ \\S+ \\d+\n`),
  );
  const subjob = array.replace("[]", "[2]");
  const again = explained(h, subjob, explanation(subjob, [])) as Explanation;
  assert.equal(again.learned_s, 100.4);
  assert.match(explanationText(again), /\n {2}learned {11}jobs of its user, project and name took 00:01:40\n/);
});

test("what is no explanation is passed on as it is", async () => {
  const { h, b } = await complex();
  for (const answer of ["yes", 5, {}, { job: b, obstacles: [null], earliest: null }, { job: b, obstacles: [], earliest: { after: [{}] } }])
    assert.deepEqual(explained(h, b, answer), answer);
});
