// Metrics of a schedule: wait = start - submit; bounded slowdown = max(1, (wait + run) / max(run, 10)); means are not
// weighted; utilisation = used slot seconds / (slots * (last end - first submit)).

import { nth } from "#support/assert.ts";
import type { TraceJob } from "./trace.ts";

export type Distribution = {
  readonly mean: number;
  readonly median: number;
  readonly p90: number;
  readonly p99: number;
  readonly max: number;
};
export type Metrics = {
  readonly jobs: number;
  readonly wait_s: Distribution;
  readonly bounded_slowdown: Distribution;
  readonly utilisation: number;
  /** time from the first submission to the last end */
  readonly makespan_s: number;
  /** histogram of waits: number of jobs that waited at most upto_s and longer than the bound of the row before; null: no upper bound */
  readonly waits: readonly { readonly upto_s: number | null; readonly jobs: number }[];
  /** means for jobs by size: those with at most `upto` slots, and more than the bound of the row before; null: no upper bound */
  readonly by_procs: readonly {
    readonly upto: number | null;
    readonly jobs: number;
    readonly wait_s_mean: number;
    readonly bounded_slowdown_mean: number;
  }[];
};

const SHORT_S = 10;
const WAITS_S = [0, 60, 600, 3600, 6 * 3600, 24 * 3600, 7 * 24 * 3600];
const WIDTHS = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024];

