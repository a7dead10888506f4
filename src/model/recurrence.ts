// Recurrence rules of standing reservations: iCalendar RRULE (RFC 5545, 3.3.10), expanded in the local time of a time zone.
//
// This is our own code because a rule that a user types must never keep the server busy. If no date fulfils a rule, the
// package `rrule` searches up to the year 9999, for some rules second by second. Here the work is bounded (R1). Occurrences
// are also correct when clocks change to or from summer time, whatever the time zone of the machine is.
//
// R1. A rule has at most RULE_CHARS_MAX characters. An expansion looks at no more than DAYS_MAX days and CANDIDATES_MAX times,
//     and gives no more than OCCURRENCES_MAX occurrences. A rule that needs more is refused.
// R2. Each start is later than the one before it.

import { civilDay, DAY_S, dayNumber, daysInMonth, daysInYear, epochOfWall, type TimeZone, wallClock, weekday } from "./civil-time.ts";
import { PBSE, reject } from "./pbse.ts";

/** The values of FREQ in a rule, the longest unit first. */
const FREQUENCIES = ["YEARLY", "MONTHLY", "WEEKLY", "DAILY", "HOURLY", "MINUTELY", "SECONDLY"] as const;
export type Frequency = (typeof FREQUENCIES)[number];

/** For each frequency: the longest duration of an occurrence in seconds, and the number of the refusal (docs/reference/errors.md 1). */
const DURATION_MAX: { readonly [frequency in Frequency]: readonly [seconds: number, code: number] } = {
  YEARLY: [365 * DAY_S, PBSE.BAD_RRULE_YEARLY],
  MONTHLY: [28 * DAY_S, PBSE.BAD_RRULE_MONTHLY],
  WEEKLY: [7 * DAY_S, PBSE.BAD_RRULE_WEEKLY],
  DAILY: [DAY_S, PBSE.BAD_RRULE_DAILY],
  HOURLY: [3600, PBSE.BAD_RRULE_HOURLY],
  MINUTELY: [60, PBSE.BAD_RRULE_MINUTELY],
  SECONDLY: [1, PBSE.BAD_RRULE_SECONDLY],
};

/** The longest text of a rule. A text that contains every part of a rule once is shorter. */
const RULE_CHARS_MAX = 4096;
const OCCURRENCES_MAX = 5000;
const DAYS_MAX = 100 * 366;
const CANDIDATES_MAX = 500_000;

/** An element of BYDAY. ordinal 0: every such weekday of the period; 2: the second of the month or year; -1: the last. */
type ByDay = { readonly ordinal: number; readonly weekday: number };
/** A parsed rule, with the numbers as in its text. until: day number and second of the last possible start, in local time, or in UTC if utc is true. */
export type Rule = {
  readonly frequency: Frequency;
  readonly interval: number;
  readonly count: number | null;
  readonly until: { readonly day: number; readonly second: number; readonly utc: boolean } | null;
  readonly week_start: number;
  readonly by_day: readonly ByDay[];
} & { readonly [part in NumberPart]: readonly number[] };
type NumberPart = "by_month" | "by_week_no" | "by_year_day" | "by_month_day" | "by_hour" | "by_minute" | "by_second" | "by_set_pos";

const NUMBER_PARTS: { readonly [name: string]: readonly [part: NumberPart, min: number, max: number, negative: boolean] } = {
  BYMONTH: ["by_month", 1, 12, false],
  BYWEEKNO: ["by_week_no", 1, 53, true],
  BYYEARDAY: ["by_year_day", 1, 366, true],
  BYMONTHDAY: ["by_month_day", 1, 31, true],
  BYHOUR: ["by_hour", 0, 23, false],
  BYMINUTE: ["by_minute", 0, 59, false],
  BYSECOND: ["by_second", 0, 59, false],
  BYSETPOS: ["by_set_pos", 1, 366, true],
};
const WEEKDAYS: readonly string[] = ["MO", "TU", "WE", "TH", "FR", "SA", "SU"];

