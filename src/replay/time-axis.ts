// The time axis of a picture: as many labels as fit, at round times, with the day below a label if the label before it is on
// another day. Pure.

import { label, px, tag, timeTicks } from "./svg.ts";

/** A time as a clock shows it: the name of the day, and the second of the day. */
export type ClockTime = { readonly day: string; readonly second_of_day: number };
export type Clock = (time_s: number) => ClockTime;

const DAY_S = 86_400;

/** A clock that counts days and times of day from 0. */
export const SINCE_ZERO: Clock = (time_s) => {
  const day = Math.floor(time_s / DAY_S);
  return { day: `day ${day}`, second_of_day: time_s - day * DAY_S };
};

/** Least distance between labels in pixels: the width of the widest label, `00:00:00` or `28 Sep 2026`, and a gap. */
const LABEL_DISTANCE = 80;
const INK = "#333333";
const FAINT = "#e4e4e4";
/** Height in pixels of the labels below the picture. */
export const AXIS_HEIGHT = 32;

type Span = { readonly from_s: number; readonly to_s: number };
type Box = { readonly left: number; readonly width: number; readonly top: number; readonly bottom: number };

/**
 * Draws labels below the box, and a faint line through the box at each label. clock: gives the day and time of day for the
 * labels; days begin at its midnights.
 */
export function timeAxis({ from_s, to_s }: Span, { left, width, top, bottom }: Box, clock: Clock): string[] {
  const midnight_s = from_s - clock(from_s).second_of_day;
  const { step_s, ticks } = timeTicks(from_s, to_s, Math.max(1, Math.floor(width / LABEL_DISTANCE)), midnight_s % DAY_S);
  const days = new Set([from_s, to_s].map((time_s) => clock(time_s).day));
  const drawn: string[] = [];
  let before: string | null = null;
  for (const tick_s of ticks) {
    const x = left + (width * (tick_s - from_s)) / (to_s - from_s);
    const { day, second_of_day } = clock(tick_s);
    drawn.push(tag("path", { d: `M${px(x)} ${top}V${px(bottom)}`, stroke: FAINT }));
    const [text, below] = step_s >= DAY_S ? [day, null] : [timeOfDay(second_of_day, step_s), days.size > 1 && day !== before ? day : null];
    drawn.push(label(x, bottom + 16, text, { "text-anchor": "middle", fill: INK }));
    if (below !== null) drawn.push(label(x, bottom + 29, below, { "text-anchor": "middle", fill: "#777777" }));
    before = day;
  }
  return drawn;
}

/** Returns `04:30`, or `00:00:05` if the step between labels is less than a minute. */
function timeOfDay(second: number, step_s: number): string {
  const two = (value: number): string => String(Math.floor(value)).padStart(2, "0");
  const minutes = `${two(second / 3600)}:${two((second / 60) % 60)}`;
  return step_s >= 60 ? minutes : `${minutes}:${two(second % 60)}`;
}
