// The picture of a schedule as SVG: above, how much was used and how many jobs waited; below, every job in the lanes of its row. Reservations are hatched,
// what was only planned is drawn hollow.

import type { Gantt, GanttBar, LaidBar } from "./gantt.ts";
import { layLanes, loadOver } from "./gantt.ts";
import { escapeXml, label, numberTicks, px, svgDocument, tag, timeTicks } from "./svg.ts";

export type PictureOptions = {
  /** what is shown; default: all bars */
  readonly from_s?: number;
  readonly to_s?: number;
  readonly width?: number;
  /** the text of a time on the axis; default: days, hours, minutes and seconds since 0 */
  readonly timeText?: (time_s: number, step_s: number) => string;
  /** of the midnight of local time from a multiple of a day */
  readonly offset_s?: number;
};

const LEFT = 96;
const RIGHT = 56;
const TOP = 34;
const LOAD_HEIGHT = 90;
const GAP = 14;
const GROUP_GAP = 8;
/** Pixels for all lanes, if they get by with it. */
const LANES_HEIGHT = 640;
const LANE_MIN = 0.6;
const LANE_MAX = 16;
/** With more bars than this they are drawn without their titles, many in one path. */
const TITLES_MAX = 3000;
const LABEL_HEIGHT_MIN = 9;
const PALETTE = [
  "#4e79a7",
  "#f28e2b",
  "#76b7b2",
  "#59a14f",
  "#edc948",
  "#b07aa1",
  "#ff9da7",
  "#9c755f",
  "#86bcb6",
  "#d37295",
  "#a0cbe8",
  "#8cd17d",
];
const INK = "#333333";
const FAINT = "#e4e4e4";

/** Draws it. Bars outside of what is shown are left out, those on its edge cut. */
export function pictureOf(gantt: Gantt, options: PictureOptions = {}): string {
  const { width = 1400, timeText = sinceText, offset_s = 0 } = options;
  const from_s =
    options.from_s ??
    gantt.bars.reduce((first, { from_s: begin_s, submit_s = begin_s }) => Math.min(first, submit_s), Number.POSITIVE_INFINITY);
  const to_s = options.to_s ?? gantt.bars.reduce((last, { to_s: end_s }) => Math.max(last, end_s), Number.NEGATIVE_INFINITY);
  if (!(from_s < to_s))
    return svgDocument(gantt.title, width, 80, [label(LEFT, 30, gantt.title, { "font-size": 14 }), label(LEFT, 55, "nothing to show")]);
  const inner = width - LEFT - RIGHT;
  const x = (time_s: number): number => LEFT + (inner * (Math.min(to_s, Math.max(from_s, time_s)) - from_s)) / (to_s - from_s);
  const rows = placeRows(gantt);
  const bottom = TOP + LOAD_HEIGHT + GAP + rows.height;
  const { step_s, ticks } = timeTicks(from_s, to_s, Math.max(2, Math.floor(inner / 95)), offset_s);
  const body = [HATCH, label(LEFT, 20, gantt.title, { "font-size": 14, fill: INK })];
  for (const tick of ticks) {
    body.push(tag("path", { d: `M${px(x(tick))} ${TOP}V${px(bottom)}`, stroke: FAINT }));
    body.push(label(x(tick), bottom + 16, timeText(tick, step_s), { "text-anchor": "middle", fill: INK }));
  }
  body.push(...loadPanel(gantt, from_s, to_s, inner), ...rows.frames);
  const laid = layLanes(gantt);
  const shown = laid.bars.filter(({ bar }) => bar.to_s > from_s && bar.from_s < to_s);
  body.push(...drawBars(shown, { x, y: rows.y, colourOf: colours(gantt.bars) }));
  const legend = legendText(
    gantt,
    shown.map(({ bar }) => bar),
    laid.crowded,
  );
  body.push(label(LEFT, bottom + 36, legend, { fill: "#666666" }));
  return svgDocument(gantt.title, width, bottom + 50, body);
}

/** Reservations are hatched. */
const HATCH = `<defs><pattern id="hatch" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><rect width="6" height="6" fill="#f6e3e3"/><path d="M0 0V6" stroke="#c0504d" stroke-width="1.6"/></pattern></defs>`;

type Rows = {
  readonly height: number;
  readonly frames: readonly string[];
  /** the upper edge and the height of lanes */
  y(row: number, lane: number, count: number): readonly [y: number, height: number];
};

