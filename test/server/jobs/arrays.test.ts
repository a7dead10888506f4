// Job arrays: subjobs that are bytes of their array until they start, states and comments of the array, requests on ranges,
// limits, restarts.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { Request, StatusRequest } from "#protocol/messages.ts";
import type { Delta } from "#protocol/sched-link.ts";
import type { Attrs } from "#server/state/state.ts";
import {
  ALICE,
  addHost,
  addQueue,
  advance,
  apply,
  ask,
  askOk,
  BOB,
  commandsTo,
  cycle,
  type Harness,
  harness,
  jobAttrs,
  lettersOf,
  logsOf,
  mom,
  momHello,
  obit,
  outcome,
  ROOT,
  restart,
  runOn,
  sched,
  schedHello,
  stateOf,
  statusOf,
} from "../harness.ts";
import { qalter, qsub, qsubVerdict } from "../requests/qsub.ts";

/** A complex with one host n1 of 16 cpus. */
function world(): { readonly h: Harness; readonly link: number } {
  const h = harness();
  return { h, link: addHost(h, "n1", { ncpus: 16 }) };
}

/** `array_state_count; array_indices_remaining` of an array, as shown. */
function standing(h: Harness, array: string, history?: "with"): string {
  const [item] = statusOf(h, ALICE, {
    kind: "status",
    object: "job",
    ids: [array],
    attrs: ["array_state_count", "array_indices_remaining"],
    ...(history === undefined ? {} : { history }),
  }) as { attrs: Attrs }[];
  return `${item?.attrs["array_state_count"]}; ${item?.attrs["array_indices_remaining"]}`;
}

/** `1[] B, 1[1] R, ...` */
function states(h: Harness, request: Partial<StatusRequest> = {}): string {
  const items = statusOf(h, ALICE, { kind: "status", object: "job", ids: [], subjobs: true, attrs: ["job_state"], ...request });
  return (items as { id: string; attrs?: Attrs; code?: number }[])
    .map(({ id, attrs, code }) => `${id.replace(".svr", "")} ${attrs?.["job_state"] ?? code}`)
    .join(", ");
}

const select = (h: Harness, more: Partial<Extract<Request, { kind: "select-jobs" }>>): string =>
  (askOk(h, ALICE, { kind: "select-jobs", criteria: [], ...more }) as string[]).map((id) => id.replace(".svr", "")).join(" ");
const del = (h: Harness, job: string, more: Partial<Extract<Request, { kind: "delete-job" }>> = {}): string =>
  outcome(h, ALICE, { kind: "delete-job", job, ...more });

test("an array from submission to history: states, counts, comments, log and accounting", async () => {
  const { h, link } = world();
  const array = await qsub(h, "-J 1-5:2 -N arr -- /bin/true");
  assert.equal(array, "1[].svr");
  assert.equal(stateOf(h, array), "Q 10");
  const { array: isArray, array_indices_submitted, Output_Path, Error_Path } = jobAttrs(h, array);
  assert.deepEqual(
    { isArray, array_indices_submitted, Output_Path, Error_Path },
    {
      isArray: true,
      array_indices_submitted: "1-5:2",
      Output_Path: "svr:/home/alice/arr.o1.^array_index^",
      Error_Path: "svr:/home/alice/arr.e1.^array_index^",
    },
  );
  assert.equal(standing(h, array), "Queued:3 Running:0 Exiting:0 Expired:0; 1-5:2");
  assert.equal(states(h), "1[] Q, 1[1] Q, 1[3] Q, 1[5] Q");
  assert.equal(states(h, { subjobs: false }), "1[] Q");
  assert.equal(h.core.state.jobs.size, 1, "subjobs that wait are no objects");

  runOn(h, "1[3].svr", "n1", link);
  assert.equal(stateOf(h, array), "B 70");
  assert.equal(jobAttrs(h, array).comment, "Job Array Began at Fri Nov 20 at 09:26");
  assert.equal(jobAttrs(h, array).exec_vnode, undefined);
  assert.equal(jobAttrs(h, array).run_count, undefined);
  const { array_id, array_index, run_count, exec_vnode, comment } = jobAttrs(h, "1[3].svr");
  assert.deepEqual(
    { array_id, array_index, run_count, exec_vnode, comment },
    {
      array_id: array,
      array_index: "3",
      run_count: 1,
      exec_vnode: "(n1:ncpus=1)",
      comment: "Job run at Fri Nov 20 at 09:26 on (n1:ncpus=1)",
    },
  );
  assert.equal(jobAttrs(h, "1[3].svr")["array"], undefined);
  assert.equal(standing(h, array), "Queued:2 Running:1 Exiting:0 Expired:0; 1,5");
  assert.equal(states(h), "1[] B, 1[1] Q, 1[3] R, 1[5] Q");
  obit(h, link, "1[3].svr");
  assert.equal(standing(h, array), "Queued:2 Running:0 Exiting:0 Expired:1; 1,5");
  assert.equal(states(h), "1[] B, 1[1] Q, 1[3] X, 1[5] Q");
  for (const id of ["1[1].svr", "1[5].svr"]) {
    runOn(h, id, "n1", link);
    obit(h, link, id);
  }
  assert.equal(stateOf(h, array), "F 92");
  assert.equal(jobAttrs(h, array).comment, "Job Array Began at Fri Nov 20 at 09:26 and finished");
  assert.equal(jobAttrs(h, array).Exit_status, 0);
  assert.equal(standing(h, array, "with"), "Queued:0 Running:0 Exiting:0 Expired:0; -");
  assert.equal(states(h, { history: "with" }), "1[] F, 1[1] F, 1[3] F, 1[5] F");
  assert.equal(states(h), "");
  assert.equal(lettersOf(h, array), "QSE");
  assert.equal(lettersOf(h, "1[5].svr"), "SE");
  assert.match(h.accounting.find(({ id, type }) => id === array && type === "Q")?.text ?? "", / array_indices=1-5:2 Resource_List/);
  assert.match(
    h.accounting.find(({ id, type }) => id === array && type === "E")?.text ?? "",
    / array_indices=1-5:2 .* Exit_status=0 run_count=0$/,
  );
  assert.equal(h.core.state.jobs.size, 0);
});

