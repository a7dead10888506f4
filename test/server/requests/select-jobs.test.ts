import assert from "node:assert/strict";
import { test } from "node:test";
import type { SelectJobsRequest } from "#protocol/messages.ts";
import { ALICE, addQueue, ask, BOB, type Harness, HOST, harness, outcome, ROOT } from "../harness.ts";
import { session } from "./qmgr.ts";
import { qsub } from "./qsub.ts";

type Criteria = SelectJobsRequest["criteria"];

/** Numbers of the jobs found, separated by blanks. */
function select(h: Harness, request: Partial<SelectJobsRequest>, who = ALICE): string {
  const answer = ask(h, who, { kind: "select-jobs", criteria: [], ...request });
  assert.ok(answer?.ok === true, JSON.stringify(answer));
  return (answer.value as string[]).map((id) => Number.parseInt(id, 10)).join(" ");
}

/** `Priority.gt.5`, `Resource_List.ncpus.ge.4` */
function criteria(text: string): Criteria {
  const match = /^(\w+)(?:\.(\w+))?\.(eq|ne|ge|gt|le|lt)\.(.*)$/.exec(text);
  assert.ok(match !== null, text);
  const [, name = "", resource, op, value = ""] = match;
  return [{ name, op: op as Criteria[number]["op"], value, ...(resource === undefined ? {} : { resource }) }];
}

async function complex(): Promise<Harness> {
  const h = harness();
  addQueue(h, "q2");
  await qsub(h, "-h -N alpha -p 5 -l ncpus=2,mem=10mb,walltime=100 -A acc1 -P pr1 -- a");
  await qsub(h, "-N beta -q q2 -a 2359 -l ncpus=4 -r n -- a");
  await qsub(h, "-N gamma -p -5 -l select=1:ncpus=100 -- a");
  await qsub(h, "-h -c n -- a");
  await qsub(h, "-h -N alpha -- a", BOB);
  return h;
}

test("qselect: criteria and the jobs that meet them", async () => {
  const h = await complex();
  // biome-ignore format: a table
  const rows: readonly (readonly [criterion: string, jobs: string])[] = [
    ["Job_Name.eq.alpha",             "1 5"],
    ["User_List.eq.bob",              "5"],
    ["User_List.eq.alice",            "1 2 3 4"],
    [`User_List.eq.alice@${HOST}`,    "1 2 3 4"],
    ["User_List.eq.alice@elsewhere",  ""],
    ["User_List.ne.alice",            "5"],
    ["Account_Name.eq.acc1",          "1"],
    ["project.eq.pr1",                "1"],
    ["Priority.eq.5",                 "1"],
    ["Priority.gt.-6",                "1 2 3 4 5"],
    ["Priority.lt.0",                 "3"],
    ["Resource_List.ncpus.ge.4",      "2 3"],
    ["Resource_List.walltime.gt.50",  "1"],
    ["Resource_List.mem.le.10240kb",  "1"],
    ["Resource_List.mem.ne.10mb",     "2 3 4 5"],
    ["Resource_List.place.eq.free",   "3"],
    ["Hold_Types.eq.u",               "1 4 5"],
    ["Hold_Types.eq.s",               ""],
    ["Rerunable.eq.False",            "2"],
    ["Rerunable.eq.True",             "1 3 4 5"],
    ["Checkpoint.eq.n",               "4"],
    ["Checkpoint.gt.n",               "1 2 3 5"],
    ["Execution_Time.gt.0",           "2"],
    ["Execution_Time.lt.1",           ""],
    ["ctime.gt.1000",                 "1 2 3 4 5"],
  ];
  for (const [criterion, jobs] of rows) assert.equal(select(h, { criteria: criteria(criterion) }), jobs, criterion);
  assert.equal(select(h, { criteria: [...criteria("Job_Name.eq.alpha"), ...criteria("User_List.eq.bob")] }), "5");
});

test("qselect: states, queues, order of rank", async () => {
  const h = await complex();
  assert.equal(select(h, {}), "1 2 3 4 5");
  assert.equal(select(h, { states: "H" }), "1 4 5");
  assert.equal(select(h, { states: "QW" }), "2 3");
  assert.equal(select(h, { states: "R" }), "");
  assert.equal(select(h, { destination: "q2" }), "2");
  assert.equal(select(h, { destination: `@${HOST}` }), "1 2 3 4 5");
  assert.equal(select(h, { arraysOnly: true }), "");
  assert.equal(outcome(h, ALICE, { kind: "order-job", job: `1.${HOST}`, other: `4.${HOST}` }), "ok");
  assert.equal(select(h, {}), "4 2 3 1 5");
});

test("qselect: what is refused", async () => {
  const h = await complex();
  const ask_for = (request: Partial<SelectJobsRequest>): string => outcome(h, ALICE, { kind: "select-jobs", criteria: [], ...request });
  assert.equal(ask_for({ destination: "nosuch" }), "15018 Unknown queue");
  assert.equal(ask_for({ destination: "workq@elsewhere" }), "15008 Access from host not allowed, or unknown host");
  assert.equal(ask_for({ criteria: criteria("Priority.eq.x") }), "15014 Illegal attribute or resource value");
  assert.equal(ask_for({ criteria: criteria("Resource_List.ncpus.eq.x") }), "15014 Illegal attribute or resource value");
  assert.equal(ask_for({ criteria: criteria("Resource_List.nosuch.eq.1") }), "15035 Unknown resource Resource_List.nosuch");
  assert.equal(ask_for({ criteria: criteria("nosuch.eq.1") }), "15002 Undefined attribute ");
  assert.equal(ask_for({ criteria: criteria("Checkpoint.eq.zz") }), "15014 Illegal attribute or resource value");
  await session(h, [["unset server job_history_enable"]]);
  assert.equal(ask_for({ history: "with" }), "15140 PBS is not configured to maintain job history");
});

test("qselect: finished jobs beside live ones, or alone", async () => {
  const h = await complex();
  for (const job of [`2.${HOST}`, `3.${HOST}`]) assert.equal(outcome(h, ALICE, { kind: "delete-job", job }), "ok");
  assert.equal(select(h, {}), "1 4 5");
  assert.equal(select(h, { history: "with" }), "1 2 3 4 5");
  assert.equal(select(h, { history: "only" }), "2 3");
  assert.equal(select(h, { history: "with", criteria: criteria("Job_Name.eq.beta") }), "2");
  assert.equal(select(h, { history: "with", destination: "q2" }), "2");
  assert.equal(select(h, { history: "only", states: "F", criteria: criteria("User_List.eq.bob") }), "");
});

test("qselect shows others' jobs only while query_other_jobs is True", async () => {
  const h = await complex();
  await session(h, [["set server query_other_jobs=False"]]);
  assert.equal(select(h, {}, BOB), "5");
  assert.equal(select(h, {}, ROOT), "1 2 3 4 5");
});
