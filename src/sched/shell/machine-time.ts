// The local calendar time of this machine (TZ), in the form that cycles use (LocalTime).

import type { LocalTime } from "../shapes/local-time.ts";

export const MACHINE_TIME: LocalTime = Object.freeze({
  civil(epoch_s: number) {
    const date = new Date(epoch_s * 1000);
    const [year, month, day] = [date.getFullYear(), date.getMonth() + 1, date.getDate()];
    return {
      year,
      month,
      day,
      weekday: date.getDay(),
      day_of_year: Math.round((Date.UTC(year, month - 1, day) - Date.UTC(year, 0, 1)) / 86_400_000) + 1,
      second_of_day: date.getHours() * 3600 + date.getMinutes() * 60 + date.getSeconds(),
    };
  },
  epoch(year: number, month: number, day: number, second_of_day: number) {
    return Math.floor(new Date(year, month - 1, day, 0, 0, second_of_day).getTime() / 1000);
  },
});
