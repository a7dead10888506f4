// Rows of job arrays: what one of 100,000 subjobs costs while it waits, and how fast subjobs run.

import { spawnSync } from "node:child_process";
import { mkdtempSync, openSync, readdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Complex, startComplex } from "../test/live/complex.ts";
import { untilRecorded } from "./accounting-records.ts";
import { removeAtEnd } from "./leftovers.ts";
import { residentAfterCollection, throughResident, wall } from "./live.ts";
import { median, type Row } from "./row.ts";

const SUBJOBS = 100_000;
const ROUNDS = 7;

export async function arrayRows(say: (text: string) => void): Promise<Row[]> {
  const complex = await startComplex({ mode: "user" });
  try {
    complex.qmgr(`set server max_array_size=${SUBJOBS}`, "set server scheduling=False", "set server job_history_enable=True");
    say("an array of 100,000 subjobs that wait");
    const rows = await waitingRows(complex);
    say("1,000 subjobs");
    rows.push(await runningRow(complex), await startRow(complex), ...(await submissionRows(complex)));
    return rows;
  } finally {
    await complex.stop();
  }
}

async function waitingRows(complex: Complex): Promise<Row[]> {
  const pid = complex.pid("server") as number;
  const before = await residentAfterCollection(pid);
  const ids: string[] = [];
  const submissions = Array.from({ length: ROUNDS }, () =>
    timed(() => void ids.push(complex.must("qsub", ["-J", `1-${SUBJOBS}`, "--", "/bin/true"]).trim())),
  );
  const kB = ((await residentAfterCollection(pid)) - before) / ROUNDS;
  const array = ids[0] as string;
  const file = openSync(join(complex.home, "bench.out"), "w");
  const listings = Array.from({ length: ROUNDS }, () =>
    timed(() => void spawnSync(complex.command("qstat"), ["-t", array], { env: complex.env(), stdio: ["ignore", file, "inherit"] })),
  );
  const deletion = timed(() => void complex.must("qdel", ids));
  return [
    { work: "one qsub of an array of 100,000 subjobs, a process of its own", value: median(submissions) * 1000, unit: "ms", limit: null },
    { work: "qstat -t of it", value: median(listings), unit: "s", limit: 1 },
    { work: "server memory for it while it waits", value: kB, unit: "kB", limit: 20_000 },
    { work: `qdel of ${ROUNDS} such arrays`, value: deletion, unit: "s", limit: null },
  ];
}

/** Submission as users do it, through their resident. The arrays stay held. */
async function submissionRows(complex: Complex): Promise<Row[]> {
  const rows = await throughResident(complex, (installed) => {
    const submit = (): number => wall(complex, "qsub", ["-h", "-J", `1-${SUBJOBS}`, "--", "/bin/true"], installed);
    submit();
    const value = median(Array.from({ length: ROUNDS }, submit)) * 1000;
    return [{ work: "one qsub of an array of 100,000 subjobs, through the resident", value, unit: "ms", limit: 50 } as const];
  });
  return rows ?? [];
}

const RUN = 1000;

/** Subjobs that all find a free cpu: the time from qsub until the server knows the process of the last one. */
async function startRow(complex: Complex): Promise<Row> {
  complex.qmgr(`set node @default resources_available.ncpus=${RUN}`);
  const begin = performance.now();
  const array = complex.must("qsub", ["-J", `1-${RUN}`, "-koed", "-o/dev/null", "-e/dev/null", "--", "/bin/sleep", "1000"]).trim();
  await untilRecorded(complex.pbsHome, "S", RUN, new RegExp(`^${array.slice(0, array.indexOf("["))}\\[\\d`));
  const seconds = (performance.now() - begin) / 1000;
  complex.must("qdel", [array]);
  await untilRecorded(complex.pbsHome, "E", RUN, new RegExp(`^${array.slice(0, array.indexOf("["))}\\[\\d`));
  complex.qmgr("set node @default resources_available.ncpus=16");
  return { work: "1,000 subjobs start in user mode, qsub to the last one's start", value: RUN / seconds, unit: "/s", limit: 300 };
}

/** /bin/true as subjobs, from qsub to the last end record, output files in place. */
async function runningRow(complex: Complex): Promise<Row> {
  const place = mkdtempSync(join(tmpdir(), "partita-bench-"));
  try {
    complex.qmgr("set node @default resources_available.ncpus=16", "set server scheduling=True");
    const begin = performance.now();
    complex.must("qsub", ["-J", `1-${RUN}`, "-o", `${place}/`, "-e", `${place}/`, "--", "/bin/true"]);
    await untilRecorded(complex.pbsHome, "E", RUN, /\[\d+\]/);
    const seconds = (performance.now() - begin) / 1000;
    const files = readdirSync(place).length;
    if (files !== 2 * RUN) throw new Error(`${files} output files instead of ${2 * RUN}`);
    return {
      work: "1,000 subjobs /bin/true in user mode, qsub to last end, output delivered",
      value: RUN / seconds,
      unit: "/s",
      limit: null,
    };
  } finally {
    removeAtEnd(place);
  }
}

/** @returns wall seconds */
function timed(work: () => void): number {
  const begin = performance.now();
  work();
  return (performance.now() - begin) / 1000;
}
