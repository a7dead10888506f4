// The grid's daemon and a complex are killed at random while a campaign runs: every job runs once.

import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { prng } from "#support/prng.ts";
import { type Complex, isAlive, startComplex, until } from "../live/complex.ts";
import { type Grid, numbersIn, startGrid } from "../live/grid/bed.ts";

const JOBS = 150;

let complexes: readonly Complex[];
let grid: Grid;

before(async () => {
  complexes = await Promise.all([startComplex(), startComplex()]);
  for (const complex of complexes) complex.qmgr("set server job_history_enable=True", "set node @default resources_available.ncpus=4");
  grid = startGrid();
  for (const [at, { home }] of complexes.entries())
    grid.must("gridclusters", ["--add", `c${at}`, "--type", "partita", "--conf", join(home, "pbs.conf")]);
});
after(async () => {
  grid?.stop();
  await Promise.all((complexes ?? []).map((complex) => complex.stop()));
});

async function killed(pid: number | null): Promise<void> {
  if (pid === null) return;
  process.kill(pid, "SIGKILL");
  await until("the process gone", () => !isAlive(pid));
}

test("kills of pbs_grid and of a complex's server neither lose a job nor run one twice", async () => {
  const file = join(grid.work, "out");
  const script = join(grid.work, "job.sh");
  writeFileSync(script, `echo "$1" >> ${file}\nsleep 0.$(($1 % 7))\n`);
  const seed = process.env["PARTITA_SEED"] ?? String(Date.now());
  const random = prng(seed);
  const common = { name: "killed", exec_file: `/bin/sh ${script}`, exec_directory: grid.work, walltime: "00:05:00" };
  const id = grid.submit({ ...common, nb_jobs: JOBS, canary: false, clusters: { c0: {}, c1: {} } });
  for (let round = 0; ; round++) {
    const { state, finished_jobs } = grid.campaign(id);
    if (state === "terminated") break;
    const pause_ms = random.int(0, 1500);
    await new Promise((resolve) => setTimeout(resolve, pause_ms));
    await killed(grid.pid());
    const complex = complexes[random.int(0, 1)];
    if (round % 3 === 2 && complex !== undefined) {
      await killed(complex.pid("server"));
      complex.start();
    }
    grid.start();
    // The daemon needs time without kills to get anything done: rounds last until a job has ended.
    await until(`a further result after ${finished_jobs} (seed ${seed})`, () => {
      const seen = grid.campaign(id);
      return seen.state === "terminated" || seen.finished_jobs > finished_jobs;
    });
  }
  const again = grid.jobs(id).filter(({ state }) => state !== "terminated");
  assert.deepEqual(
    numbersIn(file),
    Array.from({ length: JOBS }, (_, at) => at),
    `seed ${seed}, ${JSON.stringify(again)}`,
  );
  assert.equal(grid.jobs(id).filter(({ state }) => state === "terminated").length, JOBS);
});
