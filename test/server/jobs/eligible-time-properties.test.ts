// Eligible time as a scheduler sees it, over random complexes.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { Delta, SchedClock, Snapshot } from "#protocol/sched-link.ts";
import { eligibleAt } from "#sched/order/eligible-time.ts";
import { prng } from "#support/prng.ts";
import { ALICE, addJob, advance, BOB, type Harness, obit, runOn, schedHello } from "../harness.ts";
import { setServer, shown, world } from "./eligible-time-bed.ts";

test("a scheduler's mirror shows what the server shows, however limits and jobs change", () => {
  for (let seed = 1; seed <= 40; seed++) {
    const random = prng(`accrual ${seed}`);
    const { h, link } = world();
    schedHello(h, 1);
    const running: string[] = [];
    const jobs: string[] = [];
    for (let step = 0; step < 25; step++) {
      const who = random.pick([ALICE, BOB]);
      const kind = random.int(0, 6);
      if (kind <= 1) jobs.push(addJob(h, random.chance(0.2) ? { Hold_Types: "u" } : {}, who));
      else if (kind === 2 && jobs.length > 0 && running.length < 4) {
        const job = jobs.splice(random.int(0, jobs.length - 1), 1)[0] as string;
        runOn(h, job, "n1", link);
        running.push(job);
      } else if (kind === 3 && running.length > 0) obit(h, link, running.shift() as string);
      else if (kind === 4) setServer(h, { max_run: random.pick([{ "u:PBS_GENERIC": 1 }, { "u:alice": 2 }, { "g:users": 3 }]) });
      else if (kind === 5) setServer(h, {}, "max_run");
      else if (random.chance(0.3)) setServer(h, { eligible_time_enable: random.chance(0.8) });
      advance(h, random.int(0, 20));
      const { clocks, mirrored } = mirrorOf(h);
      for (const id of [...jobs, ...running]) {
        const attrs = mirrored.get(id);
        assert.ok(attrs !== undefined, `seed ${seed}: ${id} is not in the mirror`);
        const { eligible_s, accrue_type } = eligibleAt(clocks, attrs, h.now_ms / 1000);
        const time = shown(h, id).split(" ")[1];
        const expected = time === "-" ? 0 : (time as string).split(":").reduce((sum, part) => sum * 60 + Number(part), 0);
        assert.equal(eligible_s, expected, `seed ${seed} step ${step}: ${id}`);
        assert.equal(`${accrue_type}`, shown(h, id).replace("-", "0").slice(0, 1), `seed ${seed} step ${step}: type of ${id}`);
      }
    }
  }
});

/** The scheduler's view, computed from its frames. */
function mirrorOf(h: Harness) {
  const clocks = new Map<string, SchedClock>();
  const mirrored = new Map<string, Snapshot["jobs"][number]>();
  for (const { link, type, data } of h.to_scheds) {
    if (link !== 1) continue;
    if (type === "sched-snapshot") {
      const { jobs, clocks: told = [] } = data as Snapshot;
      mirrored.clear();
      clocks.clear();
      for (const job of jobs) mirrored.set(job.id, job);
      for (const clock of told) clocks.set(clock.id, clock);
    } else if (type === "sched-delta") {
      for (const change of (data as Delta).changes) {
        if ("put" in change && change.put === "job") mirrored.set(change.value.id, change.value);
        if ("put" in change && change.put === "clock") clocks.set(change.value.id, change.value);
        if ("drop" in change && change.drop === "job") mirrored.delete(change.id);
        if ("drop" in change && change.drop === "clock") clocks.delete(change.id);
      }
    }
  }
  return { clocks, mirrored };
}
