// The ports of schedulers on other hosts.

import assert from "node:assert/strict";
import { test } from "node:test";
import { schedPorts } from "#protocol/sched-ports.ts";
import { ConfError } from "#support/conf.ts";

// biome-ignore format: a table
const STATED: readonly (readonly [stated: string | undefined, first: number, last: number])[] = [
  [undefined,      15_050, 15_069],
  ["15050-15069",  15_050, 15_069],
  ["601",             601,    601],
  [" 2000-2999 ",   2000,   2999],
  ["65535-65535",  65_535, 65_535],
];
for (const [stated, first, last] of STATED) {
  test(`PARTITA_SCHED_PORTS=${stated}: ports ${first} to ${last}`, () => {
    const ports = schedPorts(stated === undefined ? {} : { PARTITA_SCHED_PORTS: stated });
    assert.deepEqual([ports[0], ports.at(-1), ports.length], [first, last, last - first + 1]);
  });
}

test("other values are refused, and the message names the form", () => {
  for (const stated of ["", "x", "0", "0-5", "20-10", "65535-65536", "70000", "1-1001", "1-2-3", "-5", "15050,15051"])
    assert.throws(
      () => schedPorts({ PARTITA_SCHED_PORTS: stated }),
      (error) => error instanceof ConfError && /FIRST-LAST/.test(error.message),
      stated,
    );
});
