// Runs of `partita sim --grid` as text: a table with one line for each policy, or the details of a single run.

import type { GridReport } from "./grid-sim.ts";

const HOUR_S = 3600;

/** One line of figures for a run. */
export type GridFigures = {
  readonly predictor: string;
  readonly strategy: string;
  readonly done: number;
  readonly tasks: number;
  readonly throughput_per_h: number;
  /** mean over the campaigns that ended; null: none did */
  readonly makespan_mean_h: number | null;
  /** median over the campaigns with results, from submission to the first one */
  readonly first_result_median_s: number | null;
  readonly busy_share: number;
  readonly waiting_mean: number;
  readonly taken_back: number;
  readonly kills: number;
  readonly wasted_share: number;
  readonly local_wait_mean_s: number;
  readonly prediction_error: number | null;
};

export function figuresOf(report: GridReport): GridFigures {
  const { policy, campaigns, clusters } = report;
  const sum = (numbers: readonly number[]): number => numbers.reduce((total, one) => total + one, 0);
  const mean = (numbers: readonly number[]): number | null => (numbers.length === 0 ? null : sum(numbers) / numbers.length);
  const known = (of: (campaign: GridReport["campaigns"][number]) => number | null): number[] =>
    campaigns.map(of).filter((one): one is number => one !== null);
  const makespan = mean(known(({ makespan_s }) => makespan_s));
  const firsts = known(({ first_result_s }) => first_result_s).sort((a, b) => a - b);
  const done = sum(campaigns.map((one) => one.done));
  const [used, wasted] = [sum(clusters.map(({ grid_s }) => grid_s)), sum(clusters.map(({ wasted_s }) => wasted_s))];
  return {
    predictor: policy.predictor,
    strategy: policy.strategy,
    done,
    tasks: sum(campaigns.map(({ tasks }) => tasks)),
    throughput_per_h: done / (report.seconds / HOUR_S),
    makespan_mean_h: makespan === null ? null : makespan / HOUR_S,
    first_result_median_s: firsts[Math.floor((firsts.length - 1) / 2)] ?? null,
    busy_share: report.busy_share,
    waiting_mean: sum(clusters.map(({ waiting_mean }) => waiting_mean)),
    taken_back: report.taken_back,
    kills: sum(clusters.map(({ kills }) => kills)),
    wasted_share: used + wasted === 0 ? 0 : wasted / (used + wasted),
    local_wait_mean_s: mean(clusters.map(({ local_wait_mean_s }) => local_wait_mean_s)) ?? 0,
    prediction_error: mean(known(({ prediction_error }) => prediction_error)),
  };
}

type Column = readonly [title: string, text: (figures: GridFigures) => string];

const orNone = (value: number | null, digits: number): string => (value === null ? "-" : value.toFixed(digits));
const percent = (value: number | null): string => (value === null ? "-" : `${(100 * value).toFixed(1)} %`);

const COLUMNS: readonly Column[] = [
  ["predictor", ({ predictor }) => predictor],
  ["strategy", ({ strategy }) => strategy],
  ["done", ({ done }) => String(done)],
  ["jobs/h", ({ throughput_per_h }) => throughput_per_h.toFixed(1)],
  ["makespan h", ({ makespan_mean_h }) => orNone(makespan_mean_h, 1)],
  ["first s", ({ first_result_median_s }) => orNone(first_result_median_s, 0)],
  ["busy", ({ busy_share }) => percent(busy_share)],
  ["waiting", ({ waiting_mean }) => waiting_mean.toFixed(2)],
  ["taken back", ({ taken_back }) => String(taken_back)],
  ["killed", ({ kills }) => String(kills)],
  ["wasted", ({ wasted_share }) => percent(wasted_share)],
  ["local wait s", ({ local_wait_mean_s }) => local_wait_mean_s.toFixed(0)],
  ["end error", ({ prediction_error }) => percent(prediction_error)],
];

/** Returns the table of several runs. The meaning of its columns is in docs/campaigns.md. */
export function gridTable(all: readonly GridFigures[]): string {
  const rows = [COLUMNS.map(([title]) => title), ...all.map((figures) => COLUMNS.map(([, text]) => text(figures)))];
  const widths = COLUMNS.map((_, at) => Math.max(...rows.map((row) => row[at]?.length ?? 0)));
  return rows
    .map((row) =>
      row
        .map((text, at) => (at < 2 ? text.padEnd(widths[at] ?? 0) : text.padStart(widths[at] ?? 0)))
        .join("  ")
        .trimEnd(),
    )
    .join("\n");
}
