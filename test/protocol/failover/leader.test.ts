import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { compareLeaders, isNewer, LEADER_CHARS_MAX, type Leader, leaderText, parseLeader } from "#protocol/failover/leader.ts";

const leader = (text: string): Leader | null => (text === "-" ? null : parseLeader(text));

describe("the text of a leader", () => {
  const texts: readonly [text: string, leader: Leader | null][] = [
    ["7/3", { store: 7, term: 3 }],
    ["281474976710655/12", { store: 281474976710655, term: 12 }],
    ["7/0", { store: 7, term: 0 }],
    ["", null],
    ["7", null],
    ["7/", null],
    ["/3", null],
    ["0/3", null],
    ["07/3", null],
    ["7/03", null],
    ["-7/3", null],
    ["7/-3", null],
    ["7/3 ", null],
    ["7/3\n", null],
    ["7/3/1", null],
    ["7.5/3", null],
    ["1e3/3", null],
    ["9999999999999999/1", null],
  ];
  for (const [text, parsed] of texts) {
    it(`${JSON.stringify(text)} is ${parsed === null ? "none" : `store ${parsed.store}, term ${parsed.term}`}`, () => {
      assert.deepEqual(parseLeader(text), parsed);
      if (parsed !== null) assert.equal(leaderText(parsed), text);
    });
  }
  it("is never longer than its limit", () => {
    const longest = { store: 999_999_999_999_999, term: 999_999_999_999_999 };
    assert.equal(leaderText(longest).length, LEADER_CHARS_MAX);
    assert.deepEqual(parseLeader(leaderText(longest)), longest);
  });
});

describe("two leaders", () => {
  const rows: readonly [known: string, said: string, comparison: string][] = [
    ["-", "-", "same"],
    ["-", "7/1", "newer"],
    ["7/3", "7/4", "newer"],
    ["7/3", "7/40", "newer"],
    ["7/9", "7/10", "newer"],
    ["7/3", "7/3", "same"],
    ["7/3", "7/2", "older"],
    ["7/10", "7/9", "older"],
    ["7/3", "8/4", "foreign"],
    ["7/3", "6/9", "foreign"],
    ["7/3", "7000/3", "foreign"],
    ["7/3", "-", "foreign"],
  ];
  for (const [known, said, comparison] of rows) {
    it(`who knows ${known} and hears ${said}: ${comparison}`, () => {
      assert.equal(compareLeaders(leader(known), leader(said)), comparison);
      assert.equal(isNewer(leader(known), leader(said)), comparison === "newer");
    });
  }
});