test("a thousand subjobs named one by one are read by their ids, without a walk through the records of their array for each", async () => {
  const { h, link } = world();
  await qsub(h, "-J 0-999 -- /bin/true");
  runOn(h, "1[7].svr", "n1", link);
  obit(h, link, "1[7].svr");
  let walks = 0;
  const { historyPage } = h.core;
  h.core.historyPage = (...args) => {
    walks++;
    historyPage(...args);
  };
  const ids = Array.from({ length: 1000 }, (_, index) => `1[${index}]`);
  const shown = states(h, { ids, history: "with", subjobs: false }).split(", ");
  assert.deepEqual([shown.length, shown[7], shown[999], walks], [1000, "1[7] X", "1[999] Q", 0]);
});

test("subjobs in the listing: attributes of those that wait, run, are over, with a history and without", async () => {
  const { h, link } = world();
  const array = await qsub(h, "-h -J 1-4 -N arr -- /bin/true");
  const shown = (id: string, history?: "with"): Attrs => {
    const [item] = statusOf(h, ROOT, { kind: "status", object: "job", ids: [id], ...(history === undefined ? {} : { history }) }) as {
      attrs: Attrs;
    }[];
    return item?.attrs ?? {};
  };
  const names = [
    "job_state",
    "substate",
    "array",
    "array_id",
    "array_index",
    "array_state_count",
    "array_indices_submitted",
    "Output_Path",
    "comment",
  ];
  const part = (attrs: Attrs): string => names.flatMap((name) => (attrs[name] === undefined ? [] : [`${name}=${attrs[name]}`])).join(" ");
  assert.equal(part(shown("1[3].svr")), "job_state=Q substate=20 Output_Path=svr:/home/alice/arr.o1.^array_index^");
  askOk(h, ALICE, { kind: "release-job", job: array, holds: "u" });
  runOn(h, "1[1].svr", "n1", link);
  assert.equal(part(shown("1[3].svr")), "job_state=Q substate=10 Output_Path=svr:/home/alice/arr.o1.^array_index^");
  assert.match(
    part(shown("1[1].svr")),
    /^job_state=R substate=42 array_id=1\[\]\.svr array_index=1 Output_Path=svr:\/home\/alice\/arr\.o1\.1 comment=Job run at/,
  );
  obit(h, link, "1[1].svr", 3);
  assert.match(part(shown("1[1].svr")), /^job_state=X substate=93 array_id=1\[\]\.svr array_index=1 .* and failed$/);
  assert.equal(shown("1[1].svr")["Exit_status"], "3");
  apply(h, { kind: "server-changed", set: { job_history_enable: false }, unset: [] });
  advance(h, 7200);
  assert.equal(part(shown("1[1].svr")), "job_state=X substate=93 Output_Path=svr:/home/alice/arr.o1.^array_index^ comment=Subjob failed");
  runOn(h, "1[2].svr", "n1", link);
  obit(h, link, "1[2].svr");
  assert.match(part(shown("1[2].svr")), /^job_state=X substate=92 .* comment=Subjob finished$/);
  assert.equal(del(h, "1[3].svr"), "ok");
  assert.match(part(shown("1[3].svr")), /^job_state=X substate=91 .* comment=Subjob terminated$/);
});

