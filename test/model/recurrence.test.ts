// Recurrence rules: their results on the clock of a time zone, refusals, and bounded work.

import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { civilDay, DAY_S, dayNumber, daysInMonth, epochOfWall, type TimeZone, weekday } from "#model/civil-time.ts";
import { Reject } from "#model/pbse.ts";
import { checkDuration, expandRule, parseRule } from "#model/recurrence.ts";
import { timeZone } from "#server/shell/time-zone.ts";

const zoneOf = (name: string): TimeZone => timeZone(name) ?? assert.fail(`no time zone ${name}`);
const UTC = zoneOf("UTC");

/** `2026-11-20T09:26` on the clock of a zone, as epoch seconds. */
function moment(text: string, zone = UTC): number {
  const [year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0] = text.split(/[-T:]/).map(Number);
  return epochOfWall(zone, dayNumber({ year, month, day }), hour * 3600 + minute * 60 + second);
}

/** `20 09:26`, with the month where it changes: `2026-11-20 09:26`. */
function shown(epoch_s: number): string {
  const day = civilDay(Math.floor(epoch_s / DAY_S));
  const minutes = Math.floor((((epoch_s % DAY_S) + DAY_S) % DAY_S) / 60);
  const two = (n: number): string => String(n).padStart(2, "0");
  return `${day.year}-${two(day.month)}-${two(day.day)} ${two(Math.floor(minutes / 60))}:${two(minutes % 60)}`;
}

test("rules and the times they give, from Friday 2026-11-20 09:30 UTC on", () => {
  // biome-ignore format: a table
  const rows: readonly (readonly [rule: string, ...starts: string[]])[] = [
    ["FREQ=DAILY;COUNT=3",                               "2026-11-20 09:30", "2026-11-21 09:30", "2026-11-22 09:30"],
    ["freq=daily; count=2",                              "2026-11-20 09:30", "2026-11-21 09:30"],
    ["FREQ=DAILY;INTERVAL=10;COUNT=3",                   "2026-11-20 09:30", "2026-11-30 09:30", "2026-12-10 09:30"],
    ["FREQ=DAILY;UNTIL=20261122",                        "2026-11-20 09:30", "2026-11-21 09:30", "2026-11-22 09:30"],
    ["FREQ=DAILY;UNTIL=20261122T093000",                 "2026-11-20 09:30", "2026-11-21 09:30", "2026-11-22 09:30"],
    ["FREQ=DAILY;UNTIL=20261122T092959Z",                "2026-11-20 09:30", "2026-11-21 09:30"],
    ["FREQ=DAILY;BYHOUR=8,14;COUNT=4",                   "2026-11-20 14:30", "2026-11-21 08:30", "2026-11-21 14:30", "2026-11-22 08:30"],
    ["FREQ=WEEKLY;COUNT=2",                              "2026-11-20 09:30", "2026-11-27 09:30"],
    ["FREQ=WEEKLY;BYDAY=MO,WE,FR;COUNT=4",               "2026-11-20 09:30", "2026-11-23 09:30", "2026-11-25 09:30", "2026-11-27 09:30"],
    ["FREQ=WEEKLY;INTERVAL=2;BYDAY=TU;COUNT=2",          "2026-12-01 09:30", "2026-12-15 09:30"],
    ["FREQ=MONTHLY;COUNT=3",                             "2026-11-20 09:30", "2026-12-20 09:30", "2027-01-20 09:30"],
    ["FREQ=MONTHLY;BYMONTHDAY=31;COUNT=3",               "2026-12-31 09:30", "2027-01-31 09:30", "2027-03-31 09:30"],
    ["FREQ=MONTHLY;BYMONTHDAY=-1;COUNT=3",               "2026-11-30 09:30", "2026-12-31 09:30", "2027-01-31 09:30"],
    ["FREQ=MONTHLY;BYDAY=2TU,-1FR;COUNT=3",              "2026-11-27 09:30", "2026-12-08 09:30", "2026-12-25 09:30"],
    ["FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1;COUNT=2", "2026-11-30 09:30", "2026-12-31 09:30"],
    ["FREQ=YEARLY;COUNT=2",                              "2026-11-20 09:30", "2027-11-20 09:30"],
    ["FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=29;COUNT=2",      "2028-02-29 09:30", "2032-02-29 09:30"],
    ["FREQ=YEARLY;BYWEEKNO=1;BYDAY=MO;COUNT=2",          "2027-01-04 09:30", "2028-01-03 09:30"],
    ["FREQ=YEARLY;BYYEARDAY=1,-1;COUNT=2",               "2026-12-31 09:30", "2027-01-01 09:30"],
    ["FREQ=HOURLY;COUNT=2",                              "2026-11-20 09:30", "2026-11-20 10:30"],
    ["FREQ=HOURLY;INTERVAL=5;BYDAY=SA;COUNT=2",          "2026-11-21 00:30", "2026-11-21 05:30"],
    ["FREQ=MINUTELY;INTERVAL=20;COUNT=3",                "2026-11-20 09:30", "2026-11-20 09:50", "2026-11-20 10:10"],
  ];
  for (const [rule, ...starts] of rows)
    assert.deepEqual(expandRule(parseRule(rule), UTC, moment("2026-11-20T09:30")).map(shown), starts, rule);
});

