// Jobs and reservations: jobs inside, reservations made from jobs, unused reservations.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { Delta } from "#protocol/sched-link.ts";
import {
  ALICE,
  addHost,
  addSched,
  advance,
  apply,
  ask,
  BOB,
  cycle,
  type Harness,
  harness,
  jobAttrs,
  lettersOf,
  mom,
  obit,
  outcome,
  ROOT,
  runOn,
  schedHello,
  stateOf,
} from "../harness.ts";
import { qsub } from "../requests/qsub.ts";
import { answerResv, mirrored, resvAttrs, resvState, rsub, rsubRequest, wordOf } from "./rsub.ts";

function complex(): { readonly h: Harness; readonly link: number } {
  const h = harness();
  const link = addHost(h, "n1", { ncpus: 8 });
  schedHello(h, 1);
  return { h, link };
}

/** A running reservation of four cpus of n1. */
function running(words = "start=60 walltime=3600 select=1:ncpus=4"): { readonly h: Harness; readonly link: number; readonly id: string } {
  const { h, link } = complex();
  const id = rsub(h, words);
  answerResv(h, 1, id, "(n1:ncpus=4)");
  advance(h, 60);
  cycle(h, 1);
  return { h, link, id };
}

/** The server's verdict on a scheduler's decision to run a job there. */
function runVerdict(h: Harness, job: string, exec_vnode: string): string {
  const [verdict] = cycle(h, 1, [{ kind: "run", job, exec_vnode }]);
  return verdict?.ok === true ? "ok" : (verdict?.text.replace("Resource temporarily unavailable: ", "") ?? "no verdict");
}

test("jobs inside use what the reservation holds, those outside the rest", async () => {
  const { h, id } = running();
  const jobs = [];
  for (const words of ["-q R1 -l ncpus=3", "-q R1 -l ncpus=2", "-l ncpus=5", "-l ncpus=4", "-q R1 -l ncpus=1", "-l ncpus=1"])
    jobs.push(await qsub(h, `${words} -- /bin/sleep 60`));
  const [three = "", two = "", five = "", four = "", one = "", outside = ""] = jobs;
  assert.equal(runVerdict(h, three, "(n1:ncpus=3)"), "ok");
  assert.equal(runVerdict(h, two, "(n1:ncpus=2)"), "reservation R1.svr has too little ncpus on vnode n1");
  assert.equal(runVerdict(h, five, "(n1:ncpus=5)"), "vnode n1 has too little ncpus");
  assert.equal(runVerdict(h, four, "(n1:ncpus=4)"), "ok");
  assert.equal(runVerdict(h, one, "(n1:ncpus=1)"), "ok");
  assert.equal(runVerdict(h, outside, "(n1:ncpus=1)"), "vnode n1 has too little ncpus");
  const vnode = h.core.state.vnodes.get("n1");
  assert.deepEqual([vnode?.assigned.get("ncpus"), vnode?.attrs["state"]], [8, ["job-busy"]]);
  assert.equal(h.core.state.queues.get("R1")?.assigned.get("ncpus"), 4);
  assert.equal(h.core.state.assigned.get("ncpus"), 8);
  assert.equal(mirrored(h, 1, id)?.running, true);
});

test("what a job inside needs and the reservation does not hold comes from the vnode", async () => {
  const { h } = running();
  const job = await qsub(h, "-q R1 -l ncpus=1,mem=3gb -- /bin/sleep 60");
  const large = await qsub(h, "-q R1 -l ncpus=1,mem=6gb -- /bin/sleep 60");
  assert.equal(runVerdict(h, job, "(n1:ncpus=1:mem=3145728kb)"), "ok");
  assert.equal(h.core.state.vnodes.get("n1")?.assigned.get("mem"), 3 * 1024 * 1024);
  assert.equal(runVerdict(h, large, "(n1:ncpus=1:mem=6291456kb)"), "vnode n1 has too little mem");
});

test("before the period, and on vnodes that are not the reservation's, nothing runs inside", async () => {
  const { h } = complex();
  addHost(h, "n2", { ncpus: 8 });
  const id = rsub(h, "start=60 walltime=3600 select=1:ncpus=4");
  answerResv(h, 1, id, "(n1:ncpus=4)");
  const job = await qsub(h, "-q R1 -l ncpus=1 -- /bin/sleep 60");
  advance(h, 60);
  assert.equal(runVerdict(h, job, "(n2:ncpus=1)"), "vnode n2 is not in reservation R1.svr");
  assert.equal(runVerdict(h, job, "(n1:ncpus=1)"), "ok");
});

