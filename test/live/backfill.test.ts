// The figure of backfilling (seeds/003, systems.md 7) with real daemons and jobs, through qsub and qstat: four vnodes of four cpus, a unit is 100 seconds
// of walltime. Nobody waits for a planned start: what is looked at is what runs and what is published.

import assert from "node:assert/strict";
import { appendFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { type Complex, type JobRecord, startComplex, until } from "./complex.ts";

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
    "set server job_history_enable=True",
  );
});
after(() => complex.stop());

const submit = (name: string, select: string, units: number, ...more: readonly string[]): string =>
  complex.submit(["-N", name, "-l", `select=${select}`, "-l", `walltime=${units * UNIT_S}`, ...more, "--", "/bin/sleep", "3000"]);

const seconds = (time: unknown): number => Date.parse(String(time)) / 1000;

/** Where a job is to run, and when, as published. */
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

/** The figure at t0; q2: how many units it takes. */
async function figure(q2_units: number): Promise<Figure> {
  const [j0, j1, j2] = [
    submit("j0", "1:ncpus=4:vnode=n0", 18),
    submit("j1", "1:ncpus=1:vnode=n3", 7),
    submit("j2", "1:ncpus=4:vnode=n2+1:ncpus=2:vnode=n3", 22),
  ];
  for (const id of [j0, j1, j2]) await complex.untilJob(id, "R");
  complex.qmgr("set sched default scheduling=False");
  const [q0, q1, q2] = [
    submit("q0", "2:ncpus=4", 6, "-l", "place=vscatter"),
    submit("q1", "2:ncpus=2", 8, "-l", "place=vscatter"),
    submit("q2", "1:ncpus=4", q2_units),
  ];
  complex.qmgr("set sched default scheduling=True");
  await until("q1 has an estimate", () => estimate(complex.job(q1)));
  return { j0, j1, j2, q0, q1, q2 };
}

/** All jobs go (one of them may have gone already). */
async function clear(jobs: Figure): Promise<void> {
  complex.qmgr("set sched default scheduling=False");
  complex.run("qdel", ["-W", "force", ...Object.values(jobs)]);
  await until("no job is left", () => complex.must("qselect", []) === "");
  complex.qmgr("set sched default scheduling=True");
}

const stime = (id: string): number => seconds(complex.job(id)["stime"]);

test("the figure: q2 starts at once, q0 and q1 are to start when j0 and j1 end", async () => {
  const jobs = await figure(5);
  const { j0, j1, q0, q1, q2 } = jobs;
  assert.equal((await complex.untilJob(q2, "R")).exec_vnode, "(n1:ncpus=4)");
  assert.deepEqual(estimate(complex.job(q0)), { start_s: stime(j0) + 18 * UNIT_S, exec_vnode: "(n0:ncpus=4)+(n1:ncpus=4)" });
  assert.deepEqual(estimate(complex.job(q1)), { start_s: stime(j1) + 7 * UNIT_S, exec_vnode: "(n1:ncpus=2)+(n3:ncpus=2)" });
  assert.equal(complex.job(q1).job_state, "Q");

  // j1 ends early: q1 moves up to the end of q2 in the same place, q0 stays where it is.
  complex.must("qdel", [j1]);
  const soon_s = stime(q2) + 5 * UNIT_S;
  await until("q1 moves up", () => estimate(complex.job(q1))?.start_s === soon_s);
  assert.deepEqual(estimate(complex.job(q1)), { start_s: soon_s, exec_vnode: "(n1:ncpus=2)+(n3:ncpus=2)" });
  assert.deepEqual(estimate(complex.job(q0)), { start_s: stime(j0) + 18 * UNIT_S, exec_vnode: "(n0:ncpus=4)+(n1:ncpus=4)" });
  await clear(jobs);
});

test("a longer q2 would reach into the plan of q1: it is planned for the end of j2", async () => {
  const jobs = await figure(8);
  const { j1, j2, q1, q2 } = jobs;
  await until("q2 has an estimate", () => estimate(complex.job(q2)));
  assert.deepEqual(estimate(complex.job(q2)), { start_s: stime(j2) + 22 * UNIT_S, exec_vnode: "(n2:ncpus=4)" });
  assert.deepEqual(estimate(complex.job(q1)), { start_s: stime(j1) + 7 * UNIT_S, exec_vnode: "(n1:ncpus=2)+(n3:ncpus=2)" });
  assert.equal(complex.job(q2).job_state, "Q");

  // backfill_depth 1: q1 and q2 lose their plans, and q2 starts, since it ends before q0 is to start.
  complex.qmgr("set server backfill_depth=1", "set sched default scheduling=True");
  assert.equal((await complex.untilJob(q2, "R")).exec_vnode, "(n1:ncpus=4)");
  assert.equal(complex.job(q1)["topjob"], undefined);
  complex.qmgr("set server backfill_depth=3", "set server job_history_enable=True");
  await clear(jobs);
});
