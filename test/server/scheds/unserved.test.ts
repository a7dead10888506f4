// If no scheduler looks at a job, the server itself says why the job waits: in the comment, in an explanation, in the view of
// `partita top`.

import assert from "node:assert/strict";
import { test } from "node:test";
import { explanationText } from "#admin/explain/explanation-text.ts";
import type { Explanation } from "#protocol/explanation.ts";
import type { StatusItem } from "#protocol/messages.ts";
import type { UnservedView } from "#protocol/sched-view.ts";
import {
  ALICE,
  addHost,
  addJob,
  addQueue,
  addSched,
  addVnode,
  advance,
  apply,
  ask,
  askOk,
  BOB,
  cycle,
  type Harness,
  harness,
  ROOT,
  runOn,
  sched,
  schedHello,
  schedLost,
  settle,
  statusOf,
} from "../harness.ts";

const LINK = 5;
const S1 = { partition: ["p1"], sched_priv: "/home/pbs/sched_priv_s1", sched_log: "/home/pbs/sched_logs_s1" };
const ELSEWHERE = { sched_host: "h2", sched_port: 15050 };
const CLOSED = "nobody listens on port 15050 of h2";
const ATTENTION = "Scheduler s1 needs attention: it ended 3 times by itself, the next start is in 10 s";
const FAULT = "PBS failed validation checks for sched_priv directory";

/** A partition p1 with a queue pq and a vnode; the default scheduler runs. */
function world(s1: { readonly [name: string]: unknown } | null = {}, vnodes = true): Harness {
  const h = harness();
  addHost(h, "n1");
  schedHello(h, 1);
  cycle(h, 1);
  if (vnodes) addVnode(h, "v1", { partition: "p1" });
  addQueue(h, "pq", { partition: "p1" });
  if (s1 !== null) addSched(h, "s1", { ...S1, ...s1 });
  return h;
}

const commentOf = (h: Harness, job: string, who = ALICE): string | undefined => {
  const [item] = statusOf(h, who, { kind: "status", object: "job", ids: [job] }) as StatusItem[];
  assert.ok(item !== undefined && "attrs" in item);
  return item.attrs["comment"] as string | undefined;
};
const set = (h: Harness, attrs: { [name: string]: unknown }): void =>
  apply(h, { kind: "changed", object: "sched", name: "s1", set: attrs, unset: [] });
const crash = (h: Harness): void => {
  h.core.schedExited("s1", { code: 1, signal: null, stopped: false }, h.now_ms);
  settle(h);
};

const withFault = (): Harness => {
  const h = world();
  h.core.schedUnfit("s1", FAULT, h.now_ms);
  settle(h);
  return h;
};
const connected = (vnodes = true): Harness => {
  const h = world({}, vnodes);
  schedHello(h, LINK, "s1");
  cycle(h, LINK);
  return h;
};
const faulty = (): Harness => {
  const h = connected();
  sched(h, LINK, "sched-fault", { fault: FAULT });
  return h;
};
const lost = (): Harness => {
  const h = connected();
  schedLost(h, LINK);
  return h;
};
const unreached = (): Harness => {
  const h = world(ELSEWHERE);
  h.driver.schedUnreached("s1", CLOSED);
  settle(h);
  return h;
};
const left = (): Harness => {
  const h = connected();
  sched(h, LINK, "sched-leaving", {});
  schedLost(h, LINK);
  h.core.schedExited("s1", { code: 0, signal: null, stopped: false }, h.now_ms);
  settle(h);
  return h;
};
const crashing = (): Harness => {
  const h = world();
  for (let times = 0; times < 3; times++) crash(h);
  return h;
};

type Row = readonly [cause: string, make: () => Harness, text: string, remedy: RegExp];

