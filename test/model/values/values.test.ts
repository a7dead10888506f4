// Single values of each type as text: what is accepted, how it is shown, what is refused.

import assert from "node:assert/strict";
import { test } from "node:test";
import { parseBoolean, renderBoolean } from "#model/values/boolean.ts";
import { parseDuration, renderDuration } from "#model/values/duration.ts";
import { parseFloatText, renderFloat } from "#model/values/float.ts";
import { addHolds, isHeld, parseHolds, removeHolds } from "#model/values/hold.ts";
import { parseInteger } from "#model/values/integer.ts";
import { jobNameFault } from "#model/values/job-name.ts";
import { combineNodeStates, isNodeUsable, parseNodeStates, renderNodeStates } from "#model/values/node-state.ts";
import { canonicalSize, combineSizes, compareSizes, parseSize, renderSize, sizeBytes, sizeKb } from "#model/values/size.ts";
import { joinList, removeFromList, splitList } from "#model/values/string-array.ts";
import { refusal } from "../refusal.ts";

test("booleans are taken in every spelling of the reference and shown as True and False", () => {
  for (const text of ["True", "true", "TRUE", "T", "t", "Y", "y", "1"]) assert.equal(parseBoolean(text), true, text);
  for (const text of ["False", "FALSE", "f", "F", "n", "N", "0"]) assert.equal(parseBoolean(text), false, text);
  for (const text of ["", "yes", "no", "2", "-1", "perhaps", " true", "tru"]) assert.equal(parseBoolean(text), null, text);
  assert.deepEqual([true, false].map(renderBoolean), ["True", "False"]);
});

test("whole numbers: sign and digits, exact ones only", () => {
  const table: [string, number | null][] = [
    ["0", 0],
    ["-0", 0],
    ["42", 42],
    ["+7", 7],
    ["-5", -5],
    ["007", 7],
    ["9007199254740991", 9007199254740991],
    ["9007199254740992", null],
    ["99999999999999999", null],
    ["", null],
    ["abc", null],
    ["1.0", null],
    ["1e3", null],
    ["0x10", null],
    [" 1", null],
    ["1 ", null],
    ["--1", null],
    ["١", null],
  ];
  for (const [text, value] of table) assert.equal(parseInteger(text), value, text);
});

test("floating-point numbers are shown without exponent and read back the same", () => {
  const table: [string, string | null][] = [
    ["2.5", "2.5"],
    ["-1", "-1"],
    [".5", "0.5"],
    ["3.", "3"],
    ["1e3", "1000"],
    ["1e-7", "0.0000001"],
    ["1.25e-8", "0.0000000125"],
    ["0", "0"],
    ["1e18", "1000000000000000000"],
    ["", null],
    [".", null],
    ["e5", null],
    ["1e19", null],
    ["1e-30", null],
    ["NaN", null],
    ["Infinity", null],
    ["0x1p3", null],
    ["1,5", null],
    ["2.5.1", null],
  ];
  for (const [text, shown] of table) {
    const value = parseFloatText(text);
    assert.equal(value === null ? null : renderFloat(value), shown, text);
    if (value !== null) assert.equal(parseFloatText(renderFloat(value)), value, text);
  }
});

test("sizes keep their unit and are taken in any case", () => {
  const table: [string, string | null, number][] = [
    ["10gb", "10gb", 10 * 2 ** 30],
    ["20mb", "20mb", 20 * 2 ** 20],
    ["1000", "1000b", 1000],
    ["100mw", "100mw", 800 * 2 ** 20],
    ["287MB", "287mb", 287 * 2 ** 20],
    ["102400K", "102400kb", 102400 * 1024],
    ["5w", "5w", 40],
    ["1p", "1pb", 2 ** 50],
    ["3Tb", "3tb", 3 * 2 ** 40],
    ["51200KB", "51200kb", 51200 * 1024],
    ["0", "0b", 0],
    ["007kb", "7kb", 7168],
    ["", null, 0],
    ["gb", null, 0],
    ["12xx", null, 0],
    ["-1gb", null, 0],
    ["1.5gb", null, 0],
    ["10 gb", null, 0],
    ["10gbb", null, 0],
    ["10eb", null, 0],
    ["99999999999999999", null, 0],
  ];
  for (const [text, canonical, bytes] of table) {
    assert.equal(canonicalSize(text), canonical, text);
    const size = parseSize(text);
    if (size !== null) assert.equal(sizeBytes(size), bytes, text);
  }
  assert.deepEqual([sizeKb("1b"), sizeKb("1024b"), sizeKb("1025b"), sizeKb("2gb"), sizeKb("3kw"), sizeKb("")], [1, 1, 2, 2097152, 24, 0]);
});