test("what ids name in the status of jobs", async () => {
  const { h, link } = world();
  const array = await qsub(h, "-J 1-9:2 -- /bin/true");
  await qsub(h, "-- /bin/true");
  runOn(h, "1[3].svr", "n1", link);
  obit(h, link, "1[3].svr");
  // biome-ignore format: a table
  const rows: readonly (readonly [ids: string, subjobs: boolean, expected: string])[] = [
    ["1[]",            false, "1[] B"],
    ["1[]",            true,  "1[] B, 1[1] Q, 1[3] X, 1[5] Q, 1[7] Q, 1[9] Q"],
    ["1[].svr 2",      true,  "1[] B, 1[1] Q, 1[3] X, 1[5] Q, 1[7] Q, 1[9] Q, 2 Q"],
    ["1[3]",           false, "1[3] X"],
    ["1[3]",           true,  "1[3] X"],
    ["1[2]",           false, "1[2] 15001"],
    ["1[2-6]",         false, "1[3] X, 1[5] Q"],
    ["1[9-99999999]",  false, "1[9] Q"],
    ["1[1-9:4]",       false, "1[1] Q, 1[5] Q, 1[9] Q"],
    ["1[7,1,7]",       false, "1[1] Q, 1[7] Q"],
    ["1[10-20]",       false, "1[10-20] 15001"],
    ["1",              false, "1 15001"],
    ["2[]",            false, "2[] 15001"],
    ["2[1]",           false, "2[1] 15001"],
    ["1[3-1]",         false, "1[3-1] 15001"],
  ];
  for (const [ids, subjobs, expected] of rows) assert.equal(states(h, { ids: ids.split(" "), subjobs }), expected, ids);
  assert.equal(del(h, array), "ok");
  assert.equal(states(h, { ids: ["1[]", "1[3]", "1[2-6]"] }), "1[] 15139, 1[3] 15139, 1[2-6] 15139");
  assert.equal(
    states(h, { ids: ["1[]", "1[3]", "1[2-6]", "1[2]"], history: "with", subjobs: false }),
    "1[] F, 1[3] F, 1[3] F, 1[5] F, 1[2] 15001",
  );
  assert.equal(states(h, { ids: ["1[]", "2"], history: "with" }), "1[] F, 1[1] F, 1[3] F, 1[5] F, 1[7] F, 1[9] F, 2 Q");
});

test("the listing of all jobs keeps arrays and their subjobs together, live ones and finished ones", async () => {
  const { h, link } = world();
  await qsub(h, "-J 1-2 -- /bin/true");
  await qsub(h, "-- /bin/true");
  await qsub(h, "-J 1-3 -- /bin/true");
  await qsub(h, "-J 5-6 -- /bin/true");
  for (const id of ["1[2].svr", "1[1].svr", "3[2].svr"]) {
    runOn(h, id, "n1", link);
    obit(h, link, id);
  }
  assert.equal(states(h), "2 Q, 3[] B, 3[1] Q, 3[2] X, 3[3] Q, 4[] Q, 4[5] Q, 4[6] Q");
  assert.equal(states(h, { history: "with" }), "1[] F, 1[1] F, 1[2] F, 2 Q, 3[] B, 3[1] Q, 3[2] X, 3[3] Q, 4[] Q, 4[5] Q, 4[6] Q");
  assert.equal(states(h, { history: "with", subjobs: false }), "1[] F, 2 Q, 3[] B, 4[] Q");
  assert.equal(states(h, { history: "only" }), "1[] F, 1[1] F, 1[2] F");
  assert.equal(states(h, { history: "only", subjobs: false }), "1[] F");
  assert.equal(select(h, {}), "2 3[] 4[]");
  assert.equal(select(h, { arraysOnly: true }), "3[] 4[]");
  assert.equal(select(h, { subjobs: true }), "2 3[1] 3[2] 3[3] 4[5] 4[6]");
  assert.equal(select(h, { subjobs: true, arraysOnly: true, states: "Q" }), "3[1] 3[3] 4[5] 4[6]");
  assert.equal(select(h, { subjobs: true, states: "X" }), "3[2]");
  assert.equal(select(h, { states: "B" }), "3[]");
  assert.equal(select(h, { subjobs: true, history: "with", states: "F" }), "1[1] 1[2]");
});

