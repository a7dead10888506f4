// Reading records that are mostly alike gives the same results as JSON.parse of each.

import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { alikeReader } from "#store/alike-rows.ts";
import { asItIs } from "#store/store.ts";

/** The results are equal, with names in the same order. */
function assertSame(texts: readonly string[]): void {
  const read = alikeReader(asItIs);
  for (const text of texts) {
    let expected: unknown;
    try {
      expected = JSON.parse(text);
    } catch {
      assert.throws(() => read(text), SyntaxError, text);
      continue;
    }
    const found = read(text);
    assert.deepStrictEqual(found, expected, text);
    assert.equal(JSON.stringify(found), JSON.stringify(expected), text);
  }
}

/** Records of few names and values, so that many have much in common. */
const records = fc.array(
  fc.record(
    {
      a: fc.constantFrom<unknown>("x", 'q"', "b\\", '\\"', "c,d", "{", "]}", "\u00fc\u{1f600}\n", ""),
      b: fc.constantFrom<unknown>(1, -2.5e-9, true, null, [], {}, [1, ["y", { z: "}" }]], { k: [","], l: '"' }),
      'c"d': fc.constantFrom<unknown>("x", 1),
      7: fc.constantFrom<unknown>("n", 2),
      ["__proto__"]: fc.constantFrom<unknown>({ x: 1 }, 3),
      toString: fc.constantFrom<unknown>("t", 4),
      any: fc.jsonValue(),
    },
    { requiredKeys: [] },
  ),
  { maxLength: 60 },
);

test("whatever the records are, they come out as JSON.parse makes them", () => {
  fc.assert(fc.property(records, (list) => assertSame(list.map((record) => JSON.stringify(record)))));
});

test("texts with a character more, less or other are refused or read as JSON.parse does", () => {
  const change = fc.tuple(fc.nat(), fc.constantFrom("", ",", "}", "]", '"', "\\", " ", "1", "\n", "}{"), fc.boolean());
  fc.assert(
    fc.property(records, fc.array(change, { minLength: 60, maxLength: 60 }), (list, changes) =>
      assertSame(
        list.flatMap((record, at) => {
          const text = JSON.stringify(record);
          const [place, piece, replaces] = changes[at] ?? [0, "", false];
          const cut = place % (text.length + 1);
          const changed = text.slice(0, cut) + piece + text.slice(cut + (replaces ? 1 : 0));
          return changed.trim().startsWith("{") ? [text, changed, text] : [text];
        }),
      ),
    ),
  );
});

test("names that come twice, blanks and other ways to write JSON are read as JSON.parse does", () => {
  const texts = ['{"a":1,"b":2}', '{"a":1,"a":2}', '{"a":1,"a":3}', ' {"a":1}', '{"a" : 1, "b":2}', '{"a":1,"b": 2}', '{"a":1,"b":2 }'];
  assertSame([
    ...texts,
    ...texts,
    '{"a":1,"b":2',
    '{"a":1,"b":}',
    '"a":1,"b":2}',
    '["a":1,"b":2}',
    '{"a":1}{"b":2}',
    '{"a":2,"b":2}',
    '{"a":3}"b":2}',
    '{"a":4,"b":2}',
    '{"\\u0061":1}',
    "{}",
    "{}",
    "",
  ]);
});

test("equal values of neighbours are one, and each record is its own", () => {
  const read = alikeReader(asItIs);
  const texts = [1, 2, 3, 4].map((n) => JSON.stringify({ list: ["x"], n, twice: [n >> 1] }));
  const [, , third, fourth] = texts.map(read);
  assert.equal(third?.["list"], fourth?.["list"]);
  assert.notEqual(third, fourth);
  (third as { list: unknown }).list = 1;
  assert.deepEqual([fourth, read(texts[3] as string)], [JSON.parse(texts[3] as string), JSON.parse(texts[3] as string)]);
});

test("what is read is offered to be kept, each value once for as long as it stays", () => {
  const offered: unknown[] = [];
  const read = alikeReader((name, value) => {
    offered.push([name, value]);
    return name === "s" ? "kept" : value;
  });
  const found = [1, 1, 2, 2].map((n) => read(JSON.stringify({ s: "x", n })));
  assert.deepEqual(
    found,
    [1, 1, 2, 2].map((n) => ({ s: "kept", n })),
  );
  assert.ok(offered.length <= 7, JSON.stringify(offered));
});

test("records that have nothing in common are read all the same", () => {
  assertSame(Array.from({ length: 2000 }, (_, at) => JSON.stringify({ [`n${at % 700}`]: at, [`m${at}`]: "x" })));
});
