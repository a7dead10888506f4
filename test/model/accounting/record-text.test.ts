// Accounting records are found in a text, and their items are read by name.

import assert from "node:assert/strict";
import { test } from "node:test";
import { dateOf, eachRecord, idOf, itemReader, typeOf } from "#model/accounting/record-text.ts";

const TEXT = [
  "11/26/2026 08:00:00;Q;1.svr;user=ann group=staff project=_pbs_project_default queue=workq ",
  '11/26/2026 08:10:00;E;1.svr;user=ann group=staff account="a user=root b" project=p1 queue=workq Resource_List.ncpus=4 Resource_List.select=1:ncpus=4 end=5',
  "no record",
  "11/26/2026 08:11:00;R;2[3].svr;user=bob queue=fast",
  "11/26/2026 08:12:00;E;3.svr;user=carl unfin",
].join("\n");

function found(text: string, types: string): string[] {
  const read = itemReader(["user", "account", "queue", "Resource_List.ncpus", "end"]);
  const lines: string[] = [];
  eachRecord(text, types, (place) => {
    const values = read(text, place).map((value) => value ?? "-");
    lines.push(`${dateOf(text, place)} ${typeOf(text, place)} ${idOf(text, place)}: ${values.join("|")}`);
  });
  return lines;
}

test("reads the finished records of the types", () => {
  assert.deepEqual(found(TEXT, "ER"), ["2026-11-26 E 1.svr: ann|a user=root b|workq|4|5", "2026-11-26 R 2[3].svr: bob|-|fast|-|-"]);
  assert.deepEqual(found(TEXT, "Q"), ["2026-11-26 Q 1.svr: ann|-|workq|-|-"]);
});

test("returns where the unfinished line begins", () => {
  const at = eachRecord(TEXT, "E", () => {});
  assert.equal(TEXT.slice(at), "11/26/2026 08:12:00;E;3.svr;user=carl unfin");
  assert.equal(
    eachRecord("", "E", () => {}),
    0,
  );
});

test("reads quoted values to their end, and damaged ones to the end of the record", () => {
  const record = (items: string) => found(`11/26/2026 08:10:00;E;1.svr;${items}\n`, "E")[0]?.split(": ")[1];
  assert.equal(record('account="say "no" now" user=ann'), 'ann|say "no|-|-|-');
  assert.equal(record('account="" user=ann'), "ann||-|-|-");
  assert.equal(record('user=ann account="open queue=q'), "ann|open queue=q|-|-|-");
  assert.equal(record("user= queue=q"), "|-|q|-|-");
  assert.equal(record("noequals"), "-|-|-|-|-");
  assert.equal(record("user=a user=b"), "a|-|-|-|-");
});
