// Which file agent does whose slow work.

import assert from "node:assert/strict";
import { test } from "node:test";
import { AgentClient } from "#mom/driver/agent-client.ts";
import type { AgentPort } from "#mom/driver/ports.ts";
import type { FilePlan, PrepareRequest } from "#mom/job/agent-link.ts";
import { TurnClock } from "./bed.ts";

type Agent = { readonly lane: string; readonly jobs: string[]; readonly heard: Parameters<AgentPort["launch"]>[1]; is_ended: boolean };

function world() {
  const agents: Agent[] = [];
  const clock = new TurnClock(1_000_000);
  const port: AgentPort = {
    launch(lane, heard, closed) {
      const agent: Agent = { lane, jobs: [], heard, is_ended: false };
      agents.push(agent);
      const finish = (): void => {
        agent.is_ended = true;
        closed();
      };
      const send = (_type: string, data: unknown): void =>
        void agent.jobs.push(...(data as { readonly jobs: readonly PrepareRequest[] }).jobs.map(({ plan }) => plan.job));
      return { send, finish, close: finish };
    },
  };
  const nothing = (): void => undefined;
  const client = new AgentClient(port, clock, {
    "agent-prepared": nothing,
    "agent-finished": nothing,
    "agent-appended": nothing,
    "agent-dropped": nothing,
    "agent-complaint": nothing,
    complain: nothing,
  });
  /** Asks for the slow work of a job. */
  const stages = (job: string, uid: number): void => {
    const plan = { job, run_count: 1, owner: { uid, gid: 1, groups: [] }, stagein: [{}], stageout: [] } as unknown as FilePlan;
    client.prepare({ plan } as PrepareRequest);
    clock.endTurn();
  };
  const answer = (agent: Agent | undefined, job: string): void =>
    agent?.heard["agent-prepared"]({ jobs: [{ job, run_count: 1, ok: true, stdout: "", stderr: "" }] });
  return { agents, stages, answer };
}

test("users whose numbers have the same remainder do not wait for each other, and all slow work of one user goes to one agent", () => {
  const { agents, stages, answer } = world();
  for (const [job, uid] of [
    ["1.s", 1000],
    ["2.s", 1008],
    ["3.s", 1000],
    ["4.s", 1016],
  ] as const)
    stages(job, uid);
  const jobs = (): unknown => agents.map((agent) => agent.jobs.join());
  assert.deepEqual(jobs(), ["", "1.s,3.s", "2.s", "4.s"]);
  answer(agents[2], "2.s");
  assert.deepEqual(
    agents.map(({ is_ended }) => is_ended),
    [false, false, true, false],
  );
  stages("5.s", 1008);
  assert.deepEqual(jobs(), ["", "1.s,3.s", "2.s", "4.s", "5.s"], "an agent that has ended gets no more work");
});

test("there are at most eight agents for slow work, and further users share them evenly", () => {
  const { agents, stages } = world();
  for (let user = 0; user < 16; user++) stages(`${user}.s`, 2000 + user);
  assert.equal(agents.length, 9);
  assert.deepEqual(
    agents.slice(1).map(({ jobs }) => jobs.length),
    Array.from({ length: 8 }, () => 2),
  );
});
