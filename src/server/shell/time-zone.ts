// Finds time zones by their names, in the tz data that is part of Node.js.

import { DAY_S, dayNumber, type TimeZone } from "#model/civil-time.ts";

/** The time zone with that name; null: there is none. */
export function timeZone(name: string): TimeZone | null {
  // An offset such as +05:30 is not a name.
  const format = /^[A-Za-z][A-Za-z0-9_+/-]*$/.test(name) ? formatOf(name) : null;
  if (format === null) return null;
  return {
    name,
    offset(epoch_s) {
      const part: { [type: string]: number } = {};
      for (const { type, value } of format.formatToParts(epoch_s * 1000)) part[type] = Number(value);
      const { year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0 } = part;
      return dayNumber({ year, month, day }) * DAY_S + hour * 3600 + minute * 60 + second - Math.floor(epoch_s);
    },
  };
}

function formatOf(timeZone: string): Intl.DateTimeFormat | null {
  try {
    return new Intl.DateTimeFormat("en-US", {
      timeZone,
      hourCycle: "h23",
      year: "numeric",
      month: "numeric",
      day: "numeric",
      hour: "numeric",
      minute: "numeric",
      second: "numeric",
    });
  } catch (error) {
    if (error instanceof RangeError) return null;
    throw error;
  }
}
