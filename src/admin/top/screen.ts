// Makes the screen of `partita top` as lines of styled text, and applies keys. Pure, so that the view on a terminal, the
// snapshot for a pipe and the tests use the same code. app.tsx draws the lines and passes keys to this file.
//
// S1. No line is longer than the width of the screen. S2. The selected job is one that is shown, or no job is selected.

import { ctime } from "#cli/dates.ts";
import { RESV_STATE } from "#model/resv-state.ts";
import { renderDuration } from "#model/values/duration.ts";
import type { Bar, PartitionView, ResvView, UnservedView, WaitingJob } from "#protocol/sched-view.ts";
import { nth } from "#support/assert.ts";
import type { SchedPicture, TopPicture } from "./picture.ts";

export type Style = "plain" | "bold" | "faint" | "good" | "bad" | "warn" | "chosen";
export type Piece = { readonly text: string; readonly style: Style };
export type Line = readonly Piece[];

export type TopState = {
  /** only jobs whose id, user or queue contains the filter are shown */
  readonly filter: string;
  /** whether the user is typing the filter */
  readonly typing: boolean;
  /** the scheduler whose jobs are shown; null: all schedulers */
  readonly sched: string | null;
  readonly chosen: number;
  /** the explanation that is shown: its job, its text, and the number of the first line on the screen */
  readonly opened: { readonly job: string; readonly text: string; readonly from: number } | null;
  /** the job whose explanation has been requested and has not arrived */
  readonly asking: string | null;
  readonly over: boolean;
};
export const TOP_START: TopState = { filter: "", typing: false, sched: null, chosen: 0, opened: null, asking: null, over: false };

export type TopKey =
  | { readonly kind: "up" | "down" | "enter" | "escape" | "backspace" | "tab" }
  | { readonly kind: "text"; readonly text: string };
export type Size = { readonly columns: number; readonly rows: number };

const piece = (text: string, style: Style = "plain"): Piece => ({ text, style });
const BAR_WIDTH = 40;
const EVENTS_SHOWN = 6;
const JOB_ROWS_MIN = 4;

/** Returns the jobs to list, in the order of each scheduler. */
export function shownJobs(picture: TopPicture, { filter, sched }: TopState): WaitingJob[] {
  const served = picture.scheds.filter(({ name }) => sched === null || name === sched).flatMap(({ view }) => view?.waiting ?? []);
  const unserved = unservedOf(picture, sched).flatMap(({ waiting, text }) => waiting.map((job) => ({ ...job, comment: text })));
  // If both the server and a scheduler have reported a job, the server's report counts, because the scheduler's report is older.
  const told = new Set(unserved.map(({ id }) => id));
  const jobs = [...unserved, ...served.filter(({ id }) => !told.has(id))];
  return jobs.filter(({ id, user, queue }) => [id, user, queue].some((text) => text.includes(filter)));
}

/**
 * Returns the partitions whose jobs no scheduler serves now. sched: only the partitions that belong to this scheduler; null: all, also those that belong to no
 * scheduler.
 */
const unservedOf = ({ unserved }: TopPicture, sched: string | null): readonly UnservedView[] =>
  unserved.filter((view) => sched === null || view.sched === sched);

/** Returns the state after a key. */
export function press(state: TopState, key: TopKey, picture: TopPicture): TopState {
  if (state.typing) return typed(state, key);
  if (state.opened !== null) return inExplanation(state, key, state.opened);
  const jobs = shownJobs(picture, state);
  switch (key.kind) {
    case "up":
      return { ...state, chosen: Math.max(0, state.chosen - 1) };
    case "down":
      return { ...state, chosen: Math.max(0, Math.min(jobs.length - 1, state.chosen + 1)) };
    case "enter": {
      const job = jobs[Math.min(state.chosen, jobs.length - 1)];
      return job === undefined ? state : { ...state, asking: job.id };
    }
    case "tab":
      return { ...state, sched: nextSched(picture, state.sched), chosen: 0 };
    case "escape":
      return { ...state, filter: "", asking: null };
    case "text":
      if (key.text === "q") return { ...state, over: true };
      return key.text === "/" ? { ...state, typing: true, filter: "" } : state;
    case "backspace":
      return state;
    default: {
      const unreachable: never = key;
      return unreachable;
    }
  }
}

