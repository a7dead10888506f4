// Who may write to the database: decisions over what was seen of the row about the leader.

import assert from "node:assert/strict";
import { test } from "node:test";
import { afterReconnect, isAlive, type LeaderRow, mayTake, mustConfirm, type Sighting, seen } from "#store/postgres/leadership.ts";
import { prng } from "#support/prng.ts";

const ROW: LeaderRow = { store: 1, term: 4, last_commit: 70, beat: 3, holder: "a:/pbs", instance: "i1", host: "a", pid: 12 };
const ME = { holder: "b:/pbs", instance: "i2" };
const SILENCE_MS = 7000;

test("leadership: when a server may take over", () => {
  const table: readonly (readonly [what: string, row: Partial<LeaderRow>, seen_for_ms: number, decision: string])[] = [
    ["nobody leads", { holder: null, instance: null }, 0, "take: nobody leads"],
    ["a former process of my PBS_HOME", { holder: ME.holder }, 0, "take: same PBS_HOME"],
    ["myself", { holder: ME.holder, instance: ME.instance }, 0, "again"],
    ["another server, just seen", {}, 0, "wait until 7000"],
    ["another server, silent for a while", {}, 6999, "wait until 7000"],
    ["another server, silent long enough", {}, 7000, "take: silence"],
  ];
  for (const [what, change, seen_for_ms, expected] of table) {
    const decision = mayTake(ME, { row: { ...ROW, ...change }, since_ms: 0 }, seen_for_ms, SILENCE_MS);
    const text =
      decision.kind === "take" ? `take: ${decision.why}` : decision.kind === "wait" ? `wait until ${decision.until_ms}` : decision.kind;
    assert.equal(text, expected, what);
  }
});

test("leadership: each sign of life begins the silence anew", () => {
  for (const sign of [{ term: 5 }, { last_commit: 71 }, { beat: 4 }, { instance: "i3" }] as const) {
    const first = seen(null, ROW, 100);
    assert.equal(seen(first, { ...ROW }, 5000), first, "an unchanged row keeps its time");
    assert.deepEqual(seen(first, { ...ROW, ...sign }, 5000), { row: { ...ROW, ...sign }, since_ms: 5000 });
    assert.equal(isAlive(ROW, { ...ROW, ...sign }), true);
  }
  assert.equal(isAlive(ROW, ROW), false);
  assert.equal(isAlive(ROW, { ...ROW, holder: null, instance: null }), false, "a leader that has ended is not alive");
});

test("leadership: when a leader confirms its term before it acts", () => {
  for (const [begun_ms, now_ms, expected] of [
    [0, 3500, false],
    [0, 3501, true],
    [9000, 9010, false],
  ] as const)
    assert.equal(mustConfirm(begun_ms, now_ms, SILENCE_MS), expected);
});

test("leadership: what a leader finds when it has connected again", () => {
  for (const [last_commit, known, is_open, expected] of [
    [70, 70, false, "as before"],
    [70, 70, true, "as before"],
    [71, 70, true, "written"],
    [71, 70, false, "foreign"],
    [72, 70, true, "foreign"],
    [69, 70, true, "lost"],
    [0, 70, false, "lost"],
  ] as const)
    assert.equal(afterReconnect(last_commit, known, is_open), expected, `${last_commit} ${known} ${is_open}`);
});

// A database with one row and two servers, each with a monotonic clock of its own. Servers are stopped, cut off and slow.
test("leadership: in random histories, a commit takes effect only in the present term, and a live leader is never deposed", () => {
  for (let seed = 0; seed < 300; seed++) {
    const random = prng(seed);
    let row: LeaderRow = { ...ROW, holder: null, instance: null };
    const servers = ["a", "b"].map((name, at) => ({
      me: { holder: `${name}:/pbs`, instance: name },
      offset_ms: at * 1_000_000 + random.int(0, 1_000_000),
      term: -1,
      sighting: null as Sighting | null,
      away_until_ms: 0,
      last_change_ms: 0,
    }));
    for (let now_ms = 0; now_ms < 120_000; now_ms += random.int(50, 500)) {
      for (const server of servers) {
        if (now_ms < server.away_until_ms) continue;
        if (random.chance(0.002)) server.away_until_ms = now_ms + random.int(100, 20_000);
        else if (row.instance === server.me.instance && server.term === row.term) {
          row = random.chance(0.5) ? { ...row, beat: row.beat + 1 } : { ...row, last_commit: row.last_commit + 1 };
          server.last_change_ms = now_ms;
        } else {
          // A deposed server that does not know it yet: its commit names an old term, and changes nothing.
          assert.ok(server.term === -1 || server.term < row.term);
          server.sighting = seen(server.sighting, row, now_ms + server.offset_ms);
          const decision = mayTake(server.me, server.sighting, now_ms + server.offset_ms, SILENCE_MS);
          if (decision.kind !== "take") continue;
          const former = servers.find(({ me }) => me.instance === row.instance);
          if (former !== undefined) assert.ok(now_ms - former.last_change_ms >= SILENCE_MS, `seed ${seed}: deposed while alive`);
          row = { ...row, term: row.term + 1, beat: 0, ...server.me };
          server.term = row.term;
          server.last_change_ms = now_ms;
        }
      }
    }
    assert.ok(row.instance !== null);
  }
});
