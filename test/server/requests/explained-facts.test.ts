// The server's addition to a scheduler's explanation: why a job is not offered to its scheduler.

import assert from "node:assert/strict";
import { test } from "node:test";
import { withServerFacts } from "#server/requests/explain/explained-facts.ts";
import { addHost, harness } from "../harness.ts";
import { qsub } from "./qsub.ts";

test("a subjob that waits is kept by what keeps its array", async () => {
  const h = harness();
  addHost(h, "n1");
  const array = await qsub(h, "-h -J 1-3 -- /bin/true");
  for (const job of [array, array.replace("[]", "[2]")]) {
    const told = withServerFacts(h.core.state, { job, verdict: "held", obstacles: [], earliest: null }, h.now_ms / 1000);
    assert.partialDeepStrictEqual(told, { job, kept: { holds: "u" } });
  }
});
