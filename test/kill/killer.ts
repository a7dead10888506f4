// Kills daemons of a complex at random and starts them again, as an administrator would.

import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import type { Prng } from "#support/prng.ts";
import { type Complex, type Daemon, isAlive, until } from "../live/complex.ts";

export type Victim = Daemon | "sched";

/** Kills continue while jobs run, up to this number. */
const KILLS_MAX = 60;

/** Kills daemons one after the other until told to stop. Returns the number of kills of each. */
export async function killAtRandom(
  complex: Complex,
  {
    random,
    victims,
    goesOn,
    killOther,
  }: { readonly random: Prng; readonly victims: readonly Victim[]; readonly goesOn: () => boolean; readonly killOther?: () => void },
): Promise<ReadonlyMap<Victim, number>> {
  const kills = new Map<Victim, number>();
  for (let count = 0; goesOn() && count < KILLS_MAX; count++) {
    await sleep(random.int(100, 1500));
    if (killOther !== undefined && (count === 0 || random.chance(0.3))) killOther();
    const victim = random.pick(victims);
    const pid = victim === "sched" ? complex.schedPid("default") : complex.pid(victim);
    if (pid === null) continue;
    process.kill(pid, "SIGKILL");
    await until(`${victim} ${pid} gone`, () => !isAlive(pid));
    kills.set(victim, (kills.get(victim) ?? 0) + 1);
    if (random.chance(0.3)) continue;
    await sleep(random.int(0, 400));
    revive(complex);
  }
  revive(complex);
  return kills;
}

/** Starts missing daemons. A scheduler that waits for its next attempt starts at once. */
export function revive(complex: Complex): void {
  for (const daemon of ["server", "mom"] as const) {
    if (complex.pid(daemon) !== null) continue;
    const { status, stderr } = complex.run(`pbs_${daemon}`, []);
    assert.equal(status, 0, `pbs_${daemon}: ${stderr}`);
  }
  if (complex.schedPid("default") === null) complex.run("qmgr", ["-c", "set sched default scheduling=True"]);
}
