// pbs_rsub in the server: refusals and their order, and the contents of a new reservation.

import assert from "node:assert/strict";
import { test } from "node:test";
import { ALICE, addHost, addQueue, advance, ask, BOB, type Harness, harness, outcome, ROOT, schedHello, settle, user } from "../harness.ts";
import { qmgr } from "../requests/qmgr.ts";
import { qsub, qsubVerdict } from "../requests/qsub.ts";
import { answerResv, resvAttrs, rsub, rsubRequest, wordOf } from "./rsub.ts";

function complex(): Harness {
  const h = harness();
  addHost(h, "n1", { ncpus: 8 });
  schedHello(h, 1);
  return h;
}

test("what is refused", async () => {
  const h = complex();
  await qmgr(h, "create sched s1 partition=p1");
  // biome-ignore format: a table
  const rows: readonly (readonly [words: string, outcome: string])[] = [
    ["start=-60 walltime=600 ncpus=1",                 "15086 Bad time specification(s)"],
    ["start=60 ncpus=1",                               "15086 Bad time specification(s)"],
    ["walltime=600 ncpus=1",                           "15086 Bad time specification(s)"],
    ["start=600 end=60 ncpus=1",                       "15086 Bad time specification(s)"],
    ["start=600 end=600 ncpus=1",                      "15086 Bad time specification(s)"],
    ["end=600 walltime=6000 ncpus=1",                  "15086 Bad time specification(s)"],
    ["start=60 end=660 walltime=601 ncpus=1",          "15086 Bad time specification(s)"],
    ["start=999999999999 walltime=600 ncpus=1",        "15086 Bad time specification(s)"],
    ["start=60 walltime=banana ncpus=1",               "15014 Illegal attribute or resource value Resource_List.walltime"],
    ["start=60 walltime=600 nosuch=1",                 "15035 Unknown resource Resource_List.nosuch"],
    ["start=60 walltime=600 select=1:nosuch=1",        "15035 Unknown resource: nosuch"],
    ["start=60 walltime=600 min_walltime=10",          '15164 "min_walltime" and "max_walltime" are not valid resources for a reservation'],
    ["start=60 walltime=600 nosuch_attr=1",            "15002 Undefined attribute"],
    ["start=60 walltime=600 reserve_state=2",          "15003 Cannot set attribute, read only or insufficient permission  reserve_state"],
    ["start=60 walltime=600 partition=p2",             "15221 No scheduler associated with the partition p2"],
    ["start=60 walltime=600 Mail_Points=x",            "15014 Illegal attribute or resource value Mail_Points"],
    ["reserve_job=99",                                 "15001 Unknown Job Id"],
    ["qmove=99 start=60",                              "15086 Bad time specification(s)"],
    ["start=60 walltime=600 reserve_rrule=FREQ=DAILY;COUNT=2",                                "15135 Unrecognized PBS_TZID environment variable"],
    ["start=60 walltime=600 reserve_rrule=FREQ=DAILY;COUNT=2 reserve_timezone=Nowhere/Land",  "15135 Unrecognized PBS_TZID environment variable"],
    ["start=60 walltime=600 reserve_rrule=FREQ=DAILY reserve_timezone=UTC",                   "15134 Undefined iCalendar syntax. A valid COUNT or UNTIL is required"],
    ["start=60 walltime=600 reserve_rrule=EVERY=DAY;COUNT=2 reserve_timezone=UTC",            "15133 Undefined iCalendar syntax"],
    ["start=60 walltime=90000 reserve_rrule=FREQ=DAILY;COUNT=2 reserve_timezone=UTC",         "15129 DAILY recurrence duration cannot exceed 24 hours"],
    ["start=60 walltime=90000 reserve_rrule=FREQ=WEEKLY;BYDAY=MO,TU;COUNT=2 reserve_timezone=UTC", "15086 Bad time specification(s)"],
  ];
  for (const [words, expected] of rows) assert.equal(outcome(h, ALICE, rsubRequest(words)).trim(), expected.trim(), words);
  assert.equal(h.core.state.resvs.size, 0);
  assert.deepEqual([...h.core.state.queues.keys()], ["workq"]);
});

test("two of start, end and duration give the third", async () => {
  const h = complex();
  for (const words of ["start=600 end=1200", "start=600 walltime=600", "end=1200 walltime=10:00"]) {
    const { reserve_start, reserve_end, reserve_duration, Resource_List } = resvAttrs(h, rsub(h, words));
    assert.equal((reserve_end ?? 0) - (reserve_start ?? 0), 600, words);
    assert.deepEqual([reserve_duration, Resource_List["walltime"]], [600, 600], words);
  }
});

test("resources as of a job, but placed freely unless asked otherwise; walltime is the duration, whatever the defaults of jobs", async () => {
  const h = complex();
  await qmgr(h, "set server resources_default.walltime=50");
  // biome-ignore format: a table
  const rows: readonly (readonly [words: string, list: object])[] = [
    ["select=2:ncpus=2",                { ncpus: 4, nodect: 2, place: "free", select: "2:ncpus=2", walltime: 600 }],
    ["ncpus=2",                         { ncpus: 2, nodect: 1, place: "free", select: "1:ncpus=2", walltime: 600 }],
    ["select=1:ncpus=2 place=excl",     { ncpus: 2, nodect: 1, place: "excl", select: "1:ncpus=2", walltime: 600 }],
  ];
  for (const [words, list] of rows) assert.deepEqual(resvAttrs(h, rsub(h, `start=60 walltime=600 ${words}`)).Resource_List, list, words);
});