/**
 * Parses a rule; blanks are ignored. Refuses a text that is not a rule with 15133, and a rule with neither COUNT nor UNTIL
 * with 15134.
 */
export function parseRule(text: string): Rule {
  if (text.length > RULE_CHARS_MAX) throw reject(PBSE.BAD_RRULE_SYNTAX);
  const parts = new Map<string, string>();
  for (const word of text.replace(/\s/g, "").toUpperCase().replace(/;$/, "").split(";")) {
    const [name = "", value = "", ...more] = word.split("=");
    if (value === "" || more.length > 0 || parts.has(name)) throw reject(PBSE.BAD_RRULE_SYNTAX);
    parts.set(name, value);
  }
  const take = (name: string): string | undefined => {
    const value = parts.get(name);
    parts.delete(name);
    return value;
  };
  const frequency = FREQUENCIES.find((word) => word === parts.get("FREQ"));
  parts.delete("FREQ");
  const interval = wholeNumber(take("INTERVAL") ?? "1", 1, 10_000);
  const count_text = take("COUNT");
  const until_text = take("UNTIL");
  const week_start = WEEKDAYS.indexOf(take("WKST") ?? "MO");
  const by_day = (take("BYDAY")?.split(",") ?? []).map(parseByDay);
  const numbers: { [part: string]: readonly number[] } = {};
  for (const [name, [part, min, max, negative]] of Object.entries(NUMBER_PARTS))
    numbers[part] = (take(name)?.split(",") ?? []).map((value) => signedNumber(value, min, max, negative));
  if (frequency === undefined || week_start < 0 || parts.size > 0) throw reject(PBSE.BAD_RRULE_SYNTAX);
  if (count_text === undefined && until_text === undefined) throw reject(PBSE.BAD_RRULE_SYNTAX2);
  if (count_text !== undefined && until_text !== undefined) throw reject(PBSE.BAD_RRULE_SYNTAX);
  const rule = {
    frequency,
    interval,
    count: count_text === undefined ? null : wholeNumber(count_text, 1, OCCURRENCES_MAX),
    until: until_text === undefined ? null : parseUntil(until_text),
    week_start,
    by_day,
    ...numbers,
  } as unknown as Rule;
  checkParts(rule);
  return rule;
}

/** Refuses combinations of parts that RFC 5545 forbids. Also refuses BYSETPOS with a frequency shorter than a day, which is not supported. */
function checkParts({ frequency, by_day, by_week_no, by_year_day, by_month_day, by_set_pos }: Rule): void {
  const ordinals = by_day.some(({ ordinal }) => ordinal !== 0);
  const bad =
    (ordinals && ((frequency !== "MONTHLY" && frequency !== "YEARLY") || by_week_no.length > 0)) ||
    (by_week_no.length > 0 && frequency !== "YEARLY") ||
    (by_year_day.length > 0 && (frequency === "DAILY" || frequency === "WEEKLY" || frequency === "MONTHLY")) ||
    (by_month_day.length > 0 && frequency === "WEEKLY") ||
    (by_set_pos.length > 0 && FREQUENCIES.indexOf(frequency) > FREQUENCIES.indexOf("DAILY"));
  if (bad) throw reject(PBSE.BAD_RRULE_SYNTAX);
}

function wholeNumber(text: string, min: number, max: number): number {
  const value = /^\d{1,9}$/.test(text) ? Number(text) : -1;
  if (value < min || value > max) throw reject(PBSE.BAD_RRULE_SYNTAX);
  return value;
}

function signedNumber(text: string, min: number, max: number, negative: boolean): number {
  const match = /^([+-]?)(\d{1,4})$/.exec(text);
  const value = Number(match?.[2] ?? -1);
  if (match === null || value < min || value > max || (match[1] === "-" && !negative)) throw reject(PBSE.BAD_RRULE_SYNTAX);
  return match[1] === "-" ? -value : value;
}

