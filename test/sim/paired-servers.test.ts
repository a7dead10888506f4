// Two servers in the simulator: how soon the other one takes over, and what a deposed one may still do.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Checks } from "#sim/checks/checks.ts";
import { type Complex, createComplex } from "#sim/complex.ts";
import { drawScenario, type Scenario } from "#sim/drawn/scenario.ts";
import { wayTo } from "#sim/network.ts";
import { databaseWay, type PairedServers } from "#sim/paired-servers.ts";
import { Script } from "#sim/script.ts";
import { createWorld } from "#sim/world.ts";
import { prng } from "#support/prng.ts";

const TAKEOVER_MS = 10_000;

type Bed = {
  readonly complex: Complex;
  readonly pair: PairedServers;
  until(what: string, holds: () => boolean, limit_ms?: number): Promise<number>;
};

/** A complex with two servers and one host, without requests and faults of its own. */
async function bed(seed = 1): Promise<Bed> {
  const random = prng(seed);
  const world = createWorld(random.split("world"), 5000, null);
  const drawn = drawScenario(random.split("scenario"), { jobs_max: 0, faults: false, ops: false, scale: 1, pair: true });
  const vnodes = [{ name: "n1", ncpus: 4, sharing: "default_shared", partition: null }];
  const scenario: Scenario = {
    ...drawn,
    hosts: [{ name: "n1", is_far: true, vnodes }],
    scheds: [],
    queues: [{ name: "workq", partition: null }],
    setup: [],
    delay_ms_max: 5,
    datagrams: { loss: 0, doubled: 0, delay_ms_max: 5 },
    term_ignored: 0,
    start_failures: 0,
  };
  const checks = new Checks();
  const complex = createComplex(world, scenario, checks);
  const counts = { jobs: 0, runs: 0, requests: 0, refused: 0, faults: 0, virtual_s: 0, waiting: 0, promises: 0, takeovers: 0 };
  const { pair } = complex;
  assert.ok(pair !== null);
  const until: Bed["until"] = async (what, holds, limit_ms = 600_000) => {
    const begun_ms = world.now_ms;
    while (!holds()) if (!(await world.next(begun_ms + limit_ms))) assert.fail(`${what} did not come about within ${limit_ms} ms`);
    return world.now_ms - begun_ms;
  };
  await new Script(complex, checks, counts).setUp();
  await until("the standby waits", () => world.trace.lines.some(({ who, what }) => who === "server1" && what === "waits"));
  return { complex, pair, until };
}

const FAULTS: readonly (readonly [what: string, strike: (bed: Bed, seat: number) => void])[] = [
  ["killed", ({ pair }) => pair.kill("test")],
  ["stopped", ({ pair }) => pair.pause(300_000)],
  ["cut off from the database", ({ complex }, seat) => complex.network.cuts.cut(databaseWay(seat), ["up", "down"], 300_000)],
  ["unable to reach the database", ({ complex }, seat) => complex.network.cuts.cut(databaseWay(seat), ["up"], 300_000)],
  [
    "cut off from everything",
    ({ complex }, seat) => {
      for (const way of [databaseWay(seat), wayTo("n1", seat)]) complex.network.cuts.cut(way, ["up", "down"], 300_000);
    },
  ],
];

for (const [what, strike] of FAULTS) {
  test(`a leader that is ${what} is replaced within ${TAKEOVER_MS / 1000} s, and the mom follows the new leader`, async () => {
    const b = await bed();
    const { pair, complex, until } = b;
    const seat = pair.leader;
    assert.equal(seat, 0);
    strike(b, 0);
    const took_ms = await until("a take-over", () => pair.leader === 1);
    assert.ok(took_ms <= TAKEOVER_MS, `it took ${took_ms} ms`);
    await until("the mom has said hello to the new leader", () => pair.core?.kernel.moms.by_host.has("n1") === true, 60_000);
    await until("the mom is welcome", () => complex.moms[0]?.state?.welcomed === true, 60_000);
    assert.equal(pair.database.takeovers, 1);
  });
}

/** Waits until the leader has led for longer than `settle`. */
async function settled({ world }: Complex, until: Bed["until"]): Promise<void> {
  const begun_ms = world.now_ms;
  await until("the first time of the leader is over", () => world.now_ms > begun_ms + 60_000);
}

for (const way of ["up", "down"] as const) {
  test(`a leader that only its hosts cannot reach (${way}) gives way within ${TAKEOVER_MS / 1000} s to a server that they can reach`, async () => {
    const { pair, complex, until } = await bed();
    await settled(complex, until);
    complex.network.cuts.cut(wayTo("n1", 0), [way], 300_000);
    const took_ms = await until("a change of the leader", () => pair.leader === 1);
    assert.ok(took_ms <= TAKEOVER_MS, `it took ${took_ms} ms`);
    await until("the mom is welcome", () => pair.leader === 1 && complex.moms[0]?.state?.welcomed === true, 60_000);
    const begun_ms = complex.world.now_ms;
    await until("the cut is over for a while", () => complex.world.now_ms > begun_ms + 600_000, 700_000);
    assert.deepEqual([pair.leader, pair.database.takeovers], [1, 1], "the leader does not change again");
  });
}

test("a leader whose hosts neither server can reach goes on leading", async () => {
  const { pair, complex, until } = await bed();
  await settled(complex, until);
  for (const seat of [0, 1]) complex.network.cuts.cut(wayTo("n1", seat), ["up", "down"], 120_000);
  await until("the mom is lost", () => pair.core?.kernel.moms.by_host.size === 0, 120_000);
  await until("the mom is back", () => pair.core?.kernel.moms.by_host.has("n1") === true);
  assert.deepEqual([pair.leader, pair.database.takeovers], [0, 0]);
});

test("a link that comes and goes changes the leader at most twice a minute", async () => {
  const { pair, complex, until } = await bed();
  const begun_ms = complex.world.now_ms;
  for (let at = 0; at < 60; at++) {
    complex.network.cuts.cut(wayTo("n1", at % 2), ["up", "down"], 10_000);
    await until("the next cut", () => complex.world.now_ms > begun_ms + (at + 1) * 10_000);
  }
  assert.ok(pair.database.takeovers > 2 && pair.database.takeovers <= 20, `${pair.database.takeovers} changes in ten minutes`);
});
