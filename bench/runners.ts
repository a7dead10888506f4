// Rows of runners (docs/runners.md): jobs that eight runners with one cpu each take one after another. The runners are processes of this machine, and jobs of a real Slurm if
// one answers here (peers.ts). The jobs' time counts from the first start to the last end: the start of the runners themselves is a row of its own.

import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Complex, startComplex } from "../test/live/complex.ts";
import { untilRecorded } from "./accounting-records.ts";
import { removeAtEnd } from "./leftovers.ts";
import { answers, settingsOf, slurmAlone } from "./peers.ts";
import type { Row } from "./row.ts";

const JOBS = 2000;
const RUNNERS = 8;
/** Eight runners allow 80 jobs of 0.1 s in a second. */
const SLEEPS_PER_S = 68;
/** How many times as fast as single jobs of Slurm itself */
const TIMES_SLURM = 4;

export async function runnerRows(say: (text: string) => void): Promise<Row[]> {
  const local = "type=local,resources_available.ncpus=8,resources_available.mem=64gb";
  const rows = await rowsOf(say, "local", local, null);
  if (!answers("slurm"))
    return [...rows, { work: "runners on Slurm: not measured, no Slurm answers", value: Number.NaN, unit: "/s", limit: null }];
  say(`${JOBS} single jobs of Slurm`);
  const alone = await slurmAlone(JOBS);
  rows.push({ work: `Slurm alone: ${JOBS} single jobs of /bin/true by sbatch`, value: alone, unit: "/s", limit: null });
  const config = settingsOf("slurm")["SLURM_CONF"] ?? "";
  return [...rows, ...(await rowsOf(say, "Slurm", `type=slurm,config=${config}`, TIMES_SLURM * alone))];
}

async function rowsOf(say: (text: string) => void, name: string, backend: string, limit: number | null): Promise<Row[]> {
  const rows: Row[] = [];
  for (const [what, words, least] of [
    ["sleep 0.1", "/bin/sleep 0.1", SLEEPS_PER_S],
    ["/bin/true", "/bin/true", limit],
  ] as const) {
    say(`${JOBS} jobs of ${what} through ${RUNNERS} runners of ${name}`);
    const complex = await startComplex({ mode: "user" });
    try {
      const { start_s, per_s } = await measured(complex, backend, words);
      if (what === "sleep 0.1")
        rows.push({ work: `${RUNNERS} runners of ${name}: submission to first start`, value: start_s, unit: "s", limit: null });
      rows.push({
        work: `${RUNNERS} runners of ${name}: ${JOBS} jobs of ${what}, first start to last end`,
        value: per_s,
        unit: "/s",
        limit: least,
      });
    } finally {
      await complex.stop();
    }
  }
  return rows;
}

async function measured(complex: Complex, backend: string, words: string): Promise<{ readonly start_s: number; readonly per_s: number }> {
  const [first = "", ...more] = backend.split(",");
  complex.qmgr(
    "create queue cloud queue_type=e,enabled=t,started=t,partition=cloud",
    "create sched cs partition=cloud",
    "set sched cs scheduling=t",
    `create backend b ${first}`,
    `set backend b ${[...more, "partition=cloud", `max_runners=${RUNNERS}`, `n_max_queued_jobs=${RUNNERS}`, "enabled=t"].join(",")}`,
  );
  const place = mkdtempSync(join(tmpdir(), "partita-bench-"));
  removeAtEnd(place);
  const begin = performance.now();
  const line = `-q cloud -l walltime=0:01:00 -j oe -o ${place}/ -- ${words}\n`;
  complex.must("qsub", ["--batch", "-"], { input: line.repeat(JOBS) });
  await untilRecorded(complex.pbsHome, "S", 1);
  const started = performance.now();
  await untilRecorded(complex.pbsHome, "E", JOBS);
  const ended = performance.now();
  return { start_s: (started - begin) / 1000, per_s: (JOBS / (ended - started)) * 1000 };
}
