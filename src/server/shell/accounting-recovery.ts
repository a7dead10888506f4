// Accounting records are committed with their batch and then written into the accounting file. If the server is killed in
// between, records may be missing in the file. The next start of the server writes them.
//
// I1. A line that is in the file is not written again; whole lines are compared, including the time.

import { closeSync, fstatSync, openSync, readSync } from "node:fs";
import { join } from "node:path";
import type { AccountingLog } from "#support/accounting-log.ts";
import { localStamper } from "#support/local-time.ts";
import type { DueRecord } from "../state/rows.ts";

/** Only the end of the file is searched for the records: as many bytes as the records can have, and this many more for records of later batches. */
const TAIL_BYTES = 256 * 1024;
const LINE_BYTES = 200;
const BYTES_A_CHAR = 3;

/** Writes the missing records and returns their number. daily: there is a file for each day, and place is their directory; else place is the file. */
export function recoverAccounting(due: readonly DueRecord[], accounting: AccountingLog, place: string, daily: boolean): number {
  const stamper = localStamper();
  const files = new Map<string, Map<string, number>>();
  const tail_bytes = due.reduce((sum, { text }) => sum + LINE_BYTES + text.length * BYTES_A_CHAR, TAIL_BYTES);
  let written = 0;
  for (const { at_s, type, id, text } of due) {
    const path = daily ? join(place, stamper.day(at_s * 1000)) : place;
    const lines = files.get(path) ?? lastLines(path, tail_bytes);
    files.set(path, lines);
    const line = `${stamper.stamp(at_s * 1000)};${type};${id};${text}`;
    const copies = lines.get(line) ?? 0;
    if (copies > 0) {
      lines.set(line, copies - 1);
      continue;
    }
    accounting.record(type, id, text, at_s);
    written++;
  }
  accounting.flush();
  return written;
}

/** The lines at the end of a file, and how often each occurs; none if the file cannot be read. An incomplete last line does not count. */
function lastLines(path: string, tail_bytes: number): Map<string, number> {
  const lines = new Map<string, number>();
  let fd: number;
  try {
    fd = openSync(path, "r");
  } catch {
    return lines;
  }
  try {
    const { size } = fstatSync(fd);
    const buffer = Buffer.alloc(Math.min(size, tail_bytes));
    readSync(fd, buffer, 0, buffer.length, size - buffer.length);
    const texts = buffer.toString("utf8").split("\n");
    texts.pop();
    for (const line of texts) lines.set(line, (lines.get(line) ?? 0) + 1);
  } finally {
    closeSync(fd);
  }
  return lines;
}
