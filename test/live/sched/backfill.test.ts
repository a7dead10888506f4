// The backfilling example (seeds/003, systems.md 7) with real daemons and jobs, through qsub and qstat: four vnodes of four
// cpus, where one unit is 100 seconds of walltime. The test does not wait for planned starts: it checks what runs and what is
// published.

import assert from "node:assert/strict";
import { appendFileSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { VARIANTS, type Variant } from "../../sched/calendar/backfill-variants.ts";
import { type Complex, type JobRecord, startComplex, until } from "../complex.ts";

const UNIT_S = 100;
const VNODES = ["n0", "n1", "n2", "n3"];

let complex: Complex;

before(async () => {
  complex = await startComplex();
  const host = /^Name=([^|]+)/m.exec(complex.must("pbsnodes", ["-a", "-F", "dsv"]))?.[1] as string;
  const file = join(complex.work(), "vdef");
  writeFileSync(file, ["$configversion 2", ...VNODES.map((name) => `${name}: resources_available.ncpus = 4`), ""].join("\n"));
  complex.must("pbs_mom", ["-s", "insert", "vdef", file]);
  process.kill(complex.pid("mom") as number, "SIGHUP");
  await until("all vnodes are there", () => complex.run("pbsnodes", ["-v", ...VNODES]).status === 0);
  appendFileSync(join(complex.pbsHome, "sched_priv", "sched_config"), "strict_ordering: True ALL\n");
  process.kill(complex.schedPid("default") as number, "SIGHUP");
  complex.qmgr(
    `set node ${host} resources_available.ncpus=0`,
    "set sched default opt_backfill_fuzzy=off",
    "set server backfill_depth=3",
    // In the example jobs have gone at the end of their walltime.
    "set queue workq kill_delay=0",
    "set server job_history_enable=True",
  );
});
after(() => complex.stop());

const submit = (name: string, select: string, walltime_s: number, ...more: readonly string[]): string =>
  complex.submit(["-N", name, "-l", `select=${select}`, "-l", `walltime=${walltime_s}`, ...more, "--", "/bin/sleep", "3000"]);

const seconds = (time: unknown): number => Date.parse(String(time)) / 1000;
const stime = (id: string): number => seconds(complex.job(id)["stime"]);

/** The published place and time of a job's start. */
function estimate(job: JobRecord): { readonly start_s: number; readonly exec_vnode: string } | null {
  const { exec_vnode, start_time } = (job["estimated"] ?? {}) as { readonly exec_vnode?: string; readonly start_time?: unknown };
  return exec_vnode === undefined ? null : { start_s: typeof start_time === "number" ? start_time : seconds(start_time), exec_vnode };
}

type Figure = {
  readonly j0: string;
  readonly j1: string;
  readonly j2: string;
  readonly q0: string;
  readonly q1: string;
  readonly q2: string;
};

/**
 * Running jobs end half a unit late, and queued jobs are slightly shorter, so that intervals that touch in the example still do
 * if the cycle comes some seconds after t0.
 */
const running = (units: number): number => units * UNIT_S + 50;
const queued = (units: number): number => units * UNIT_S - 10;
const Q0_S = 6 * UNIT_S;

/** The example at t0, after a complete cycle. */
async function figure(variant: Variant): Promise<Figure> {
  const { j2: j2_units = 22, q1: q1_units = 8, q2: q2_units = 5 } = variant;
  configure({});
  const [j0, j1, j2] = await inOneSecond(() => [
    submit("j0", "1:ncpus=4:vnode=n0", running(18)),
    submit("j1", "1:ncpus=1:vnode=n3", running(7)),
    submit("j2", "1:ncpus=4:vnode=n2+1:ncpus=2:vnode=n3", running(j2_units)),
  ]);
  complex.qmgr("set sched default scheduling=False");
  configure(variant);
  const [q0, q1, q2] = [
    submit("q0", "2:ncpus=4", Q0_S, "-l", "place=vscatter"),
    submit("q1", "2:ncpus=2", queued(q1_units), "-l", "place=vscatter"),
    submit("q2", "1:ncpus=4", queued(q2_units)),
  ];
  const before = cycles();
  complex.qmgr("set sched default scheduling=True");
  await until("a cycle has come to its end", () => cycles() > before);
  return { j0, j1, j2, q0, q1, q2 };
}

const cycles = (): number => complex.log("sched_logs").split("Leaving Scheduling Cycle").length;

/** Jobs that start in the same second, so that their ends are ties where the example has ties. */
async function inOneSecond(submitAll: () => [string, string, string]): Promise<[string, string, string]> {
  for (let attempt = 0; attempt < 20; attempt++) {
    complex.qmgr("set sched default scheduling=False");
    const jobs = submitAll();
    complex.qmgr("set sched default scheduling=True");
    for (const id of jobs) await complex.untilJob(id, "R");
    if (new Set(jobs.map(stime)).size === 1) return jobs;
    complex.run("qdel", ["-W", "force", ...jobs]);
    await until("no job is left", () => complex.must("qselect", []) === "");
  }
  throw new Error("no three jobs start in the same second");
}

/** In the form of backfill-variants.ts, without the ends of plans: `q0 18 n0*4 n1*4; q2 now n1*4`. */
function planned({ j0, q0, q1, q2 }: Figure): string {
  const where = (exec_vnode = ""): string => exec_vnode.replaceAll(/[()]/g, "").replaceAll(":ncpus=", "*").replaceAll("+", " ");
  const lines = Object.entries({ q0, q1, q2 }).flatMap(([name, id]): string[] => {
    const job = complex.job(id);
    if (job.job_state === "R") return [`${name} now ${where(job.exec_vnode)}`];
    const plan = estimate(job);
    return plan === null ? [] : [`${name} ${Math.floor((plan.start_s - stime(j0)) / UNIT_S)} ${where(plan.exec_vnode)}`];
  });
  return lines.join("; ");
}

/** Settings that a variant changes. */
function configure({ depth = 3, looked_at }: Pick<Variant, "depth" | "looked_at">): void {
  const file = join(complex.pbsHome, "sched_priv", "sched_config");
  const others = readFileSync(file, "utf8").replaceAll(/^max_job_check:.*\n/gm, "");
  writeFileSync(file, looked_at === undefined ? others : `${others}max_job_check: ${looked_at}\n`);
  // Setting any attribute of a scheduler makes it read its files.
  complex.qmgr(`set server backfill_depth=${depth}`, "set sched default opt_backfill_fuzzy=off");
}

/** Deletes all jobs (one of them may already have ended). */
async function clear(jobs: Figure): Promise<void> {
  complex.qmgr("set sched default scheduling=False");
  complex.run("qdel", ["-W", "force", ...Object.values(jobs)]);
  await until("no job is left", () => complex.must("qselect", []) === "");
  complex.qmgr("set sched default scheduling=True");
}

// Variants that would take the full time of a job are tested with a cycle on a virtual clock instead.
for (const variant of VARIANTS.filter(({ now }) => now === undefined)) {
  test(`${variant.name}, through qsub and qstat`, async () => {
    const jobs = await figure(variant);
    const expected = variant.expected.replaceAll(/\[(\d+),\d+\)/g, "$1");
    // The server publishes a decision when the jobs have it.
    await until(expected, () => planned(jobs) === expected).catch(() => assert.equal(planned(jobs), expected));
    await clear(jobs);
  });
}

test("j1 ends early: q1 moves up to the end of q2 in the same place, q0 stays where it is", async () => {
  const variant = VARIANTS[0] as Variant;
  const jobs = await figure(variant);
  const { j0, j1, q0, q1, q2 } = jobs;
  await complex.untilJob(q2, "R");
  complex.must("qdel", [j1]);
  const soon_s = stime(q2) + queued(5);
  await until("q1 moves up", () => estimate(complex.job(q1))?.start_s === soon_s);
  assert.deepEqual(estimate(complex.job(q1)), { start_s: soon_s, exec_vnode: "(n1:ncpus=2)+(n3:ncpus=2)" });
  assert.deepEqual(estimate(complex.job(q0)), { start_s: stime(j0) + running(18), exec_vnode: "(n0:ncpus=4)+(n1:ncpus=4)" });
  await clear(jobs);
});

test("a smaller depth takes plans back: q2, which they kept waiting, starts", async () => {
  const variant = { ...(VARIANTS[0] as Variant), q2: 8 };
  const jobs = await figure(variant);
  const { q1, q2 } = jobs;
  await until("q2 has an estimate", () => estimate(complex.job(q2)));
  assert.equal(complex.job(q2).job_state, "Q");
  complex.qmgr("set server backfill_depth=1", "set sched default scheduling=True");
  assert.equal((await complex.untilJob(q2, "R")).exec_vnode, "(n1:ncpus=4)");
  assert.equal(complex.job(q1)["topjob"], undefined);
  await clear(jobs);
});
