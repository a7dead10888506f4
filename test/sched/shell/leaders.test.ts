// Which servers a scheduler on another host obeys, by what it knows and what they say.

import assert from "node:assert/strict";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { leaderText, parseLeader } from "#protocol/failover/leader.ts";
import { noteLeader, readLeader } from "#protocol/failover/leader-file.ts";
import { Leaders } from "#sched/shell/leaders.ts";

const root = mkdtempSync(join(tmpdir(), "partita-sched-leaders-"));
after(() => rmSync(root, { recursive: true }));

const leaderOf = (text: string) => (text === "-" ? null : parseLeader(text));
const LONG_MS = 3_600_000;

test("leaders: newer and equal ones are obeyed, older ones never, and those of another store when nobody of the known store is there", () => {
  // biome-ignore format: a table
  const rows: readonly (readonly [known: string, said: string, server: "linked" | "away" | "gone", verdict: RegExp | null])[] = [
    ["-",   "-",   "linked", null],
    ["-",   "7/1", "linked", null],
    ["7/4", "7/4", "linked", null],
    ["7/4", "7/5", "linked", null],
    ["7/4", "7/3", "linked", /^the server was replaced: it names the leader 7\/3, and the newest leader is 7\/4$/],
    ["7/4", "7/3", "gone",   /^the server was replaced/],
    ["7/4", "8/1", "linked", /^the server has another database than the one known: it names the leader 8\/1/],
    ["7/4", "8/1", "away",   /^the server has another database/],
    ["7/4", "8/1", "gone",   null],
    ["7/4", "-",   "linked", /^the server has another database than the one known: it names no leader/],
    ["7/4", "-",   "away",   /^the server has another database/],
    ["7/4", "-",   "gone",   null],
  ];
  for (const [known, said, server, verdict] of rows) {
    const row = `${known}, ${said}, ${server}`;
    const directory = mkdtempSync(join(root, "priv-"));
    noteLeader(directory, leaderOf(known));
    const leaders = new Leaders(directory, server === "away" ? LONG_MS : 0, assert.fail);
    assert.equal(leaders.isOneKnown, known !== "-", row);
    const fault = leaders.judge(leaderOf(said), server === "linked");
    if (verdict === null) assert.equal(fault, null, row);
    else assert.match(fault ?? "", verdict, row);
    const kept = readLeader(directory);
    assert.equal(kept === null ? "-" : leaderText(kept), verdict === null ? said : known, `${row}: what a new start knows`);
  }
});

test("leaders: the time without a server begins when the server is lost; a directory that is missing is told, and the leader counts", () => {
  const directory = join(root, "missing");
  const faults: string[] = [];
  const leaders = new Leaders(directory, LONG_MS, (text) => void faults.push(text));
  assert.equal(leaders.judge(parseLeader("7/4"), false), null);
  assert.match(faults.join(), /^the leader cannot be noted: ENOENT/);
  assert.equal(existsSync(directory), false);
  leaders.serverLost();
  assert.match(leaders.judge(parseLeader("7/3"), false) ?? "", /^the server was replaced/);
  assert.match(leaders.judge(null, false) ?? "", /^the server has another database/);
});
