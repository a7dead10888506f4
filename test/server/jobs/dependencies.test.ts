// Dependencies between jobs: holds and lists on both sides, releases by starts and ends, dependencies that can never be met,
// on, runone, before, cycles.

import assert from "node:assert/strict";
import { test } from "node:test";
import {
  ALICE,
  addHost,
  apply,
  ask,
  askOk,
  BOB,
  type Harness,
  harness,
  jobAttrs,
  lettersOf,
  logsOf,
  obit,
  outcome,
  ROOT,
  restart,
  runOn,
  stateOf,
} from "../harness.ts";
import { qalter, qsub, qsubVerdict, submission } from "../requests/qsub.ts";

function world(): { readonly h: Harness; readonly link: number } {
  const h = harness();
  return { h, link: addHost(h, "n1", { ncpus: 16 }) };
}

/** `H 22 s afterok:1.svr@svr` */
function standing(h: Harness, id: string): string {
  const attrs = jobAttrs(h, id);
  const depend = (attrs["depend"] as string[] | undefined)?.join(",").replaceAll(".svr@svr", "") ?? "-";
  return `${stateOf(h, id)} ${attrs.Hold_Types} ${depend}`;
}
const job = (seq: number): string => `${seq}.svr`;
const run = (h: Harness, link: number, seq: number): void => runOn(h, job(seq), "n1", link);
const end = (h: Harness, link: number, seq: number, status = 0): void => obit(h, link, job(seq), status);
const TRUE = "-- /bin/true";

test("who waits is held, and both sides know of it", async () => {
  const { h } = world();
  await qsub(h, `-h ${TRUE}`);
  for (const depend of ["afterok:1", "afternotok:1", "afterany:1", "after:1", "afterok:1:2"]) await qsub(h, `-W depend=${depend} ${TRUE}`);
  assert.deepEqual(
    [1, 2, 3, 4, 5, 6].map((seq) => standing(h, job(seq))),
    [
      "H 20 u beforeok:2:6,beforenotok:3,beforeany:4,before:5",
      "H 22 s afterok:1,beforeok:6",
      "H 22 s afternotok:1",
      "H 22 s afterany:1",
      "H 22 s after:1",
      "H 22 s afterok:1:2",
    ],
  );
  assert.match(
    h.accounting.find(({ id, type }) => id === job(2) && type === "Q")?.text ?? "",
    / etime=0 depend=afterok:1.svr@svr Resource_List/,
  );
  const before = [1, 2, 6].map((seq) => standing(h, job(seq)));
  restart(h);
  assert.deepEqual(
    [1, 2, 6].map((seq) => standing(h, job(seq))),
    before,
  );
});

test("what a start and an end release, and whom they end", async () => {
  // biome-ignore format: a table
  const table: readonly (readonly [depend: string, status: number, atStart: string, atEnd: string])[] = [
    ["after",      0, "Q 10 n -",        "Q 10 n -"],
    ["afterok",    0, "H 22 s afterok:1", "Q 10 n -"],
    ["afterok",    3, "H 22 s afterok:1", "F 92 s afterok:1"],
    ["afternotok", 0, "H 22 s afternotok:1", "F 92 s afternotok:1"],
    ["afternotok", 3, "H 22 s afternotok:1", "Q 10 n -"],
    ["afterany",   0, "H 22 s afterany:1", "Q 10 n -"],
    ["afterany",   3, "H 22 s afterany:1", "Q 10 n -"],
    ["afterany",   -29, "H 22 s afterany:1", "Q 10 n -"],
    ["afterok",    -29, "H 22 s afterok:1", "F 92 s afterok:1"],
  ];
  for (const [depend, status, atStart, atEnd] of table) {
    const { h, link } = world();
    await qsub(h, TRUE);
    await qsub(h, `-W depend=${depend}:1 ${TRUE}`);
    run(h, link, 1);
    assert.equal(standing(h, job(2)), atStart, `${depend} ${status}`);
    end(h, link, 1, status);
    assert.equal(standing(h, job(2)), atEnd, `${depend} ${status}`);
    assert.equal(
      jobAttrs(h, job(1))["depend"]?.toString(),
      `${depend.replace("after", "before")}:2.svr@svr`,
      "the list of who waited stays",
    );
  }
});