function placeRows({ rows }: Gantt): Rows {
  const lanes = rows.reduce((sum, { slots }) => sum + slots, 0);
  const lane = Math.min(LANE_MAX, Math.max(LANE_MIN, LANES_HEIGHT / Math.max(1, lanes)));
  const tops: number[] = [];
  const frames: string[] = [];
  let at = TOP + LOAD_HEIGHT + GAP;
  let labelled = Number.NEGATIVE_INFINITY;
  rows.forEach(({ name, group, slots }, row) => {
    const height = lane * slots;
    if (row > 0 && rows[row - 1]?.group !== group) at += GROUP_GAP;
    if (group !== "" && (row === 0 || rows[row - 1]?.group !== group)) {
      const end = rows.findIndex((other, later) => later > row && other.group !== group);
      const own = rows.slice(row, end < 0 ? undefined : end).reduce((sum, other) => sum + other.slots, 0) * lane;
      frames.push(tag("rect", { x: 4, y: at, width: 4, height: own, fill: "#888888" }));
      frames.push(
        tag(
          "text",
          { x: 20, y: at + own / 2, fill: INK, "text-anchor": "middle", transform: `rotate(-90 20 ${px(at + own / 2)})` },
          escapeXml(group),
        ),
      );
    }
    tops.push(at);
    frames.push(tag("path", { d: `M${LEFT} ${px(at)}h${-6}`, stroke: "#999999" }));
    const middle = at + height / 2;
    // Names that would lie on one another are left out.
    if (middle - labelled >= 11) {
      frames.push(label(LEFT - 9, middle + 4, name.length > 11 ? `${name.slice(0, 10)}…` : name, { "text-anchor": "end", fill: INK }));
      labelled = middle;
    }
    at += height;
  });
  frames.push(tag("path", { d: `M${LEFT} ${px(at)}h-6`, stroke: "#999999" }));
  return {
    height: at - TOP - LOAD_HEIGHT - GAP,
    frames,
    y: (row, first, count) => [(tops[row] ?? 0) + lane * first, lane * count],
  };
}

/** Used slots as an area against the left axis, waiting jobs as a line against the right one. */
function loadPanel(gantt: Gantt, from_s: number, to_s: number, inner: number): string[] {
  const columns = Math.floor(inner);
  const { used, waiting } = loadOver(gantt, from_s, to_s, columns);
  const slots = gantt.rows.reduce((sum, row) => sum + row.slots, 0);
  const bottom = TOP + LOAD_HEIGHT;
  const most = Math.max(1, ...waiting.map(Math.ceil));
  const ticks = numberTicks(most, 3);
  const top = ticks.at(-1) as number;
  const level = (part: number): string => px(bottom - LOAD_HEIGHT * Math.min(1, part));
  const area = used.map((value, at) => `L${px(LEFT + at + 0.5)} ${level(value / Math.max(1, slots))}`).join("");
  const line = waiting.map((value, at) => `${at === 0 ? "M" : "L"}${px(LEFT + at + 0.5)} ${level(value / top)}`).join("");
  return [
    tag("path", { d: `M${LEFT} ${bottom}${area}L${LEFT + columns} ${bottom}z`, fill: "#c9d8e8" }),
    tag("path", { d: line, fill: "none", stroke: "#d1495b", "stroke-width": 1.2 }),
    tag("path", { d: `M${LEFT} ${TOP}V${bottom}H${px(LEFT + inner)}V${TOP}`, fill: "none", stroke: "#999999" }),
    label(LEFT - 9, TOP + 8, `${slots} used`, { "text-anchor": "end", fill: "#4e79a7" }),
    label(LEFT - 9, bottom, "0", { "text-anchor": "end", fill: "#4e79a7" }),
    label(LEFT + inner + 6, TOP + 8, `${top}`, { fill: "#d1495b" }),
    label(LEFT + inner + 6, TOP + 20, "waiting", { fill: "#d1495b" }),
  ];
}

function colours(bars: readonly GanttBar[]): (bar: GanttBar) => string {
  const known = new Map<string, string>();
  for (const { colour, kind } of bars)
    if (kind !== "reservation" && !known.has(colour)) known.set(colour, PALETTE[known.size % PALETTE.length] as string);
  return ({ colour, kind }) => (kind === "reservation" ? "url(#hatch)" : (known.get(colour) ?? INK));
}

