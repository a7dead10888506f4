// The log of a cycle while it is made: each entry with its time, and places reserved for entries that are written later.

import { present } from "#support/assert.ts";
import type { CycleLog, LogRecord } from "../shapes/log-record.ts";

type Entry = CycleLog[number];

export type DatedLog = {
  add(entry: Entry): void;
  /** reserves a place; the returned function writes there, dated with the present time */
  place(): (record: LogRecord) => void;
  /** entries in order; log_s: the time of each, in the seconds of the clock */
  result(): { readonly log: CycleLog; readonly log_s: readonly number[] };
};

/** clock_s: seconds since the cycle began. */
export function createDatedLog(clock_s: () => number): DatedLog {
  const entries: (Entry | LogRecord[])[] = [];
  const times: number[] = [];
  const put = (entry: Entry | LogRecord[]): void => {
    entries.push(entry);
    times.push(clock_s());
  };
  return {
    add: put,
    place() {
      const here: LogRecord[] = [];
      put(here);
      return (record) => void here.push(record);
    },
    result: () => ({
      log: entries.flat(),
      log_s: entries.flatMap((entry, at) => (Array.isArray(entry) ? entry : [entry]).map(() => present(times[at], "time"))),
    }),
  };
}
