// The picture of a schedule as SVG, or of several schedules below each other on one time axis (before and after a change, or
// different algorithms). Each schedule has a panel. At its top are the numbers of used slots and waiting jobs over time;
// below, every job is in the lanes of its row. Reservations are hatched, and planned jobs are hollow. The legend is at the
// bottom. Pure.

import { nth } from "#support/assert.ts";
import { drawBars } from "./bars.ts";
import { type Colouring, type Colours, coloursOf } from "./colouring.ts";
import type { Gantt, GanttBar } from "./gantt.ts";
import { layLanes, loadOver } from "./gantt.ts";
import { legendOf } from "./legend.ts";
import { escapeXml, label, numberTicks, px, svgDocument, tag } from "./svg.ts";
import { AXIS_HEIGHT, type Clock, SINCE_ZERO, timeAxis } from "./time-axis.ts";

export type PictureOptions = {
  /** title above all panels; a single panel uses its own title */
  readonly title?: string;
  /** the period to show; default: from the first submission to the last end */
  readonly from_s?: number;
  readonly to_s?: number;
  readonly width?: number;
  /** gives the days and times of day for the axis; default: counted from 0 */
  readonly clock?: Clock;
  /** what the bars' colours distinguish; default: single jobs */
  readonly colouring?: Colouring;
};

const LEFT = 96;
const RIGHT = 56;
const HEAD = 34;
const PANEL_HEAD = 24;
const LOAD_HEIGHT = 90;
const GAP = 14;
const PANEL_GAP = 22;
const GROUP_GAP = 8;
/** Height in pixels of the lanes of all panels together; more if the lanes would be lower than LANE_MIN, less if they would be higher than LANE_MAX. */
const LANES_HEIGHT = 640;
const LANE_MIN = 0.6;
const LANE_MAX = 16;
/** Width in pixels of one character of a label. */
const CHAR_WIDTH = 6.2;
const INK = "#333333";

type Span = { readonly from_s: number; readonly to_s: number };

/** Draws the schedules. Bars outside the shown period are left out, and bars at its edge are cut. */
export function pictureOf(gantts: Gantt | readonly Gantt[], options: PictureOptions = {}): string {
  const panels = isOne(gantts) ? [gantts] : gantts;
  const { width = 1400, clock = SINCE_ZERO, colouring = "job" } = options;
  const title = options.title ?? panels.map((panel) => panel.title).join(", ");
  const all = panels.flatMap((panel) => panel.bars);
  const span = spanOf(all, options);
  const bars = all.filter((bar) => bar.to_s > span.from_s && bar.from_s < span.to_s);
  const heading = label(LEFT, 20, title, { "font-size": 14, fill: INK });
  if (!(span.from_s < span.to_s)) return svgDocument(title, width, 80, [heading, label(LEFT, 55, "nothing to show")]);
  const inner = width - LEFT - RIGHT;
  const colours = coloursOf(bars, colouring);
  const loads = panels.map((panel) => loadOver(panel, span.from_s, span.to_s, Math.floor(inner)));
  const waiting_max = loads.flatMap(({ waiting }) => waiting).reduce((most, value) => Math.max(most, Math.ceil(value)), 1);
  const drawn: string[] = [];
  let bottom = panels.length === 1 ? HEAD : HEAD - PANEL_HEAD;
  panels.forEach((panel, at) => {
    if (at > 0) bottom += PANEL_GAP;
    if (panels.length > 1) {
      bottom += PANEL_HEAD;
      drawn.push(label(LEFT, bottom + PANEL_HEAD - 9, panel.title, { "font-size": 12, fill: INK }));
      bottom += PANEL_HEAD - 2;
    }
    const { body, height } = drawPanel(panel, {
      span,
      inner,
      top: bottom,
      colours,
      panels: panels.length,
      load: nth(loads, at),
      waiting_max,
    });
    drawn.push(...body);
    bottom += height;
  });
  const axis = timeAxis(span, { left: LEFT, width: inner, top: HEAD, bottom }, clock);
  const legendTop = bottom + AXIS_HEIGHT + 10;
  const legend = legendOf(
    {
      heading: colouring === "job" ? "" : `${colouring}:`,
      entries: colours.entries,
      reservations: bars.some(({ kind }) => kind === "reservation"),
      planned: bars.some(({ kind }) => kind === "planned"),
    },
    LEFT,
    legendTop,
    inner,
  );
  return svgDocument(title, width, legendTop + legend.height + 8, [HATCH, heading, ...axis, ...drawn, ...legend.body]);
}