// biome-ignore format: a table
const CAUSES: readonly Row[] = [
  ["a partition of no scheduler", () => world(null), "No scheduler serves partition p1", /set sched NAME partition \+= p1/],
  ["scheduling False", () => world({ scheduling: false }), "Scheduler s1 has scheduling = False", /set sched s1 scheduling = True/],
  ["a directory that fails its check", withFault, `Scheduler s1: ${FAULT}`, /sched_priv_s1.*then.*scheduling = True/],
  ["a bad directory, told by the scheduler", faulty, `Scheduler s1: ${FAULT}`, /sched_priv_s1/],
  ["it is on another host and not reached", unreached, `Scheduler s1 on host h2 cannot be reached: ${CLOSED}`, /start it there: .*pbs_sched -I s1/],
  ["it is starting", world, "Scheduler s1 is starting", /sched_out/],
  ["its connection is lost", lost, "Scheduler s1 is starting", /sched_out/],
  ["it ended in good order", left, "Scheduler s1 is down", /scheduling = True" starts it/],
  ["it crashes again and again", crashing, ATTENTION, /sched_out.*starts it at once/],
  ["a partition without vnodes", () => connected(false), "Partition p1 of scheduler s1 has no vnodes", /set node NAME partition = p1/],
];

for (const [cause, make, text, remedy] of CAUSES) {
  test(`a job waits and nobody looks at it, ${cause}: comment, explanation and view say why and what to do`, () => {
    const h = make();
    const job = addJob(h, { queue: "pq" });
    const token = h.next_token;
    const asked = ask(h, ALICE, { kind: "explain-job", job });
    if (asked === undefined) {
      // The scheduler is connected and is asked; it may find no obstacle.
      sched(h, LINK, "sched-answer", { token, value: { ...EXPLAINED, job } });
    }
    const answer = h.answers.get(token);
    assert.ok(answer?.ok, JSON.stringify(answer));
    const told = answer.value as Explanation;
    assert.deepEqual([told.verdict, told.why?.text, told.why?.stage], ["waits", `Not Running: ${text}`, "scheduler"]);
    assert.match(told.remedy ?? "", remedy);
    const printed = explanationText(told);
    assert.ok(printed.includes(`now               Not Running: ${text}\n`), printed);
    assert.match(printed, /^ {2}to mend {11}\S/m);
    const [view] = askOk(h, ALICE, { kind: "view-unserved" }) as UnservedView[];
    assert.deepEqual([view?.partition, view?.text, view?.jobs, view?.waiting[0]?.id], ["p1", text, 1, job]);
    // After some time no cause counts as temporary any more; the seconds to the next start have passed.
    h.now_ms += 21_000;
    const comment = commentOf(h, job);
    assert.ok(comment?.startsWith(`Not Running: ${text.replace(/ in 10 s$/, "")}`), comment);
    assert.match(comment ?? "", remedy);
  });
}

const EXPLAINED: Explanation = {
  job: "",
  sched: "s1",
  at_s: 0,
  state: "Q",
  queue: "pq",
  select: "1:ncpus=1",
  place: "free",
  walltime_s: null,
  verdict: "starts",
  why: null,
  comment: null,
  reasons: [],
  obstacles: [],
  preempts: [],
  preempted_s: null,
  jobs_before: 0,
  top_job: false,
  chunks: [],
  nodes: [],
  nodes_left_out: 0,
  earliest: null,
  estimates: [],
  running: null,
};

test("the server's comment is there while its cause is, in the place of the scheduler's own", () => {
  const h = world({ scheduling: false });
  const job = addJob(h, { queue: "pq" });
  assert.equal(commentOf(h, job), undefined, "PBS says nothing at first: scheduling is switched off for a moment again and again");
  advance(h, 20);
  assert.match(commentOf(h, job) ?? "", /^Not Running: Scheduler s1 has scheduling = False /);
  set(h, { scheduling: true });
  schedHello(h, LINK, "s1");
  assert.equal(commentOf(h, job), undefined);
  cycle(h, LINK, [{ kind: "comment", job, comment: "Not Running: Not enough free nodes available", why: { code: "NO_FREE_NODES" } }]);
  assert.equal(commentOf(h, job), "Not Running: Not enough free nodes available");
  set(h, { scheduling: false });
  assert.match(commentOf(h, job) ?? "", /^Not Running: Scheduler s1 has/, "the job has waited long enough");
  set(h, { scheduling: true });
  assert.equal(commentOf(h, job), "Not Running: Not enough free nodes available", "the scheduler's own is kept");
});

test("a restart of a scheduler is told only when it takes long", () => {
  const h = world();
  const job = addJob(h, { queue: "pq" });
  advance(h, 19);
  assert.equal(commentOf(h, job), undefined);
  advance(h, 1);
  assert.match(commentOf(h, job) ?? "", /^Not Running: Scheduler s1 is starting/);
});

test("an administrator's comment, and jobs that do not wait for a scheduler, are left alone", () => {
  const h = world(null);
  const noted = addJob(h, { queue: "pq", comment: "ask Eve" });
  const held = addJob(h, { queue: "pq", Hold_Types: "u" });
  const array = addJob(h, { queue: "pq", array: true, array_indices_submitted: "1-3" });
  assert.equal(commentOf(h, noted), "ask Eve");
  assert.equal(commentOf(h, held), undefined);
  assert.match(commentOf(h, array) ?? "", /^Not Running: No scheduler serves partition p1/);
  const told = askOk(h, ALICE, { kind: "explain-job", job: held }) as Explanation;
  assert.deepEqual([told.verdict, told.why, told.kept?.holds], ["held", null, "u"]);
  const running = addJob(h);
  runOn(h, running, "n1", 100);
  apply(h, { kind: "changed", object: "sched", name: "default", set: { scheduling: false }, unset: [] });
  schedLost(h, 1);
  assert.equal((askOk(h, ALICE, { kind: "explain-job", job: running }) as Explanation).verdict, "runs");
});

test("subjobs that wait say it, too, and a job of a queue that is served does not", () => {
  const h = world(null);
  const array = addJob(h, { queue: "pq", array: true, array_indices_submitted: "1-3" });
  const items = statusOf(h, ALICE, { kind: "status", object: "job", ids: [array], subjobs: true }) as StatusItem[];
  const comments = items.map((item) => ("attrs" in item ? item.attrs["comment"] : ""));
  assert.equal(comments.length, 4);
  assert.ok(comments.every((text) => String(text).startsWith("Not Running: No scheduler serves partition p1")));
  const told = askOk(h, ALICE, { kind: "explain-job", job: array.replace("[]", "[2]") }) as Explanation;
  assert.deepEqual([told.job, told.verdict, told.state], [array.replace("[]", "[2]"), "waits", "Q"]);
  assert.equal(commentOf(h, addJob(h)), undefined);
});

test("the view counts what it may not show", () => {
  const h = world(null);
  apply(h, { kind: "server-changed", set: { query_other_jobs: false }, unset: [] });
  addJob(h, { queue: "pq" });
  const [view] = askOk(h, BOB, { kind: "view-unserved" }) as UnservedView[];
  assert.deepEqual([view?.jobs, view?.waiting], [1, []]);
  assert.equal((askOk(h, ROOT, { kind: "view-unserved" }) as UnservedView[])[0]?.waiting.length, 1);
});

test("a scheduler that goes away while it is asked: the server answers itself", () => {
  const h = world();
  schedHello(h, LINK, "s1");
  cycle(h, LINK);
  const job = addJob(h, { queue: "pq" });
  const token = h.next_token;
  assert.equal(ask(h, ALICE, { kind: "explain-job", job }), undefined);
  schedLost(h, LINK);
  const answer = h.answers.get(token);
  assert.ok(answer?.ok);
  assert.equal((answer.value as Explanation).why?.text, "Not Running: Scheduler s1 is starting");
});
