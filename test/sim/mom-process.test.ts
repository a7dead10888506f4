// The simulator's mom: where the fault "kill-mom-in-event" kills it.

import assert from "node:assert/strict";
import { test } from "node:test";
import { MomProcess } from "#sim/mom-process.ts";
import { createNetwork } from "#sim/network.ts";
import { StarterProcess } from "#sim/starter-process.ts";
import { createWorld, START_MS } from "#sim/world.ts";
import { prng } from "#support/prng.ts";
import { job } from "../mom/world.ts";

const BEHAVIOUR = { run_ms: 100, exit_code: 0, term_ms: 0, load: 0, terminal: { refused: false, goes_ms: null }, start_failure: null };

/** A doomed mom is pinged for a minute, and then gets a job. Returns its state after the pings, and why it ended. */
async function doomed(seed: number): Promise<{ readonly pinged: boolean; readonly why: unknown }> {
  const world = createWorld(prng(seed), 5000, null);
  const network = createNetwork(world, { delay_ms_max: 5, notice_ms_max: 5 });
  const starter = new StarterProcess(world, {
    host: "n1",
    called: new Set(),
    behaviour: () => BEHAVIOUR,
    born: () => undefined,
    died: () => undefined,
  });
  let send: ReturnType<typeof dial>["b"]["send"] = () => undefined;
  const dial = () => network.connect("mom", "n1", "mom-to-server", "server-to-mom");
  const mom = new MomProcess(world, {
    host: "n1",
    vnodes: [],
    starter,
    prepareFailure: () => null,
    datagrams: null,
    leaderAt: null,
    dial: () => {
      const { a, b } = dial();
      send = b.send;
      b.listen({
        receive: ({ type }) => {
          if (type === "mom-hello") b.send("mom-welcome", { keep: [], kill: [], acknowledged: [] });
        },
        lost: () => undefined,
      });
      return a;
    },
  });
  const pass = async (until_s: number): Promise<void> => {
    while (await world.next(START_MS + until_s * 1000));
    world.sleepUntil(START_MS + until_s * 1000);
  };
  mom.start();
  await pass(5);
  assert.equal(mom.state?.welcomed, true);
  mom.killInEvent(1_000_000);
  for (let number = 1; number <= 12; number++) {
    send("mom-ping", { number, silence_s: 45 });
    await pass(5 + number * 5);
  }
  const pinged = mom.state !== null;
  send("mom-start", { jobs: [job()] });
  await pass(90);
  assert.equal(mom.state, null, "its job has killed it");
  return { pinged, why: world.trace.lines.findLast(({ who, what }) => who === "mom:n1" && what === "ended")?.detail };
}

test("a doomed mom survives heartbeats, and is killed at its next work, sometimes while it writes a record", async () => {
  const reasons = new Map<unknown, number>();
  for (let seed = 1; seed <= 60; seed++) {
    const { pinged, why } = await doomed(seed);
    assert.equal(pinged, true, `seed ${seed}: killed by a heartbeat`);
    reasons.set(why, (reasons.get(why) ?? 0) + 1);
  }
  assert.deepEqual([...reasons.keys()].sort(), ["killed in the midst of an event", "killed while it wrote a record"]);
});
