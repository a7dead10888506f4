import assert from "node:assert/strict";
import { test } from "node:test";
import { isKeyOf, isList, isRecord } from "#support/guards.ts";

test("guards: records, lists and other values are told apart", () => {
  const kinds = [{}, { a: 1 }, [], [1], null, undefined, "text", 0, true].map((value) => [isRecord(value), isList(value)]);
  const [record, list, other] = [
    [true, false],
    [false, true],
    [false, false],
  ];
  assert.deepEqual(kinds, [record, record, list, list, other, other, other, other, other]);
});

test("guards: only a table's own names are its keys", () => {
  const table = { S: "suspend", D: "" };
  assert.deepEqual(
    ["S", "D", "X", "toString", "__proto__"].map((name) => isKeyOf(table, name)),
    [true, true, false, false, false],
  );
});
