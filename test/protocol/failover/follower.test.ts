// What a follower does when a server says who leads.

import assert from "node:assert/strict";
import { test } from "node:test";
import { followNobody, judgeOther, judgeWelcome } from "#protocol/failover/follower.ts";

const at = (term: number, store = 7) => ({ store, term });

test("follower: obeys a newer leader and the same one, and leaves an older one", () => {
  const following = followNobody(at(3));
  assert.deepEqual(judgeWelcome(following, at(4)), { judgement: "obey", next: followNobody(at(4)) });
  assert.deepEqual(judgeWelcome(following, at(3)), { judgement: "obey", next: followNobody(at(3)) });
  assert.deepEqual(judgeWelcome(following, at(2)), { judgement: "leave", next: following });
  assert.equal(judgeWelcome(followNobody(null), at(1)).judgement, "obey", "the first leader");
  assert.equal(judgeWelcome(followNobody(null), null).judgement, "obey", "a complex with one server");
});

test("follower: obeys a leader of another store only after it has looked for the known one in vain", () => {
  const following = followNobody(at(3));
  assert.equal(judgeWelcome(following, at(9, 8)).judgement, "seek");
  assert.equal(judgeWelcome(following, null).judgement, "seek", "a server that names no leader any more");
  const { next } = judgeOther(following, undefined, false);
  assert.deepEqual(next, { known: at(3), sought: true });
  assert.deepEqual(judgeWelcome(next, at(9, 8)), { judgement: "obey", next: followNobody(at(9, 8)) });
  const found = judgeOther(next, at(3), true);
  assert.equal(judgeWelcome(found.next, at(9, 8)).judgement, "seek", "the other server names the known store");
});

test("follower: goes over to the other server if that one is newer, or if it has no server", () => {
  const following = followNobody(at(3));
  assert.equal(judgeOther(following, at(4), true).goes, true);
  assert.equal(judgeOther(following, at(3), false).goes, true, "the present connection has not welcomed it");
  assert.equal(judgeOther(following, at(3), true).goes, false);
  assert.equal(judgeOther(following, at(2), false).goes, false, "a server that was replaced");
  assert.equal(judgeOther(following, at(9, 8), false).goes, false);
  assert.equal(judgeOther(following, undefined, false).goes, false, "it does not answer");
});
