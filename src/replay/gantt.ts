// A schedule drawn as bars in lanes. Every row (a pool of slots or a vnode) has one lane for each slot, and a job takes as
// many lanes as it has slots there. The schedule does not say which of a pool's equal slots a job had. The layout chooses
// free lanes, adjacent ones if possible and otherwise the lowest.
//
// G1. Bars of a row that overlap in time lie in different lanes, unless the bars need more lanes than the row has. Bars without
//     lanes of their own are counted in `crowded`.
// G2. A job that runs in a reservation lies in the lanes of that reservation as long as there is room.

import { mustGet, nth } from "#support/assert.ts";

export type GanttRow = {
  readonly name: string;
  /** name of a partition, or another text; rows with the same text are adjacent */
  readonly group: string;
  readonly slots: number;
};

export type GanttBar = {
  readonly id: string;
  /** planned: a job with a planned start that did not start within the simulated period */
  readonly kind: "job" | "reservation" | "planned";
  readonly row: number;
  readonly slots: number;
  readonly from_s: number;
  readonly to_s: number;
  /** a text; bars with equal texts have the same colour */
  readonly colour: string;
  /** for a job in a reservation: the id of the reservation */
  readonly inside?: string;
  /** time of submission */
  readonly submit_s?: number;
};

export type Gantt = {
  readonly title: string;
  readonly rows: readonly GanttRow[];
  readonly bars: readonly GanttBar[];
  /** submission times of jobs that never start: they count as waiting until the end */
  readonly never_started_s?: readonly number[];
};

/** A bar and its lanes. The lanes are groups of adjacent ones: [first lane, number of lanes]. */
export type LaidBar = { readonly bar: GanttBar; readonly lanes: readonly (readonly [first: number, count: number])[] };
/** The bars with their lanes. crowded: number of bars without lanes of their own. */
export type Laid = { readonly bars: readonly LaidBar[]; readonly crowded: number };

/** Assigns lanes to every bar. */
export function layLanes({ rows, bars }: Gantt): Laid {
  const order = [...bars].sort((a, b) => a.from_s - b.from_s || rank(a) - rank(b));
  const byRow = rows.map(({ slots }) => new Float64Array(slots).fill(Number.NEGATIVE_INFINITY));
  const reserved = new Map<string, number[]>();
  const until = new Map<string, Float64Array>();
  const laid: LaidBar[] = [];
  let crowded = 0;
  for (const bar of order) {
    const free_s = byRow[bar.row];
    if (free_s === undefined || bar.slots <= 0) continue;
    const key = `${bar.inside}\n${bar.row}`;
    const own = bar.inside === undefined ? undefined : reserved.get(key);
    const lanes =
      (own === undefined ? null : pick(own, mustGet(until, key), bar)) ??
      pick(null, free_s, bar) ??
      Array.from({ length: Math.min(bar.slots, free_s.length) }, (_, at) => at);
    if (lanes.some((lane) => nth(free_s, lane) > bar.from_s) && own === undefined) crowded++;
    for (const lane of lanes) free_s[lane] = Math.max(nth(free_s, lane), bar.to_s);
    if (bar.kind === "reservation") {
      reserved.set(`${bar.id}\n${bar.row}`, lanes);
      until.set(`${bar.id}\n${bar.row}`, new Float64Array(lanes.length).fill(Number.NEGATIVE_INFINITY));
    }
    laid.push({ bar, lanes: runsOf(lanes) });
  }
  return { bars: laid, crowded };
}

const rank = ({ kind }: GanttBar): number => (kind === "reservation" ? 0 : 1);

/**
 * Chooses as many lanes as a bar needs from those that are free at its start: adjacent ones if possible, otherwise the lowest.
 * Returns null if too few are free.
 */
function pick(among: readonly number[] | null, free_s: Float64Array, { slots, from_s, to_s }: GanttBar): number[] | null {
  const free: number[] = [];
  for (let at = 0; at < free_s.length; at++) if (nth(free_s, at) <= from_s) free.push(at);
  if (free.length < slots) return null;
  const first = free.findIndex((lane, at) => free[at + slots - 1] === lane + slots - 1);
  const chosen = free.slice(Math.max(0, first), Math.max(0, first) + slots);
  if (among === null) return chosen;
  for (const at of chosen) free_s[at] = to_s;
  return chosen.map((at) => nth(among, at));
}

function runsOf(lanes: readonly number[]): [number, number][] {
  const runs: [number, number][] = [];
  for (const lane of [...lanes].sort((a, b) => a - b)) {
    const last = runs.at(-1);
    if (last !== undefined && last[0] + last[1] === lane) last[1]++;
    else runs.push([lane, 1]);
  }
  return runs;
}

/** Divides [from, to] into `columns` equal intervals and returns for each the mean numbers of used slots and of waiting jobs. */
export function loadOver(
  { bars, never_started_s = [] }: Gantt,
  from_s: number,
  to_s: number,
  columns: number,
): { readonly used: number[]; readonly waiting: number[] } {
  const width_s = (to_s - from_s) / columns;
  const used = new Array<number>(columns).fill(0);
  const waiting = new Array<number>(columns).fill(0);
  const seen = new Set<string>();
  for (const { id, kind, from_s: begin_s, to_s: end_s, slots, submit_s } of bars) {
    if (kind === "job") add(used, (begin_s - from_s) / width_s, (end_s - from_s) / width_s, slots);
    if (submit_s === undefined || seen.has(id)) continue;
    seen.add(id);
    add(waiting, (submit_s - from_s) / width_s, (begin_s - from_s) / width_s, 1);
  }
  for (const submit_s of never_started_s) add(waiting, (submit_s - from_s) / width_s, columns, 1);
  return { used, waiting };
}

/** Adds a height to the columns in [from, to). A column that is only partly covered gets the same share of the height. */
function add(columns: number[], from: number, to: number, height: number): void {
  const [begin, end] = [Math.max(0, from), Math.min(columns.length, to)];
  for (let at = Math.floor(begin); at < end; at++) {
    const part = Math.min(at + 1, end) - Math.max(at, begin);
    if (part > 0) columns[at] = nth(columns, at) + height * part;
  }
}
