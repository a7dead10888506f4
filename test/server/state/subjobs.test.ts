// The bytes of an array's subjobs: rows restore them, counts follow, and lists of waiting subjobs are right. Also the
// combination of many answers into one.

import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { indexAt, indexCount, parseIndexList } from "#model/array-indices.ts";
import type { ClientFrame } from "#server/engine/batch.ts";
import { joinAnswers, noJointAnswers, splitToken } from "#server/engine/joint-answers.ts";
import {
  indicesIn,
  isOver,
  loadSubjobs,
  namedIndices,
  newSubjobs,
  noteLive,
  remainingText,
  SUBJOB,
  type SubjobState,
  setSubjobState,
  subjobsText,
} from "#server/state/subjobs.ts";

test("subjobs: any standing is what its row says, and what waits is listed", () => {
  const states = fc.array(fc.constantFrom<SubjobState>(0, 1, 2, 3, 4), { minLength: 1, maxLength: 60 });
  fc.assert(
    fc.property(fc.nat(20), fc.integer({ min: 1, max: 4 }), states, (first, step, wanted) => {
      const indices = `${first}-${first + (wanted.length - 1) * step}:${step}`;
      const subjobs = newSubjobs(indices);
      wanted.forEach((state, at) => {
        const index = first + at * step;
        if (state !== SUBJOB.QUEUED) setSubjobState(subjobs, index, state);
        if (state === SUBJOB.LIVE) noteLive(subjobs, index, at % 2 === 0 ? "Q" : "R", 1);
      });
      const back = loadSubjobs(indices, subjobsText(subjobs));
      assert.deepEqual([...back.states], wanted);
      assert.deepEqual(back.counts, subjobs.counts);
      assert.equal(
        isOver(subjobs),
        wanted.every((state) => state > SUBJOB.LIVE),
      );
      assert.deepEqual(
        [...indicesIn(subjobs, SUBJOB.FAILED)],
        wanted.flatMap((state, at) => (state === SUBJOB.FAILED ? [first + at * step] : [])),
      );
      const remaining = remainingText(subjobs);
      const listed = (remaining === "-" ? [] : (parseIndexList(remaining) ?? [])).flatMap((range) =>
        Array.from({ length: indexCount(range) }, (_, at) => indexAt(range, at)),
      );
      const waits = (state: SubjobState, at: number): boolean => state === SUBJOB.QUEUED || (state === SUBJOB.LIVE && at % 2 === 0);
      assert.deepEqual(
        listed,
        wanted.flatMap((state, at) => (waits(state, at) ? [first + at * step] : [])),
      );
    }),
  );
});

test("subjobs: a range names what the array has of it, however wide it is", () => {
  const subjobs = newSubjobs("10-30:5");
  // biome-ignore format: a table
  const table: readonly (readonly [ranges: string, indices: readonly number[]])[] = [
    ["0-999999999", [10, 15, 20, 25, 30]], ["11-14", []], ["15", [15]], ["30,10-15", [10, 15, 30]], ["10-30:10", [10, 20, 30]], ["0-40:3", [15, 30]],
  ];
  for (const [ranges, indices] of table) assert.deepEqual(namedIndices(subjobs, parseIndexList(ranges) ?? []), indices, ranges);
});

test("subjobs: who is over stays over", () => {
  const subjobs = newSubjobs("1-2");
  setSubjobState(subjobs, 1, SUBJOB.FINISHED);
  assert.throws(() => setSubjobState(subjobs, 1, SUBJOB.LIVE));
  assert.throws(() => setSubjobState(subjobs, 3, SUBJOB.LIVE));
  assert.throws(() => loadSubjobs("1-2", "Q1"), /the row tells of 1/);
});

test("joint answers: the client hears once, of the last refusal if there was one", () => {
  const joint = noJointAnswers();
  const [a = 0, b = 0, c = 0] = splitToken(joint, 7, 3);
  const ok = (token: number): ClientFrame => ({ kind: "ok", token });
  assert.deepEqual(joinAnswers(joint, [ok(a), ok(5)]), [ok(5)]);
  assert.deepEqual(joinAnswers(joint, [{ kind: "error", token: b, code: 15016, text: "no" }]), []);
  assert.deepEqual(joinAnswers(joint, [ok(c), ok(6)]), [{ kind: "error", token: 7, code: 15016, text: "no" }, ok(6)]);
  assert.deepEqual(joinAnswers(joint, [ok(a)]), [], "answered already");
  const [one = 0] = splitToken(joint, 8, 1);
  assert.deepEqual(joinAnswers(joint, [ok(one)]), [ok(8)]);
});
