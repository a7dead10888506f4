// Converts dates of the Gregorian calendar to day numbers and back, and moments to the local time of a time zone. Days are
// counted from 1970-01-01. The calculation uses the fact that the calendar repeats every 400 years.

/** A date: month 1..12, day 1..31. */
export type CivilDay = { readonly year: number; readonly month: number; readonly day: number };
export type CivilTime = CivilDay & { readonly second_of_day: number };

export const DAY_S = 86_400;

/** Days since 1970-01-01. */
export function dayNumber({ year, month, day }: CivilDay): number {
  const shifted = month <= 2 ? year - 1 : year;
  const era = Math.floor(shifted / 400);
  const year_of_era = shifted - era * 400;
  const day_of_year = Math.floor((153 * (month + (month > 2 ? -3 : 9)) + 2) / 5) + day - 1;
  const day_of_era = year_of_era * 365 + Math.floor(year_of_era / 4) - Math.floor(year_of_era / 100) + day_of_year;
  return era * 146_097 + day_of_era - 719_468;
}

/** The date of a day number. */
export function civilDay(days: number): CivilDay {
  const shifted = days + 719_468;
  const era = Math.floor(shifted / 146_097);
  const day_of_era = shifted - era * 146_097;
  const year_of_era = Math.floor(
    (day_of_era - Math.floor(day_of_era / 1460) + Math.floor(day_of_era / 36_524) - Math.floor(day_of_era / 146_096)) / 365,
  );
  const day_of_year = day_of_era - (365 * year_of_era + Math.floor(year_of_era / 4) - Math.floor(year_of_era / 100));
  const shifted_month = Math.floor((5 * day_of_year + 2) / 153);
  const month = shifted_month < 10 ? shifted_month + 3 : shifted_month - 9;
  return {
    year: year_of_era + era * 400 + (month <= 2 ? 1 : 0),
    month,
    day: day_of_year - Math.floor((153 * shifted_month + 2) / 5) + 1,
  };
}

/** The weekday of a day number: 0 Monday .. 6 Sunday. */
export const weekday = (days: number): number => (((days + 3) % 7) + 7) % 7;

const isLeap = (year: number): boolean => year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0);
export const daysInYear = (year: number): number => (isLeap(year) ? 366 : 365);
export const daysInMonth = (year: number, month: number): number =>
  month === 2 ? (isLeap(year) ? 29 : 28) : month === 4 || month === 6 || month === 9 || month === 11 ? 30 : 31;

/** A time zone of the tz database. */
export type TimeZone = {
  readonly name: string;
  /** the seconds to add to epoch seconds to get local time, at that moment */
  offset(epoch_s: number): number;
};

/** The local time at a moment: the day number and the second of the day. */
export function wallClock(zone: TimeZone, epoch_s: number): { readonly day: number; readonly second: number } {
  const wall_s = epoch_s + zone.offset(epoch_s);
  const day = Math.floor(wall_s / DAY_S);
  return { day, second: wall_s - day * DAY_S };
}

/**
 * The epoch seconds at which local clocks show the given time. If clocks show the time twice, because they are set back, the
 * first moment is returned. If clocks skip the time, because they are set forward, the offset before the change is used (RFC
 * 5545, 3.3.5).
 */
export function epochOfWall(zone: TimeZone, day: number, second: number): number {
  const wall_s = day * DAY_S + second;
  const earlier = zone.offset(wall_s - DAY_S);
  const later = zone.offset(wall_s + DAY_S);
  if (earlier === later) return wall_s - earlier;
  const first = wall_s - Math.max(earlier, later);
  if (first + zone.offset(first) === wall_s) return first;
  const second_try = wall_s - Math.min(earlier, later);
  return second_try + zone.offset(second_try) === wall_s ? second_try : wall_s - earlier;
}
