// Parameters of campaigns: lines of a text, kept as offsets.

import assert from "node:assert/strict";
import { test } from "node:test";
import { JDL_LIMITS } from "#grid/jdl/jdl.ts";
import { countedParameters, type Parameters, parameterAt, parameterName, parametersOf, parameterWords } from "#grid/jdl/parameters.ts";

function lines(text: string): Parameters {
  const parameters = parametersOf(text, JDL_LIMITS);
  assert.ok(!("line" in parameters), JSON.stringify(parameters));
  return parameters;
}

test("empty lines, blanks at the ends and line ends of other systems do not count", () => {
  const parameters = lines("\n  a 1\t\r\n\r\n\t\nb 'x y'\n\"c d\" \\e");
  assert.equal(parameters.count, 3);
  assert.deepEqual(
    [0, 1, 2].map((at) => parameterAt(parameters, at)),
    ["a 1", "b 'x y'", '"c d" \\e'],
  );
  assert.deepEqual(parameterWords(parameters, 1), ["b", "x y"]);
  assert.deepEqual(
    [0, 1, 2].map((at) => parameterName(parameters, at)),
    ["a", "b", "c d"],
  );
});

const FAULTS: readonly [text: string, line: number, says: RegExp][] = [
  ["", 1, /there is no parameter/],
  ["\n\n \n", 1, /there is no parameter/],
  ["a\nb\n\n a \n", 4, /"a" stands here again/],
  ["a\nb 'c\n", 2, /a quote is not closed/],
  ["a\nb\0c\n", 2, /NUL/],
];
for (const [text, line, says] of FAULTS)
  test(`refused: ${JSON.stringify(text)}`, () => {
    const fault = parametersOf(text, JDL_LIMITS);
    assert.ok("line" in fault);
    assert.equal(fault.line, line);
    assert.match(fault.text, says);
  });

test("numbers and lengths are bounded", () => {
  assert.deepEqual(parametersOf("a\nb\nc", { parameters_max: 2, characters_max: 100 }), { line: 3, text: "more than 2 parameters" });
  assert.ok("line" in parametersOf("a\nb\nc", { parameters_max: 9, characters_max: 4 }));
});

test("a counted parameter is its number", () => {
  const parameters = countedParameters(3);
  assert.equal(parameterAt(parameters, 2), "2");
  assert.throws(() => parameterAt(parameters, 3), RangeError);
  assert.throws(() => parameterAt(lines("a"), 1));
});

test("a million parameters take a few bytes each beyond their text", () => {
  const text = Array.from({ length: 1_000_000 }, (_, at) => `job${at} ${at % 7}`).join("\n");
  const parameters = lines(text);
  assert.equal(parameters.count, 1_000_000);
  assert.equal(parameterAt(parameters, 999_999), "job999999 0");
  assert.ok(parameters.starts.byteLength <= 4 * 1_000_000);
});

test("lines that were made to have equal hashes cost no more than others", () => {
  // Two texts of equal length with one FNV-1a hash: every sequence of the two gives lines with equal hashes.
  const [one, two] = collision();
  const text = Array.from({ length: 1 << 14 }, (_, at) =>
    Array.from({ length: 14 }, (__, bit) => ((at >> bit) & 1 ? one : two)).join(""),
  ).join("\n");
  const begun = process.cpuUsage().user;
  assert.equal(lines(text).count, 1 << 14);
  assert.ok(process.cpuUsage().user - begun < 5_000_000, "takes less than five seconds");
});

/** Finds two texts of six letters with equal FNV-1a hashes from the usual start, which then collide after any common beginning, too, if their hashes agree there. */
function collision(): [string, string] {
  const seen = new Map<number, string>();
  for (let n = 0; ; n++) {
    const text = n.toString(36).padStart(6, "0");
    let hash = 0x811c9dc5;
    for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193);
    const other = seen.get(hash);
    if (other !== undefined) return [other, text];
    seen.set(hash, text);
  }
}
