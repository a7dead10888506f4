// An advance reservation from submission to its end, with the test playing schedulers and moms.

import assert from "node:assert/strict";
import { test } from "node:test";
import {
  ALICE,
  addHost,
  addSched,
  addVnode,
  advance,
  ask,
  cycle,
  type Harness,
  harness,
  lettersOf,
  logsOf,
  restart,
  schedHello,
  stateOf,
} from "../harness.ts";
import { qmgr } from "../requests/qmgr.ts";
import { qsub, qsubVerdict } from "../requests/qsub.ts";
import { answerResv, mirrored, ralter, resvAttrs, resvState, rsub, rsubRequest, wordOf } from "./rsub.ts";

function complex(): Harness {
  const h = harness();
  addHost(h, "n1", { ncpus: 8 });
  schedHello(h, 1);
  return h;
}

test("submitted: unconfirmed, its queue closed, every scheduler asked; confirmed: queue open; begun: queue started; ended: all gone", async () => {
  const h = complex();
  const id = rsub(h, "start=3600 walltime=600 select=1:ncpus=4 Reserve_Name=talk");
  assert.equal(id, "R1.svr");
  assert.equal(resvState(h, id), "UN 1");
  assert.deepEqual(mirrored(h, 1, id)?.ask?.occurrences, [
    { start_s: resvAttrs(h, id).reserve_start, end_s: resvAttrs(h, id).reserve_end },
  ]);
  assert.equal(await qsubVerdict(h, "-q R1 -l ncpus=1 -- /bin/true"), "15021 Queue is not enabled");
  assert.deepEqual(answerResv(h, 1, id, "(n1:ncpus=4)"), { ok: true });
  assert.equal(resvState(h, id), "CO 2");
  assert.equal(mirrored(h, 1, id)?.ask, undefined);
  assert.equal(resvAttrs(h, id).resv_nodes, "(n1:ncpus=4)");
  assert.equal(resvAttrs(h, id).partition, "pbs-default");
  assert.equal(h.core.state.vnodes.get("n1")?.assigned.get("ncpus"), undefined);
  const job = await qsub(h, "-q R1 -l ncpus=2 -- /bin/sleep 60");
  assert.equal(mirrored(h, 1, id)?.running, false);
  advance(h, 3600);
  assert.equal(resvState(h, id), "RN 5");
  assert.equal(mirrored(h, 1, id)?.running, true);
  assert.equal(h.core.state.vnodes.get("n1")?.assigned.get("ncpus"), 4);
  assert.equal(h.core.state.queues.get("R1")?.attrs["started"], true);
  advance(h, 600);
  assert.equal(resvState(h, id), "gone");
  assert.equal(h.core.state.queues.has("R1"), false);
  assert.equal(h.core.state.vnodes.get("n1")?.assigned.get("ncpus"), undefined);
  assert.equal(stateOf(h, job), "F 91");
  assert.equal(lettersOf(h, id), "UYBK");
  assert.deepEqual(logsOf(h, "R1"), ["created at request of pbs_server@svr", "deleted at request of pbs_server@svr"]);
  assert.deepEqual(logsOf(h, id), [
    "New reservation submitted start=Fri Nov 20 10:26:28 2026 end=Fri Nov 20 10:36:28 2026",
    "Reservation confirmed",
  ]);
});

test("denied once every scheduler has refused; the submitter who waits is told", () => {
  const h = complex();
  addSched(h, "s1", { partition: ["p1"] });
  addVnode(h, "v1", { partition: "p1" });
  schedHello(h, 2, "s1");
  const answer = ask(h, ALICE, rsubRequest("start=3600 walltime=600 select=1:ncpus=40 interactive=30"));
  assert.equal(wordOf(answer), "deferred");
  answerResv(h, 1, "R1.svr", null);
  assert.equal(resvState(h, "R1.svr"), "UN 1");
  assert.equal(mirrored(h, 1, "R1.svr")?.ask, undefined);
  answerResv(h, 2, "R1.svr", null);
  assert.equal(resvState(h, "R1.svr"), "gone");
  assert.equal(wordOf([...h.answers.values()].at(-1)), "R1.svr DENIED");
  assert.deepEqual(logsOf(h, "R1.svr").slice(1), ["Reservation denied", "reservation deleted"]);
  assert.equal(lettersOf(h, "R1.svr"), "UK");
});

test("the first scheduler that confirms has it, the second is refused", () => {
  const h = complex();
  addSched(h, "s1", { partition: ["p1"] });
  addVnode(h, "v1", { partition: "p1", resources_available: { ncpus: 8 } });
  schedHello(h, 2, "s1");
  const id = rsub(h, "start=3600 walltime=600 select=1:ncpus=4");
  const late = mirrored(h, 1, id)?.ask;
  assert.deepEqual(answerResv(h, 2, id, "(v1:ncpus=4)", "p1"), { ok: true });
  assert.equal(resvAttrs(h, id).partition, "p1");
  assert.ok(late !== undefined);
  assert.equal(mirrored(h, 1, id)?.ask, undefined);
});