function parseByDay(text: string): ByDay {
  const match = /^([+-]?\d{1,2})?(MO|TU|WE|TH|FR|SA|SU)$/.exec(text);
  const ordinal = Number(match?.[1] ?? 0);
  if (match === null || (match[1] !== undefined && (ordinal === 0 || Math.abs(ordinal) > 53))) throw reject(PBSE.BAD_RRULE_SYNTAX);
  return { ordinal, weekday: WEEKDAYS.indexOf(match[2] ?? "") };
}

/** Parses the value of UNTIL. A date without a time means the end of that day. */
function parseUntil(text: string): Rule["until"] {
  const match = /^(\d{4})(\d\d)(\d\d)(?:T(\d\d)(\d\d)(\d\d)(Z?))?$/.exec(text);
  if (match === null) throw reject(PBSE.BAD_RRULE_SYNTAX);
  const [year = 0, month = 0, day = 0, hour, minute, second] = match
    .slice(1, 7)
    .map((part) => (part === undefined ? undefined : Number(part)));
  const valid =
    month >= 1 &&
    month <= 12 &&
    day >= 1 &&
    day <= daysInMonth(year, month) &&
    (hour ?? 0) < 24 &&
    (minute ?? 0) < 60 &&
    (second ?? 0) < 60;
  if (!valid) throw reject(PBSE.BAD_RRULE_SYNTAX);
  const second_of_day = hour === undefined ? DAY_S - 1 : hour * 3600 + (minute ?? 0) * 60 + (second ?? 0);
  return { day: dayNumber({ year, month, day }), second: second_of_day, utc: match[7] === "Z" };
}

/** Refuses an occurrence that lasts longer than the unit of the rule's frequency. The frequency decides the error number. */
export function checkDuration(rule: Rule, duration_s: number): void {
  const [seconds, code] = DURATION_MAX[rule.frequency];
  if (duration_s > seconds) throw reject(code);
}

/**
 * The starts (epoch seconds) of all occurrences of a rule. from_s: the earliest start. Refuses with 15133 a rule without any
 * occurrence and a rule that exceeds the bounds (R1).
 */
export function expandRule(rule: Rule, zone: TimeZone, from_s: number): readonly number[] {
  const first = wallClock(zone, from_s);
  const last = rule.until === null ? null : rule.until.utc ? null : rule.until;
  const last_s = rule.until?.utc === true ? rule.until.day * DAY_S + rule.until.second : null;
  const starts: number[] = [];
  for (const { day, second } of wallTimes(rule, first)) {
    if (day < first.day || (day === first.day && second < first.second)) continue;
    if (last !== null && (day > last.day || (day === last.day && second > last.second))) break;
    const start_s = epochOfWall(zone, day, second);
    if (last_s !== null && start_s > last_s) break;
    // When clocks are changed, two local times may be the same moment, or be in reverse order.
    if (start_s > (starts.at(-1) ?? from_s - 1)) starts.push(start_s);
    if (starts.length > OCCURRENCES_MAX) throw reject(PBSE.BAD_RRULE_SYNTAX);
    if (starts.length === rule.count) return starts;
  }
  if (starts.length === 0 || rule.count !== null) throw reject(PBSE.BAD_RRULE_SYNTAX);
  return starts;
}

type Wall = { readonly day: number; readonly second: number };

/** Yields the local times that fulfil the rule, in order, beginning in the period that contains the first day. Stops at the bounds (R1). */
function* wallTimes(rule: Rule, first: Wall): Generator<Wall> {
  const bare = withDefaults(rule, first);
  const isSubDaily = FREQUENCIES.indexOf(rule.frequency) > FREQUENCIES.indexOf("DAILY");
  const fixed = isSubDaily ? null : secondsOfDay(bare, first);
  let candidates = 0;
  for (const days of periods(bare, first.day)) {
    const matching = days.filter((day) => isMatchingDay(bare, day));
    if (bare.by_set_pos.length > 0 && fixed !== null) {
      yield* bySetPos(
        bare,
        matching.flatMap((day) => fixed.map((second) => ({ day, second }))),
      );
      continue;
    }
    for (const day of matching) {
      for (const second of fixed ?? subDailySeconds(bare, first, day)) {
        if (++candidates > CANDIDATES_MAX) return;
        if (second >= 0) yield { day, second };
      }
    }
  }
}