test("a job is free when the last thing it waits for is met, other holds apart", async () => {
  const { h, link } = world();
  for (let seq = 1; seq <= 3; seq++) await qsub(h, TRUE);
  await qsub(h, `-W depend=afterok:1:2,after:3 ${TRUE}`);
  await qsub(h, `-h -W depend=afterok:1 ${TRUE}`);
  run(h, link, 3);
  run(h, link, 1);
  assert.equal(standing(h, job(4)), "H 22 s afterok:1:2");
  end(h, link, 1);
  assert.equal(standing(h, job(4)), "H 22 s afterok:2");
  assert.equal(standing(h, job(5)), "H 20 u -");
  run(h, link, 2);
  end(h, link, 2);
  assert.equal(standing(h, job(4)), "Q 10 n -");
  assert.ok(logsOf(h, job(4)).includes("Dependency on job 2.svr released."));
});

test("a job that can never start takes along who waits for it, whatever he waits for", async () => {
  const { h, link } = world();
  await qsub(h, TRUE);
  await qsub(h, `-W depend=afternotok:1 ${TRUE}`);
  await qsub(h, `-W depend=afterok:2 ${TRUE}`);
  await qsub(h, `-W depend=afterany:3 ${TRUE}`);
  await qsub(h, `-W depend=afterany:1:4 ${TRUE}`);
  await qsub(h, `-J 1-3 -W depend=after:2 ${TRUE}`);
  run(h, link, 1);
  end(h, link, 1);
  assert.deepEqual(
    [2, 3, 4, 5].map((seq) => standing(h, job(seq))),
    ["F 92 s afternotok:1,beforeok:3,before:6[]", "F 92 s afterok:2,beforeany:4", "F 92 s afterany:3,beforeany:5", "F 92 s afterany:1:4"],
  );
  assert.equal(stateOf(h, "6[].svr"), "F 92");
  for (const seq of [2, 3, 4]) {
    assert.equal(jobAttrs(h, job(seq)).comment, undefined);
    assert.equal(jobAttrs(h, job(seq)).Exit_status, 271);
    assert.equal(lettersOf(h, job(seq)), "QA");
  }
  assert.ok(logsOf(h, job(3)).includes("Job deleted as result of dependency on job 2.svr"));
  assert.equal(h.core.state.jobs.size, 0);
});

test("a chain of ten thousand falls without falling over", async () => {
  const { h, link } = world();
  const first = await submission(h, TRUE);
  const next = await submission(h, `-W depend=afterok:1 ${TRUE}`);
  const after = (seq: number) => next.attrs.map((attr) => (attr.name === "depend" ? { ...attr, value: `afterok:${seq}` } : attr));
  const count = 2000;
  askOk(h, ALICE, { kind: "queue-jobs", jobs: [first, ...Array.from({ length: count }, (_, at) => ({ ...next, attrs: after(at + 1) }))] });
  assert.equal(standing(h, job(count)), `H 22 s afterok:${count - 1},beforeok:${count + 1}`);
  run(h, link, 1);
  end(h, link, 1, 1);
  assert.equal(h.core.state.jobs.size, 0);
  assert.equal(standing(h, job(count + 1)), `F 92 s afterok:${count}`);
});

test("a parent that is deleted before it ran releases nobody; one deleted while it runs counts by its status", async () => {
  const { h, link } = world();
  await qsub(h, `-h ${TRUE}`);
  await qsub(h, `-W depend=afterany:1 ${TRUE}`);
  askOk(h, ALICE, { kind: "delete-job", job: job(1) });
  assert.equal(standing(h, job(2)), "H 22 s afterany:1");
  await qsub(h, TRUE);
  for (const depend of ["afterok", "afternotok", "afterany"]) await qsub(h, `-W depend=${depend}:3 ${TRUE}`);
  run(h, link, 3);
  askOk(h, ALICE, { kind: "delete-job", job: job(3) });
  end(h, link, 3, 271);
  assert.deepEqual(
    [4, 5, 6].map((seq) => stateOf(h, job(seq))),
    ["F 92", "Q 10", "Q 10"],
  );
});

test("who waits and is deleted is waited for no more", async () => {
  const { h } = world();
  await qsub(h, `-h ${TRUE}`);
  await qsub(h, `-W depend=afterok:1 ${TRUE}`);
  await qsub(h, `-W depend=afterok:1 ${TRUE}`);
  askOk(h, ALICE, { kind: "delete-job", job: job(2) });
  assert.equal(standing(h, job(1)), "H 20 u beforeok:3");
  askOk(h, ALICE, { kind: "delete-job", job: job(3) });
  assert.equal(standing(h, job(1)), "H 20 u -");
});