test("a job of before that still holds the vnode keeps it: those inside wait for it", async () => {
  const { h, link } = complex();
  const early = await qsub(h, "-l ncpus=6 -- /bin/sleep 9999");
  runOn(h, early, "n1", link, 6);
  cycle(h, 1);
  const id = rsub(h, "start=60 walltime=3600 select=1:ncpus=4");
  answerResv(h, 1, id, "(n1:ncpus=4)");
  advance(h, 60);
  const job = await qsub(h, "-q R2 -l ncpus=4 -- /bin/sleep 60");
  assert.equal(runVerdict(h, job, "(n1:ncpus=4)"), "vnode n1 still gives ncpus to jobs of before the reservation");
  obit(h, link, early);
  assert.equal(runVerdict(h, job, "(n1:ncpus=4)"), "ok");
});

test("alone on its vnodes: nobody else comes there", async () => {
  const { h } = running("start=60 walltime=3600 select=1:ncpus=4 place=excl");
  assert.deepEqual(h.core.state.vnodes.get("n1")?.attrs["state"], ["resv-exclusive"]);
  const outside = await qsub(h, "-l ncpus=1 -- /bin/sleep 60");
  const inside = await qsub(h, "-q R1 -l ncpus=1 -- /bin/sleep 60");
  assert.equal(runVerdict(h, outside, "(n1:ncpus=1)"), "vnode n1 is reserved by R1.svr");
  assert.equal(runVerdict(h, inside, "(n1:ncpus=1)"), "ok");
});

test("pbs_rdel: all jobs go, the reservation with the last of them; by another than the owner it is K", async () => {
  const { h, link, id } = running();
  const runs = await qsub(h, "-q R1 -l ncpus=1 -- /bin/sleep 60");
  const waits = await qsub(h, "-q R1 -l ncpus=1 -- /bin/sleep 60");
  runVerdict(h, runs, "(n1:ncpus=1)");
  assert.equal(outcome(h, BOB, { kind: "delete-resv", resv: id }), "15007 Unauthorized Request ");
  assert.equal(outcome(h, ROOT, { kind: "delete-resv", resv: "R1" }), "ok");
  assert.deepEqual([resvState(h, id), stateOf(h, waits)], ["BD 9", "F 91"]);
  assert.equal(outcome(h, ALICE, { kind: "delete-resv", resv: id }), "ok");
  obit(h, link, runs, 271);
  assert.equal(resvState(h, id), "gone");
  assert.equal(lettersOf(h, id), "UYBK");
  assert.match(jobAttrs(h, runs).comment ?? "", / and terminated by root@svr$/);
  assert.equal(outcome(h, ALICE, { kind: "delete-resv", resv: id }), "15084 Unknown Reservation Id");
});

test("made from a running job: its vnodes until its walltime is over, the job inside; what cannot be made so", async () => {
  const { h, link } = complex();
  const job = await qsub(h, "-l ncpus=2,walltime=3600 -- /bin/sleep 60");
  const waits = await qsub(h, "-l ncpus=2,walltime=3600 -- /bin/sleep 60");
  const endless = await qsub(h, "-l ncpus=1 -- /bin/sleep 60");
  runOn(h, job, "n1", link, 2);
  runOn(h, endless, "n1", link, 1);
  const make = (id: string, who = ALICE): string => wordOf(ask(h, who, rsubRequest(`reserve_job=${id}`)));
  assert.equal(make(waits), "15016 Request invalid for state of job");
  assert.equal(make(job, BOB), "15007 Unauthorized Request ");
  assert.equal(make(endless), "15075 Reservation needs walltime");
  advance(h, 100);
  assert.equal(make("1"), "R4.svr CONFIRMED");
  assert.equal(make(job), "15181 Reservation may not be created from a job already within a reservation");
  const attrs = resvAttrs(h, "R4.svr");
  assert.deepEqual([resvState(h, "R4.svr"), attrs.resv_nodes, attrs["reserve_job"]], ["RN 5", "(n1:ncpus=2)", job]);
  assert.deepEqual([jobAttrs(h, job).queue, jobAttrs(h, job)["reserve_ID"]], ["R4", undefined]);
  assert.equal(h.core.state.vnodes.get("n1")?.assigned.get("ncpus"), 3);
  obit(h, link, job);
  assert.equal(h.core.state.vnodes.get("n1")?.assigned.get("ncpus"), 3);
  advance(h, 3500);
  assert.equal(resvState(h, "R4.svr"), "gone");
});

test("qsub -W create_resv_from_job: the reservation is there as soon as the job runs", async () => {
  const { h, link } = complex();
  const job = await qsub(h, "-W create_resv_from_job=true -l ncpus=2,walltime=600 -- /bin/sleep 60");
  runOn(h, job, "n1", link, 2);
  assert.deepEqual([resvState(h, "R2.svr"), jobAttrs(h, job).queue], ["RN 5", "R2"]);
  assert.equal(resvAttrs(h, "R2.svr").Reserve_Owner, "alice@svr");
});

