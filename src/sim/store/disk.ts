// What is left when the server is killed: its store and the accounting file.
//
// D1. A restarted server finds exactly what commit() has accepted.
// D2. When a batch of changes has been written, the accounting file contains its records. Records that could not be written
//     because the server was killed are written at its next start, as the daemon does
//     (src/server/shell/accounting-recovery.ts).

import { loadFromStore } from "#server/driver/store-port.ts";
import { type DueRecord, dueRecords } from "#server/state/rows.ts";
import type { ServerState } from "#server/state/state.ts";
import { type MemoryStore, memoryStore } from "#store/memory-store.ts";

export type Disk = {
  readonly store: MemoryStore;
  /** the accounting records in the order in which they were written */
  readonly accounting: DueRecord[];
};

export const emptyDisk = (): Disk => ({ store: memoryStore(), accounting: [] });

/** Returns the state with which a server starts. */
export async function loadDisk({ store, accounting }: Disk, name: string): Promise<ServerState> {
  return loadFromStore(store, name, (loaded) => recover(dueRecords(loaded), accounting));
}

/** Writes the due records that are missing at the end of the accounting file. */
function recover(due: readonly DueRecord[], written: DueRecord[]): void {
  const lines = new Map<string, number>();
  for (const record of written.slice(-TAIL_RECORDS - due.length)) lines.set(lineOf(record), (lines.get(lineOf(record)) ?? 0) + 1);
  for (const record of due) {
    const copies = lines.get(lineOf(record)) ?? 0;
    if (copies > 0) lines.set(lineOf(record), copies - 1);
    else written.push(record);
  }
}

/** Largest number of records that may follow those of the last commit: they belong to batches that change nothing in the store. */
const TAIL_RECORDS = 100;

const lineOf = ({ at_s, type, id, text }: DueRecord): string => `${at_s};${type};${id};${text}`;
