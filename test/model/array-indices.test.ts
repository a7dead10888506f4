import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { indexAt, indexCount, indexListText, parseArrayIndices, parseIndexList, positionOf, rangesOf } from "#model/array-indices.ts";

test("indices of an array: a range, with a step or without", () => {
  // biome-ignore format: a table
  const table: readonly (readonly [text: string, count: number | null])[] = [
    ["1-5", 5], ["1-5:2", 3], ["0-3", 4], ["7-7", 1], ["1-6:2", 3], ["1-2:9", 1], ["0-999999999:1000000", 1000],
    ["5", null], ["5-3", null], ["0-3:0", null], ["-1-3", null], ["1-", null], ["x", null], ["", null], ["1-3%2", null], ["1-3,5", null],
    ["0-9999999999", null], ["1-5:", null], ["1--5", null], [" 1-5", null],
  ];
  for (const [text, count] of table) {
    const range = parseArrayIndices(text);
    assert.equal(range === null ? null : indexCount(range), count, text);
  }
});

test("lists of indices are as short as they can be, and are read back", () => {
  const range = { first: 1, last: 9, step: 2 };
  // biome-ignore format: a table
  const table: readonly (readonly [positions: readonly number[], text: string])[] = [
    [[], "-"], [[0], "1"], [[0, 1], "1-3:2"], [[0, 2], "1,5"], [[0, 1, 2, 3, 4], "1-9:2"], [[0, 3, 4], "1,7-9:2"],
  ];
  for (const [positions, text] of table) assert.equal(indexListText(rangesOf(range, (at) => positions.includes(at))), text);
  assert.deepEqual(parseIndexList("1,7-9:2"), [
    { first: 1, last: 1, step: 1 },
    { first: 7, last: 9, step: 2 },
  ]);
  for (const text of ["-", "", "1,", "3-1", "a"]) assert.equal(parseIndexList(text), null, text);
});

test("every list of positions comes back from its text", () => {
  fc.assert(
    fc.property(
      fc.nat(50),
      fc.integer({ min: 1, max: 5 }),
      fc.array(fc.boolean(), { minLength: 1, maxLength: 40 }),
      (first, step, taken) => {
        const range = { first, last: first + (taken.length - 1) * step, step };
        const text = indexListText(rangesOf(range, (at) => taken[at] === true));
        const back = (text === "-" ? [] : (parseIndexList(text) ?? [])).flatMap((part) =>
          Array.from({ length: indexCount(part) }, (_, at) => indexAt(part, at)),
        );
        assert.deepEqual(
          back.map((index) => positionOf(range, index)),
          taken.flatMap((isIn, at) => (isIn ? [at] : [])),
        );
        assert.equal(positionOf(range, range.last + step), -1);
      },
    ),
  );
});