test("jobs that have finished, jobs that run, jobs that nobody knows", async () => {
  const { h, link } = world();
  for (let seq = 1; seq <= 3; seq++) await qsub(h, TRUE);
  run(h, link, 1);
  end(h, link, 1);
  run(h, link, 2);
  end(h, link, 2, 1);
  run(h, link, 3);
  await qsub(h, `-h ${TRUE}`);
  askOk(h, ALICE, { kind: "delete-job", job: job(4) });
  // biome-ignore format: a table
  const table: readonly (readonly [depend: string, expected: string])[] = [
    ["afterok:1",       "Q 10 n -"],
    ["afterok:2",       "F 92 s afterok:2"],
    ["afternotok:1",    "F 92 s afternotok:1"],
    ["afternotok:2",    "Q 10 n -"],
    ["afterany:1:2",    "Q 10 n -"],
    ["after:1:2:3",     "Q 10 n -"],
    ["after:4",         "F 92 s after:4"],
    ["afterok:1,afterok:3", "H 22 s afterok:3"],
    ["afterok:99999",   "F 92 s afterok:99999"],
    ["afterok:3:99999", "F 92 s afterok:3:99999"],
    ["before:1",        "F 92 n before:1"],
    ["before:99999",    "F 92 n before:99999"],
    ["beforeok:3",      "F 92 n beforeok:3"],
    ["runone:3",        "H 20 s runone:3"],
    ["runone:2",        "F 92 n runone:2"],
  ];
  for (const [depend, expected] of table) assert.equal(standing(h, await qsub(h, `-W depend=${depend} ${TRUE}`)), expected, depend);
  assert.equal(jobAttrs(h, job(3))["depend"]?.toString(), "beforeok:12.svr@svr,runone:18.svr@svr", "a job that goes at once asks nobody");
  assert.ok(logsOf(h, job(5)).includes(`${job(1)} Job has finished, dependency satisfied`));
  assert.deepEqual(
    logsOf(h, job(9)).filter((text) => text.endsWith("dependency satisfied")),
    [1, 2].map((seq) => `${job(seq)} Job has finished, dependency satisfied`),
  );
});

test("malformed dependencies are refused", async () => {
  const { h } = world();
  await qsub(h, TRUE);
  const bad = "15014 Illegal attribute or resource value depend";
  // biome-ignore format: a table
  const table: readonly (readonly [depend: string, verdict: string])[] = [
    ["on:0", bad], ["on:x", bad], ["on:1:2", bad], ["afterok:1.svr@other", "15054 Invalid Job Dependency"],
    ["afterok:1[3]", "15054 Invalid Job Dependency"], ["afterok:1[1-3]", "15054 Invalid Job Dependency"],
  ];
  for (const [depend, verdict] of table) assert.equal(await qsubVerdict(h, `-W depend=${depend} ${TRUE}`), verdict, depend);
  const raw = (value: string): string =>
    outcome(h, ALICE, { kind: "queue-job", destination: "", attrs: [{ name: "depend", value }], script: "" });
  for (const value of ["sometime:1", "afterok", "afterok:", "afterok:x", ":", "on"]) assert.equal(raw(value), bad, value);
});

test("on and before: a job that others will release", async () => {
  const { h, link } = world();
  const waiting = await qsub(h, `-W depend=on:2 ${TRUE}`);
  assert.equal(standing(h, waiting), "H 22 s on:2");
  await qsub(h, `-W depend=beforeany:1 ${TRUE}`);
  assert.equal(standing(h, waiting), "H 22 s on:1,afterany:2");
  assert.equal(standing(h, job(2)), "Q 10 n beforeany:1");
  assert.equal(standing(h, await qsub(h, `-W depend=before:1 ${TRUE}`, BOB)), "F 92 n before:1", "only jobs of one's own");
  await qsub(h, `-W depend=beforeok:1 ${TRUE}`);
  assert.equal(standing(h, waiting), "H 22 s afterany:2,afterok:4");
  assert.equal(standing(h, await qsub(h, `-W depend=before:1 ${TRUE}`)), "F 92 n before:1", "nothing is left of on");
  run(h, link, 2);
  end(h, link, 2, 5);
  assert.equal(standing(h, waiting), "H 22 s afterok:4");
  run(h, link, 4);
  end(h, link, 4);
  assert.equal(standing(h, waiting), "Q 10 n -");
});