const isOne = (gantts: Gantt | readonly Gantt[]): gantts is Gantt => !Array.isArray(gantts);

/** Returns the requested period, or by default the time from the first submission to the last end. */
function spanOf(bars: readonly GanttBar[], options: PictureOptions): Span {
  let [from_s, to_s] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
  for (const bar of bars) {
    from_s = Math.min(from_s, bar.submit_s ?? bar.from_s);
    to_s = Math.max(to_s, bar.to_s);
  }
  return { from_s: options.from_s ?? from_s, to_s: options.to_s ?? to_s };
}

/** The pattern that fills reservations. */
const HATCH = `<defs><pattern id="hatch" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><rect width="6" height="6" fill="#f6e3e3"/><path d="M0 0V6" stroke="#c0504d" stroke-width="1.6"/></pattern></defs>`;

type Load = ReturnType<typeof loadOver>;
type PanelPlace = {
  readonly span: Span;
  readonly inner: number;
  readonly top: number;
  readonly colours: Colours;
  readonly panels: number;
  readonly load: Load;
  /** largest number of waiting jobs in any panel; all panels use the same scale */
  readonly waiting_max: number;
};

/** Draws one schedule: its load, its rows with their bars, and a text line with counts. */
function drawPanel(gantt: Gantt, place: PanelPlace): { readonly body: string[]; readonly height: number } {
  const { span, inner, top, colours, panels } = place;
  const { from_s, to_s } = span;
  const x = (time_s: number): number => LEFT + (inner * (Math.min(to_s, Math.max(from_s, time_s)) - from_s)) / (to_s - from_s);
  const rows = placeRows(gantt, top + LOAD_HEIGHT + GAP, LANES_HEIGHT / panels);
  const laid = layLanes(gantt);
  const shown = laid.bars.filter(({ bar }) => bar.to_s > from_s && bar.from_s < to_s);
  const count = countText(
    gantt,
    shown.map(({ bar }) => bar),
    laid.crowded,
  );
  return {
    body: [
      label(LEFT + inner, top - 6, count, { "text-anchor": "end", fill: "#777777" }),
      ...loadPanel(gantt, place),
      ...rows.frames,
      ...drawBars(shown, { x, y: rows.y, colourOf: colours.colourOf }),
    ],
    height: LOAD_HEIGHT + GAP + rows.height,
  };
}

type Rows = {
  readonly height: number;
  readonly frames: readonly string[];
  /** Returns the upper edge and the height of `count` lanes of a row from `lane` on. */
  y(row: number, lane: number, count: number): readonly [y: number, height: number];
};

/** Arranges the rows below each other from `top` on, in `room` pixels if that is enough for their lanes. */
function placeRows({ rows }: Gantt, top: number, room: number): Rows {
  const lanes = rows.reduce((sum, { slots }) => sum + slots, 0);
  const lane = Math.min(LANE_MAX, Math.max(LANE_MIN, room / Math.max(1, lanes)));
  const tops: number[] = [];
  const frames: string[] = [];
  let at = top;
  let labelled = Number.NEGATIVE_INFINITY;
  rows.forEach(({ name, group, slots }, row) => {
    const height = lane * slots;
    const begins = row === 0 || rows[row - 1]?.group !== group;
    if (row > 0 && begins) at += GROUP_GAP;
    if (group !== "" && begins) {
      const end = rows.findIndex((other, later) => later > row && other.group !== group);
      const own = rows.slice(row, end < 0 ? undefined : end).reduce((sum, other) => sum + other.slots, 0) * lane;
      frames.push(...groupMark(group, at, own));
    }
    tops.push(at);
    frames.push(tag("path", { d: `M${LEFT} ${px(at)}h${-6}`, stroke: "#999999" }));
    const middle = at + height / 2;
    // Names of rows that would overlap are left out.
    if (middle - labelled >= 11) {
      frames.push(label(LEFT - 9, middle + 4, name.length > 11 ? `${name.slice(0, 10)}…` : name, { "text-anchor": "end", fill: INK }));
      labelled = middle;
    }
    at += height;
  });
  frames.push(tag("path", { d: `M${LEFT} ${px(at)}h-6`, stroke: "#999999" }));
  return { height: at - top, frames, y: (row, first, count) => [(tops[row] ?? 0) + lane * first, lane * count] };
}

