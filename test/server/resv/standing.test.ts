// Standing reservations: occurrence after occurrence.

import assert from "node:assert/strict";
import { test } from "node:test";
import {
  addHost,
  addVnode,
  advance,
  cycle,
  type Harness,
  harness,
  obit,
  outcome,
  ROOT,
  restart,
  runOn,
  START_S,
  schedHello,
  stateOf,
} from "../harness.ts";
import { qsub } from "../requests/qsub.ts";
import { answerResv, mirrored, ralter, resvAttrs, resvState, rsub } from "./rsub.ts";

const DAY_S = 86_400;
const DAILY = "start=3600 walltime=1800 select=1:ncpus=4 reserve_rrule=FREQ=DAILY;COUNT=3 reserve_timezone=UTC";

function complex(): { readonly h: Harness; readonly link: number } {
  const h = harness();
  const link = addHost(h, "n1", { ncpus: 8 });
  schedHello(h, 1);
  return { h, link };
}

/** A standing reservation with all its occurrences confirmed. */
function standing(h: Harness): string {
  const id = rsub(h, DAILY);
  assert.deepEqual(answerResv(h, 1, id, "(n1:ncpus=4)"), { ok: true });
  return id;
}

test("every occurrence is asked for, and all are promised together", () => {
  const { h } = complex();
  const id = rsub(h, DAILY);
  assert.equal(id, "S1.svr");
  const starts = [0, 1, 2].map((day) => START_S + 3600 + day * DAY_S);
  assert.deepEqual(
    mirrored(h, 1, id)?.ask?.occurrences,
    starts.map((start_s) => ({ start_s, end_s: start_s + 1800 })),
  );
  answerResv(h, 1, id, "(n1:ncpus=4)");
  assert.equal(mirrored(h, 1, id)?.held.length, 3);
  assert.equal(resvAttrs(h, id)["reserve_execvnodes"], "3#(n1:ncpus=4){0-2}");
  assert.deepEqual([resvAttrs(h, id).reserve_index, resvAttrs(h, id).reserve_count], [1, 3]);
  assert.equal(h.accounting.find(({ type }) => type === "U")?.text, "requestor=alice@svr recurrence_rrule=FREQ=DAILY;COUNT=3 timezone=UTC");
  assert.match(h.accounting.find(({ type }) => type === "Y")?.text ?? "", / nodes=\(n1:ncpus=4\) count=3$/);
});

test("at an occurrence's end its running jobs go, those that wait stay for the next; after the last all go", async () => {
  const { h, link } = complex();
  const id = standing(h);
  const runs = await qsub(h, "-q S1 -l ncpus=2 -- /bin/sleep 9999");
  const waits = await qsub(h, "-q S1 -h -l ncpus=2 -- /bin/sleep 9999");
  advance(h, 3600);
  assert.equal(resvState(h, id), "RN 5");
  runOn(h, runs, "n1", link, 2);
  advance(h, 1800);
  assert.equal(resvState(h, id), "CO 2");
  assert.equal(h.core.state.queues.get("S1")?.attrs["started"], false);
  assert.deepEqual([resvAttrs(h, id).reserve_index, resvAttrs(h, id).reserve_start], [2, START_S + 3600 + DAY_S]);
  obit(h, link, runs, 271);
  assert.equal(stateOf(h, runs), "F 91");
  assert.equal(stateOf(h, waits), "H 20");
  advance(h, DAY_S - 1800);
  assert.equal(resvState(h, id), "RN 5");
  advance(h, DAY_S);
  assert.deepEqual([resvState(h, id), resvAttrs(h, id).reserve_index], ["RN 5", 3]);
  advance(h, 1800);
  assert.equal(resvState(h, id), "gone");
  assert.equal(stateOf(h, waits), "F 91");
});

test("occurrences that passed while the server was away are passed over, the present one begins late", () => {
  const { h } = complex();
  const id = standing(h);
  h.now_ms += (3600 + DAY_S + 60) * 1000;
  restart(h);
  advance(h, 0);
  assert.deepEqual([resvState(h, id), resvAttrs(h, id).reserve_index], ["RN 5", 2]);
});

test("an alteration is for one occurrence; what follows it stays, and must not be touched", () => {
  const { h } = complex();
  const id = standing(h);
  assert.equal(ralter(h, id, `duration=${DAY_S + 1}`), "15179 Requested time(s) will interfere with a later occurrence");
  assert.equal(ralter(h, id, "duration=3600"), `${id} ALTER REQUESTED`);
  assert.deepEqual(mirrored(h, 1, id)?.ask?.occurrences, [{ start_s: START_S + 3600, end_s: START_S + 7200 }]);
  answerResv(h, 1, id, "(n1:ncpus=4)");
  assert.deepEqual([resvAttrs(h, id).reserve_duration, mirrored(h, 1, id)?.held.length], [3600, 3]);
  advance(h, 7200);
  assert.deepEqual([resvState(h, id), resvAttrs(h, id).reserve_duration, resvAttrs(h, id).Resource_List["walltime"]], ["CO 2", 1800, 1800]);
});

test("a vnode lost while an occurrence lasts: all that have it need another place, and only they are asked for", () => {
  const { h } = complex();
  addHost(h, "n2", { ncpus: 8 });
  const id = standing(h);
  advance(h, 3600);
  assert.equal(
    outcome(h, ROOT, { kind: "manager", verb: "set", object: "node", name: "n1", attrs: [{ name: "state", op: "=", value: "offline" }] }),
    "ok",
  );
  assert.equal(resvState(h, id), "RN 10");
  advance(h, 600);
  assert.equal(mirrored(h, 1, id)?.ask?.kind, "reconfirm");
  assert.equal(mirrored(h, 1, id)?.ask?.occurrences.length, 3);
  answerResv(h, 1, id, "(n2:ncpus=4)");
  assert.deepEqual([resvState(h, id), resvAttrs(h, id).resv_nodes], ["RN 5", "(n2:ncpus=4)"]);
});

test("a host that a later occurrence has whole is not promised to others for that time", () => {
  const { h } = complex();
  addHost(h, "n2", { ncpus: 8 });
  addVnode(h, "n2[0]", { Mom: ["n2"], resources_available: { ncpus: 8, host: "n2" } });
  const id = rsub(h, `${DAILY} place=exclhost`);
  const asked = mirrored(h, 1, id)?.ask?.occurrences ?? [];
  const confirm = {
    kind: "confirm-resv",
    resv: id,
    partition: "pbs-default",
    occurrences: asked.map((times, at) => ({ ...times, place: Math.min(at, 1) })),
    places: ["(n1:ncpus=4)", "(n2:ncpus=4)"],
  } as const;
  assert.deepEqual(cycle(h, 1, [confirm]), [{ ok: true }]);
  assert.deepEqual([...(h.core.state.vnodes.get("n2[0]")?.resvs.keys() ?? [])], [id]);
  const other = rsub(h, `start=${3600 + DAY_S} walltime=60 select=1:ncpus=1`);
  const verdict = answerResv(h, 1, other, "(n2[0]:ncpus=1)");
  assert.deepEqual(verdict, { ok: false, code: 15044, text: `Resource temporarily unavailable: vnode n2[0] is promised to ${id}` });
});