test("arrays end when their last subjob is over, and say how", async () => {
  // biome-ignore format: a table
  const rows: readonly (readonly [what: string, steps: readonly string[], state: string, exit_status: number | undefined, counts: string, comment: string])[] = [
    ["all well",            ["run 1", "end 1 0", "run 2", "end 2 0"],   "F 92", 0,         "Expired:0", "Job Array Began at Fri Nov 20 at 09:26 and finished"],
    ["one failed",          ["run 1", "end 1 7", "run 2", "end 2 0"],   "F 92", 1,         "Expired:0", "Job Array Began at Fri Nov 20 at 09:26 and finished"],
    ["one deleted waiting", ["run 1", "del 2", "end 1 0"],              "F 91", 0,         "Expired:0", "Job Array Began at Fri Nov 20 at 09:26 and terminated"],
    ["one deleted running", ["run 1", "del 1", "end 1 271", "run 2", "end 2 0"], "F 91", 0, "Expired:0", "Job Array Began at Fri Nov 20 at 09:26 and terminated"],
    ["deleted in the midst", ["run 1", "del", "end 1 271"],             "F 91", 0,         "Expired:0", "Job Array Began at Fri Nov 20 at 09:26 and terminated"],
    ["deleted unstarted",   ["del"],                                    "F 91", 271,       "Expired:2", ""],
    ["one by one",          ["del 2", "del 1"],                         "F 91", 271,       "Expired:2", ""],
    ["as a range",          ["del 0-9"],                                "F 91", 271,       "Expired:2", ""],
    ["held and released",   ["run 1", "hold", "release", "del", "end 1 271"], "F 91", 0,   "Expired:0", "Job Array terminated"],
    ["by force",            ["run 1", "force"],                         "F 91", 0,         "Expired:0", "Job Array Began at Fri Nov 20 at 09:26 and terminated"],
  ];
  for (const [what, steps, state, exit_status, counts, comment] of rows) {
    const { h, link } = world();
    const array = await qsub(h, "-J 1-2 -- /bin/true");
    for (const step of steps) {
      const [verb, index = "", status] = step.split(" ");
      const id = `1[${index}].svr`;
      if (verb === "run") runOn(h, id, "n1", link);
      else if (verb === "end") obit(h, link, id, Number(status));
      else if (verb === "hold") askOk(h, ALICE, { kind: "hold-job", job: array, holds: "u" });
      else if (verb === "release") askOk(h, ALICE, { kind: "release-job", job: array, holds: "u" });
      else assert.equal(del(h, id, verb === "force" ? { force: true } : {}), "ok", what);
    }
    const attrs = jobAttrs(h, array);
    assert.equal(stateOf(h, array), state, what);
    assert.equal(attrs.Exit_status, exit_status, what);
    assert.equal(attrs["array_state_count"], `Queued:0 Running:0 Exiting:0 ${counts}`, what);
    assert.equal(attrs.comment ?? "", comment, what);
    assert.equal(h.core.state.jobs.size, 0, what);
  }
});

test("qdel of subjobs and ranges", async () => {
  const { h, link } = world();
  const array = await qsub(h, "-J 1-9 -- /bin/true");
  runOn(h, "1[2].svr", "n1", link);
  assert.equal(del(h, "1[4-6]"), "ok");
  assert.equal(standing(h, array), "Queued:5 Running:1 Exiting:0 Expired:3; 1,3,7-9");
  assert.equal(del(h, "1[1-8:7]"), "ok");
  assert.equal(standing(h, array), "Queued:3 Running:1 Exiting:0 Expired:5; 3,7,9");
  assert.equal(del(h, "1[2].svr"), "ok");
  assert.deepEqual(h.to_moms.at(-1), {
    link,
    type: "mom-terminate",
    data: { job: "1[2].svr", run_count: 1, why: "delete", kill_delay_s: 10 },
  });
  obit(h, link, "1[2].svr", 271);
  assert.equal(jobAttrs(h, "1[2].svr").comment, "Job run at Fri Nov 20 at 09:26 on (n1:ncpus=1) and terminated by alice@svr");
  // biome-ignore format: a table
  const rows: readonly (readonly [job: string, verdict: string])[] = [
    ["1[2]",    "15159 Request invalid for finished array subjob"],
    ["1[4]",    "15159 Request invalid for finished array subjob"],
    ["1[4-6]",  "15159 Request invalid for finished array subjob"],
    ["1[99]",   "15004 Invalid request"],
    ["1[20-30]", "15004 Invalid request"],
    ["1",       "15001 Unknown Job Id"],
    ["9[]",     "15001 Unknown Job Id"],
    ["9[1]",    "15001 Unknown Job Id"],
  ];
  for (const [job, verdict] of rows) assert.equal(del(h, job), verdict, job);
  assert.equal(outcome(h, BOB, { kind: "delete-job", job: "1[3]" }), "15007 Unauthorized Request ");
  assert.deepEqual([lettersOf(h, "1[5].svr"), lettersOf(h, "1[2].svr"), lettersOf(h, array)], ["D", "SDE", "QS"]);
  assert.deepEqual(logsOf(h, "1[5].svr"), ["delete job request received", "Job to be deleted at request of alice@svr"]);
  assert.equal(del(h, array), "ok");
  for (const job of ["1[]", "1[3]", "1[2-4]"]) assert.equal(del(h, job), "15139 Job has finished", job);
});

test("qdel -x of an array leaves no record of it or its subjobs", async () => {
  const { h, link } = world();
  await qsub(h, "-J 1-3 -- /bin/true");
  await qsub(h, "-J 1-2 -- /bin/true");
  for (const id of ["1[1].svr", "2[1].svr"]) {
    runOn(h, id, "n1", link);
    obit(h, link, id);
  }
  runOn(h, "1[2].svr", "n1", link);
  assert.equal(del(h, "1[]", { history: true }), "ok");
  obit(h, link, "1[2].svr", 271);
  assert.deepEqual([...h.store.history.keys()], ["2[1].svr"]);
  assert.equal(del(h, "2[]"), "ok");
  assert.deepEqual([...h.store.history.keys()], ["2[1].svr", "2[].svr"]);
  assert.equal(del(h, "2[]", { history: true }), "ok");
  assert.deepEqual([...h.store.history.keys()], []);
});

