// Faults: processes are killed at any event, links break, the disk refuses to write. A killed process comes back after a while.
// When the faults stop, everything is brought back at once (script.ts).

import type { Prng } from "#support/prng.ts";
import type { Complex } from "./complex.ts";
import type { Fault } from "./drawn/scenario.ts";
import type { Way } from "./far/cuts.ts";
import { wayTo } from "./network.ts";
import { databaseWay } from "./paired-servers.ts";

/** Times in ms for which a killed daemon stays away. */
const AWAY_MS = [10, 1500, 20_000, 400_000] as const;

/**
 * Longest times in ms for which a daemon is stopped: from too short to be noticed, over those that the daemon and then the
 * server notices, to long enough that the server gives the daemon up.
 */
const PAUSE_MS = [500, 5000, 20_000, 60_000, 400_000] as const;
const pauseOf = (random: Prng): number => random.int(1, random.pick(PAUSE_MS));

/** Times in ms by which the wall clock can be ahead of the time of the simulation (negative: behind it). */
const CLOCK_AHEAD_MS = [0, 5000, -60_000, 3_600_000, -3_600_000, 2 * 86_400_000] as const;

const WAYS: readonly (readonly Way[])[] = [["up"], ["down"], ["up", "down"]];

export function strike(complex: Complex, random: Prng): void {
  const fault = random.pick(complex.scenario.faults);
  const away_ms = random.int(1, random.chance(0.05) ? AWAY_MS[3] : random.pick(AWAY_MS.slice(0, 3)));
  complex.world.trace.add("fault", fault, `back after ${away_ms} ms`);
  carryOut(complex, fault, random, away_ms);
}

function carryOut(
  { world, scenario, server, pair, scheds, moms, starters, network }: Complex,
  fault: Fault,
  random: Prng,
  away_ms: number,
): void {
  const back = (act: () => void | Promise<void>): void => world.after(away_ms, act);
  switch (fault) {
    case "kill-server":
      server.kill("fault");
      back(server.start);
      break;
    case "kill-server-after-commit":
      server.killAtNextCommit(away_ms);
      break;
    case "pause-server":
      server.pause(pauseOf(random));
      break;
    case "kill-sched": {
      const alive = [...scheds.values()].filter((sched) => sched.alive);
      if (alive.length > 0) random.pick(alive).kill();
      break;
    }
    case "pause-sched": {
      const alive = [...scheds.values()].filter((sched) => sched.alive);
      if (alive.length > 0) random.pick(alive).pause(pauseOf(random));
      break;
    }
    case "kill-mom": {
      const mom = random.pick(moms);
      mom.kill();
      back(mom.start);
      break;
    }
    case "pause-mom":
      random.pick(moms).pause(pauseOf(random));
      break;
    case "kill-mom-in-event":
      random.pick(moms).killInEvent(away_ms);
      break;
    case "kill-starter":
      random.pick(starters).kill();
      break;
    case "kill-agent":
      random.pick(moms).killAgent();
      break;
    case "reboot-host": {
      const mom = random.pick(moms);
      mom.reboot();
      back(mom.start);
      break;
    }
    case "break-link": {
      const cables = [...network.cables];
      if (cables.length > 0) random.pick(cables).breakOff();
      break;
    }
    case "cut-host": {
      const far = scenario.hosts.filter(({ is_far }) => is_far);
      if (far.length > 0) network.cuts.cut(random.pick(far).name, random.pick(WAYS), random.int(1, random.pick(scenario.cut_ms)));
      break;
    }
    case "slow-host": {
      const far = scenario.hosts.filter(({ is_far }) => is_far);
      const slowness = { delay_ms: random.pick([200, 3000, 30_000]), loss: random.pick([0.1, 0.5, 0.9]) };
      if (far.length > 0)
        network.cuts.slow(random.pick(far).name, random.pick(WAYS), slowness, random.int(1, random.pick(scenario.cut_ms)));
      break;
    }
    case "cut-database":
    case "cut-server":
    case "cut-server-off": {
      if (pair === null) break;
      const leader = pair.leader ?? 0;
      const seat = random.chance(0.8) ? leader : 1 - leader;
      const for_ms = random.int(1, random.pick(scenario.cut_ms));
      const share = random.pick([1, 1, 0.7]);
      const hosts = scenario.hosts.filter(() => random.chance(share)).map(({ name }) => wayTo(name, seat));
      const ways = { "cut-database": [databaseWay(seat)], "cut-server": hosts, "cut-server-off": [databaseWay(seat), ...hosts] }[fault];
      const directions = random.pick(WAYS);
      for (const way of ways) network.cuts.cut(way, directions, for_ms);
      break;
    }
    case "fail-commit":
      server.failCommits(random.pick(["disk-full", "io"]), random.int(1, 3));
      break;
    case "stop-sched-fault": {
      const alive = [...scheds.values()].filter((sched) => sched.alive);
      if (alive.length === 0) break;
      const sched = random.pick(alive);
      sched.report("PBS failed validation checks for sched_priv directory");
      back(() => sched.report(null));
      break;
    }
    case "set-clock":
      // Like `date -s` on the host of server and schedulers: they notice the change when they next read the clock.
      world.setWall(random.pick(CLOCK_AHEAD_MS));
      break;
    case "start-failures":
      // Nothing to do here: the seed decides which programs and files fail (complex.ts).
      break;
    default: {
      const unreachable: never = fault;
      void unreachable;
    }
  }
}
