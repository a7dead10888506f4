// Accounting records are committed with their batch and then written into the accounting file. The file may lack some of
// them: because the server was killed in between, or because the database has written a batch although its commit failed with
// the fault `away`. Whenever the state is loaded from the store, the records that the file lacks are written.
//
// I1. A line that is in the file is not written again; whole lines are compared, including the time.

import type { DueRecord } from "../state/rows.ts";
import type { AccountingPort } from "./ports.ts";

/** The server searches only the end of the file for the records: as many bytes as the records can have, and this many more for records of later batches. */
const TAIL_BYTES = 256 * 1024;
const LINE_BYTES = 200;
const BYTES_A_CHAR = 3;

/** Writes the records that the accounting file lacks. Returns their number. */
export function recoverAccounting(due: readonly DueRecord[], accounting: AccountingPort): number {
  const missing = missingRecords(due, accounting);
  for (const { at_s, type, id, text } of missing) accounting.record(type, id, text, at_s);
  accounting.flush();
  return missing.length;
}

function missingRecords(due: readonly DueRecord[], accounting: AccountingPort): readonly DueRecord[] {
  const tail_bytes = due.reduce((sum, { text }) => sum + LINE_BYTES + text.length * BYTES_A_CHAR, TAIL_BYTES);
  /** how often each line occurs in the file, by the time of its record */
  const tails = new Map<number, Map<string, number>>();
  return due.filter(({ at_s, type, id, text }) => {
    const copies_of = tails.get(at_s) ?? counted(accounting.tail(at_s, tail_bytes));
    tails.set(at_s, copies_of);
    const line = accounting.line(type, id, text, at_s);
    const copies = copies_of.get(line) ?? 0;
    if (copies > 0) copies_of.set(line, copies - 1);
    return copies === 0;
  });
}

function counted(lines: readonly string[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const line of lines) counts.set(line, (counts.get(line) ?? 0) + 1);
  return counts;
}
