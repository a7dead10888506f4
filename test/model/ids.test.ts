import assert from "node:assert/strict";
import { test } from "node:test";
import { destinationText, parseDestination } from "#model/destination.ts";
import { arrayIdOf, jobIdText, parseJobId, parseResvId, resvIdText, seqOf, subjobId, subjobIndex, withServer } from "#model/job-id.ts";
import { checkObjectName } from "#model/object-names.ts";
import { refusal } from "./refusal.ts";

test("job ids: jobs, arrays, subjobs, ranges, servers", () => {
  // biome-ignore format: a table
  const table: readonly (readonly [string, object | null])[] = [
    ["12",             { kind: "job", seq: 12, server: "", at: "" }],
    ["12.svr",         { kind: "job", seq: 12, server: "svr", at: "" }],
    ["12.svr.dom.org", { kind: "job", seq: 12, server: "svr.dom.org", at: "" }],
    ["12.svr@other",   { kind: "job", seq: 12, server: "svr", at: "other" }],
    ["12@other:15001", { kind: "job", seq: 12, server: "", at: "other:15001" }],
    ["12[]",           { kind: "array", seq: 12, server: "", at: "" }],
    ["12[].svr",       { kind: "array", seq: 12, server: "svr", at: "" }],
    ["12[3].svr",      { kind: "subjob", index: 3, seq: 12, server: "svr", at: "" }],
    ["12[1-8]",        { kind: "range", ranges: [{ first: 1, last: 8, step: 1 }], seq: 12, server: "", at: "" }],
    ["12[1-8:7].svr",  { kind: "range", ranges: [{ first: 1, last: 8, step: 7 }], seq: 12, server: "svr", at: "" }],
    ["12[1,4-5].svr",  { kind: "range", ranges: [{ first: 1, last: 1, step: 1 }, { first: 4, last: 5, step: 1 }], seq: 12, server: "svr", at: "" }],
    ["0012",           { kind: "job", seq: 12, server: "", at: "" }],
  ];
  for (const [text, id] of table) assert.deepEqual(parseJobId(text), id, text);
  for (const text of [
    "",
    "abc",
    "R5",
    "12.",
    "12.svr.",
    "12@",
    "12[",
    "12[]x",
    "12[3-1]",
    "12[1-3:0]",
    "12[1:2]",
    "12[1-3,]",
    "12[-1]",
    "-1",
    "1 2",
    "12.s/r",
    "12.svr@a@b",
    "1234567890123",
    "12\n",
    "12[3]4",
  ]) {
    assert.equal(parseJobId(text), null, text);
  }
  for (const text of ["12", "12.svr", "12[].svr", "12[3]", "12[1-8]", "12[1-8:7].svr", "12[1,4-5].svr"])
    assert.equal(jobIdText(parseJobId(text)!), text);
  assert.equal(jobIdText(withServer(parseJobId("12[3]")!, "svr")), "12[3].svr");
  assert.equal(jobIdText(withServer(parseJobId("12.a")!, "svr")), "12.a");
  assert.deepEqual([arrayIdOf("12[3].svr"), arrayIdOf("12[].svr"), arrayIdOf("12.svr")], ["12[].svr", null, null]);
  assert.deepEqual([subjobId("12[].svr", 3), subjobIndex("12[3].svr"), subjobIndex("12[].svr")], ["12[3].svr", 3, -1]);
  assert.deepEqual([seqOf("12[3].svr"), seqOf("x")], [12, -1]);
});

test("reservation ids", () => {
  assert.deepEqual(parseResvId("R5.svr"), { letter: "R", seq: 5, server: "svr", at: "" });
  assert.deepEqual(parseResvId("S6"), { letter: "S", seq: 6, server: "", at: "" });
  for (const text of ["5", "X5", "R", "Rx", "R5[]", "r5", "R5."]) assert.equal(parseResvId(text), null, text);
  assert.equal(resvIdText(parseResvId("M7.svr")!), "M7.svr");
});

test("a destination is a queue, a server or both", () => {
  assert.deepEqual(parseDestination("workq"), { queue: "workq", server: "" });
  assert.deepEqual(parseDestination("@svr"), { queue: "", server: "svr" });
  assert.deepEqual(parseDestination("workq@svr:15001"), { queue: "workq", server: "svr:15001" });
  for (const text of ["", "@", "a@b@c", "a b", "abcdefghijklmnop", "-q", "q@", "q/1"]) assert.equal(parseDestination(text), null, text);
  for (const text of ["workq", "@svr", "workq@svr"]) assert.equal(destinationText(parseDestination(text)!), text);
});

test("names of objects: characters and lengths", () => {
  // biome-ignore format: a table
  const table: readonly (readonly [Parameters<typeof checkObjectName>[0], string, string])[] = [
    ["queue",    "abcdefghijklmno",  "accepted: undefined"],
    ["queue",    "abcdefghijklmnop", "15028 Queue name too long"],
    ["queue",    "1q",               "15172 Invalid object name"],
    ["queue",    "",                 "15172 Invalid object name"],
    ["sched",    "abcdefghijklmnop", "15212 Scheduler name is too long"],
    ["sched",    "a/b",              "15172 Invalid object name"],
    ["node",     "va[0]",            "accepted: undefined"],
    ["node",     "n1.example.org",   "accepted: undefined"],
    ["node",     "x".repeat(79),     "accepted: undefined"],
    ["node",     "x".repeat(80),     "15065 Node name is too big"],
    ["node",     "a b",              "15172 Invalid object name"],
    ["resource", "gpu_mem-2",        "accepted: undefined"],
    ["resource", "1x",               "15172 Invalid object name"],
    ["resource", "a.b",              "15172 Invalid object name"],
  ];
  for (const [object, name, outcome] of table)
    assert.equal(
      refusal(() => checkObjectName(object, name)),
      outcome,
      `${object} ${name}`,
    );
});