test("qdel -x of subjobs that are over is refused, while their array lives and afterwards", async () => {
  const { h, link } = world();
  await qsub(h, "-J 1-3 -- /bin/true");
  for (const id of ["1[1].svr", "1[2].svr"]) {
    runOn(h, id, "n1", link);
    obit(h, link, id, 3);
  }
  const refused = "15159 Request invalid for finished array subjob";
  const ids = ["1[1]", "1[1-2]"];
  assert.deepEqual(
    ids.map((id) => del(h, id, { history: true })),
    [refused, refused],
  );
  assert.equal(del(h, "1[3]", { history: true }), "ok");
  assert.deepEqual(
    [...ids, "1[3]"].map((id) => del(h, id, { history: true })),
    [refused, refused, refused],
  );
  assert.ok(h.store.history.has("1[1].svr"), "the record is still there");
  assert.equal(outcome(h, BOB, { kind: "delete-job", job: "1[1]", history: true }), "15007 Unauthorized Request ");
});

test("qdel of an array whose mom is away: what waits goes, what runs is told when the mom is back, and who asked is told so", async () => {
  const { h, link } = world();
  const far = addHost(h, "n2", { ncpus: 16 });
  await qsub(h, "-J 1-4 -- /bin/true");
  runOn(h, "1[1].svr", "n1", link);
  runOn(h, "1[2].svr", "n2", far);
  h.core.momLost(far, h.now_ms);
  const refused = "15070 Server could not connect to MOM";
  assert.equal(del(h, "1[2-3]"), refused);
  assert.equal(states(h), "1[] B, 1[1] R, 1[2] R, 1[3] X, 1[4] Q");
  assert.equal(del(h, "1[]"), refused);
  assert.equal(states(h), "1[] B, 1[1] R, 1[2] R, 1[3] X, 1[4] X");
  obit(h, link, "1[1].svr", 271);
  momHello(h, far, "n2", [{ job: "1[2].svr", run_count: 1, state: "running" }]);
  obit(h, far, "1[2].svr", 271);
  assert.equal(stateOf(h, "1[].svr"), "F 91");
  await qsub(h, "-J 1-2 -- /bin/true");
  runOn(h, "2[1].svr", "n2", far);
  h.core.momLost(far, h.now_ms);
  assert.equal(del(h, "2[]", { force: true }), "ok", "by force nobody is waited for");
});

test("what is for whole arrays only is refused for subjobs, and the other way round", async () => {
  const { h, link } = world();
  addQueue(h, "other");
  const array = await qsub(h, "-J 1-3 -- /bin/true");
  const job = await qsub(h, "-- /bin/true");
  runOn(h, "1[1].svr", "n1", link);
  // biome-ignore format: a table
  const rows: readonly (readonly [request: Request, verdict: string])[] = [
    [{ kind: "hold-job", job: "1[2]", holds: "u" },                 "15004 Invalid request"],
    [{ kind: "hold-job", job: "1[1]", holds: "u" },                 "15004 Invalid request"],
    [{ kind: "release-job", job: "1[2-3]", holds: "u" },            "15004 Invalid request"],
    [{ kind: "modify-job", job: "1[1]", attrs: [] },                "15004 Invalid request"],
    [{ kind: "modify-job", job: "1[9]", attrs: [] },                "15004 Invalid request"],
    [{ kind: "move-job", job: "1[2]", destination: "other" },       "15004 Invalid request"],
    [{ kind: "move-job", job: "1[]", destination: "other" },        "15016 Request invalid for state of job"],
    [{ kind: "order-job", job: "1[2]", other: "2" },                "15004 Invalid request"],
    [{ kind: "order-job", job: "1[]", other: "2" },                 "ok"],
    [{ kind: "run-job", job: "1[]" },                               "15004 Invalid request"],
    [{ kind: "run-job", job: "1[1]" },                              "15016 Request invalid for state of job"],
    [{ kind: "run-job", job: "1[2]", exec_vnode: "(nosuch:ncpus=1)" }, "15062 Unknown node  nosuch"],
    [{ kind: "message-job", job: "1[]", files: "e", message: "x" }, "15029 No support for requested service"],
    [{ kind: "message-job", job: "1[1-2]", files: "e", message: "x" }, "15029 No support for requested service"],
    [{ kind: "message-job", job: "1[2]", files: "e", message: "x" }, "15016 Request invalid for state of job"],
    [{ kind: "signal-job", job: "1[2]", signal: "TERM" },           "15016 Request invalid for state of job"],
    [{ kind: "signal-job", job: "1[2-3]", signal: "TERM" },         "15016 Request invalid for state of job"],
    [{ kind: "rerun-job", job: "1[2]" },                            "15016 Request invalid for state of job"],
    [{ kind: "locate-job", job: "1[2]" },                           "ok"],
    [{ kind: "locate-job", job: "1[7]" },                           "15004 Invalid request"],
    [{ kind: "wait-job", job: "1[2-3]" },                           "15004 Invalid request"],
  ];
  for (const [request, verdict] of rows) assert.equal(outcome(h, ROOT, request), verdict, JSON.stringify(request));
  assert.equal(qalter(h, array, ["max_run_subjobs=2"]), "ok");
  assert.equal(qalter(h, job, ["max_run_subjobs=2"]), "15231 Attribute has to be set on an array job");
  assert.equal(
    qalter(h, array, ["array_indices_submitted=1-9"]),
    "15003 Cannot set attribute, read only or insufficient permission  array_indices_submitted",
  );
});