function typed(state: TopState, key: TopKey): TopState {
  if (key.kind === "enter") return { ...state, typing: false, chosen: 0 };
  if (key.kind === "escape") return { ...state, typing: false, filter: "", chosen: 0 };
  if (key.kind === "backspace") return { ...state, filter: state.filter.slice(0, -1), chosen: 0 };
  return key.kind === "text" ? { ...state, filter: state.filter + key.text, chosen: 0 } : state;
}

function inExplanation(state: TopState, key: TopKey, opened: NonNullable<TopState["opened"]>): TopState {
  const last = opened.text.split("\n").length - 2;
  if (key.kind === "up") return { ...state, opened: { ...opened, from: Math.max(0, opened.from - 1) } };
  if (key.kind === "down") return { ...state, opened: { ...opened, from: Math.max(0, Math.min(last, opened.from + 1)) } };
  if (key.kind === "escape" || key.kind === "enter" || (key.kind === "text" && key.text === "q")) return { ...state, opened: null };
  return state;
}

function nextSched({ scheds }: TopPicture, now: string | null): string | null {
  const names = [null, ...scheds.map(({ name }) => name)];
  return names[(names.indexOf(now) + 1) % names.length] ?? null;
}

/** Returns the lines of the screen, as many as fit. */
export function screenLines(picture: TopPicture, state: TopState, size: Size): Line[] {
  const lines = state.opened === null ? overview(picture, state, size.rows) : explanationLines(state.opened);
  return lines.slice(0, Math.max(1, size.rows)).map((line) => cut(line, size.columns));
}

/** Returns the whole content as plain text, for a pipe. */
export function snapshotText(picture: TopPicture): string {
  const lines = overview(picture, { ...TOP_START, chosen: -1 }, Number.POSITIVE_INFINITY, false);
  return `${lines
    .map((line) =>
      line
        .map(({ text }) => text)
        .join("")
        .trimEnd(),
    )
    .join("\n")}\n`;
}

function explanationLines({ text, from }: NonNullable<TopState["opened"]>): Line[] {
  const lines = text.trimEnd().split("\n").slice(from);
  return [
    [piece("up and down scroll, Esc goes back", "faint")],
    ...lines.map((line, at): Line => [piece(line, from + at === 0 ? "bold" : "plain")]),
  ];
}

function overview(picture: TopPicture, state: TopState, rows: number, keys = true): Line[] {
  const scheds = picture.scheds.filter(({ name }) => state.sched === null || name === state.sched);
  const head: Line = [piece(`partita top  ${picture.server}  ${ctime(picture.at_s)}`, "bold"), ...filterPieces(state)];
  const top = [head, ...scheds.flatMap((sched) => schedLines(sched)), ...unservedLines(picture, state)];
  const events = eventLines(scheds);
  const help: Line[] = keys ? [[piece("arrows choose, Enter explains, / filters, Tab next scheduler, q ends", "faint")]] : [];
  // On a small screen the list of jobs keeps its space: first the events are left out, then the last lines above the list.
  const wanted = Math.min(shownJobs(picture, state).length + 1, Math.max(JOB_ROWS_MIN, Math.floor(rows / 3)));
  const above = top.slice(0, Math.max(1, rows - help.length - 1 - wanted));
  const left = rows - above.length - help.length - 1;
  const below = left - events.length >= wanted ? events : [];
  return [...above, [], ...jobLines(picture, state, Math.max(1, left - below.length)), ...below, ...help];
}