/** Adds the parts that the rule does not have and that RFC 5545 then takes from the first occurrence. */
function withDefaults(rule: Rule, first: Wall): Rule {
  const { month, day } = civilDay(first.day);
  const open = rule.by_week_no.length + rule.by_year_day.length + rule.by_month_day.length + rule.by_day.length === 0;
  if (!open) {
    if (rule.frequency === "YEARLY" && rule.by_week_no.length > 0 && rule.by_day.length === 0)
      return { ...rule, by_day: [{ ordinal: 0, weekday: weekday(first.day) }] };
    return rule;
  }
  switch (rule.frequency) {
    case "YEARLY":
      return { ...rule, by_month: rule.by_month.length > 0 ? rule.by_month : [month], by_month_day: [day] };
    case "MONTHLY":
      return { ...rule, by_month_day: [day] };
    case "WEEKLY":
      return { ...rule, by_day: [{ ordinal: 0, weekday: weekday(first.day) }] };
    default:
      return rule;
  }
}

/** Yields, for each period of the rule, the days of that period. Periods that the interval skips are left out. */
function* periods({ frequency, interval, week_start }: Rule, first: number): Generator<readonly number[]> {
  const start = civilDay(first);
  let looked_at = 0;
  for (let step = 0; looked_at < DAYS_MAX; step++) {
    const isSubDaily = FREQUENCIES.indexOf(frequency) > FREQUENCIES.indexOf("DAILY");
    const days = periodDays(frequency, isSubDaily ? step : step * interval, first, start, week_start);
    looked_at += Math.max(1, days.length);
    if (days.length === 0 || civilDay(days[0] ?? 0).year > 9999) return;
    yield days;
  }
}

function periodDays(
  frequency: Frequency,
  shift: number,
  first: number,
  start: { readonly year: number; readonly month: number },
  week_start: number,
): readonly number[] {
  const range = (from: number, length: number): readonly number[] => Array.from({ length }, (_, at) => from + at);
  switch (frequency) {
    case "YEARLY":
      return range(dayNumber({ year: start.year + shift, month: 1, day: 1 }), daysInYear(start.year + shift));
    case "MONTHLY": {
      const months = start.year * 12 + start.month - 1 + shift;
      const [year, month] = [Math.floor(months / 12), (months % 12) + 1];
      return range(dayNumber({ year, month, day: 1 }), daysInMonth(year, month));
    }
    case "WEEKLY":
      return range(first - ((weekday(first) - week_start + 7) % 7) + shift * 7, 7);
    case "DAILY":
      return [first + shift];
    case "HOURLY":
    case "MINUTELY":
    case "SECONDLY":
      // Every day is a period here. subDailySeconds applies the interval, which counts hours, minutes or seconds.
      return [first + shift];
    default: {
      const unreachable: never = frequency;
      return unreachable;
    }
  }
}

function isMatchingDay(rule: Rule, days: number): boolean {
  const { year, month, day } = civilDay(days);
  if (rule.by_month.length > 0 && !rule.by_month.includes(month)) return false;
  if (!matchesEnd(rule.by_month_day, day, daysInMonth(year, month))) return false;
  const day_of_year = days - dayNumber({ year, month: 1, day: 1 }) + 1;
  if (!matchesEnd(rule.by_year_day, day_of_year, daysInYear(year))) return false;
  if (rule.by_week_no.length > 0 && !matchesWeek(rule, days, year)) return false;
  return rule.by_day.length === 0 || rule.by_day.some((each) => matchesWeekday(rule, each, days, { year, month, day, day_of_year }));
}

/** Whether a position is one of the numbers. Positive numbers count from the front, negative ones from the end. With an empty list, every position matches. */
function matchesEnd(numbers: readonly number[], at: number, length: number): boolean {
  return numbers.length === 0 || numbers.includes(at) || numbers.includes(at - length - 1);
}

