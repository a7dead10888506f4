// Servers that wait for the leadership: which of them are alive, and for which the leader gives way.

import assert from "node:assert/strict";
import { test } from "node:test";
import { leavesLead, seenServers, type WaitingRow, whoTakesBack } from "#store/postgres/servers.ts";

const SILENCE_MS = 7000;
const row = (more: Partial<WaitingRow> = {}): WaitingRow => ({
  holder: "head:/h",
  role: "primary",
  host: "head",
  pid: 1,
  instance: "i1",
  seen: 0,
  wants_lead: true,
  orders: null,
  reach: null,
  ...more,
});

test("servers: one that changes its row is alive, until the silence is over; a row that was left behind is not", () => {
  const first = seenServers(new Map(), [row()], 0, SILENCE_MS);
  assert.equal(first.get("head:/h")?.is_alive, false, "it may be of a process that ended long ago");
  const second = seenServers(first, [row({ seen: 1 })], 500, SILENCE_MS);
  assert.equal(second.get("head:/h")?.is_alive, true);
  const third = seenServers(second, [row({ seen: 1 })], 7499, SILENCE_MS);
  assert.equal(third.get("head:/h")?.is_alive, true);
  assert.equal(seenServers(third, [row({ seen: 1 })], 7500, SILENCE_MS).get("head:/h")?.is_alive, false);
  assert.equal(seenServers(third, [], 7500, SILENCE_MS).size, 0);
});

test("servers: a secondary gives way to the living primary that wants to lead, and to nobody else", () => {
  const sight = (more: Partial<WaitingRow>, is_alive = true) => [{ row: row(more), since_ms: 0, is_alive }];
  assert.equal(whoTakesBack("secondary", sight({}))?.host, "head");
  assert.equal(whoTakesBack("primary", sight({})), null);
  assert.equal(whoTakesBack("secondary", sight({}, false)), null);
  assert.equal(whoTakesBack("secondary", sight({ wants_lead: false })), null);
  assert.equal(whoTakesBack("secondary", sight({ role: "secondary" })), null);
  assert.equal(whoTakesBack("secondary", sight({ orders: "stop" })), null, "it was told to end");
});

test("servers: a secondary that has given way leaves the lead to the primary that waits, for some looks", () => {
  const leaves = (role: "primary" | "secondary" | null, more: Partial<WaitingRow>, free_ms = 1000): boolean =>
    leavesLead(role, [row(more)], free_ms, 500);
  assert.equal(leaves("secondary", {}), true);
  assert.equal(leaves("secondary", {}, 1500), false, "the row may be that of a primary that has ended");
  assert.equal(leaves("secondary", { role: "secondary" }), false);
  assert.equal(leaves("secondary", { orders: "stop" }), false);
  assert.equal(leaves("primary", {}), false);
  assert.equal(leavesLead("secondary", [], 0, 500), false, "it takes over at once");
});
