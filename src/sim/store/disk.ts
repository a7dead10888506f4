// What is left when the server is killed: its store and the accounting file.
//
// D1. A restarted server finds exactly what commit() has accepted.
// D2. When a batch of changes has been written, the accounting file contains its records, or the next load of the state writes
//     them, as in the daemon (src/server/driver/accounting-recovery.ts).

import type { AccountingPort } from "#server/driver/ports.ts";
import type { DueRecord } from "#server/state/rows.ts";
import { type MemoryStore, memoryStore } from "#store/memory-store.ts";

export type Disk = {
  readonly store: MemoryStore;
  /** the accounting records in the order in which they were written */
  readonly accounting: DueRecord[];
};

export const emptyDisk = (): Disk => ({ store: memoryStore(), accounting: [] });

/** Returns the port to the accounting file of a disk. */
export function accountingOf({ accounting }: Disk): AccountingPort {
  const line = (type: string, id: string, text: string, at_s: number): string => `${at_s};${type};${id};${text}`;
  return {
    record: (type, id, text, at_s = 0) => void accounting.push({ type, id, text, at_s }),
    flush: () => undefined,
    lost: 0,
    line,
    tail(_at_s, bytes) {
      const lines: string[] = [];
      let left = bytes;
      for (let at = accounting.length - 1; left > 0; at--) {
        const record = accounting[at];
        if (record === undefined) break;
        const found = line(record.type, record.id, record.text, record.at_s);
        left -= found.length + 1;
        lines.push(found);
      }
      return lines.reverse();
    },
  };
}
