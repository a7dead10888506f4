// Local calendar time as the core needs it: given from outside, because the machine's time zone is no business of pure code.

/** A moment on the wall calendar. */
export type CivilTime = {
  readonly year: number;
  /** 1..12 */
  readonly month: number;
  readonly day: number;
  /** 0 = Sunday */
  readonly weekday: number;
  /** 1..366 */
  readonly day_of_year: number;
  readonly second_of_day: number;
};

export type LocalTime = {
  civil(epoch_s: number): CivilTime;
  /** the inverse; days and seconds may lie outside their month or day */
  epoch(year: number, month: number, day: number, second_of_day: number): number;
};

const DAY_S = 86_400;

/** Universal time: for tests and simulations, and exact arithmetic of days (proleptic Gregorian calendar). */
export const UTC: LocalTime = Object.freeze({
  civil(epoch_s: number): CivilTime {
    const days = Math.floor(epoch_s / DAY_S);
    const { year, month, day } = civilFromDays(days);
    return {
      year,
      month,
      day,
      weekday: (((days + 4) % 7) + 7) % 7,
      day_of_year: days - daysFromCivil(year, 1, 1) + 1,
      second_of_day: epoch_s - days * DAY_S,
    };
  },
  epoch(year: number, month: number, day: number, second_of_day: number): number {
    return daysFromCivil(year, month, day) * DAY_S + second_of_day;
  },
});

/** `11/20/2026 10:26:28` */
export function dateText(time: CivilTime): string {
  const two = (value: number): string => String(value).padStart(2, "0");
  const seconds = Math.floor(time.second_of_day);
  const clock = `${two(Math.floor(seconds / 3600))}:${two(Math.floor(seconds / 60) % 60)}:${two(seconds % 60)}`;
  return `${two(time.month)}/${two(time.day)}/${time.year} ${clock}`;
}

const DAYS = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];
const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/** `Fri Nov  6 10:26:28 2026`, as ctime(3) writes it */
export function ctimeText(time: CivilTime): string {
  const clock = dateText(time).slice(-8);
  return `${DAYS[time.weekday]} ${MONTHS[time.month - 1]} ${String(time.day).padStart(2)} ${clock} ${time.year}`;
}

/** Days since 1970-01-01. Years begin in March, so that the leap day is the last of its year. */
function daysFromCivil(year: number, month: number, day: number): number {
  const y = month > 2 ? year : year - 1;
  const era = Math.floor(y / 400);
  const year_of_era = y - era * 400;
  const day_of_year = Math.floor((153 * (month > 2 ? month - 3 : month + 9) + 2) / 5) + day - 1;
  return era * 146_097 + year_of_era * 365 + Math.floor(year_of_era / 4) - Math.floor(year_of_era / 100) + day_of_year - 719_468;
}

function civilFromDays(days: number): { readonly year: number; readonly month: number; readonly day: number } {
  const shifted = days + 719_468;
  const era = Math.floor(shifted / 146_097);
  const day_of_era = shifted - era * 146_097;
  const year_of_era = Math.floor(
    (day_of_era - Math.floor(day_of_era / 1460) + Math.floor(day_of_era / 36_524) - Math.floor(day_of_era / 146_096)) / 365,
  );
  const day_of_year = day_of_era - (365 * year_of_era + Math.floor(year_of_era / 4) - Math.floor(year_of_era / 100));
  const shifted_month = Math.floor((5 * day_of_year + 2) / 153);
  const month = shifted_month < 10 ? shifted_month + 3 : shifted_month - 9;
  return { year: year_of_era + era * 400 + (month <= 2 ? 1 : 0), month, day: day_of_year - Math.floor((153 * shifted_month + 2) / 5) + 1 };
}