test("signals and reruns of arrays and ranges go to the subjobs that run, and are answered once", async () => {
  const { h, link } = world();
  const array = await qsub(h, "-J 1-6 -- /bin/true");
  assert.equal(outcome(h, ALICE, { kind: "signal-job", job: array, signal: "TERM" }), "15016 Request invalid for state of job");
  for (const index of [1, 2, 3]) runOn(h, `1[${index}].svr`, "n1", link);
  const sent = h.to_moms.length;
  const token = h.next_token;
  assert.equal(outcome(h, ALICE, { kind: "signal-job", job: "1[2-6]", signal: "USR1" }), "deferred");
  const signals = h.to_moms.slice(sent).map(({ data }) => data as { token: number; job: string; signal: string });
  assert.deepEqual(
    signals.map(({ job, signal }) => [job, signal]),
    [
      ["1[2].svr", "USR1"],
      ["1[3].svr", "USR1"],
    ],
  );
  mom(h, link, "mom-result", { token: signals[0]?.token ?? 0, ok: true });
  assert.equal(h.answers.get(token), undefined);
  mom(h, link, "mom-result", { token: signals[1]?.token ?? 0, ok: false, code: 15016, text: "Request invalid for state of job" });
  assert.deepEqual(h.answers.get(token), { ok: false, code: 15016, text: "Request invalid for state of job" });

  const rerun = h.next_token;
  assert.equal(outcome(h, ALICE, { kind: "rerun-job", job: array }), "15007 Unauthorized Request ");
  assert.equal(outcome(h, ROOT, { kind: "rerun-job", job: array }), "deferred");
  for (const index of [1, 2, 3]) obit(h, link, `1[${index}].svr`, -11);
  assert.deepEqual(h.answers.get(rerun + 1), { ok: true });
  assert.equal(stateOf(h, array), "B 70");
  assert.equal(stateOf(h, "1[2].svr"), "Q 10");
  assert.equal(standing(h, array), "Queued:6 Running:0 Exiting:0 Expired:0; 1-6");
  assert.equal(lettersOf(h, "1[2].svr"), "SR");
  runOn(h, "1[2].svr", "n1", link);
  assert.equal(jobAttrs(h, "1[2].svr").run_count, 2);
  obit(h, link, "1[2].svr");
  assert.equal(lettersOf(h, "1[2].svr"), "SRSE");
});

test("a begun array is held as a whole: what runs goes on, what waits does not start", async () => {
  const { h, link } = world();
  schedHello(h, 1);
  const array = await qsub(h, "-J 1-3 -- /bin/true");
  runOn(h, "1[1].svr", "n1", link);
  askOk(h, ALICE, { kind: "hold-job", job: array, holds: "u" });
  assert.equal(stateOf(h, array), "H 20");
  assert.equal(jobAttrs(h, array).comment, "Job held by alice on Fri Nov 20 09:26:28 2026");
  assert.equal(stateOf(h, "1[1].svr"), "R 42");
  const [verdict] = cycle(h, 1, [{ kind: "run", job: "1[2].svr", exec_vnode: "(n1:ncpus=1)" }]);
  assert.deepEqual(verdict, { ok: false, code: 15016, text: "Request invalid for state of job" });
  cycle(h, 1);
  const before = commandsTo(h, 1).length;
  askOk(h, ALICE, { kind: "release-job", job: array, holds: "u" });
  assert.equal(stateOf(h, array), "B 70");
  assert.ok(commandsTo(h, 1).length > before, "a released array is a reason for a cycle");
  assert.deepEqual(cycle(h, 1, [{ kind: "run", job: "1[2].svr", exec_vnode: "(n1:ncpus=1)" }]), [{ ok: true }]);
});

test("a subjob that fails to start too often holds its array", async () => {
  const { h, link } = world();
  const array = await qsub(h, "-J 1-2 -W run_count=20 -- /bin/true");
  runOn(h, "1[1].svr", "n1", link);
  obit(h, link, "1[1].svr", -3);
  assert.equal(stateOf(h, "1[1].svr"), "Q 10");
  assert.equal(stateOf(h, array), "H 20");
  assert.equal(jobAttrs(h, array).Hold_Types, "s");
  assert.equal(jobAttrs(h, array).comment, "Job Array Held, too many failed attempts to run subjob 1[1].svr");
});

