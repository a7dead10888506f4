// While requests that are meant to keep the server busy are sent over connections that never read, another connection is
// answered soon and the server's memory stays small. One user plays both parts, because this test is about fairness among the
// connections of one user; turns.test.ts covers fairness among users.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { serverSocketPath } from "#protocol/wire/socket-path.ts";
import { type Complex, startComplex } from "../complex.ts";
import { attack, FREEZING, type Known, prepare, residentAfterCollectionKB, residentKB, type Size } from "./freezing-requests.ts";

const SIZE: Size = { connections: 20, requests: 300, entries: 20_000, jobs: 2000 };
const LASTING_MS = 1500;
/**
 * Processor time of all threads of the server, because other tests run at the same time. Two batches of megabytes may be
 * written before an answer. The bench, on a quiet machine and with two users, shows 1 s of real time.
 */
const ANSWER_CPU_MS_MAX = 1500;
/** Memory that remains at the end, and the peak before, which includes garbage not yet collected. */
const GROWTH_KB_MAX = 130 * 1024;
const PEAK_KB_MAX = 400 * 1024;

let complex: Complex;
let known: Known;
let before_kB = 0;
before(async () => {
  complex = await startComplex();
  known = await prepare(serverSocketPath(complex.pbsHome), SIZE);
  before_kB = residentKB(complex.pid("server") as number);
});
after(() => complex?.stop());

for (const freezing of FREEZING) {
  test(`${freezing.name}: another is answered, memory is bounded`, async (t) => {
    const pid = complex.pid("server") as number;
    const kB = residentKB(pid);
    const once = () => attack(serverSocketPath(complex.pbsHome), pid, freezing, SIZE, known, LASTING_MS);
    let outcome = await once();
    // The server also works while the asking process waits for a processor. A slice that is too long would be too long each
    // time.
    if (outcome.slowest_cpu_ms > ANSWER_CPU_MS_MAX) outcome = await once();
    const { slowest_ms, slowest_cpu_ms, answers, peak_kB } = outcome;
    t.diagnostic(
      `${answers} answers, the slowest after ${Math.round(slowest_ms)} ms, ${slowest_cpu_ms} ms of the server's; ${peak_kB - kB} kB more`,
    );
    assert.ok(slowest_cpu_ms <= ANSWER_CPU_MS_MAX, `the server worked ${slowest_cpu_ms} ms before an answer`);
    assert.ok(peak_kB - kB <= PEAK_KB_MAX, `${peak_kB - kB} kB more`);
    assert.equal(complex.pid("server"), pid, "the same server");
  });
}

test("after all of them the server is not much larger than before", async (t) => {
  const grown_kB = (await residentAfterCollectionKB(complex.pid("server") as number)) - before_kB;
  t.diagnostic(`${grown_kB} kB more`);
  assert.ok(grown_kB <= GROWTH_KB_MAX, `${grown_kB} kB more`);
});