function filterPieces({ typing, filter, sched }: TopState): Piece[] {
  const pieces = sched === null ? [] : [piece(`  scheduler ${sched}`, "warn")];
  return typing || filter !== "" ? [...pieces, piece(`  /${filter}${typing ? "_" : ""}`, "warn")] : pieces;
}

function schedLines({ name, state, scheduling, partition, comment, view, fault }: SchedPicture): Line[] {
  const style: Style = state === "down" ? (scheduling ? "bad" : "faint") : "good";
  const head: Piece[] = [piece(`${name} `, "bold"), piece(state, style), piece(partition === "" ? "" : `  partitions ${partition}`)];
  if (!scheduling) head.push(piece("  scheduling False", "warn"));
  if (comment !== "") head.push(piece(`  ${comment}`, "warn"));
  if (fault !== "") head.push(piece(`  ${fault}`, "bad"));
  if (view === null) return [[], head];
  const states = Object.entries(view.jobs)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([letter, count]) => `${letter} ${count}`);
  const last = view.cycles.at(-1);
  const cycles = view.cycles.map(({ cycle_ms }) => cycle_ms).sort((a, b) => a - b);
  const figures = [
    `jobs ${states.length === 0 ? "none" : states.join(" ")}`,
    `shapes ${view.classes}`,
    `cycles ${view.cycles_done}`,
    ...(last === undefined
      ? []
      : [`last ${last.cycle_ms.toFixed(1)} ms`, `median ${nth(cycles, Math.floor(cycles.length / 2)).toFixed(1)} ms`]),
    `started ${view.jobs_started}`,
  ];
  const resvs = view.resvs.map(resvLine);
  return [[], head, [piece(`  ${figures.join("  ")}`)], ...view.partitions.flatMap(partitionLines), ...resvs];
}

/** Returns lines about the jobs that no scheduler serves: the reason and what to do. */
function unservedLines(picture: TopPicture, { sched }: TopState): Line[] {
  const views = unservedOf(picture, sched);
  if (views.length === 0) return [];
  return [
    [],
    ...views.flatMap(({ partition, jobs, text, remedy }): Line[] => [
      [piece(`${jobs} job${jobs === 1 ? "" : "s"} of partition ${partition} wait${jobs === 1 ? "s" : ""}: ${text}`, "bad")],
      [piece(`  to mend: ${remedy}`, "warn")],
    ]),
  ];
}

const RESV_WORDS: ReadonlyMap<number, readonly [text: string, style: Style]> = new Map([
  [RESV_STATE.UNCONFIRMED, ["is not confirmed", "warn"]],
  [RESV_STATE.DEGRADED, ["is degraded", "bad"]],
  [RESV_STATE.BEING_ALTERED, ["is being altered", "warn"]],
  [RESV_STATE.BEING_DELETED, ["ends", "plain"]],
]);

function resvLine({ id, start_s, end_s, running, state, vnodes }: ResvView): Line {
  const when = running ? `until ${ctime(end_s)}` : `from ${ctime(start_s)} to ${ctime(end_s)}`;
  const [word, style] = RESV_WORDS.get(state ?? -1) ?? ["", "plain"];
  const text = word === "" ? (running ? "runs" : "comes") : running ? `runs, ${word}` : word;
  const where = vnodes === 0 ? "" : `, ${vnodes} vnode${vnodes === 1 ? "" : "s"}`;
  return [piece(`  ${id} ${text}, ${when}${where}`, style)];
}

function partitionLines({ name, vnodes, free, closed, bars }: PartitionView): Line[] {
  const away = closed === 0 ? "" : `, ${closed} closed`;
  return [[piece(`  ${name}: ${vnodes} vnode${vnodes === 1 ? "" : "s"}, ${free} with room${away}`)], ...bars.map(barLine)];
}

