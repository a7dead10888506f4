// The simulator's scheduler: a fault that the daemon's driver would get over ends the simulation.

import assert from "node:assert/strict";
import { test } from "node:test";
import { createNetwork } from "#sim/network.ts";
import { SchedProcess } from "#sim/sched-process.ts";
import { createWorld, START_MS } from "#sim/world.ts";
import { prng } from "#support/prng.ts";
import { book, snapshotOf } from "../sched/world.ts";

test("a scheduler whose mirror is broken by a delta is a fault of the world", async () => {
  const world = createWorld(prng(1), 100, null);
  const network = createNetwork(world, { delay_ms_max: 5, notice_ms_max: 5 });
  const snapshot = snapshotOf({ nodes: "a 4", jobs: "" });
  const link = network.connect("sched", "default", "sched-to-server", "server-to-sched");
  const sched = new SchedProcess(world, "default", {
    book: book(),
    cycle_ms_max: 5,
    first_pid: 1,
    dial: () => link.a,
    ended: () => undefined,
  });
  const server = link.b;
  server.listen({
    receive: ({ type }) => {
      if (type === "sched-hello") server.send("sched-snapshot", snapshot);
    },
    lost: () => undefined,
  });
  const pass = async (until_s: number): Promise<void> => {
    while (await world.next(START_MS + until_s * 1000));
  };
  sched.start(1);
  await pass(5);
  server.send("sched-delta", { revision: 2, changes: [] });
  await pass(6);
  assert.equal(sched.universe?.revision, 2);
  server.send("sched-delta", { revision: 4, changes: [] });
  await assert.rejects(pass(7), /scheduler default does not understand the server/);
});
