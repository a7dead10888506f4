// Writes times for the table of pbs_rstat: as short as possible without ambiguity (docs/reference/commands.md 5). Pure,
// except that the machine's time zone is used.

import { dayName, monthName, two } from "#cli/dates.ts";

const DAY_MS = 86_400_000;

/**
 * Returns a time as `Today 15:00`, within this week (Sunday first) as `Fri 15:00`, within this year as `Fri Nov 27 15:00`, otherwise as `Sun Feb 10 2027
 * 15:00`.
 */
export function shortTime(epoch_s: number, now_ms: number): string {
  const date = new Date(epoch_s * 1000);
  const now = new Date(now_ms);
  const clock = `${two(date.getHours())}:${two(date.getMinutes())}`;
  const today = midnight(now);
  const day = midnight(date);
  if (day === today) return `Today ${clock}`;
  const sunday = Math.round(today - now.getDay() * DAY_MS);
  const days = Math.round((day - sunday) / DAY_MS);
  if (days >= 0 && days < 7) return `${dayName(date)} ${clock}`;
  const long = `${dayName(date)} ${monthName(date)} ${String(date.getDate()).padStart(2)}`;
  return date.getFullYear() === now.getFullYear() ? `${long} ${clock}` : `${long} ${date.getFullYear()} ${clock}`;
}

const midnight = (date: Date): number => new Date(date.getFullYear(), date.getMonth(), date.getDate()).getTime();

/** Converts a duration to seconds: `01:30:00` to 5400. A text that is not a duration is returned unchanged. */
export function durationSeconds(text: string): string {
  if (!/^\d+(:\d\d){2}$/.test(text)) return text;
  return String(text.split(":").reduce((sum, part) => sum * 60 + Number(part), 0));
}
