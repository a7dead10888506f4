// Eligible time: the kinds of a job's time, clocks of jobs behind the same limits, restarts, and the view of schedulers.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { Harness } from "../harness.ts";
import {
  ALICE,
  addJob,
  addQueue,
  addSched,
  advance,
  apply,
  ask,
  askOk,
  BOB,
  jobAttrs,
  logsOf,
  obit,
  outcome,
  ROOT,
  restart,
  runOn,
} from "../harness.ts";
import { setServer, shown, world } from "./eligible-time-bed.ts";

const accrueLines = (h: Harness, id: string): string[] => logsOf(h, id).filter((text) => text.startsWith("Accrue"));
const ONE_EACH = { max_run: { "u:PBS_GENERIC": 1 } };

test("a job accrues from queue to end; each change is logged with what was before", () => {
  const { h, link } = world();
  const job = addJob(h);
  advance(h, 10);
  assert.equal(shown(h, job), "2 00:00:10");
  runOn(h, job, "n1", link);
  advance(h, 5);
  assert.equal(shown(h, job), "3 00:00:10");
  obit(h, link, job);
  assert.deepEqual(accrueLines(h, job), [
    "Accrue type has changed to run_time, previous accrue type was eligible_time for 10 secs, total eligible_time=00:00:10",
    "Accrue type has changed to exiting, previous accrue type was run_time for 5 secs, total eligible_time=00:00:10",
  ]);
  assert.match(h.accounting.find(({ type }) => type === "E")?.text ?? "", / eligible_time=00:00:10 run_count=1/);
  assert.equal(shown(h, job), "4 00:00:10");
});

test("own holds, waiting times and dependencies do not count, holds of others do", () => {
  const { h } = world();
  // biome-ignore format: a table
  const table: readonly (readonly [attrs: Record<string, unknown>, shown: string])[] = [
    [{ Hold_Types: "u" },                                        "1 00:00:00"],
    [{ Hold_Types: "o" },                                        "2 00:00:30"],
    [{ Hold_Types: "s" },                                        "2 00:00:30"],
    [{ Hold_Types: "us" },                                       "1 00:00:00"],
    [{ Execution_Time: Math.floor(h.now_ms / 1000) + 1000 },     "1 00:00:00"],
    [{},                                                         "2 00:00:30"],
  ];
  const jobs = table.map(([attrs]) => addJob(h, attrs));
  advance(h, 30);
  table.forEach(([attrs, expected], at) => assert.equal(shown(h, jobs[at] as string), expected, JSON.stringify(attrs)));
  const held = jobs[0] as string;
  assert.deepEqual(accrueLines(h, held), [
    "Accrue type has changed to ineligible_time, previous accrue type was eligible_time for 0 secs, total eligible_time=00:00:00",
  ]);
  askOk(h, ROOT, { kind: "release-job", job: held, holds: "u" });
  advance(h, 7);
  assert.equal(shown(h, held), "2 00:00:07");
});

test("a limit of the owner stops his jobs' clock and no other; what ends lets it go on", () => {
  const { h, link } = world();
  const running = addJob(h);
  runOn(h, running, "n1", link);
  const [mine, other] = [addJob(h), addJob(h, {}, BOB)];
  advance(h, 10);
  setServer(h, ONE_EACH);
  assert.deepEqual([shown(h, mine), shown(h, other)], ["1 00:00:10", "2 00:00:10"], "at once, before any cycle");
  advance(h, 10);
  assert.deepEqual([shown(h, mine), shown(h, other)], ["1 00:00:10", "2 00:00:20"]);
  obit(h, link, running);
  advance(h, 10);
  assert.deepEqual([shown(h, mine), shown(h, other)], ["2 00:00:20", "2 00:00:30"]);
  assert.deepEqual(accrueLines(h, mine), [
    "Accrue type has changed to ineligible_time, previous accrue type was eligible_time for 10 secs, total eligible_time=00:00:10",
    "Accrue type has changed to eligible_time, previous accrue type was ineligible_time for 10 secs, total eligible_time=00:00:10",
  ]);
  setServer(h, {}, "max_run");
  advance(h, 5);
  assert.deepEqual([shown(h, mine), shown(h, other)], ["2 00:00:25", "2 00:00:35"], "the time goes with the job to another clock");
});

