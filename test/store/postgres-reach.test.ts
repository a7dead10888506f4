// Which hosts two servers reach, when the leader gives up its lead for that reason, and which hosts are tried.

import assert from "node:assert/strict";
import { test } from "node:test";
import {
  compareReach,
  givesUp,
  leavesToRival,
  lostHosts,
  type MomPlace,
  mayHaveBack,
  nextPlaces,
  noteReach,
  otherReachesMore,
  placesText,
  type Reach,
  type Round,
  reachText,
  readPlaces,
  readReach,
  STANDING_AT_FIRST,
} from "#store/postgres/reach.ts";

const LIMITS = { mom_silence_ms: 3000, settle_ms: 60_000 };
const HOSTS = ["a", "b", "c", "d"];

/** Reach of a word such as `a-c`: a and c are reached of the hosts a, b, c when the word is as long. `-` means missed. */
function reach(word: string): Reach {
  const asked = HOSTS.slice(0, word.length);
  return { asked, reached: asked.filter((host, at) => word[at] === host) };
}
const round = (word: string, begun_ms = 0): Round => ({ ...reach(word), begun_ms });

test("reach: a server reaches clearly more if the other one reaches none, or if the difference is more than half", () => {
  const table: readonly (readonly [own: string, other: string, more: boolean])[] = [
    ["abcd", "abcd", false],
    ["----", "----", false],
    ["----", "a---", true],
    ["----", "abcd", true],
    ["a---", "abcd", true],
    ["ab--", "abcd", false],
    ["-b--", "a---", false],
    ["a---", "--cd", false],
    ["a", "a", false],
    ["-", "a", true],
    ["ab", "-b", false],
    ["----", "", false],
    ["", "abcd", false],
    ["-", "-bcd", false],
    ["ab--", "abc", false],
  ];
  for (const [own, other, more] of table)
    assert.equal(otherReachesMore(compareReach(reach(own), reach(other))), more, `own ${own}, other ${other}`);
  assert.deepEqual(compareReach(reach("ab--"), reach("-bc")), { all: 3, own: 2, other: 2 }, "only hosts that both have tried count");
  assert.deepEqual(compareReach(null, reach("ab")), { all: 0, own: 0, other: 0 });
});

type Step = readonly [at_ms: number, own: Round | null, other: Reach | null];

/** When the leader gives up, if the steps come one after the other; null: it does not. led_ms: since when it leads */
function gaveUpAt(steps: readonly Step[], led_ms = -100_000): number | null {
  let standing = STANDING_AT_FIRST;
  for (const [at_ms, own, other] of steps) {
    standing = noteReach(standing, own, other, at_ms);
    if (givesUp(standing, led_ms, at_ms, LIMITS)) return at_ms;
  }
  return null;
}

test("reach: the leader gives up after two bad rounds and the time mom_silence, and not in its first time", () => {
  const all = reach("abcd");
  const steps: readonly Step[] = [
    [0, round("abcd", 0), all],
    [2000, round("abcd", 0), all],
    [4000, round("----", 2000), all],
    [6000, round("----", 4000), all],
    [8000, round("----", 6000), all],
  ];
  assert.equal(gaveUpAt(steps), 6000);
  assert.equal(gaveUpAt(steps.slice(0, 3)), null, "one round proves nothing");
  assert.equal(gaveUpAt([...steps.slice(0, 3), [20_000, round("----", 2000), all]]), null, "one round, seen twice");
  assert.equal(gaveUpAt(steps, 0), null, "it has led for 8 s, and settle is 60 s");
  assert.equal(gaveUpAt(steps, -54_000), 6000);
  const broken: readonly Step[] = [...steps.slice(0, 3), [5000, round("abc-", 4000), all], [6000, round("----", 5500), all]];
  assert.equal(gaveUpAt(broken), null, "a good round in between");
  assert.equal(gaveUpAt(steps.map(([at_ms, own]) => [at_ms, own, null])), null, "nobody waits");
  assert.equal(gaveUpAt(steps.map(([at_ms, own]) => [at_ms, own, reach("----")])), null, "the other server is cut off as well");
  assert.equal(gaveUpAt(steps.map(([at_ms, , other]) => [at_ms, null, other])), null, "it has not tried yet");
});

test("reach: a primary that waits has the lead back when it has not reached clearly fewer hosts for the time settle", () => {
  const own = round("abcd");
  const may = (primary: Reach | null, ahead_ms: number | null, now_ms = 100_000, more: object = {}): boolean =>
    mayHaveBack({ fewer: null, ahead_ms }, { own, primary, trying: true, ...more }, now_ms, LIMITS);
  assert.equal(may(reach("abcd"), null), true);
  assert.equal(may(null, null), true, "an earlier release does not say what it reaches");
  assert.equal(may(reach(""), null), false, "it has not tried yet");
  assert.equal(may(reach("abcd"), 40_001), false);
  assert.equal(may(reach("abcd"), 40_000), true);
  assert.equal(may(reach("abcd"), null, 100_000, { own: null }), false, "the leader has not tried yet");
  assert.equal(may(reach(""), null, 100_000, { own: null, trying: false }), true, "there are no hosts");
  const { ahead_ms } = noteReach(STANDING_AT_FIRST, own, reach("----"), 70_000);
  assert.equal(ahead_ms, 70_000);
  assert.equal(noteReach({ fewer: null, ahead_ms: 5 }, own, reach("abc-"), 70_000).ahead_ms, 5, "not clearly fewer");
});