test("sizes are added and subtracted in the smaller unit, words and bytes in bytes", () => {
  const combine = (a: string, sign: 1 | -1, b: string): string | null => {
    const sum = combineSizes(parseSize(a)!, parseSize(b)!, sign);
    return sum === null ? null : renderSize(sum);
  };
  const table: [string, 1 | -1, string, string | null][] = [
    ["8gb", 1, "512mb", "8704mb"],
    ["512mb", 1, "8gb", "8704mb"],
    ["1gb", 1, "1gb", "2gb"],
    ["8gb", -1, "8gb", "0gb"],
    ["1gb", -1, "1mb", "1023mb"],
    ["1mb", -1, "1gb", null],
    ["1kw", 1, "1kb", "9kb"],
    ["2w", 1, "3w", "5w"],
    ["9007199254740991pb", 1, "1b", null],
  ];
  for (const [a, sign, b, sum] of table) assert.equal(combine(a, sign, b), sum, `${a} ${sign} ${b}`);
  assert.ok(compareSizes(parseSize("1024mb")!, parseSize("1gb")!) === 0 && compareSizes(parseSize("1gb")!, parseSize("1gw")!) < 0);
});

test("durations: clock form or seconds, shown HH:MM:SS", () => {
  const table: [string, string | null][] = [
    ["0", "00:00:00"],
    ["90", "00:01:30"],
    ["1:00:00", "01:00:00"],
    ["10:00", "00:10:00"],
    ["1:90", "00:02:30"],
    ["0:5:0", "00:05:00"],
    ["336:00:00", "336:00:00"],
    ["100:00:01.4", "100:00:01"],
    ["59.9", "00:01:00"],
    ["3600000", "1000:00:00"],
    ["", null],
    [":", null],
    ["1:", null],
    [":30", null],
    ["1:2:3:4", null],
    ["-5", null],
    ["abc", null],
    ["1h", null],
    ["1:x:3", null],
    ["1.5:00", null],
    ["9999999999999999", null],
    ["999999999999999:0:0", null],
  ];
  for (const [text, shown] of table) {
    const seconds = parseDuration(text);
    assert.equal(seconds === null ? null : renderDuration(seconds), shown, text);
  }
});

test("lists split at commas that no backslash protects, and join to the same text", () => {
  const table: [string, string[]][] = [
    ["a,b,c", ["a", "b", "c"]],
    [" a , b ", ["a", "b"]],
    ["", []],
    [",,", []],
    ["a,,b", ["a", "b"]],
    ["X=1\\,2,Y=3", ["X=1\\,2", "Y=3"]],
    ["a\\\\,b", ["a\\\\", "b"]],
    ["a\\ ,b", ["a\\ ", "b"]],
    ["a\\", ["a\\"]],
  ];
  for (const [text, elements] of table) {
    assert.deepEqual(splitList(text), elements, text);
    assert.deepEqual(splitList(joinList(elements)), elements, text);
  }
  assert.deepEqual(splitList("A= x ,B=", true), ["A= x ", "B="]);
  assert.deepEqual(removeFromList(["a", "b", "a"], ["a", "z"]), ["b", "a"]);
});

test("holds are letters in the order s, o, u, p", () => {
  const table: [string, string | null][] = [
    ["u", "u"],
    ["uso", "sou"],
    ["n", "n"],
    ["pu", "up"],
    ["uu", "u"],
    ["", null],
    ["x", null],
    ["un", null],
    ["U", null],
  ];
  for (const [text, holds] of table) assert.equal(parseHolds(text), holds, text);
  assert.deepEqual([addHolds("n", "u"), addHolds("u", "s"), removeHolds("sou", "so"), removeHolds("u", "u")], ["u", "su", "u", "n"]);
  assert.deepEqual([isHeld("n"), isHeld(""), isHeld(undefined), isHeld("u")], [false, false, false, true]);
});

test("states of vnodes: offline adds, free clears what administrators set, output has a fixed order", () => {
  const set = (old: string[], op: "=" | "+=" | "-=", text: string): string =>
    renderNodeStates(combineNodeStates(op, old, parseNodeStates(text)));
  assert.equal(set([], "=", "offline"), "offline");
  assert.equal(set(["offline"], "+=", "down"), "down,offline");
  assert.equal(set(["down", "offline"], "-=", "down"), "offline");
  assert.equal(set(["offline"], "=", "free"), "free");
  assert.equal(set(["job-busy"], "=", "offline"), "offline,job-busy");
  assert.equal(set(["offline", "job-busy"], "=", "free"), "job-busy");
  assert.equal(renderNodeStates(combineNodeStates("+=", ["down"], ["state-unknown"])), "state-unknown,down");
  assert.equal(
    refusal(() => parseNodeStates("wonderful")),
    "15067 Illegal value for node state",
  );
  assert.equal(
    refusal(() => parseNodeStates("job-busy")),
    "15067 Illegal value for node state",
  );
  assert.equal(
    refusal(() => parseNodeStates("free,offline")),
    "15068 Mutually exclusive values for  state",
  );
  assert.deepEqual([isNodeUsable([]), isNodeUsable(["job-busy"]), isNodeUsable(["job-busy", "offline"])], [true, true, false]);
});

test("job names: 1 to 230 characters without blanks and slashes, not starting with a dash", () => {
  for (const name of ["a", "1abc", "my.job-1", "häuser", "x".repeat(230), "a,b=c", "-abc"]) assert.equal(jobNameFault(name), null, name);
  for (const name of ["", "a b", "a\tb", "a/b", "a\u0000b", "a\nb", "\u0007"])
    assert.equal(jobNameFault(name), "illegal", JSON.stringify(name));
  for (const name of ["x".repeat(231), "x".repeat(236)]) assert.equal(jobNameFault(name), "too long");
});