test("the clock on the wall decides: summer time comes and goes, a time that never comes is the moment after the jump", () => {
  const berlin = zoneOf("Europe/Berlin");
  const autumn = expandRule(parseRule("FREQ=DAILY;COUNT=3"), berlin, moment("2026-10-24T09:00", berlin));
  assert.deepEqual(autumn.map(shown), ["2026-10-24 07:00", "2026-10-25 08:00", "2026-10-26 08:00"]);
  const spring = expandRule(parseRule("FREQ=DAILY;COUNT=3"), berlin, moment("2027-03-27T02:30", berlin));
  assert.deepEqual(spring.map(shown), ["2027-03-27 01:30", "2027-03-28 01:30", "2027-03-29 00:30"]);
  const twice = expandRule(parseRule("FREQ=HOURLY;COUNT=4"), berlin, moment("2026-10-25T01:30", berlin));
  assert.deepEqual(twice.map(shown), ["2026-10-24 23:30", "2026-10-25 00:30", "2026-10-25 02:30", "2026-10-25 03:30"]);
  assert.equal(timeZone("Nowhere/Land"), null);
  assert.equal(timeZone("+05:30"), null);
  assert.equal(timeZone(""), null);
});

test("what is no rule is refused", () => {
  const refusal = (rule: string): string => {
    try {
      return expandRule(parseRule(rule), UTC, moment("2026-11-20T09:30")).length.toString();
    } catch (error) {
      return error instanceof Reject ? String(error.code) : String(error);
    }
  };
  // biome-ignore format: a table
  const rows: readonly (readonly [rule: string, outcome: string])[] = [
    ["",                                       "15133"], ["EVERY=DAY;COUNT=2",                 "15133"],
    ["FREQ=DAILY",                             "15134"], ["FREQ=FORTNIGHTLY;COUNT=1",          "15133"],
    ["FREQ=DAILY;COUNT=0",                     "15133"], ["FREQ=DAILY;COUNT=-1",               "15133"],
    ["FREQ=DAILY;COUNT=2;UNTIL=20270101",      "15133"], ["FREQ=DAILY;COUNT=2;COUNT=3",        "15133"],
    ["FREQ=DAILY;COUNT=2;BYHOUR=24",           "15133"], ["FREQ=DAILY;COUNT=2;BYDAY=XX",       "15133"],
    ["FREQ=WEEKLY;BYDAY=2MO;COUNT=2",          "15133"], ["FREQ=WEEKLY;BYMONTHDAY=2;COUNT=2",  "15133"],
    ["FREQ=DAILY;UNTIL=20261301",              "15133"], ["FREQ=DAILY;UNTIL=20260101",         "15133"],
    ["FREQ=DAILY;COUNT=2;INTERVAL=0",          "15133"], ["FREQ=DAILY;COUNT=2;NONSENSE",       "15133"],
    ["FREQ=HOURLY;BYSETPOS=1;COUNT=2",         "15133"], ["FREQ=DAILY;COUNT=9999",             "15133"],
  ];
  for (const [rule, outcome] of rows) assert.equal(refusal(rule), outcome, rule);
});