test("reach: a server leaves a lead that nobody has to one that waits and reaches clearly more", () => {
  const leaves = (own: Reach | null, other: Reach | null, free_ms: number, is_alive: boolean): boolean =>
    leavesToRival(own, [{ reach: other, is_alive }], { free_ms, look_ms: 500, silence_ms: 7000 });
  assert.equal(leaves(reach("----"), reach("abcd"), 0, false), true);
  assert.equal(leaves(reach("----"), reach("abcd"), 1500, false), false, "it may have ended long ago");
  assert.equal(leaves(reach("----"), reach("abcd"), 1500, true), true);
  assert.equal(leaves(reach("----"), reach("abcd"), 7000, true), false, "it does not take the lead");
  assert.equal(leaves(reach("abcd"), reach("abcd"), 0, true), false);
  assert.equal(leaves(null, reach("abcd"), 0, true), true, "it does not know yet what it reaches itself");
  assert.equal(leaves(null, reach("----"), 0, true), false);
  assert.equal(leaves(reach("----"), null, 0, true), false);
  assert.equal(leavesToRival(null, [], { free_ms: 0, look_ms: 500, silence_ms: 7000 }), false);
});

const place = (host: string, port = 1): MomPlace => ({ host, address: `address of ${host}`, port });
const places = (hosts: string): MomPlace[] => [...hosts].map((host) => place(host));

test("reach: the list of hosts is filled, and keeps hosts whose moms are not connected any more", () => {
  const next = (before: string, connected: string, { known = "abcdefgh", lost = "", most = 3 } = {}): string =>
    nextPlaces(places(before), places(connected), { isKnown: (host) => known.includes(host), lost: new Set(lost), most })
      .map(({ host }) => host)
      .join("");
  assert.equal(next("", "abcd"), "abc");
  assert.equal(next("abc", ""), "abc", "cut off from all moms");
  assert.equal(next("abc", "d"), "abc");
  assert.equal(next("ab", "d"), "abd");
  assert.equal(next("abc", "cd", { known: "acd" }), "acd", "the vnodes of b were deleted");
  assert.equal(next("abc", "cd", { lost: "ab" }), "bcd", "one host has been lost for long, and another one takes its place");
  assert.equal(next("abc", "c", { lost: "ab" }), "abc", "there is no other one");
  assert.equal(next("abc", "abcd", { lost: "a" }), "abc", "it is connected again");
  assert.equal(next("abcde", "f"), "abc", "the limit was lowered");
  assert.deepEqual(nextPlaces([place("a", 1)], [place("a", 2)], { isKnown: () => true, lost: new Set(), most: 3 }), [place("a", 2)]);
});

test("reach: a host that neither server reaches for the time settle is lost", () => {
  const since = new Map<string, number>();
  const lost = (own: Round | null, other: Reach | null, now_ms: number): string[] => [...lostHosts(since, own, other, now_ms, 60_000)];
  assert.deepEqual(lost(round("a---"), reach("-b--"), 0), []);
  assert.deepEqual(lost(round("a---"), reach("-b--"), 59_999), []);
  assert.deepEqual(lost(round("a---"), reach("-b--"), 60_000), ["c", "d"]);
  assert.deepEqual(lost(round("a---"), reach("-bc-"), 61_000), ["d"]);
  assert.deepEqual(lost(round("a---"), reach("-b--"), 62_000), ["d"], "the time of c begins anew");
  assert.deepEqual(lost(null, null, 200_000), []);
});

test("reach: texts in the database", () => {
  const list = [place("a"), place("b", 65_535)];
  assert.deepEqual(readPlaces(placesText(list)), list);
  assert.deepEqual(readReach(reachText(reach("a-c"))), reach("a-c"));
  assert.deepEqual(readReach(reachText({ asked: [], reached: [] })), { asked: [], reached: [] });
  for (const text of [null, "", "{", "5", '"x"', "{}", "[]", "[1,2]"]) {
    assert.equal(readReach(text), null, `${text}`);
    assert.deepEqual(readPlaces(text), [], `${text}`);
  }
  assert.deepEqual(readPlaces('[["a","x",0],["b","y",70000],["c","z",1.5],[1,2,3],["d","w",5]]'), [{ host: "d", address: "w", port: 5 }]);
  assert.deepEqual(readReach('[["a",1],[null,"a"]]'), { asked: ["a"], reached: ["a"] });
});
