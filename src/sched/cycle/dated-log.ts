// The log of a cycle while the cycle runs. Each entry has its time. Room can be reserved for entries that are written later.

import { present } from "#support/assert.ts";
import type { CycleLog, LogRecord } from "../shapes/log-record.ts";

type Entry = CycleLog[number];

export type DatedLog = {
  add(entry: Entry): void;
  /** Reserves room at the present end of the log. The returned function writes an entry there, with the time of the call. */
  place(): (record: LogRecord) => void;
  /** Returns the entries in order. log_s: the time of each entry, in seconds of the clock. */
  result(): { readonly log: CycleLog; readonly log_s: readonly number[] };
};

/** Creates an empty log. clock_s: returns the seconds since the cycle began. */
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
    // One loop without intermediate arrays: a cycle that starts 50,000 jobs has as many entries.
    result() {
      const log: Entry[] = [];
      const log_s: number[] = [];
      for (let at = 0; at < entries.length; at++) {
        const entry = present(entries[at], "entry");
        const time_s = present(times[at], "time");
        if (!Array.isArray(entry)) {
          log.push(entry);
          log_s.push(time_s);
          continue;
        }
        for (const record of entry) {
          log.push(record);
          log_s.push(time_s);
        }
      }
      return { log, log_s };
    },
  };
}