test("an occurrence is not longer than its unit", () => {
  // biome-ignore format: a table
  const rows: readonly (readonly [frequency: string, longest_s: number, code: number])[] = [
    ["YEARLY", 365 * DAY_S, 15126], ["MONTHLY", 28 * DAY_S, 15127], ["WEEKLY", 7 * DAY_S, 15128], ["DAILY", DAY_S, 15129],
    ["HOURLY", 3600, 15130], ["MINUTELY", 60, 15131], ["SECONDLY", 1, 15132],
  ];
  for (const [frequency, longest_s, code] of rows) {
    const rule = parseRule(`FREQ=${frequency};COUNT=1`);
    checkDuration(rule, longest_s);
    assert.throws(
      () => checkDuration(rule, longest_s + 1),
      (error: Reject) => error.code === code,
    );
  }
});

test("a rule that hardly any date, or no date, fulfils is refused within bounds", () => {
  for (const rule of [
    "FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30;COUNT=1",
    "FREQ=SECONDLY;BYMONTH=2;BYMONTHDAY=30;COUNT=1",
    "FREQ=SECONDLY;INTERVAL=2;BYSECOND=1;COUNT=1",
    "FREQ=MINUTELY;BYYEARDAY=366;BYMONTHDAY=1;COUNT=2",
    "FREQ=SECONDLY;UNTIL=99991231",
    "FREQ=DAILY;BYHOUR=0,1,2,3,4,5,6,7,8,9,10,11,12;UNTIL=99991231",
  ]) {
    assert.throws(() => expandRule(parseRule(rule), UTC, moment("2026-11-20T09:30")), Reject, rule);
  }
});

test("days and dates are two names of one thing", () => {
  fc.assert(
    fc.property(fc.integer({ min: -700_000, max: 3_000_000 }), (days) => {
      const date = civilDay(days);
      assert.equal(dayNumber(date), days);
      assert.ok(date.day >= 1 && date.day <= daysInMonth(date.year, date.month));
      assert.equal(weekday(days + 1), (weekday(days) + 1) % 7);
    }),
  );
  assert.equal(weekday(dayNumber({ year: 2026, month: 11, day: 20 })), 4);
});

test("starts grow, lie at or after the first moment, and are as many as asked, whatever the rule", () => {
  const numbers = (min: number, max: number) => fc.uniqueArray(fc.integer({ min, max }), { minLength: 1, maxLength: 3 });
  const rules = fc.record({
    frequency: fc.constantFrom("MONTHLY", "WEEKLY", "DAILY", "HOURLY"),
    interval: fc.integer({ min: 1, max: 5 }),
    count: fc.integer({ min: 1, max: 12 }),
    hours: fc.option(numbers(0, 23)),
    days: fc.option(fc.subarray(["MO", "TU", "WE", "TH", "FR", "SA", "SU"], { minLength: 1 })),
    zone: fc.constantFrom("UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe"),
    from_s: fc.integer({ min: 1_700_000_000, max: 2_100_000_000 }),
  });
  fc.assert(
    fc.property(rules, ({ frequency, interval, count, hours, days, zone, from_s }) => {
      const rule = `FREQ=${frequency};INTERVAL=${interval};COUNT=${count}${hours === null ? "" : `;BYHOUR=${hours}`}${days === null ? "" : `;BYDAY=${days}`}`;
      let starts: readonly number[];
      try {
        starts = expandRule(parseRule(rule), zoneOf(zone), from_s);
      } catch (error) {
        // An interval of hours may never meet the given hours.
        assert.ok(error instanceof Reject && frequency === "HOURLY" && hours !== null, `${rule}: ${error}`);
        return;
      }
      assert.equal(starts.length, count);
      starts.forEach((start_s, at) => assert.ok(start_s >= (at === 0 ? from_s : (starts[at - 1] as number) + 1)));
    }),
    { numRuns: 60 },
  );
});
