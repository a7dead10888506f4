// pbs_ralter: which changes take effect at once, which need a scheduler, and what stays the same.

import assert from "node:assert/strict";
import { test } from "node:test";
import {
  ALICE,
  addHost,
  advance,
  apply,
  ask,
  BOB,
  type Harness,
  harness,
  logsOf,
  momHello,
  ROOT,
  restart,
  runOn,
  START_S,
  schedHello,
  schedLost,
} from "../harness.ts";
import { qsub } from "../requests/qsub.ts";
import { answerResv, mirrored, ralter, resvAttrs, resvState, rsub, rsubRequest, wordOf } from "./rsub.ts";

function confirmed(words = "start=7200 walltime=3600 select=2:ncpus=2"): {
  readonly h: Harness;
  readonly id: string;
  readonly link: number;
} {
  const h = harness();
  const link = addHost(h, "n1", { ncpus: 8 });
  schedHello(h, 1);
  const id = rsub(h, words);
  answerResv(h, 1, id, "(n1:ncpus=2)+(n1:ncpus=2)");
  return { h, id, link };
}

test("what is refused, and in which order", () => {
  const { h, id } = confirmed();
  // biome-ignore format: a table
  const rows: readonly (readonly [words: string, outcome: string])[] = [
    ["start=-60",                  "15086 Bad time specification(s)"],
    ["end=60",                     "15086 Bad time specification(s)"],
    ["start=7200 end=7200",        "15086 Bad time specification(s)"],
    ["start=60 end=600 duration=5","15086 Bad time specification(s)"],
    ["select=1:ncpus=4",           "15183 New select must be made up of a subset of the original chunks"],
    ["select=3:ncpus=2",           "15183 New select must be made up of a subset of the original chunks"],
    ["reserve_state=2",            "15003 Cannot set attribute, read only or insufficient permission  reserve_state"],
    ["duration=60 force",          "15007 Unauthorized Request "],
  ];
  for (const [words, expected] of rows) assert.equal(ralter(h, id, words), expected, words);
  assert.equal(ralter(h, "R9.svr", "duration=60"), "15084 Unknown Reservation Id");
  assert.equal(ralter(h, id, "duration=60", BOB), "15007 Unauthorized Request ");
  const fresh = rsub(h, "start=7200 walltime=60 ncpus=1");
  assert.equal(ralter(h, fresh, "duration=90"), "15016 Request invalid for state of job");
  assert.equal(resvState(h, id), "CO 2");
});

test("name and mail change at once, and the scheduler is not asked", () => {
  const { h, id } = confirmed();
  assert.equal(ralter(h, id, "Reserve_Name=talk Mail_Points=n"), `${id} CONFIRMED`);
  assert.equal(ralter(h, id, ""), `${id} CONFIRMED`);
  assert.equal(resvAttrs(h, id).Reserve_Name, "talk");
  assert.equal(ralter(h, id, "Authorized_Users=bob"), `${id} ALTER REQUESTED`);
  assert.deepEqual(h.core.state.queues.get("R1")?.attrs["acl_users"], ["bob"]);
  assert.equal(mirrored(h, 1, id)?.ask, undefined);
});

test("until the scheduler agrees the old promise holds; then the new one does", () => {
  const { h, id } = confirmed();
  assert.equal(ralter(h, id, "duration=5400 Reserve_Name=longer"), `${id} ALTER REQUESTED`);
  assert.equal(resvState(h, id), "AL 2");
  assert.deepEqual(mirrored(h, 1, id)?.held, [{ start_s: START_S + 7200, end_s: START_S + 10_800, place: 0 }]);
  assert.equal(ralter(h, id, "duration=60"), "15016 Request invalid for state of job");
  answerResv(h, 1, id, "(n1:ncpus=2)+(n1:ncpus=2)");
  assert.equal(resvState(h, id), "CO 2");
  assert.deepEqual(mirrored(h, 1, id)?.held, [{ start_s: START_S + 7200, end_s: START_S + 12_600, place: 0 }]);
  assert.deepEqual(logsOf(h, id).slice(2), [
    "Attempting to modify reservation end=Fri Nov 20 12:56:28 2026",
    "Reservation alter confirmed",
  ]);
});

test("denied: everything is as it was, and who waits is told", () => {
  const { h, id } = confirmed();
  const before = { ...resvAttrs(h, id) };
  const token = h.next_token;
  const request = rsubRequest("start=3600 select=1:ncpus=2 Reserve_Name=x interactive=30");
  assert.equal(ask(h, ALICE, { kind: "modify-resv", resv: id, attrs: request.attrs }), undefined);
  answerResv(h, 1, id, null);
  assert.equal(wordOf(h.answers.get(token)), `${id} DENIED`);
  assert.deepEqual({ ...resvAttrs(h, id), mtime: 0 }, { ...before, mtime: 0 });
  assert.equal(logsOf(h, id).at(-1), "Reservation alter denied");
});