test("what was promised survives a restart and is begun and ended late", () => {
  const h = complex();
  const id = rsub(h, "start=3600 walltime=600 select=1:ncpus=4");
  answerResv(h, 1, id, "(n1:ncpus=4)");
  h.now_ms += 3_700_000;
  restart(h);
  advance(h, 1);
  assert.equal(resvState(h, id), "RN 5");
  h.now_ms += 3_600_000;
  restart(h);
  advance(h, 1);
  assert.equal(resvState(h, id), "gone");
});

test("no vnode is promised twice", () => {
  const h = complex();
  const first = rsub(h, "start=3600 walltime=600 select=1:ncpus=6");
  answerResv(h, 1, first, "(n1:ncpus=6)");
  const second = rsub(h, "start=3900 walltime=600 select=1:ncpus=4");
  const verdict = answerResv(h, 1, second, "(n1:ncpus=4)");
  assert.equal(verdict.ok, false);
  assert.equal(resvState(h, second), "UN 1");
  const third = rsub(h, "start=4200 walltime=600 select=1:ncpus=4");
  assert.deepEqual(answerResv(h, 1, third, "(n1:ncpus=4)"), { ok: true });
});

test("resv_post_processing_time is added to the end: its jobs end before it, nothing starts in it, and it is cut off nothing that was made before", async () => {
  const h = complex();
  await qmgr(h, "set server resv_post_processing_time=60");
  const id = rsub(h, "start=3600 walltime=600 select=1:ncpus=4");
  await qmgr(h, "unset server resv_post_processing_time");
  const { reserve_start = 0, reserve_end = 0, reserve_duration, Resource_List } = resvAttrs(h, id);
  assert.deepEqual([reserve_end - reserve_start, reserve_duration, Resource_List["walltime"]], [660, 660, 660]);
  answerResv(h, 1, id, "(n1:ncpus=4)");
  advance(h, 3600);
  const running = await qsub(h, "-q R1 -l ncpus=2 -- /bin/sleep 60");
  const waiting = await qsub(h, "-q R1 -l ncpus=2 -- /bin/sleep 60");
  cycle(h, 1, [{ kind: "run", job: running, exec_vnode: "(n1:ncpus=2)" }]);
  assert.equal(ralter(h, id, "duration=10:00"), "R1.svr CONFIRMED", "what is asked for is the time of its jobs");
  advance(h, 599);
  assert.deepEqual([resvState(h, id), h.core.state.queues.get("R1")?.attrs["started"]], ["RN 5", true]);
  advance(h, 1);
  assert.deepEqual([resvState(h, id), h.core.state.queues.get("R1")?.attrs["started"]], ["RN 5", false]);
  assert.ok(logsOf(h, running).includes("Job sent signal TermJob on delete"));
  assert.equal(stateOf(h, waiting), "Q 10");
  assert.equal(h.core.state.vnodes.get("n1")?.assigned.get("ncpus"), 4);
  assert.equal(ralter(h, id, "duration=15:00"), "R1.svr ALTER REQUESTED");
  answerResv(h, 1, id, "(n1:ncpus=4)");
  assert.equal(h.core.state.queues.get("R1")?.attrs["started"], true, "it lasts longer");
  advance(h, 300);
  assert.equal(h.core.state.queues.get("R1")?.attrs["started"], false);
  restart(h);
  advance(h, 59);
  assert.equal(stateOf(h, waiting), "Q 10");
  advance(h, 1);
  assert.notEqual(stateOf(h, waiting), "Q 10");
});

test("a standing reservation cleans up after each occurrence", async () => {
  const h = complex();
  await qmgr(h, "set server resv_post_processing_time=60");
  const rule = "reserve_timezone=UTC reserve_rrule=FREQ=HOURLY;COUNT=2";
  assert.equal(wordOf(ask(h, ALICE, rsubRequest(`start=3600 walltime=3600 select=1:ncpus=4 ${rule}`))).split(" ")[0], "15130");
  const id = rsub(h, `start=3600 walltime=600 select=1:ncpus=4 ${rule}`);
  answerResv(h, 1, id, "(n1:ncpus=4)");
  const started = (): unknown => h.core.state.queues.get(resvAttrs(h, id).queue)?.attrs["started"];
  const seen = [3600, 600, 60, 2940, 600].map((seconds) => {
    advance(h, seconds);
    return `${resvState(h, id)} ${started()}`;
  });
  assert.deepEqual(seen, ["RN 5 true", "RN 5 false", "CO 2 false", "RN 5 true", "RN 5 false"]);
  advance(h, 60);
  assert.equal(resvState(h, id), "gone");
});
