// Prime and non-prime time from the holidays file (docs/reference/scheduler.md 11). Pure: text and a local calendar are the input.
//
// H1. It is prime time between the prime start and the non-prime start of a day, and non-prime time otherwise. A holiday is non-prime all
//     day.
// H2. Without YEAR, and for days that the file does not mention, it is always prime time.

import type { CivilTime, LocalTime } from "./local-time.ts";

/** The seconds of a day at which prime and non-prime time begin; null: it does not begin on that day. `all` means that it begins at 0. */
export type DayHours = { readonly prime_s: number | null; readonly non_prime_s: number | null };

export type Holidays = {
  /** the year of the file; 0: none is given, so that the file has no effect */
  readonly year: number;
  /** the hours for each weekday; index 0: Sunday */
  readonly hours: readonly DayHours[];
  /** the holidays, as days of the year */
  readonly days: ReadonlySet<number>;
};

export type FileMessage = { readonly line: number; readonly text: string };

const ALL_PRIME: DayHours = { prime_s: 0, non_prime_s: null };
export const ALWAYS_PRIME: Holidays = Object.freeze({
  year: 0,
  hours: Array.from({ length: 7 }, () => ALL_PRIME),
  days: new Set<number>(),
});

const DAYS = ["sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"];

/** Reads a holidays file. Lines that cannot be read are reported and left out. */
export function parseHolidays(text: string): { readonly holidays: Holidays; readonly messages: readonly FileMessage[] } {
  const messages: FileMessage[] = [];
  const hours: (DayHours | undefined)[] = Array.from({ length: 7 }, () => undefined);
  const days = new Set<number>();
  let year = 0;
  text.split("\n").forEach((raw, at) => {
    const line = raw.trim();
    if (line === "" || line.startsWith("*") || line.startsWith("#")) return;
    const words = line.split(/\s+/);
    const [first = "", prime = "", nonPrime = ""] = words;
    const name = first.toLowerCase();
    if (name === "year") {
      if (/^[0-9]+$/.test(prime)) year = Number(prime);
      else messages.push({ line: at + 1, text: line });
    } else if (name === "weekday" || DAYS.includes(name)) {
      const day = dayHours(prime, nonPrime);
      if (day === null) messages.push({ line: at + 1, text: line });
      for (const weekday of name === "weekday" ? [1, 2, 3, 4, 5] : [DAYS.indexOf(name)]) hours[weekday] = day ?? ALL_PRIME;
    } else if (/^[0-9]{1,3}$/.test(first) && Number(first) >= 1 && Number(first) <= 366) days.add(Number(first));
    else messages.push({ line: at + 1, text: line });
  });
  return { holidays: { year, hours: hours.map((day) => day ?? ALL_PRIME), days }, messages };
}

/**
 * Reads the two times of a day. Returns null if they are not two times, or if both are `all` or both `none`: it is then
 * always prime time, which the caller reports.
 */
function dayHours(prime: string, nonPrime: string): DayHours | null {
  const [start, end] = [timeOf(prime), timeOf(nonPrime)];
  if (start === undefined || end === undefined || (start === end && (prime === "all" || prime === "none"))) return null;
  // If one kind of time is `all`, the other kind never begins.
  return { prime_s: nonPrime === "all" ? null : start, non_prime_s: prime === "all" ? null : end };
}

/** Returns a time such as `0600` in seconds; null: the word is `none`; undefined: it is not a time. */
function timeOf(word: string): number | null | undefined {
  if (word === "all") return 0;
  if (word === "none") return null;
  const match = /^([0-9]{1,2})([0-9]{2})$/.exec(word);
  if (match === null) return undefined;
  const [hour, minute] = [Number(match[1]), Number(match[2])];
  return hour < 24 && minute < 60 ? hour * 3600 + minute * 60 : undefined;
}

/** Whether it is prime time. until_s: when the other kind of time begins; null: never. */
export type PrimeStatus = { readonly prime: boolean; readonly until_s: number | null };

/** Returns whether it is prime time now, and until when. The search for the end covers one year. */
export function primeStatus(holidays: Holidays, local: LocalTime, now_s: number): PrimeStatus {
  if (holidays.year === 0) return { prime: true, until_s: null };
  const now = local.civil(now_s);
  const prime = isPrime(holidays, now);
  for (let ahead = 0; ahead <= 366; ahead++) {
    const midnight_s = local.epoch(now.year, now.month, now.day + ahead, 0);
    const day = local.civil(midnight_s);
    for (const [from_s, isPrimeThen] of changesOf(holidays, day)) {
      const at_s = from_s === 0 ? midnight_s : local.epoch(now.year, now.month, now.day + ahead, from_s);
      if (at_s > now_s && isPrimeThen !== prime) return { prime, until_s: at_s };
    }
  }
  return { prime, until_s: null };
}

function isPrime(holidays: Holidays, time: CivilTime): boolean {
  let prime = true;
  for (const [from_s, isPrimeThen] of changesOf(holidays, time)) if (from_s <= time.second_of_day) prime = isPrimeThen;
  return prime;
}

/** Returns the changes of a day in order: the second from which on it is prime time (true) or non-prime time (false). The first entry is for midnight. */
function changesOf(holidays: Holidays, day: CivilTime): [number, boolean][] {
  if (holidays.days.has(day.day_of_year)) return [[0, false]];
  const { prime_s, non_prime_s } = holidays.hours[day.weekday] ?? ALL_PRIME;
  if (prime_s === null) return [[0, false]];
  if (non_prime_s === null) return [[0, true]];
  // Until its first change, the day has the other kind of time.
  const starts: [number, boolean][] = [
    [prime_s, true],
    [non_prime_s, false],
  ];
  starts.sort(([a], [b]) => a - b);
  const [first] = starts as [[number, boolean], [number, boolean]];
  return first[0] === 0 ? starts : [[0, !first[1]], ...starts];
}