test("who may: switched off, lists of hosts, groups and users, root", async () => {
  const h = complex();
  const words = "start=60 walltime=600 ncpus=1";
  const verdict = (who = ALICE): string => outcome(h, who, rsubRequest(words));
  assert.equal(verdict(ROOT), "15095 Bad effective UID for reservation");
  await qmgr(h, "set server acl_roots=root@*");
  assert.equal(verdict(ROOT), "ok");
  for (const [change, refused] of [
    ["acl_resv_user_enable=True,acl_resv_users=bob@*", "15094 Requestor not authorized to make reservations"],
    ["acl_resv_group_enable=True,acl_resv_groups=staff", "15093 Requestor's group not authorized to submit reservations"],
    ["acl_resv_host_enable=True,acl_resv_hosts=other", "15092 Host machine not authorized to submit reservations"],
    ["resv_enable=False", "15094 reservations disallowed on svr"],
  ] as const) {
    const [switched = "", list] = change.split(",");
    assert.equal(verdict(), "ok", "before");
    await qmgr(h, `set server ${switched}${list === undefined ? "" : `,${list}`}`);
    assert.equal(verdict(), refused, change);
    if (change.includes("bob")) assert.equal(verdict(BOB), "ok");
    await qmgr(h, `set server ${switched.replace("=True", "=False").replace("resv_enable=False", "resv_enable=True")}`);
  }
});

test("the owner is always among those authorized; the queue lets in them and nobody else, up to what is reserved", async () => {
  const h = complex();
  const id = rsub(h, "start=3600 walltime=600 select=1:ncpus=4:mem=1gb Authorized_Users=bob,alice");
  answerResv(h, 1, id, "(n1:ncpus=4:mem=1048576kb)");
  assert.deepEqual(resvAttrs(h, id).Authorized_Users, ["alice", "alice@svr", "bob"]);
  const queue = h.core.state.queues.get("R1")?.attrs ?? {};
  assert.deepEqual(queue["acl_users"], ["alice", "alice@svr", "bob"]);
  assert.deepEqual(queue["resources_max"], { ncpus: 4, mem: "1gb" });
  assert.deepEqual(queue["resources_available"], { ncpus: 4, mem: "1gb" });
  assert.equal(queue["partition"], "pbs-default");
  assert.equal(await qsubVerdict(h, "-q R1 -l ncpus=2 -- /bin/true", BOB), "ok");
  assert.equal(await qsubVerdict(h, "-q R1 -l ncpus=2 -- /bin/true", user("carol")), "15007 Unauthorized Request ");
  assert.equal(await qsubVerdict(h, "-q R1 -l ncpus=5 -- /bin/true"), "15036 Job violates queue and/or server resource limits");
  assert.equal(
    await qsubVerdict(h, "-q R1 -l select=1:ncpus=1 -l place=excl -- /bin/true"),
    "15156 job and reservation have conflicting specification",
  );
  const job = await qsub(h, "-q R1 -l ncpus=1 -- /bin/true");
  assert.equal(h.core.state.jobs.get(job)?.attrs["reserve_ID"], id);
  assert.equal(outcome(h, ALICE, { kind: "move-job", job, destination: "workq" }), "ok");
  assert.equal(h.core.state.jobs.get(job)?.attrs["reserve_ID"], undefined);
});

test("numbers are shared with jobs and never given twice, not even to a queue that has the name", async () => {
  const h = complex();
  assert.equal(await qsub(h, "-- /bin/true"), "1.svr");
  assert.equal(rsub(h, "start=60 walltime=600"), "R2.svr");
  assert.equal(await qsub(h, "-- /bin/true"), "3.svr");
  addQueue(h, "R4");
  settle(h);
  assert.equal(rsub(h, "start=60 walltime=600"), "R5.svr");
});

test("who waits is told when it is decided, or that it is not; a negative wait takes the reservation back", async () => {
  const h = complex();
  const words = "start=600 walltime=600 ncpus=1";
  const wait = (seconds: number): (() => string) => {
    const token = h.next_token;
    assert.equal(wordOf(ask(h, ALICE, rsubRequest(`${words} interactive=${seconds}`))), "deferred");
    return () => wordOf(h.answers.get(token));
  };
  const confirmed = wait(30);
  answerResv(h, 1, "R1.svr", "(n1:ncpus=1)");
  assert.equal(confirmed(), "R1.svr CONFIRMED");
  const patient = wait(30);
  const impatient = wait(-20);
  advance(h, 19);
  assert.deepEqual([patient(), impatient()], ["deferred", "deferred"]);
  advance(h, 1);
  assert.deepEqual([patient(), impatient()], ["deferred", "R3.svr delete, wait period expired"]);
  assert.equal(h.core.state.resvs.has("R3.svr"), false);
  advance(h, 10);
  assert.equal(patient(), "R2.svr UNCONFIRMED");
  assert.equal(h.core.state.resvs.has("R2.svr"), true);
});
