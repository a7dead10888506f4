// partita sim: replays a trace (docs/sim.md). src/replay computes the schedule; this file handles files and options.

import { writeFileSync } from "node:fs";
import { basename } from "node:path";
import { algorithmNamed } from "#replay/algorithm.ts";
import { type Colouring, chooseColouring } from "#replay/colouring.ts";
import { comparisonTable, metricsOf, metricsTable, startsCsv } from "#replay/metrics.ts";
import { pictureOf } from "#replay/picture.ts";
import { ganttOf, namesOf, type PoolSpec, replay } from "#replay/replay.ts";
import { type LeftOut, parseReservations, parseTrace, TraceError, type TraceJob } from "#replay/trace.ts";
import { nth } from "#support/assert.ts";
import { AdminError } from "../complex/complex-home.ts";
import type { SimOptions } from "./sim-options.ts";
import { traceText } from "./trace-text.ts";

/**
 * Replays the trace and returns the metrics as text. Writes the start times to --out, and a picture of each --algo to --picture. tell: called with notes about
 * jobs that are left out.
 */
export async function sim(
  { trace, algo, engine, out, json, picture, colour, from, to, schedConfig, ...options }: SimOptions,
  tell: (text: string) => void,
): Promise<string> {
  for (const [name, value] of Object.entries({ from, to })) if (Number.isNaN(value)) throw new AdminError(`--${name}: a number of seconds`);
  if (trace === undefined) throw new AdminError("a trace is wanted, or --live, or --state FILE");
  const names = algo.split(",");
  if (names.length > 1 && out !== undefined) throw new AdminError("--out goes with one --algo");
  const pools = poolsOf(options);
  const procs = pools.reduce((sum, pool) => sum + pool.procs, 0);
  const { jobs, left_out } = jobsOf(trace, pools);
  if (left_out.too_wide > 0)
    tell(`${left_out.too_wide} of ${jobs.length + left_out.too_wide} jobs left out: wider than their machine or partition`);
  if (left_out.nothing > 0) tell(`${left_out.nothing} jobs left out: without run time or processors`);
  // The scheduler itself is loaded only if the replay runs its cycles.
  const lines = schedConfig === undefined ? null : configText(schedConfig, algo);
  const cycles = engine === "cycle" || lines !== null ? await import("#replay/cycle-pool.ts") : null;
  const real =
    cycles === null
      ? {}
      : { engine: lines === null ? cycles.createCyclePool : (slots: number) => cycles.createConfiguredPool(slots, lines) };
  const results = names.map((name) => {
    const algorithm = algorithmNamed(name);
    if (algorithm === null) throw new AdminError(`${name}: not an algorithm (fcfs, easy, sjbf, log, depthN, depthinf, cons)`);
    const { starts_s } = expected(() => replay({ jobs, pools, algorithm, ...real }));
    return { algorithm: lines === null ? name : "sched_config", starts_s, metrics: metricsOf(jobs, starts_s, procs) };
  });
  const first = nth(results, 0);
  if (out !== undefined) writeFileSync(out, startsCsv(jobs, first.starts_s));
  if (picture !== undefined) {
    const span = { ...(from === undefined ? {} : { from_s: from }), ...(to === undefined ? {} : { to_s: to }) };
    const colouring = (colour as Colouring | undefined) ?? chooseColouring(jobs.map(namesOf));
    const gantts = results.map(({ algorithm, starts_s }) => ganttOf({ title: algorithm, jobs, starts_s, pools, colouring }));
    writeFileSync(picture, pictureOf(gantts, { title: `${basename(trace)}, ${algo}`, colouring, ...span }));
  }
  const shown = results.map(({ algorithm, metrics }) => ({ algorithm, metrics }));
  if (json) {
    const objects = shown.map(({ algorithm, metrics }) => ({ algorithm, ...metrics, left_out }));
    return JSON.stringify(objects.length === 1 ? objects[0] : objects, null, 2);
  }
  return shown.length === 1 ? metricsTable(first.algorithm, first.metrics) : comparisonTable(shown);
}

/** Returns the jobs that fit into their pool, and counts the others. A job of a partition without a pool fits nowhere. */
function jobsOf(trace: string, pools: readonly PoolSpec[]): { readonly jobs: readonly TraceJob[]; readonly left_out: LeftOut } {
  const ofPool = new Map(pools.map(({ partition, procs }) => [partition, procs]));
  const left_out = { nothing: 0, too_wide: 0 };
  const most = (job: TraceJob): number => ofPool.get(undefined) ?? ofPool.get(job.partition) ?? 0;
  return { jobs: expected(() => parseTrace(traceText(trace), most, left_out)), left_out };
}

/** Returns the lines KEY=VALUE of --sched-config as a sched_config. */
function configText(lines: readonly string[], algo: string): string {
  if (algo !== "easy") throw new AdminError("--sched-config replaces --algo");
  return lines
    .map((line) => {
      const [, key, value] = /^([A-Za-z_][\w.]*)=(.*)$/.exec(line) ?? [];
      if (key === undefined || value === undefined) throw new AdminError(`--sched-config ${line}: not KEY=VALUE`);
      return `${key}: ${value}\n`;
    })
    .join("");
}

/** Turns errors in the input into AdminErrors, which are printed without a stack. */
function expected<T>(work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (error instanceof TraceError || error instanceof RangeError) throw new AdminError(error.message);
    throw error;
  }
}

function poolsOf({ procs, partition = [], reservations }: Pick<SimOptions, "procs" | "partition" | "reservations">): PoolSpec[] {
  if ((procs === undefined) === (partition.length === 0)) throw new AdminError("say either --procs P or --partition NUMBER=P");
  if (procs !== undefined) {
    if (!Number.isSafeInteger(procs) || procs <= 0) throw new AdminError("--procs: a positive number");
    return [{ procs, reservations: reservations === undefined ? [] : expected(() => parseReservations(traceText(reservations))) }];
  }
  if (reservations !== undefined) throw new AdminError("--reservations goes with --procs");
  return partition.map((text) => {
    const [, number, width] = /^(-?\d+)=([1-9]\d*)$/.exec(text) ?? [];
    if (number === undefined || width === undefined) throw new AdminError(`--partition ${text}: not NUMBER=PROCS`);
    return { partition: Number(number), procs: Number(width) };
  });
}