/** Computes the metrics of jobs and their starts, which are in the same order. Jobs without a start (NaN) are not counted. */
export function metricsOf(jobs: readonly TraceJob[], starts_s: readonly number[], procs: number): Metrics {
  const waits: number[] = [];
  const slowdowns: number[] = [];
  const widths: number[] = [];
  let [used, first_s, last_s] = [0, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
  jobs.forEach(({ submit_s, run_s, procs: width }, at) => {
    const start_s = nth(starts_s, at);
    if (Number.isNaN(start_s)) return;
    const wait_s = start_s - submit_s;
    waits.push(wait_s);
    widths.push(width);
    slowdowns.push(Math.max(1, (wait_s + run_s) / Math.max(run_s, SHORT_S)));
    used += width * run_s;
    first_s = Math.min(first_s, submit_s);
    last_s = Math.max(last_s, start_s + run_s);
  });
  const makespan_s = waits.length === 0 ? 0 : last_s - first_s;
  return {
    jobs: waits.length,
    utilisation: makespan_s === 0 ? 0 : used / (procs * makespan_s),
    makespan_s,
    waits: histogram(waits),
    by_procs: byWidth(widths, waits, slowdowns),
    wait_s: distribution(waits),
    bounded_slowdown: distribution(slowdowns),
  };
}

function histogram(waits_s: readonly number[]): Metrics["waits"] {
  const counts = new Array<number>(WAITS_S.length + 1).fill(0);
  for (const wait_s of waits_s) {
    const at = WAITS_S.findIndex((upto_s) => wait_s <= upto_s);
    const place = at < 0 ? WAITS_S.length : at;
    counts[place] = nth(counts, place) + 1;
  }
  return counts.map((jobs, at) => ({ upto_s: WAITS_S[at] ?? null, jobs }));
}

function byWidth(widths: readonly number[], waits_s: readonly number[], slowdowns: readonly number[]): Metrics["by_procs"] {
  const sums = Array.from({ length: WIDTHS.length + 1 }, () => ({ jobs: 0, wait_s: 0, slowdown: 0 }));
  widths.forEach((width, at) => {
    const found = WIDTHS.findIndex((upto) => width <= upto);
    const sum = nth(sums, found < 0 ? WIDTHS.length : found);
    sum.jobs++;
    sum.wait_s += nth(waits_s, at);
    sum.slowdown += nth(slowdowns, at);
  });
  return sums.flatMap(({ jobs, wait_s, slowdown }, at) =>
    jobs === 0 ? [] : [{ upto: WIDTHS[at] ?? null, jobs, wait_s_mean: wait_s / jobs, bounded_slowdown_mean: slowdown / jobs }],
  );
}

function distribution(values: readonly number[]): Distribution {
  if (values.length === 0) return { mean: 0, median: 0, p90: 0, p99: 0, max: 0 };
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
  // Without a comparison function, numbers are sorted in a fifth of the time.
  const sorted = Float64Array.from(values).sort();
  const quantile = (part: number): number => nth(sorted, Math.min(sorted.length - 1, Math.ceil(part * sorted.length) - 1));
  return { mean, median: quantile(0.5), p90: quantile(0.9), p99: quantile(0.99), max: sorted.at(-1) as number };
}

/** Returns the metrics as a table for users. */
export function metricsTable(
  algorithm: string,
  { jobs, wait_s, bounded_slowdown, utilisation, makespan_s, waits, by_procs }: Metrics,
): string {
  const row = (name: string, values: readonly (string | number)[]): string =>
    `${name.padEnd(18)}${values.map((value) => (typeof value === "number" ? value.toFixed(4) : value).padStart(15)).join("")}`;
  const spread = ({ mean, median, p90, p99, max }: Distribution): number[] => [mean, median, p90, p99, max];
  const share = (count: number): string => `${((100 * count) / Math.max(1, jobs)).toFixed(1)} %`;
  const widths = by_procs.map(({ upto, ...means }) =>
    row(upto === null ? `> ${WIDTHS.at(-1)} slots` : `<= ${upto} slots`, [
      String(means.jobs),
      means.wait_s_mean,
      means.bounded_slowdown_mean,
    ]),
  );
  return [
    `${algorithm}: ${jobs} jobs in ${makespan_s} s, utilisation ${(100 * utilisation).toFixed(2)} %`,
    row("", ["mean", "median", "90 %", "99 %", "max"]),
    row("wait s", spread(wait_s)),
    row("bounded slowdown", spread(bounded_slowdown)),
    "",
    row(
      "waited",
      waits.map(({ upto_s }) => (upto_s === null ? "longer" : `<= ${spanText(upto_s)}`)),
    ),
    row(
      "jobs",
      waits.map((each) => share(each.jobs)),
    ),
    "",
    row("size", ["jobs", "mean wait s", "mean slowdown"]),
    ...widths,
  ].join("\n");
}

/** Returns a table that compares several algorithms on one trace, one line for each. */
export function comparisonTable(all: readonly { readonly algorithm: string; readonly metrics: Metrics }[]): string {
  const cells = (name: string, values: readonly string[]): string =>
    `${name.padEnd(10)}${values.map((text) => text.padStart(15)).join("")}`;
  return [
    cells("", ["jobs", "utilisation", "mean wait s", "90 % wait s", "max wait s", "mean slowdown", "90 % slowdown"]),
    ...all.map(({ algorithm, metrics: { jobs, utilisation, wait_s, bounded_slowdown } }) =>
      cells(algorithm, [
        String(jobs),
        `${(100 * utilisation).toFixed(2)} %`,
        wait_s.mean.toFixed(4),
        String(wait_s.p90),
        String(wait_s.max),
        bounded_slowdown.mean.toFixed(4),
        bounded_slowdown.p90.toFixed(4),
      ]),
    ),
  ].join("\n");
}

function spanText(span_s: number): string {
  if (span_s >= 86_400) return `${span_s / 86_400} d`;
  return span_s >= 3600 ? `${span_s / 3600} h` : span_s >= 60 ? `${span_s / 60} min` : `${span_s} s`;
}

/** Returns lines `job,start` in the order of job numbers. */
export function startsCsv(jobs: readonly TraceJob[], starts_s: readonly number[]): string {
  const rows = jobs.flatMap(({ id }, at) => (Number.isNaN(starts_s[at]) ? [] : [[id, starts_s[at]] as const]));
  rows.sort(([a], [b]) => a - b);
  return `job,start\n${rows.map(([id, start_s]) => `${id},${start_s}\n`).join("")}`;
}
