// Reads and writes times as commands do, in the local time of the machine (docs/reference/commands.md 0).

import { nth } from "#support/assert.ts";

const DAYS = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"] as const;
const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"] as const;

export const two = (n: number): string => (n < 10 ? `0${n}` : String(n));

export const monthName = (date: Date): string => nth(MONTHS, date.getMonth());
export const dayName = (date: Date): string => nth(DAYS, date.getDay());

type Quarter = { readonly start_s: number; readonly prefix: string; readonly minute: number; readonly suffix: string };
let last: Quarter | null = null;
const QUARTER_S = 900;

/**
 * Writes epoch seconds as `Fri Nov 20 09:26:28 2026`. Date, hour and time zone are computed once for each quarter of an hour, because no
 * time zone changes its offset within a quarter.
 */
export function ctime(epoch_s: number): string {
  const start_s = Math.floor(epoch_s / QUARTER_S) * QUARTER_S;
  if (last === null || last.start_s !== start_s) last = quarter(start_s);
  const past_s = Math.floor(epoch_s - start_s);
  const minute = last.minute + Math.floor(past_s / 60);
  return `${last.prefix}${two(minute)}:${two(past_s % 60)}${last.suffix}`;
}

function quarter(start_s: number): Quarter {
  const date = new Date(start_s * 1000);
  const day = String(date.getDate()).padStart(2);
  const prefix = `${dayName(date)} ${monthName(date)} ${day} ${two(date.getHours())}:`;
  return { start_s, prefix, minute: date.getMinutes(), suffix: ` ${date.getFullYear()}` };
}

/** Writes a number of epoch seconds that is given as text, as ctime does. Other text is returned unchanged. */
export function ctimeOfText(text: string): string {
  return /^\d{1,12}$/.test(text) ? ctime(Number(text)) : text;
}

const TIME = /^(?:(?:(?:(?:(\d\d)?(\d\d))?(\d\d))?(\d\d))?(\d\d)(\d\d))(?:\.(\d\d))?$/;

/**
 * Parses a time argument `[[[[CC]YY]MM]DD]hhmm[.SS]` into epoch seconds. Returns null if the text is malformed. What is missing on the left is taken from the
 * present time. If that gives a time in the past, the smallest missing unit is increased until the date exists and lies in the future.
 */
export function parseTimeArgument(text: string, now_ms: number): number | null {
  const match = TIME.exec(text);
  if (match === null) return null;
  const [century, year2, month, day, hour, minute, second] = match.slice(1).map((part) => (part === undefined ? null : Number(part)));
  const clock = { hour: hour ?? 0, minute: minute ?? 0, second: second ?? 0 };
  if (clock.hour > 23 || clock.minute > 59 || clock.second > 59) return null;
  const now = new Date(now_ms);
  const make = (y: number, mon: number, d: number): number | null => {
    const date = new Date(y, mon, d, clock.hour, clock.minute, clock.second);
    return y >= 0 && date.getDate() === d && date.getMonth() === ((mon % 12) + 12) % 12 ? Math.floor(date.getTime() / 1000) : null;
  };
  if (day == null) return firstToCome(now_ms, 2, (i) => midnightPlus(now, i, clock));
  if (day < 1 || day > 31) return null;
  if (month == null) return firstToCome(now_ms, 12, (i) => make(now.getFullYear(), now.getMonth() + i, day));
  if (month < 1 || month > 12) return null;
  if (year2 == null) return firstToCome(now_ms, 2, (i) => make(now.getFullYear() + i, month - 1, day));
  const full = century == null ? (year2 > 68 ? 1900 : 2000) + year2 : century * 100 + year2;
  return make(full, month - 1, day);
}

function midnightPlus(now: Date, days: number, clock: { readonly hour: number; readonly minute: number; readonly second: number }): number {
  const date = new Date(now.getFullYear(), now.getMonth(), now.getDate() + days, clock.hour, clock.minute, clock.second);
  return Math.floor(date.getTime() / 1000);
}

/** Returns the first of the times candidate(0) to candidate(tries) that exists and lies in the future, or null if there is none. */
function firstToCome(now_ms: number, tries: number, candidate: (step: number) => number | null): number | null {
  for (let step = 0; step <= tries; step++) {
    const epoch_s = candidate(step);
    if (epoch_s !== null && epoch_s * 1000 >= now_ms - 999) return epoch_s;
  }
  return null;
}