test("as soon as possible: the scheduler says when, then the job moves in; unused, it goes after its idle time", async () => {
  const { h } = complex();
  const job = await qsub(h, "-l ncpus=2,walltime=600 -- /bin/sleep 60");
  assert.equal(wordOf(ask(h, ALICE, rsubRequest(`qmove=${job} interactive=-10`))), "deferred");
  const asked = mirrored(h, 1, "R2.svr")?.ask;
  assert.deepEqual([asked?.occurrences, asked?.duration_s], [[], 600]);
  const start_s = h.now_ms / 1000 + 300;
  const [verdict] = cycle(h, 1, [
    {
      kind: "confirm-resv",
      resv: "R2.svr",
      partition: "pbs-default",
      places: ["(n1:ncpus=2)"],
      occurrences: [{ start_s, end_s: start_s + 600, place: 0 }],
    },
  ]);
  assert.deepEqual(verdict, { ok: true });
  assert.deepEqual([...h.answers.values()].at(-1), { ok: true, value: { id: "R2.svr", word: "CONFIRMED" } });
  assert.deepEqual([resvState(h, "R2.svr"), resvAttrs(h, "R2.svr").reserve_start, jobAttrs(h, job).queue], ["CO 2", start_s, "R2"]);
  ask(h, ALICE, { kind: "delete-job", job });
  advance(h, 300);
  assert.equal(resvState(h, "R2.svr"), "RN 5");
  advance(h, 599);
  assert.equal(resvState(h, "R2.svr"), "RN 5");
  advance(h, 1);
  assert.equal(resvState(h, "R2.svr"), "gone");
});

test("idle time counts while the period runs and the queue is empty", async () => {
  const { h, link, id } = running("start=60 walltime=3600 select=1:ncpus=4 delete_idle_time=100");
  advance(h, 50);
  const job = await qsub(h, "-q R1 -l ncpus=1 -- /bin/sleep 60");
  advance(h, 500);
  assert.equal(resvState(h, id), "RN 5");
  runVerdict(h, job, "(n1:ncpus=1)");
  obit(h, link, job);
  advance(h, 99);
  assert.equal(resvState(h, id), "RN 5");
  advance(h, 1);
  assert.equal(resvState(h, id), "gone");
});

test("a job that is gone or runs already when its reservation is confirmed: the reservation is denied", async () => {
  const { h } = complex();
  const job = await qsub(h, "-l ncpus=2,walltime=600 -- /bin/sleep 60");
  const token = h.next_token;
  ask(h, ALICE, rsubRequest(`qmove=${job} interactive=-10`));
  ask(h, ALICE, { kind: "delete-job", job });
  const start_s = h.now_ms / 1000 + 300;
  cycle(h, 1, [
    {
      kind: "confirm-resv",
      resv: "R2.svr",
      partition: "pbs-default",
      places: ["(n1:ncpus=2)"],
      occurrences: [{ start_s, end_s: start_s + 600, place: 0 }],
    },
  ]);
  assert.equal(wordOf(h.answers.get(token)), "R2.svr DENIED");
  assert.equal(resvState(h, "R2.svr"), "gone");
});

test("a running reservation on a host is told to a scheduler with other vnodes there: nobody can have the host alone", () => {
  const { h, link } = complex();
  addSched(h, "s1", { partition: ["p1"] });
  mom(h, link, "mom-vnodes", {
    vnodes: ["n1", "n1[0]"].map((name) => ({ name, attrs: { resources_available: { ncpus: 4 } } })),
  });
  apply(h, { kind: "changed", object: "node", name: "n1", set: { partition: "p1" }, unset: [] });
  schedHello(h, 2, "s1");
  cycle(h, 2);
  cycle(h, 1);
  const crowded = (): unknown =>
    h.to_scheds
      .filter(({ link: to, type }) => to === 2 && type === "sched-delta")
      .flatMap(({ data }) => (data as Delta).changes)
      .findLast((item) => "put" in item && item.put === "node" && item.value.name === "n1");
  const id = rsub(h, "start=60 walltime=600 select=1:ncpus=1");
  answerResv(h, 1, id, "(n1[0]:ncpus=1)");
  advance(h, 60);
  assert.equal((crowded() as { value: { crowded?: true } } | undefined)?.value.crowded, true);
  advance(h, 700);
  assert.equal((crowded() as { value: { crowded?: true } }).value.crowded, undefined);
});