function matchesWeekday(
  rule: Rule,
  by: ByDay,
  days: number,
  date: { readonly year: number; readonly month: number; readonly day: number; readonly day_of_year: number },
): boolean {
  if (weekday(days) !== by.weekday) return false;
  if (by.ordinal === 0) return true;
  const inMonth = rule.frequency === "MONTHLY" || rule.by_month.length > 0;
  const at = inMonth ? date.day : date.day_of_year;
  const length = inMonth ? daysInMonth(date.year, date.month) : daysInYear(date.year);
  return by.ordinal > 0 ? Math.ceil(at / 7) === by.ordinal : Math.ceil((length - at + 1) / 7) === -by.ordinal;
}

/**
 * Whether a day is in one of the weeks that BYWEEKNO names. The first week of a year is the first with at least four days of
 * that year. Days at the beginning or end of a year may belong to a week of the year before or after it.
 */
function matchesWeek({ by_week_no, week_start }: Rule, days: number, year: number): boolean {
  const first = firstWeek(year, week_start);
  const weeks = Math.round((firstWeek(year + 1, week_start) - first) / 7);
  const week = Math.floor((days - first) / 7) + 1;
  if (week >= 1 && week <= weeks) return matchesEnd(by_week_no, week, weeks);
  if (week > weeks) return by_week_no.includes(1);
  const before = Math.round((first - firstWeek(year - 1, week_start)) / 7);
  return matchesEnd(by_week_no, before, before);
}

function firstWeek(year: number, week_start: number): number {
  const january = dayNumber({ year, month: 1, day: 1 });
  const into = (weekday(january) - week_start + 7) % 7;
  return into <= 3 ? january - into : january - into + 7;
}

/** The times of a day at which occurrences start, for rules whose unit is a day or longer. */
function secondsOfDay({ by_hour, by_minute, by_second }: Rule, first: Wall): readonly number[] {
  const or = (numbers: readonly number[], own: number): readonly number[] => (numbers.length > 0 ? numbers : [own]);
  const seconds = or(by_hour, Math.floor(first.second / 3600)).flatMap((hour) =>
    or(by_minute, Math.floor(first.second / 60) % 60).flatMap((minute) =>
      or(by_second, first.second % 60).map((second) => hour * 3600 + minute * 60 + second),
    ),
  );
  return [...new Set(seconds)].sort((a, b) => a - b);
}

/** Yields the times of a day at which occurrences start, for rules of hours, minutes or seconds; -1 for each candidate that does not match. */
function* subDailySeconds(rule: Rule, first: Wall, day: number): Generator<number> {
  const unit = rule.frequency === "HOURLY" ? 3600 : rule.frequency === "MINUTELY" ? 60 : 1;
  const start_unit = Math.floor((first.day * DAY_S + first.second) / unit);
  const all = (length: number): readonly number[] => Array.from({ length }, (_, at) => at);
  const ordered = (numbers: readonly number[], otherwise: readonly number[]): readonly number[] =>
    numbers.length > 0 ? [...new Set(numbers)].sort((a, b) => a - b) : otherwise;
  const minutes = ordered(rule.by_minute, unit === 3600 ? [Math.floor(first.second / 60) % 60] : all(60));
  const seconds = ordered(rule.by_second, unit === 1 ? all(60) : [first.second % 60]);
  for (const hour of ordered(rule.by_hour, all(24))) {
    for (const minute of minutes) {
      for (const second of seconds) {
        const second_of_day = hour * 3600 + minute * 60 + second;
        const units = Math.floor((day * DAY_S + second_of_day) / unit) - start_unit;
        yield units % rule.interval === 0 ? second_of_day : -1;
      }
    }
  }
}

function* bySetPos({ by_set_pos }: Rule, set: readonly Wall[]): Generator<Wall> {
  const positions = by_set_pos.map((position) => (position > 0 ? position - 1 : set.length + position));
  for (const at of [...new Set(positions)].sort((a, b) => a - b)) {
    const wall = set[at];
    if (wall !== undefined) yield wall;
  }
}