test("what is altered on an array concerns the subjobs that start later; what runs keeps what it had", async () => {
  const { h, link } = world();
  const array = await qsub(h, "-J 1-3 -l walltime=600 -N old -- /bin/true");
  runOn(h, "1[1].svr", "n1", link);
  assert.equal(qalter(h, array, ["Job_Name=new"]), "ok");
  assert.equal(qalter(h, array, ["Resource_List.walltime=300"]), "ok");
  assert.equal(
    qalter(h, array, ["Resource_List.select=2:ncpus=1"]),
    "15015 Cannot modify attribute while job running  Resource_List.select",
  );
  runOn(h, "1[2].svr", "n1", link);
  const facts = (id: string): unknown[] => [jobAttrs(h, id).Job_Name, jobAttrs(h, id).Resource_List["walltime"]];
  assert.deepEqual(
    [facts("1[1].svr"), facts("1[2].svr")],
    [
      ["old", 600],
      ["new", 300],
    ],
  );
});

test("an array counts with all its subjobs against limits of queued jobs, those that have ended no more", async () => {
  const { h, link } = world();
  apply(h, { kind: "server-changed", set: { max_queued: { "u:PBS_GENERIC": 5 }, queued_jobs_threshold: { "o:PBS_ALL": 4 } }, unset: [] });
  assert.equal(await qsubVerdict(h, "-J 1-6 -- /bin/true"), "15142 would exceed complex's per-user limit");
  assert.equal(await qsubVerdict(h, "-J 1-5 -- /bin/true"), "15142 Maximum number of jobs in 'Q' state already in complex");
  await qsub(h, "-J 1-4 -- /bin/true");
  assert.equal(await qsubVerdict(h, "-- /bin/true"), "15142 Maximum number of jobs in 'Q' state already in complex");
  runOn(h, "1[1].svr", "n1", link);
  assert.equal(await qsubVerdict(h, "-- /bin/true"), "ok");
  assert.equal(await qsubVerdict(h, "-h -- /bin/true"), "15142 would exceed complex's per-user limit");
  obit(h, link, "1[1].svr");
  assert.equal(await qsubVerdict(h, "-h -- /bin/true"), "15142 Maximum number of jobs in 'Q' state already in complex");
  assert.equal(del(h, "1[2-3]"), "ok");
  assert.equal(await qsubVerdict(h, "-J 1-2 -- /bin/true"), "ok");
});

test("amounts of queued resources count for every subjob", async () => {
  const { h } = world();
  apply(h, { kind: "server-changed", set: { max_queued_res: { ncpus: { "o:PBS_ALL": 8 } } }, unset: [] });
  assert.equal(await qsubVerdict(h, "-J 1-5 -l ncpus=2 -- /bin/true"), "15143 would exceed limit on resource ncpus in complex");
  const array = await qsub(h, "-J 1-4 -l ncpus=2 -- /bin/true");
  assert.equal(qalter(h, array, ["Resource_List.ncpus=3"]), "15143 would exceed limit on resource ncpus in complex");
  assert.equal(qalter(h, array, ["Resource_List.ncpus=1"]), "ok");
  assert.equal(await qsubVerdict(h, "-J 1-4 -- /bin/true"), "ok");
});

test("a killed server finds its arrays as they were: waiting, running, requeued, over", async () => {
  const { h, link } = world();
  const array = await qsub(h, "-J 1-200:2 -- /bin/true");
  for (const index of [1, 3, 5, 7, 9]) runOn(h, `1[${index}].svr`, "n1", link);
  obit(h, link, "1[1].svr");
  obit(h, link, "1[3].svr", 2);
  askOk(h, ALICE, { kind: "delete-job", job: "1[101-199]" });
  ask(h, ROOT, { kind: "rerun-job", job: "1[5]" });
  obit(h, link, "1[5].svr", -11);
  const before = [standing(h, array), states(h)];
  restart(h);
  assert.deepEqual([standing(h, array), states(h)], before);
  assert.equal(standing(h, array), "Queued:46 Running:2 Exiting:0 Expired:52; 5,11-99:2");
});

test("a waiting subjob and an array are waited for to their end", async () => {
  const { h, link } = world();
  const array = await qsub(h, "-J 1-2 -- /bin/true");
  const tokens = ["1[1]", "1[2]", array].map((job) => {
    const token = h.next_token;
    assert.equal(outcome(h, ALICE, { kind: "wait-job", job }), "deferred");
    return token;
  });
  runOn(h, "1[1].svr", "n1", link);
  obit(h, link, "1[1].svr", 4);
  assert.equal(del(h, "1[2]"), "ok");
  assert.deepEqual(
    tokens.map((token) => h.answers.get(token)),
    [{ exit_status: 4 }, { message: "Job to be deleted at request of alice@svr" }, { exit_status: 1 }].map((value) => ({
      ok: true,
      value,
    })),
  );
});

