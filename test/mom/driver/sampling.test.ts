// The times at which jobs are sampled: the interval grows while nothing changes.

import assert from "node:assert/strict";
import { test } from "node:test";
import { dueLeaders, nextPoll_s } from "#mom/driver/sampling.ts";
import { job, run, world } from "../world.ts";

const S = 1000;

test("from $min_check_poll to $max_check_poll in nineteen steps, and anew when a job starts", () => {
  const w = world();
  run(w, job());
  const bounds = { min_s: 10, max_s: 120 };
  const later = w.now_ms + 1;
  let poll_s = nextPoll_s(w.state, 0, 0, bounds);
  assert.equal(poll_s, 10, "a job has begun");
  const seen = Array.from({ length: 25 }, () => (poll_s = nextPoll_s(w.state, later, poll_s, bounds)));
  assert.deepEqual(seen.slice(0, 3), [15, 20, 25]);
  assert.deepEqual(seen.slice(-2), [120, 120]);
  w.now_ms += 60 * S;
  run(w, job({ id: "2.n1" }), 4712);
  assert.equal(nextPoll_s(w.state, later, poll_s, bounds), 10);
  assert.equal(nextPoll_s(w.state, later + 100 * S, 10, { min_s: 10, max_s: 12 }), 11, "at least a second");
});

test("a job is due once it has run for the period and was not looked at within it; one with limits every two seconds", () => {
  const w = world();
  run(w, job(), 11);
  run(w, job({ id: "2.n1", attrs: { Resource_List: { ncpus: 1, cput: 60 } } }), 12);
  run(w, job({ id: "3.n1", attrs: { Checkpoint: "c=1" } }), 13);
  const due = (seconds: number, period_s: number, last_s = 0): string => {
    const { leaders, all } = dueLeaders(w.state, last_s === 0 ? 0 : w.now_ms + last_s * S, w.now_ms + seconds * S, period_s * S);
    return `${[...leaders].sort()}${all ? " all" : ""}`;
  };
  assert.equal(due(1, 10), "");
  assert.equal(due(2, 10), "12,13");
  assert.equal(due(10, 10), "11,12,13 all");
  assert.equal(due(10, 60), "12,13");
  assert.equal(due(15, 10, 12), "12,13", "the others were looked at");
  assert.equal(due(22, 10, 12), "11,12,13 all", "those with limits do not keep the others from their turn");
});