/** Draws the mark of a partition beside its rows: a vertical bar, and the name, written upwards and cut to the available length. */
function groupMark(group: string, top: number, height: number): string[] {
  const room = Math.floor(height / CHAR_WIDTH);
  const text = group.length <= room ? group : room >= 3 ? `${group.slice(0, room - 1)}…` : "";
  const mark = tag("rect", { x: 4, y: top, width: 4, height, fill: "#888888" }, tag("title", {}, escapeXml(group)));
  if (text === "") return [mark];
  const middle = top + height / 2;
  return [mark, label(20, middle, text, { fill: INK, "text-anchor": "middle", transform: `rotate(-90 20 ${px(middle)})` })];
}

/** Draws the used slots as an area against the left axis, and the waiting jobs as a line against the right axis. */
function loadPanel(gantt: Gantt, { inner, top, load, waiting_max }: PanelPlace): string[] {
  const { used, waiting } = load;
  const columns = used.length;
  const slots = gantt.rows.reduce((sum, row) => sum + row.slots, 0);
  const bottom = top + LOAD_HEIGHT;
  const highest = numberTicks(waiting_max, 3).at(-1) as number;
  const level = (part: number): string => px(bottom - LOAD_HEIGHT * Math.min(1, part));
  const area = used.map((value, at) => `L${px(LEFT + at + 0.5)} ${level(value / Math.max(1, slots))}`).join("");
  const line = waiting.map((value, at) => `${at === 0 ? "M" : "L"}${px(LEFT + at + 0.5)} ${level(value / highest)}`).join("");
  return [
    tag("path", { d: `M${LEFT} ${bottom}${area}L${LEFT + columns} ${bottom}z`, fill: "#c9d8e8" }),
    tag("path", { d: line, fill: "none", stroke: "#d1495b", "stroke-width": 1.2 }),
    tag("path", { d: `M${LEFT} ${top}V${bottom}H${px(LEFT + inner)}V${top}`, fill: "none", stroke: "#999999" }),
    label(LEFT - 9, top + 8, `${slots} used`, { "text-anchor": "end", fill: "#4e79a7" }),
    label(LEFT - 9, bottom, "0", { "text-anchor": "end", fill: "#4e79a7" }),
    label(LEFT + inner + 6, top + 8, `${highest}`, { fill: "#d1495b" }),
    label(LEFT + inner + 6, top + 20, "waiting", { fill: "#d1495b" }),
  ];
}

function countText({ rows }: Gantt, bars: readonly GanttBar[], crowded: number): string {
  const count = (kind: GanttBar["kind"]): number => new Set(bars.flatMap((bar) => (bar.kind === kind ? [bar.id] : []))).size;
  const many = (number: number, noun: string): string => `${number} ${noun}${number === 1 ? "" : "s"}`;
  const slots = rows.reduce((sum, row) => sum + row.slots, 0);
  const words = [`${many(count("job"), "job")} on ${many(slots, "slot")}`];
  if (count("reservation") > 0) words.push(`${many(count("reservation"), "reservation")} (hatched)`);
  if (count("planned") > 0) words.push(`${count("planned")} planned (hollow)`);
  if (crowded > 0) words.push(`${many(crowded, "bar")} without lanes of their own`);
  return words.join(", ");
}
