// Local calendar time for cycles. It is an input, because pure code does not know the machine's time zone.

import { civilDay, DAY_S, dayNumber, weekday } from "#model/civil-time.ts";

/** A moment as date and time of day. */
export type CivilTime = {
  readonly year: number;
  /** 1 to 12 */
  readonly month: number;
  readonly day: number;
  /** 0 = Sunday */
  readonly weekday: number;
  /** 1 to 366 */
  readonly day_of_year: number;
  readonly second_of_day: number;
};

export type LocalTime = {
  civil(epoch_s: number): CivilTime;
  /** Converts a date and a time of day to epoch seconds. The day may lie beyond the end of the month, and the second beyond the end of the day. */
  epoch(year: number, month: number, day: number, second_of_day: number): number;
};

/** Universal time, for tests and simulations. Days are computed exactly (proleptic Gregorian calendar). */
export const UTC: LocalTime = Object.freeze({
  civil(epoch_s: number): CivilTime {
    const days = Math.floor(epoch_s / DAY_S);
    const { year, month, day } = civilDay(days);
    return {
      year,
      month,
      day,
      weekday: (weekday(days) + 1) % 7,
      day_of_year: days - dayNumber({ year, month: 1, day: 1 }) + 1,
      second_of_day: epoch_s - days * DAY_S,
    };
  },
  epoch(year: number, month: number, day: number, second_of_day: number): number {
    return dayNumber({ year, month, day }) * DAY_S + second_of_day;
  },
});

/** Returns date and time like `11/20/2026 10:26:28`. */
export function dateText(time: CivilTime): string {
  const two = (value: number): string => String(value).padStart(2, "0");
  const seconds = Math.floor(time.second_of_day);
  const clock = `${two(Math.floor(seconds / 3600))}:${two(Math.floor(seconds / 60) % 60)}:${two(seconds % 60)}`;
  return `${two(time.month)}/${two(time.day)}/${time.year} ${clock}`;
}

const DAYS = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];
const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/** Returns date and time like `Fri Nov  6 10:26:28 2026`, as ctime(3) writes it. */
export function ctimeText(time: CivilTime): string {
  const clock = dateText(time).slice(-8);
  return `${DAYS[time.weekday]} ${MONTHS[time.month - 1]} ${String(time.day).padStart(2)} ${clock} ${time.year}`;
}