type Scales = { x(time_s: number): number; readonly y: Rows["y"]; colourOf(bar: GanttBar): string };

function drawBars(bars: readonly LaidBar[], scales: Scales): string[] {
  // Reservations lie below what runs in them.
  const order = [...bars].sort((a, b) => Number(b.bar.kind === "reservation") - Number(a.bar.kind === "reservation"));
  return order.length > TITLES_MAX ? drawMany(order, scales) : order.flatMap((laid) => drawOne(laid, scales));
}

function drawMany(bars: readonly LaidBar[], { x, y, colourOf }: Scales): string[] {
  const paths = new Map<string, string>();
  for (const { bar, lanes } of bars) {
    const key = `${bar.kind} ${colourOf(bar)}`;
    let path = paths.get(key) ?? "";
    for (const [first, count] of lanes) {
      const [top, height] = y(bar.row, first, count);
      const [left, width] = [x(bar.from_s), Math.max(0.2, x(bar.to_s) - x(bar.from_s))];
      path += `M${px(left)} ${px(top)}h${px(width)}v${px(height)}h-${px(width)}z`;
    }
    paths.set(key, path);
  }
  return [...paths].map(([key, d]) =>
    tag("path", { d, ...styleOf(key.slice(0, key.indexOf(" ")), key.slice(key.indexOf(" ") + 1), false) }),
  );
}

function styleOf(kind: string, colour: string, edged: boolean): { readonly [name: string]: string | number } {
  if (kind === "planned") return { fill: colour, "fill-opacity": 0.15, stroke: colour, "stroke-dasharray": "3 2" };
  if (kind === "reservation") return { fill: colour, stroke: "#c0504d", "stroke-width": 0.6 };
  return edged ? { fill: colour, stroke: "#ffffff", "stroke-width": 0.5 } : { fill: colour };
}

function drawOne({ bar, lanes }: LaidBar, { x, y, colourOf }: Scales): string[] {
  const [left, width] = [x(bar.from_s), Math.max(0.4, x(bar.to_s) - x(bar.from_s))];
  const title = `${bar.id}: ${bar.slots} slot${bar.slots === 1 ? "" : "s"}, ${bar.to_s - bar.from_s} s`;
  return lanes.flatMap(([first, count]) => {
    const [top, height] = y(bar.row, first, count);
    const edged = height >= 3 && width >= 2;
    const rect = tag(
      "rect",
      { x: left, y: top, width, height, ...styleOf(bar.kind, colourOf(bar), edged) },
      tag("title", {}, escapeXml(title)),
    );
    const room = Math.floor((width - 4) / 6.5);
    if (height < LABEL_HEIGHT_MIN || room < bar.id.length) return [rect];
    return [
      rect,
      label(left + width / 2, top + height / 2 + 4, bar.id, { "text-anchor": "middle", fill: "#1c1c1c", "pointer-events": "none" }),
    ];
  });
}

function legendText({ rows }: Gantt, bars: readonly GanttBar[], crowded: number): string {
  const count = (kind: GanttBar["kind"]): number => new Set(bars.flatMap((bar) => (bar.kind === kind ? [bar.id] : []))).size;
  const words = [`${count("job")} jobs on ${rows.reduce((sum, { slots }) => sum + slots, 0)} slots`];
  if (count("reservation") > 0) words.push(`${count("reservation")} reservations (hatched)`);
  if (count("planned") > 0) words.push(`${count("planned")} planned (hollow)`);
  if (crowded > 0) words.push(`${crowded} bars lie on others`);
  return words.join(", ");
}

/** `3d 04:00`, `04:30`, `00:00:05`: as fine as the step asks. */
function sinceText(time_s: number, step_s: number): string {
  const sign = time_s < 0 ? "-" : "";
  const all_s = Math.abs(time_s);
  const [days, hours, minutes, seconds] = [
    Math.floor(all_s / 86_400),
    Math.floor(all_s / 3600) % 24,
    Math.floor(all_s / 60) % 60,
    all_s % 60,
  ];
  const two = (value: number): string => String(value).padStart(2, "0");
  if (step_s >= 86_400) return `${sign}day ${days}`;
  const clock = step_s >= 60 ? `${two(hours)}:${two(minutes)}` : `${two(hours)}:${two(minutes)}:${two(seconds)}`;
  return days === 0 ? `${sign}${clock}` : `${sign}${days}d ${clock}`;
}
