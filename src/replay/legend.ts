// The legend of a picture: a swatch and a name for each colour and each way of drawing, in as many lines as they need. Pure.

import type { LegendEntry } from "./colouring.ts";
import { label, tag } from "./svg.ts";

const SWATCH = 11;
const LINE_HEIGHT = 18;
const GAP = 18;
/** Width of a character in pixels at the picture's font size, slightly above the mean. */
const CHAR_WIDTH = 6.6;
const NAME_CHARS_MAX = 28;
const INK = "#333333";

type Item = { readonly name: string; swatch(x: number, y: number): string };

const box = (attributes: { readonly [name: string]: string | number }) => (x: number, y: number) =>
  tag("rect", { x, y, width: SWATCH, height: SWATCH, ...attributes });

const line = (colour: string) => (x: number, y: number) =>
  tag("path", { d: `M${x} ${y + SWATCH / 2}h${SWATCH}`, stroke: colour, "stroke-width": 1.6 });

/** What the legend must explain: the colours, and the kinds of bars that are drawn in another way. */
export type LegendParts = {
  readonly heading: string;
  readonly entries: readonly LegendEntry[];
  readonly reservations: boolean;
  readonly planned: boolean;
};

/** Draws the legend with its upper left corner at (left, top), at most `width` wide. Returns also the height of all its lines. */
export function legendOf(
  parts: LegendParts,
  left: number,
  top: number,
  width: number,
): { readonly height: number; readonly body: string[] } {
  const items: Item[] = parts.entries.map(({ name, colour }) => ({ name, swatch: box({ fill: colour }) }));
  if (parts.reservations) items.push({ name: "reservation", swatch: box({ fill: "url(#hatch)", stroke: "#c0504d", "stroke-width": 0.6 }) });
  if (parts.planned)
    items.push({ name: "planned", swatch: box({ fill: "#4e79a7", "fill-opacity": 0.15, stroke: "#4e79a7", "stroke-dasharray": "3 2" }) });
  items.push({ name: "slots in use", swatch: box({ fill: "#c9d8e8" }) }, { name: "jobs that wait", swatch: line("#d1495b") });
  const body = parts.heading === "" ? [] : [label(left, top + SWATCH - 1, parts.heading, { fill: "#777777" })];
  const begin = left + (parts.heading === "" ? 0 : parts.heading.length * CHAR_WIDTH + GAP);
  let [x, y] = [begin, top];
  for (const { name, swatch } of items) {
    const text = name.length > NAME_CHARS_MAX ? `${name.slice(0, NAME_CHARS_MAX - 1)}…` : name;
    const needed = SWATCH + 5 + text.length * CHAR_WIDTH;
    if (x > begin && x + needed > left + width) [x, y] = [begin, y + LINE_HEIGHT];
    body.push(swatch(x, y), label(x + SWATCH + 5, y + SWATCH - 1, text, { fill: INK }));
    x += needed + GAP;
  }
  return { height: y - top + LINE_HEIGHT, body };
}