test("limits on amounts, of queues, groups and projects; limits for all stop nobody", () => {
  // biome-ignore format: a table
  const table: readonly (readonly [server: object, queue: object, shown: string])[] = [
    [{ max_run_res: { ncpus: { "u:PBS_GENERIC": 3 } } },   {},                                    "1"],
    [{ max_run_res: { ncpus: { "u:PBS_GENERIC": 4 } } },   {},                                    "2"],
    [{ max_run_res: { ncpus: { "o:PBS_ALL": 1 } } },       {},                                    "2"],
    [{ max_run: { "o:PBS_ALL": 1 } },                      {},                                    "2"],
    [{ max_user_run: 1 },                                  {},                                    "1"],
    [{ max_user_res: { ncpus: 3 } },                       {},                                    "1"],
    [{ max_run: { "u:PBS_GENERIC": 1, "u:alice": 5 } },    {},                                    "2"],
    [{ max_run: { "g:users": 1 } },                        {},                                    "1"],
    [{ max_run: { "p:_pbs_project_default": 1 } },         {},                                    "1"],
    [{ max_run: { "p:other": 1 } },                        {},                                    "2"],
    [{},                                                   { max_run: { "u:PBS_GENERIC": 1 } },   "1"],
    [{},                                                   { max_group_run: 1 },                  "1"],
    [{ max_run_soft: { "u:PBS_GENERIC": 1 } },             {},                                    "2"],
  ];
  const TWO = { ncpus: 2, nodect: 1, place: "free", select: "1:ncpus=2" };
  for (const [server, queue, expected] of table) {
    const { h, link } = world(server as Record<string, unknown>);
    apply(h, { kind: "changed", object: "queue", name: "workq", set: { ...queue }, unset: [] });
    runOn(h, addJob(h, { Resource_List: TWO, schedselect: "1:ncpus=2" }), "n1", link, 2);
    const job = addJob(h, { Resource_List: TWO, schedselect: "1:ncpus=2" });
    assert.equal(shown(h, job).slice(0, 1), expected, JSON.stringify([server, queue]));
  }
});

test("the server's limits count what one scheduler sees", () => {
  const { h, link } = world(ONE_EACH);
  addSched(h, "s1", { partition: ["p1"] });
  addQueue(h, "far", { partition: "p1" });
  runOn(h, addJob(h), "n1", link);
  const [here, there] = [addJob(h), addJob(h, { queue: "far" })];
  assert.deepEqual([shown(h, here), shown(h, there)], ["1 00:00:00", "2 00:00:00"]);
  apply(h, { kind: "changed", object: "queue", name: "far", set: {}, unset: ["partition"] });
  assert.equal(shown(h, there), "1 00:00:00");
});

test("qalter sets the time, for operators, while it is kept at all", () => {
  const { h } = world();
  const job = addJob(h);
  advance(h, 10);
  const alter = (who = ROOT) =>
    outcome(h, who, { kind: "modify-job", job, attrs: [{ name: "eligible_time", op: "=", value: "01:00:00" }] } as Parameters<
      typeof outcome
    >[2]);
  assert.equal(alter(), "ok");
  advance(h, 10);
  assert.equal(shown(h, job), "2 01:00:10");
  assert.equal(alter(ALICE), "15003 Cannot set attribute, read only or insufficient permission  eligible_time");
  setServer(h, { eligible_time_enable: false });
  assert.equal(alter(), "15138 Cannot set attribute when eligible_time_enable is OFF");
  assert.equal(shown(h, job), "- -");
  setServer(h, { eligible_time_enable: true });
  advance(h, 3);
  assert.equal(shown(h, job), "2 00:00:03");
  assert.deepEqual(accrueLines(h, job), [], "the switch is nothing that a job did");
});

test("qsub sets the time, for operators, while it is kept at all", () => {
  const { h } = world();
  setServer(h, { operators: ["bob@*"] });
  const submit = (who = BOB): number => {
    const token = h.next_token;
    ask(h, who, { kind: "queue-job", destination: "", attrs: [{ name: "eligible_time", value: "01:00:00" }], script: "true\n" });
    return token;
  };
  const answer = (token: number): string => {
    const given = h.answers.get(token);
    return given === undefined ? "none" : given.ok ? String((given.value as { id: string }).id) : `${given.code} ${given.text}`;
  };
  const id = answer(submit());
  advance(h, 10);
  assert.equal(shown(h, id), "2 01:00:10");
  assert.equal(answer(submit(ALICE)), "15003 Cannot set attribute, read only or insufficient permission  eligible_time");
  setServer(h, { eligible_time_enable: false });
  assert.equal(answer(submit()), "15138 Cannot set attribute when eligible_time_enable is OFF");
});

test("time goes on over a restart; a clock that nobody needs is gone", () => {
  const { h, link } = world(ONE_EACH);
  runOn(h, addJob(h), "n1", link);
  const [mine, other] = [addJob(h), addJob(h, {}, BOB)];
  advance(h, 10);
  restart(h);
  advance(h, 10);
  assert.deepEqual([shown(h, mine), shown(h, other)], ["1 00:00:00", "2 00:00:20"]);
  ask(h, ROOT, { kind: "delete-job", job: other });
  assert.deepEqual(
    [...h.core.state.clocks.values()].map(({ key }) => key?.user),
    ["alice"],
  );
});

test("a job in a routing queue accrues nothing until it is routed", () => {
  const { h } = world();
  addQueue(h, "route", { queue_type: "Route", route_destinations: ["far"], started: false });
  addQueue(h, "far");
  const job = addJob(h, { queue: "route" });
  advance(h, 10);
  assert.equal(shown(h, job), "- -");
  apply(h, { kind: "changed", object: "queue", name: "route", set: { started: true }, unset: [] });
  advance(h, 10);
  assert.equal(jobAttrs(h, job).queue, "far");
  assert.equal(shown(h, job), "2 00:00:10");
});