test("runone: the first to start holds the others, and its end ends them", async () => {
  const { h, link } = world();
  await qsub(h, TRUE);
  await qsub(h, `-W depend=runone:1 ${TRUE}`);
  assert.deepEqual(
    [1, 2].map((seq) => standing(h, job(seq))),
    ["Q 10 n runone:2", "Q 10 n runone:1"],
  );
  await qsub(h, `-W depend=runone:1 ${TRUE}`);
  assert.deepEqual(
    [1, 2, 3].map((seq) => standing(h, job(seq))),
    ["Q 10 n runone:2:3", "Q 10 n runone:1:3", "Q 10 n runone:1:2"],
  );
  await qsub(h, `-W depend=afterok:3 ${TRUE}`);
  assert.equal(standing(h, await qsub(h, `-W depend=runone:1 ${TRUE}`, BOB)), "F 92 n runone:1");
  run(h, link, 2);
  assert.deepEqual(
    [1, 2, 3, 4].map((seq) => stateOf(h, job(seq))),
    ["H 20", "R 42", "H 20", "H 22"],
  );
  end(h, link, 2);
  assert.deepEqual(
    [1, 2, 3, 4].map((seq) => stateOf(h, job(seq))),
    ["F 92", "F 92", "F 92", "F 92"],
  );
  assert.ok(logsOf(h, job(1)).includes("Job deleted as result of dependency on job 2.svr"));
  await qsub(h, TRUE);
  await qsub(h, `-W depend=runone:6 ${TRUE}`);
  askOk(h, ALICE, { kind: "delete-job", job: job(6) });
  assert.equal(standing(h, job(7)), "Q 10 n -");
});

test("runone of a job that runs: held while it runs, free when it is queued again, deleted when it is deleted or ends", async () => {
  const { h, link } = world();
  await qsub(h, TRUE);
  run(h, link, 1);
  const second = await qsub(h, `-W depend=runone:1 ${TRUE}`);
  const third = await qsub(h, `-h -W depend=runone:2 ${TRUE}`);
  const blocked = await qsub(h, `-W depend=runone:1,afterok:3 ${TRUE}`);
  assert.deepEqual(
    [1, 2, 3, 4].map((seq) => standing(h, job(seq))),
    ["R 42 n runone:2:3:4", "H 20 s runone:1:3:4", "H 20 su runone:2:1:4,beforeok:4", "H 22 s runone:1:2:3,afterok:3"],
  );
  askOk(h, ROOT, { kind: "rerun-job", job: job(1), force: true });
  assert.deepEqual(
    [second, third, blocked].map((id) => stateOf(h, id)),
    ["Q 10", "H 20", "H 22"],
  );
  assert.deepEqual(
    [second, third, blocked].map((id) => jobAttrs(h, id).Hold_Types),
    ["n", "u", "s"],
  );
  run(h, link, 2);
  assert.deepEqual(
    [job(1), third].map((id) => jobAttrs(h, id).Hold_Types),
    ["s", "su"],
  );
  askOk(h, ALICE, { kind: "delete-job", job: third });
  assert.equal(stateOf(h, job(1)), "H 20", "the end of one that only waits changes nothing for the others");
  askOk(h, ALICE, { kind: "delete-job", job: second });
  end(h, link, 2, 271);
  assert.deepEqual(
    [job(1), second, blocked].map((id) => stateOf(h, id)),
    ["F 92", "F 91", "F 92"],
  );
});

test("a job that is deleted while it runs has failed, also when it ends with 0", async () => {
  const { h, link } = world();
  await qsub(h, TRUE);
  for (const depend of ["afterok", "afternotok", "afterany"]) await qsub(h, `-W depend=${depend}:1 ${TRUE}`);
  run(h, link, 1);
  askOk(h, ALICE, { kind: "delete-job", job: job(1) });
  end(h, link, 1, 0);
  assert.deepEqual(
    [2, 3, 4].map((seq) => stateOf(h, job(seq))),
    ["F 92", "Q 10", "Q 10"],
  );
});

