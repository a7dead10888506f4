// Finds, filters, orders and formats log and accounting lines about one job (docs/reference/commands.md 6). Pure.
//
// T1. Lines are ordered by second. Within a second, log lines come before accounting lines. Log lines are then ordered by
//     the fraction of the second and, if that is equal, by their order in the files.

import { nth } from "#support/assert.ts";

export type Source = "S" | "L" | "M" | "A";

export type LogRecord = {
  readonly source: Source;
  /** the time as in the log: MM/DD/YYYY HH:MM:SS[.uuuuuu] */
  readonly date: string;
  readonly event: number;
  readonly text: string;
};

/** Returns the records of a file whose object is the job. */
export function recordsOf(file: Buffer, source: Source, id: string): LogRecord[] {
  const wanted = Buffer.from(`;${id};`);
  const records: LogRecord[] = [];
  for (let at = file.indexOf(wanted); at >= 0; ) {
    const start = file.lastIndexOf(10, at) + 1;
    const end = file.indexOf(10, at);
    const line = file.toString("utf8", start, end < 0 ? file.length : end);
    const record = source === "A" ? accountingRecord(line, id) : logRecord(line, source, id);
    if (record !== null) records.push(record);
    at = end < 0 ? -1 : file.indexOf(wanted, end);
  }
  return records;
}

const LOG_LINE = /^(\d\d\/\d\d\/\d{4} \d\d:\d\d:\d\d(?:\.\d+)?);([0-9a-f]{4});[^;]*;[^;]*;([^;]*);(.*)$/;
const ACCOUNTING_LINE = /^(\d\d\/\d\d\/\d{4} \d\d:\d\d:\d\d);([^;]);([^;]*);(.*)$/;

function logRecord(line: string, source: Source, id: string): LogRecord | null {
  const match = LOG_LINE.exec(line);
  if (match === null || match[3] !== id) return null;
  return { source, date: nth(match, 1), event: Number.parseInt(nth(match, 2), 16), text: nth(match, 4) };
}

function accountingRecord(line: string, id: string): LogRecord | null {
  const match = ACCOUNTING_LINE.exec(line);
  if (match === null || match[3] !== id) return null;
  return { source: "A", date: nth(match, 1), event: 0, text: nth(match, 4) };
}

export const EVENT_NAMES: Readonly<Record<string, number>> = {
  error: 0x1,
  system: 0x2,
  admin: 0x4,
  job: 0x8,
  job_usage: 0x10,
  security: 0x20,
  sched: 0x40,
  debug: 0x80,
  debug2: 0x100,
  resv: 0x200,
  debug3: 0x400,
  debug4: 0x800,
  force: 0x8000,
};

/** Returns the records in the order of T1. */
export function inOrder(records: readonly LogRecord[]): LogRecord[] {
  const keyed = records.map((record, index) => {
    const [second, fraction = ""] = record.date.split(".");
    return { record, index, second: sortable(second as string), late: record.source === "A" ? 1 : 0, fraction };
  });
  keyed.sort((a, b) => compare(a.second, b.second) || a.late - b.late || compare(a.fraction, b.fraction) || a.index - b.index);
  return keyed.map(({ record }) => record);
}

const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

/** Moves the year to the front of a date such as `11/20/2026 09:26:28`, so that dates can be compared as text. */
const sortable = (date: string): string => `${date.slice(6, 10)}${date.slice(0, 5)}${date.slice(10)}`;

/** Drops repetitions: if a message occurs more than `most` times, only its last record stays. */
export function withoutExcess(records: readonly LogRecord[], most: number): LogRecord[] {
  const count = new Map<string, number>();
  for (const record of records) count.set(key(record), (count.get(key(record)) ?? 0) + 1);
  const left = new Map(count);
  return records.filter((record) => {
    const rest = (left.get(key(record)) ?? 0) - 1;
    left.set(key(record), rest);
    return rest === 0 || (count.get(key(record)) ?? 0) <= most;
  });
}

const key = (record: LogRecord): string => `${record.source};${record.text}`;

/**
 * Writes one record, with its text broken at `columns`. highres: whether dates of the output may have microseconds. For accounting records, the column of the
 * date is always wide enough for microseconds.
 */
export function layOut(record: LogRecord, columns: number, highres: boolean): string {
  // PBS leaves this space for microseconds in accounting records too.
  const head = `${record.date.padEnd(highres || record.source === "A" ? 27 : 20)} ${record.source.padEnd(5)}`;
  const room = Math.max(columns - head.length, 20);
  const lines: string[] = [];
  let rest = record.text;
  while (rest.length > room) {
    const blank = rest.lastIndexOf(" ", room);
    const cut = blank > 0 ? blank : room;
    lines.push(rest.slice(0, cut));
    rest = rest.slice(blank > 0 ? cut + 1 : cut);
  }
  lines.push(rest);
  return `${head}${lines.join(`\n${" ".repeat(head.length)}`)}\n`;
}
