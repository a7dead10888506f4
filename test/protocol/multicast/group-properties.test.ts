// Random histories of a multicast group: each mom does everything once and in order.

import assert from "node:assert/strict";
import { test } from "node:test";
import { nth } from "#support/assert.ts";
import { prng } from "#support/prng.ts";
import { bed, MINUTE_MS } from "./bed.ts";

test("frames and commands in any order, with loss, doubled and late datagrams: each mom does everything once and in order", () => {
  for (let seed = 1; seed <= 60; seed++) {
    const random = prng(seed);
    const it = bed(4);
    const wanted = it.moms.map((): string[] => []);
    let late: Uint8Array[] = [];
    for (let step = 0; step < 60; step++) {
      const some = it.moms.filter(() => random.chance(0.6));
      if (random.chance(0.5)) {
        const left = it.command(
          `c${step}`,
          some.map(({ link }) => link),
        );
        for (const mom of some) {
          if (left.includes(mom.link)) it.frame(mom, `c${step}`);
          nth(wanted, mom.link - 1).push(`c${step}`);
        }
      } else
        for (const mom of some) {
          it.frame(mom, `f${step}`);
          nth(wanted, mom.link - 1).push(`f${step}`);
        }
      for (const mom of it.moms) {
        mom.is_deaf = random.chance(0.3);
        mom.is_mute = random.chance(0.3);
        if (random.chance(0.4)) it.read(mom, random.int(0, 3));
      }
      const now = it.sent.splice(0).filter(() => random.chance(0.7));
      it.multicast([...now, ...late.filter(() => random.chance(0.3))]);
      late = [...late, ...now].slice(-10);
      it.clock.pass(random.pick([0, 50, 300]));
    }
    it.clock.pass(MINUTE_MS);
    it.readAll();
    it.moms.forEach(({ done }, at) => assert.deepEqual(done, wanted[at], `seed ${seed}, mom ${at + 1}`));
  }
});
