// The bars of a picture as SVG: each with its title, or many in one path if there are too many to distinguish. Pure.

import type { GanttBar, LaidBar } from "./gantt.ts";
import { escapeXml, label, px, tag } from "./svg.ts";

/** Largest number of bars that get titles. If there are more bars, many are drawn in one path, without titles. */
const TITLES_MAX = 3000;
const LABEL_HEIGHT_MIN = 9;

/** Functions that return the x of a time, the y and the height of a group of lanes, and the colour of a bar. */
export type Scales = {
  x(time_s: number): number;
  y(row: number, lane: number, count: number): readonly [y: number, height: number];
  colourOf(bar: GanttBar): string;
};

export function drawBars(bars: readonly LaidBar[], scales: Scales): string[] {
  // Reservations are drawn first, below the bars inside them.
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
      label(left + width / 2, top + height / 2 + 4, bar.id, {
        "text-anchor": "middle",
        fill: inkOn(bar.kind, colourOf(bar)),
        "pointer-events": "none",
      }),
    ];
  });
}

/** Returns the colour of the text on a bar: dark on light colours, white on dark ones. */
function inkOn(kind: GanttBar["kind"], colour: string): string {
  const [, red, green, blue] = /^#(..)(..)(..)$/.exec(colour) ?? [];
  if (kind !== "job" || red === undefined || green === undefined || blue === undefined) return "#1c1c1c";
  const [r, g, b] = [red, green, blue].map((text) => Number.parseInt(text, 16)) as [number, number, number];
  return 0.299 * r + 0.587 * g + 0.114 * b < BRIGHT ? "#ffffff" : "#1c1c1c";
}
const BRIGHT = 130;