test("qalter: dependencies are replaced, circles and what can never be are refused", async () => {
  const { h, link } = world();
  await qsub(h, `-h ${TRUE}`);
  await qsub(h, `-h ${TRUE}`);
  await qsub(h, `-W depend=afterok:1 ${TRUE}`);
  assert.equal(qalter(h, job(1), ["depend=afterok:2"]), "ok");
  assert.deepEqual(
    [1, 2].map((seq) => standing(h, job(seq))),
    ["H 22 su afterok:2,beforeok:3", "H 20 u beforeok:1"],
  );
  // biome-ignore format: a table
  const circles: readonly (readonly [id: number, depend: string])[] = [[1, "afterok:1"], [2, "afterok:1"], [2, "afterany:3"], [1, "before:1"]];
  for (const [id, depend] of circles) assert.equal(qalter(h, job(id), [`depend=${depend}`]), "15054 Invalid Job Dependency", depend);
  assert.equal(await qsubVerdict(h, `-W depend=on:1,afterok:3 ${TRUE}`), "ok");
  assert.equal(await qsubVerdict(h, `-W depend=afterok:4,beforeok:4 ${TRUE}`), "15054 Invalid Job Dependency");
  assert.equal(qalter(h, job(2), ["depend=afterok:999"]), "15054 Invalid Job Dependency");
  assert.equal(qalter(h, job(3), ["depend=afterany:2"]), "ok");
  assert.deepEqual(
    [1, 2, 3].map((seq) => standing(h, job(seq))),
    ["H 22 su afterok:2", "H 20 u beforeok:1,beforeany:3", "H 22 s afterany:2,beforeok:4"],
  );
  await qsub(h, TRUE);
  run(h, link, 5);
  assert.equal(qalter(h, job(5), ["depend=afterok:1"]), "15015 Cannot modify attribute while job running  depend");
  end(h, link, 5, 2);
  assert.equal(qalter(h, job(3), ["depend=afterok:5"]), "15229 Finished job did not satisfy dependency");
  assert.equal(qalter(h, job(3), ["depend=afternotok:5"]), "ok");
  assert.equal(standing(h, job(3)), "Q 10 n beforeok:4", "met already");
});

test("a manager may let a job go that still waits", async () => {
  const { h, link } = world();
  await qsub(h, `-h ${TRUE}`);
  await qsub(h, `-W depend=afterok:1 ${TRUE}`);
  assert.equal(outcome(h, ALICE, { kind: "release-job", job: job(2), holds: "s" }), "15007 Unauthorized Request ");
  askOk(h, ROOT, { kind: "release-job", job: job(2), holds: "s" });
  assert.equal(standing(h, job(2)), "Q 10 n afterok:1");
  run(h, link, 2);
  askOk(h, ALICE, { kind: "release-job", job: job(1), holds: "u" });
  run(h, link, 1);
  end(h, link, 1, 1);
  assert.equal(stateOf(h, job(2)), "R 42", "what runs is not ended by its dependency");
  end(h, link, 2);
  assert.equal(standing(h, job(2)), "F 92 n afterok:1");
});

test("arrays wait and are waited for as a whole", async () => {
  const { h, link } = world();
  await qsub(h, `-J 1-2 ${TRUE}`);
  for (const depend of ["after", "afterok", "afternotok"]) await qsub(h, `-W depend=${depend}:1[] ${TRUE}`);
  await qsub(h, `-J 1-2 -W depend=afterany:1[] ${TRUE}`);
  assert.deepEqual(
    [2, 3, 4].map((seq) => stateOf(h, job(seq))),
    ["H 22", "H 22", "H 22"],
  );
  runOn(h, "1[1].svr", "n1", link);
  assert.deepEqual(
    [2, 3, 4].map((seq) => stateOf(h, job(seq))),
    ["Q 10", "H 22", "H 22"],
  );
  obit(h, link, "1[1].svr", 1);
  runOn(h, "1[2].svr", "n1", link);
  assert.deepEqual(
    [3, 4].map((seq) => stateOf(h, job(seq))),
    ["H 22", "H 22"],
  );
  obit(h, link, "1[2].svr");
  assert.deepEqual(
    [3, 4].map((seq) => stateOf(h, job(seq))),
    ["F 92", "Q 10"],
  );
  assert.equal(stateOf(h, "5[].svr"), "Q 10");
});

test("without a history a finished job is as unknown as any other", async () => {
  const { h, link } = world();
  apply(h, { kind: "server-changed", set: { job_history_enable: false }, unset: [] });
  await qsub(h, TRUE);
  run(h, link, 1);
  end(h, link, 1);
  const answer = ask(h, ALICE, await submission(h, `-W depend=afterok:1 ${TRUE}`));
  assert.equal(answer?.ok, true);
  assert.equal(h.core.state.jobs.size, 0);
  assert.equal(lettersOf(h, job(2)), "QA");
});

test("in one batch: jobs that can never run do not disturb the others", async () => {
  const { h } = world();
  const lost = await submission(h, `-W depend=afterok:999 ${TRUE}`);
  const fine = await submission(h, TRUE);
  const { results } = askOk(h, ALICE, { kind: "queue-jobs", jobs: [lost, fine, lost, fine] }) as { results: readonly { id: string }[] };
  assert.deepEqual(
    results.map(({ id }) => id),
    [1, 2, 3, 4].map(job),
  );
  assert.deepEqual(
    [1, 2, 3, 4].map((seq) => stateOf(h, job(seq))),
    ["F 92", "Q 10", "F 92", "Q 10"],
  );
});