test("fewer chunks: less is held, and the queue gives less", () => {
  const { h, id } = confirmed();
  assert.equal(ralter(h, id, "select=1:ncpus=2"), `${id} ALTER REQUESTED`);
  answerResv(h, 1, id, "(n1:ncpus=2)");
  assert.equal(resvAttrs(h, id).resv_nodes, "(n1:ncpus=2)");
  assert.deepEqual(h.core.state.queues.get("R1")?.attrs["resources_available"], { ncpus: 2 });
});

test("while it runs: the end moves, the start only when it is empty, and then the period may lie ahead again", async () => {
  const { h, id, link } = confirmed();
  advance(h, 7200);
  const job = await qsub(h, "-q R1 -l ncpus=1 -- /bin/sleep 60");
  runOn(h, job, "n1", link);
  assert.equal(ralter(h, id, "start=9000"), "15178 Reservation not empty");
  assert.equal(ralter(h, id, "duration=7200"), `${id} ALTER REQUESTED`);
  assert.equal(resvState(h, id), "AL 5");
  answerResv(h, 1, id, "(n1:ncpus=2)+(n1:ncpus=2)");
  assert.equal(resvState(h, id), "RN 5");
  assert.equal(ask(h, ALICE, { kind: "delete-job", job, force: true })?.ok, true);
  assert.equal(ralter(h, id, "start=9000"), `${id} ALTER REQUESTED`);
  answerResv(h, 1, id, "(n1:ncpus=2)+(n1:ncpus=2)");
  assert.equal(resvState(h, id), "CO 2");
  assert.equal(h.core.state.queues.get("R1")?.attrs["started"], false);
  assert.equal(h.core.state.vnodes.get("n1")?.assigned.size, 0);
  advance(h, 1800);
  assert.equal(resvState(h, id), "RN 5");
});

test("asked of a scheduler that is down it waits; the period begins and ends as promised meanwhile, across a restart too", () => {
  const { h, id, link } = confirmed();
  schedLost(h, 1);
  ralter(h, id, "duration=7200");
  restart(h);
  momHello(h, link, "n1", [], { ncpus: 8 });
  assert.equal(resvState(h, id), "AL 2");
  advance(h, 7200);
  assert.equal(resvState(h, id), "AL 5");
  advance(h, 3600);
  assert.equal(resvState(h, id), "gone");
});

test("an alteration that nobody has answered when its new period ends is denied, after a restart too", () => {
  const { h, id, link } = confirmed();
  const before = { ...resvAttrs(h, id) };
  const token = h.next_token;
  const request = rsubRequest("start=600 end=1200 select=1:ncpus=2 interactive=3600");
  assert.equal(ask(h, ALICE, { kind: "modify-resv", resv: id, attrs: request.attrs }), undefined);
  schedLost(h, 1);
  advance(h, 1199);
  assert.equal(resvState(h, id), "AL 2");
  advance(h, 1);
  assert.equal(wordOf(h.answers.get(token)), `${id} DENIED`);
  assert.deepEqual({ ...resvAttrs(h, id), mtime: 0 }, { ...before, mtime: 0 });
  assert.equal(logsOf(h, id).at(-1), "Reservation alter denied");
  assert.equal(ralter(h, id, "start=3000 end=4200"), `${id} ALTER REQUESTED`);
  restart(h);
  momHello(h, link, "n1", [], { ncpus: 8 });
  advance(h, 3000);
  assert.deepEqual({ ...resvAttrs(h, id), mtime: 0 }, { ...before, mtime: 0 });
  advance(h, 3000);
  assert.equal(resvState(h, id), "RN 5");
});

test("a manager forces: the same vnodes for the new time, nobody is asked", () => {
  const { h, id } = confirmed();
  assert.equal(ralter(h, id, "duration=7200 force", ROOT), `${id} ALTER REQUESTED`);
  assert.equal(resvState(h, id), "CO 2");
  assert.equal((resvAttrs(h, id).reserve_end ?? 0) - (resvAttrs(h, id).reserve_start ?? 0), 7200);
  assert.equal(ralter(h, id, "duration=6000 interactive=5 force", ROOT), `${id} CONFIRMED`);
  apply(h, { kind: "changed", object: "sched", name: "default", set: { scheduling: false }, unset: [] });
  assert.equal(ralter(h, id, "duration=3000 force", ROOT), `${id} CONFIRMED`, "no cycle would ever confirm it");
});