/** Draws a bar for a resource: `#` used, `R` reserved and used in the reservation, `r` reserved, `x` closed, `.` free. */
function barLine({ resource, size, total, used, reserved, inside, closed }: Bar): Line {
  const widths = partsOf([used, inside, Math.max(0, reserved - inside), closed], total);
  const [a = 0, b = 0, c = 0, d = 0] = widths;
  const free = BAR_WIDTH - a - b - c - d;
  const amount = (value: number): string => (size ? `${(value / 1024 / 1024).toFixed(1)}gb` : String(value));
  const held = reserved === 0 ? "" : `, ${amount(reserved)} reserved`;
  return [
    piece(`    ${resource.padEnd(6)} [`),
    piece("#".repeat(a), "good"),
    piece(`${"R".repeat(b)}${"r".repeat(c)}`, "warn"),
    piece("x".repeat(d), "bad"),
    piece(".".repeat(free), "faint"),
    piece(`] ${amount(used + inside)} of ${amount(total)} used${held}`),
  ];
}

/** Returns how many characters each amount gets, together never more than fit. Each amount above 0 gets at least one. */
function partsOf(amounts: readonly number[], total: number): number[] {
  let left = BAR_WIDTH;
  return amounts.map((amount) => {
    const width = Math.min(left, amount <= 0 ? 0 : Math.max(1, Math.round((BAR_WIDTH * amount) / total)));
    left -= width;
    return width;
  });
}

function jobLines(picture: TopPicture, state: TopState, room: number): Line[] {
  const jobs = shownJobs(picture, state);
  if (jobs.length === 0)
    return unservedOf(picture, state.sched).length > 0 && state.filter === "" ? [] : [[piece(noneText(state), "faint")]];
  const chosen = Math.min(state.chosen, jobs.length - 1);
  const from = Math.max(0, Math.min(chosen - room + 2, jobs.length - room + 1));
  const heads = `${"waiting".padEnd(16)}${"user".padEnd(11)}${"queue".padEnd(11)}${"asks".padEnd(24)}${"time".padEnd(10)}${"planned start".padEnd(26)}why`;
  const rows = jobs.slice(from, from + Math.max(1, room - 1));
  return [
    [piece(heads, "bold")],
    ...rows.map((job, at): Line => [piece(jobText(job), from + at === chosen ? "chosen" : job.top_job ? "good" : "plain")]),
  ];
}

const noneText = ({ filter }: TopState): string => (filter === "" ? "No job waits." : "No waiting job is like that.");

function jobText({ id, user, queue, select, walltime_s, start_s, comment }: WaitingJob): string {
  const fit = (text: string, width: number): string => (text.length >= width ? `${text.slice(0, width - 2)}~ ` : text.padEnd(width));
  const time = walltime_s === null ? "-" : renderDuration(walltime_s);
  const why = (comment ?? "").replace(/^Not Running: /, "");
  return `${fit(id, 16)}${fit(user, 11)}${fit(queue, 11)}${fit(select, 24)}${fit(time, 10)}${fit(start_s === null ? "-" : ctime(start_s), 26)}${why}`;
}

function eventLines(scheds: readonly SchedPicture[]): Line[] {
  const events = scheds.flatMap(({ name, view }) => (view?.events ?? []).map((event) => ({ ...event, sched: name })));
  if (events.length === 0) return [];
  const last = events.sort((a, b) => a.at_s - b.at_s).slice(-EVENTS_SHOWN);
  const lines = last.map(
    ({ at_s, job, text, sched }): Line => [
      piece(`  ${ctime(at_s).slice(11, 19)} `, "faint"),
      piece(`${scheds.length > 1 ? `${sched}: ` : ""}${job === null ? "" : `${job} `}${text}`),
    ],
  );
  return [[piece("events", "bold")], ...lines];
}

/** Cuts a line to the width of the screen (S1). */
function cut(line: Line, columns: number): Line {
  const pieces: Piece[] = [];
  let left = columns;
  for (const { text, style } of line) {
    if (left <= 0) break;
    pieces.push({ text: text.slice(0, left), style });
    left -= text.length;
  }
  return pieces;
}
