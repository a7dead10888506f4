import assert from "node:assert/strict";
import { test } from "node:test";
import type { MomJob } from "#protocol/mom-link.ts";
import { bySize } from "#server/shell/start-frames.ts";

const MI = 1024 * 1024;
const job = (id: string, chars: number): MomJob => ({ id, script: "x".repeat(chars) }) as unknown as MomJob;

test("jobs go to a mom in frames of a bounded size, in their order", () => {
  const jobs = [job("1", 1), job("2", 7 * MI), job("3", 7 * MI), job("4", 7 * MI), job("5", 20 * MI), job("6", 1)];
  assert.deepEqual(
    bySize(jobs).map((frame) => frame.map(({ id }) => id)),
    [["1", "2", "3"], ["4"], ["5"], ["6"]],
  );
  assert.deepEqual(bySize([]), []);
});
