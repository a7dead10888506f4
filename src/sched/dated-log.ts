// The log of a cycle as it comes about: each entry with its time, and places kept for what is written there later.

import type { CycleLog, LogRecord } from "./log-record.ts";

type Entry = CycleLog[number];

export type DatedLog = {
  add(entry: Entry): void;
  /** keeps a place: what is written by the function returned stands there, dated now */
  place(): (record: LogRecord) => void;
  /** entries in order; log_s: when each came about, in the seconds of the clock */
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
      log_s: entries.flatMap((entry, at) => (Array.isArray(entry) ? entry : [entry]).map(() => times[at] as number)),
    }),
  };
}
