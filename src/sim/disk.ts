// What outlives a killed server: its store, and the accounting file.
//
// D1. What commit() has taken is all that a restarted server finds.

import type { AccountingRecord } from "#server/engine/transaction.ts";
import { shared } from "#server/state/intern.ts";
import { stateOfRows } from "#server/state/rows.ts";
import type { ServerState } from "#server/state/state.ts";
import { type MemoryStore, memoryStore } from "#store/memory-store.ts";

export type Disk = {
  readonly store: MemoryStore;
  /** records in the order of writing. They are kept with the commit that made them: a kill between commit and effects must not lose any. */
  readonly accounting: AccountingRecord[];
};

export const emptyDisk = (): Disk => ({ store: memoryStore(), accounting: [] });

/** The state a server starts with. */
export async function loadDisk({ store }: Disk, name: string): Promise<ServerState> {
  return stateOfRows(name, await store.load(shared), await store.history.count());
}
