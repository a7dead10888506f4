// Which connection is turned out if too many have not proved themselves.

import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { waitingRoom } from "#protocol/bounds/waiting-room.ts";

const [OWN, BOB, EVE] = [1000, 1001, 1002];

/** The guests left, and those turned out, after guests of these users have entered. */
function after(max: number, uids: readonly (number | null)[]): { readonly left: number[]; readonly out: number[] } {
  const out: number[] = [];
  const room = waitingRoom<number>({ max, own: [0, OWN], turnOut: (guest) => out.push(guest) });
  for (const [guest, uid] of uids.entries()) room.enter(guest, uid);
  return { left: [...room.guests], out };
}

test("the oldest of whoever has the most goes, our own last", () => {
  assert.deepEqual(after(3, [EVE, BOB, EVE, EVE]).out, [0]);
  assert.deepEqual(after(3, [OWN, OWN, OWN, BOB]).out, [3], "a stranger does not put our own out");
  assert.deepEqual(after(3, [OWN, 0, OWN, OWN]).out, [0]);
  assert.deepEqual(after(2, [null, null, BOB]).out, [0], "nobody knows whose they are: one user");
  const room = waitingRoom<string>({ max: 1, own: [], turnOut: () => assert.fail("there is room") });
  room.enter("a", EVE);
  room.leave("a");
  room.enter("b", EVE);
});

test("whatever one user does, a guest of another stays", () => {
  const many = fc.integer({ min: 0, max: 30 });
  fc.assert(
    fc.property(fc.integer({ min: 2, max: 8 }), many, many, (max, before, since) => {
      const flood = (length: number): number[] => Array.from({ length }, () => EVE);
      for (const guest of [BOB, OWN]) {
        const { left } = after(max, [...flood(before), guest, ...flood(since)]);
        assert.ok(left.includes(before), `${left} without ${before}`);
        assert.equal(left.length, Math.min(max, before + 1 + since));
      }
    }),
  );
});
