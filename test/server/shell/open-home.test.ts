// The name under which a server holds its database.

import assert from "node:assert/strict";
import { test } from "node:test";
import { holderOf } from "#server/shell/open-home.ts";
import { mayTake } from "#store/postgres/leadership.ts";

test("the other one of two servers waits for the silence of the leader, although both have the same PBS_HOME on hosts of one name", () => {
  const row = {
    store: 1,
    term: 4,
    last_commit: 9,
    beat: 2,
    host: "node",
    pid: 7,
    instance: "a",
    holder: holderOf("node", "/var/spool/pbs", "primary"),
  };
  const decide = (role: "primary" | "secondary") =>
    mayTake({ holder: holderOf("node", "/var/spool/pbs", role), instance: "b" }, { row, since_ms: 1000 }, 2000, 7000);
  assert.deepEqual(decide("secondary"), { kind: "wait", until_ms: 8000 });
  assert.deepEqual(
    decide("primary"),
    { kind: "take", why: "same PBS_HOME" },
    "the lock of PBS_HOME has shown that the former process has ended",
  );
});