test("who waits for a subjob is answered when its array ends before the subjob runs", async () => {
  const { h, link } = world();
  const before = await qsub(h, "-- /bin/true");
  await qsub(h, `-W depend=afterok:${before} -J 1-2 -- /bin/true`);
  const token = h.next_token;
  assert.equal(outcome(h, ALICE, { kind: "wait-job", job: "2[2]" }), "deferred");
  runOn(h, before, "n1", link);
  obit(h, link, before, 1);
  assert.deepEqual(h.answers.get(token), { ok: true, value: { message: "Job to be deleted at request of root@svr" } });
});

test("mail about subjobs is sent only where j is asked for", async () => {
  for (const [points, expected] of [
    ["abe", 2],
    ["abej", 6],
  ] as const) {
    const { h, link } = world();
    await qsub(h, `-J 1-2 -m ${points} -- /bin/true`);
    for (const id of ["1[1].svr", "1[2].svr"]) {
      runOn(h, id, "n1", link);
      obit(h, link, id);
    }
    assert.equal(h.actions.filter(({ kind }) => kind === "send-mail").length, expected, points);
  }
});

test("the scheduler is told an array with what waits of it, and the subjobs that run", async () => {
  const { h, link } = world();
  schedHello(h, 1);
  const array = await qsub(h, "-J 1-9%3 -- /bin/true");
  const jobsTold = (): Record<string, unknown> => {
    const told: Record<string, unknown> = {};
    for (const { type, data } of h.to_scheds) {
      if (type === "sched-delta")
        for (const change of (
          data as {
            changes: readonly { put?: string; drop?: string; id?: string; value?: { id: string; state: string; array?: object } }[];
          }
        ).changes) {
          if (change.put === "job" && change.value !== undefined) told[change.value.id] = change.value.array ?? change.value.state;
          else if (change.drop === "job") delete told[change.id ?? ""];
        }
    }
    return told;
  };
  assert.deepEqual(jobsTold(), { [array]: { indices_remaining: "1-9", running: 0, max_run_subjobs: 3 } });
  cycle(
    h,
    1,
    [2, 3].map((index) => ({ kind: "run", job: `1[${index}].svr`, exec_vnode: "(n1:ncpus=1)" }) as const),
  );
  assert.deepEqual(jobsTold(), {
    [array]: { indices_remaining: "1,4-9", running: 2, max_run_subjobs: 3 },
    "1[2].svr": "R",
    "1[3].svr": "R",
  });
  mom(h, link, "mom-started", { job: "1[2].svr", run_count: 1, session_id: 1, jobdir: "/" });
  obit(h, link, "1[2].svr", -3);
  assert.deepEqual(
    jobsTold(),
    { [array]: { indices_remaining: "1-2,4-9", running: 1, max_run_subjobs: 3 }, "1[3].svr": "R" },
    "what is requeued is offered with the rest",
  );
});

test("qrun of a subjob is for its scheduler; a range is answered when all of it is decided", async () => {
  const { h, link } = world();
  schedHello(h, 1);
  cycle(h, 1);
  await qsub(h, "-J 1-3 -- /bin/true");
  cycle(h, 1);
  const token = h.next_token;
  assert.equal(outcome(h, ROOT, { kind: "run-job", job: "1[2-9]" }), "deferred");
  cycle(h, 1, [{ kind: "run", job: "1[2].svr", exec_vnode: "(n1:ncpus=1)" }]);
  mom(h, link, "mom-started", { job: "1[2].svr", run_count: 1, session_id: 2, jobdir: "/" });
  assert.equal(h.answers.get(token), undefined);
  cycle(h, 1, [{ kind: "qrun-refused", job: "1[3].svr", text: "no room" }]);
  assert.deepEqual(h.answers.get(token), { ok: false, code: 15044, text: "no room" });
  assert.equal(stateOf(h, "1[2].svr"), "R 42");
});

test("what a subjob used that began and ended between two parts of a cycle's decisions is told its scheduler", async () => {
  const { h, link } = world();
  schedHello(h, 9);
  const array = await qsub(h, "-J 1-2 -- /bin/true");
  cycle(h, 9);
  const number = commandsTo(h, 9).length;
  const from = h.to_scheds.length;
  const subjob = array.replace("[]", "[1]");
  const run = { kind: "run", job: subjob, exec_vnode: "(n1:ncpus=1)" } as const;
  sched(h, 9, "sched-decisions", { cycle: number, decisions: [run], more: true });
  mom(h, link, "mom-started", { job: subjob, run_count: 1, session_id: 4711, jobdir: "/home/x" });
  obit(h, link, subjob, 0, 1);
  sched(h, 9, "sched-decisions", { cycle: number, decisions: [] });
  const told = h.to_scheds.slice(from).flatMap(({ type, data }) => (type === "sched-delta" ? (data as Delta).changes : []));
  const [drop] = told.flatMap((change) => ("drop" in change && change.drop === "job" ? [change] : []));
  assert.deepEqual([drop?.id, drop?.resources_used?.["walltime"], drop?.untold?.user, drop?.untold?.run_count], [subjob, 10, "alice", 1]);
});
