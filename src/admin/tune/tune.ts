// partita tune: compares settings on a trace (docs/tune.md). src/replay computes; this file handles files, options and text.

import { writeFileSync } from "node:fs";
import { basename } from "node:path";
import { linesOf, settingsOf } from "#replay/sched-settings.ts";
import { shareBars } from "#replay/share-bars.ts";
import { parseTrace, TraceError, type TraceJob } from "#replay/trace.ts";
import { bestOf, GOALS, type Goal, type Share, sizesOf, type Tried, tryAll, usersOf } from "#replay/tune.ts";
import { nth } from "#support/assert.ts";
import { AdminError } from "../complex/complex-home.ts";
import { traceText } from "../sim/trace-text.ts";
import { jobsOfAccounting } from "./accounting-trace.ts";

export type TuneOptions = {
  readonly trace: string | undefined;
  readonly procs: number | undefined;
  readonly accounting: string | undefined;
  readonly goal: string;
  readonly picture: string | undefined;
  readonly json: boolean;
};

/** Number of users in tables and pictures who gain most, and of those who lose most. */
const USERS_SHOWN = 5;

/** Replays the jobs under all settings and returns the comparison as text. tell: called with notes. */
export function tune(options: TuneOptions, tell: (text: string) => void): string {
  const goal = goalOf(options.goal);
  const { name, jobs, procs } = inputOf(options, tell);
  const tried = tryAll(jobs, [{ procs }], goal, (each) => {
    if (process.stderr.isTTY) process.stderr.write(`\r${each.padEnd(40)}`);
  });
  if (process.stderr.isTTY) process.stderr.write(`\r${"".padEnd(40)}\r`);
  const [easy, best] = [nth(tried, 0), bestOf(tried, goal)];
  const users = usersOf(jobs, easy.starts_s, best.starts_s);
  const sizes = sizesOf(easy.metrics, best.metrics);
  const settings = settingsOf(best.algorithm);
  const lines = settings === null ? [] : linesOf(settings, "default");
  const shown = users.length <= 2 * USERS_SHOWN ? users : [...users.slice(0, USERS_SHOWN), ...users.slice(-USERS_SHOWN)];
  if (options.picture !== undefined) {
    const panels = [
      { title: "mean wait by size of job", shares: sizes },
      { title: "mean wait by user: those who lose most, those who gain most", shares: shown },
    ];
    writeFileSync(options.picture, shareBars(`${name}, ${procs} processors`, [easy.name, best.name], panels));
  }
  if (options.json) {
    const rows = tried.map(({ name: each, metrics, change, allowed }) => ({ settings: each, ...metrics, change, allowed }));
    return JSON.stringify({ jobs: jobs.length, goal, tried: rows, best: best.name, apply: lines, sizes, users }, null, 2);
  }
  return [
    ...table(tried, best),
    "",
    ...sharesText("size", sizes),
    "",
    ...sharesText("user", shown),
    "",
    ...worse(sizes, users),
    "",
    ...apply(best, lines),
  ].join("\n");
}

function goalOf(text: string): Goal {
  const [, figure = "", percent = "110"] = /^([a-z]+)(?::(\d{1,6}))?$/.exec(text) ?? [];
  const found = GOALS.find((name) => name === figure);
  if (found === undefined) throw new AdminError(`--goal ${text}: not FIGURE[:PERCENT] with one of ${GOALS.join(", ")}`);
  return { figure: found, longest_percent: Number(percent) };
}

type Input = { readonly name: string; readonly jobs: readonly TraceJob[]; readonly procs: number };

function inputOf({ trace, accounting, procs }: TuneOptions, tell: (text: string) => void): Input {
  if ((trace === undefined) === (accounting === undefined)) throw new AdminError("say either a trace or --accounting DIR");
  if (procs === undefined || !Number.isSafeInteger(procs) || procs <= 0) throw new AdminError("--procs: a positive number");
  const left_out = { nothing: 0, too_wide: 0 };
  let jobs: TraceJob[];
  if (trace === undefined) {
    const read = jobsOfAccounting(accounting ?? "");
    jobs = read.jobs.filter((job) => job.procs <= procs);
    left_out.nothing = read.left_out;
    left_out.too_wide = read.jobs.length - jobs.length;
  } else jobs = tracedJobs(trace, procs, left_out);
  if (left_out.too_wide > 0) tell(`${left_out.too_wide} jobs left out: wider than ${procs} processors`);
  if (left_out.nothing > 0) tell(`${left_out.nothing} jobs left out: without run time or processors`);
  if (jobs.length === 0) throw new AdminError("no job can be replayed");
  return { name: basename(trace ?? accounting ?? ""), jobs, procs };
}

function tracedJobs(trace: string, procs: number, left_out: { nothing: number; too_wide: number }): TraceJob[] {
  try {
    return parseTrace(traceText(trace), procs, left_out);
  } catch (error) {
    if (error instanceof TraceError) throw new AdminError(error.message);
    throw error;
  }
}

const cells = (name: string, values: readonly string[]): string =>
  `${name.padEnd(32)}${values.map((value) => value.padStart(16)).join("")}`;

function table(tried: readonly Tried[], best: Tried): string[] {
  const rows = [...tried].sort((a, b) => a.metrics.bounded_slowdown.mean - b.metrics.bounded_slowdown.mean);
  return [
    cells("settings", ["mean slowdown", "change", "95 % interval", "mean wait s", "max wait s", ""]),
    ...rows.map(({ name, metrics, change, allowed }) =>
      cells(name, [
        metrics.bounded_slowdown.mean.toFixed(2),
        change.mean.toFixed(2),
        `${change.low.toFixed(1)} to ${change.high.toFixed(1)}`,
        metrics.wait_s.mean.toFixed(0),
        String(metrics.wait_s.max),
        name === best.name ? "<- best" : allowed ? "" : "waits too long",
      ]),
    ),
  ];
}

function sharesText(what: string, shares: readonly Share[]): string[] {
  return [
    cells(what, ["jobs", "easy: mean wait", "best: mean wait", "change"]),
    ...shares.map(({ name, jobs, wait_s: [before, after] }) =>
      cells(name, [String(jobs), before.toFixed(0), after.toFixed(0), (after - before).toFixed(0)]),
    ),
  ];
}

function worse(sizes: readonly Share[], users: readonly Share[]): string[] {
  const lose = (shares: readonly Share[]): readonly Share[] => shares.filter(({ wait_s: [before, after] }) => after > before);
  const names = lose(sizes).map(({ name }) => name);
  return [
    `Worse than easy: ${names.length === 0 ? "no size of job" : `jobs of ${names.join(", ")}`}; ${lose(users).length} of ${users.length} users with at least 20 jobs wait longer on average.`,
  ];
}

function apply(best: Tried, lines: readonly string[]): string[] {
  return [`To apply "${best.name}":`, ...lines.map((line) => `    ${line}`)];
}
