// What the core asks of the history, read from the store in the background: records by id, walks page by page, purges.

import type { Store } from "#store/store.ts";
import type { HistoryWalk } from "../batch.ts";
import type { Core } from "../core.ts";
import { jobOfHistory } from "../rows.ts";
import type { Job } from "../state.ts";

type Surroundings = {
  readonly store: Store;
  /** does something in the core, as it is then */
  core(work: (core: Core) => void): void;
  /** resolves when the reader of a page has taken it in */
  taken(token: number): Promise<void>;
  isOpen(token: number): boolean;
};

const PAGE_ROWS = 500;

export function historyWork({ store, core, taken, isOpen }: Surroundings) {
  return {
    async read(token: number, ids: readonly string[]): Promise<void> {
      const found = new Map<string, Job | null>(ids.map((id) => [id, null]));
      if (ids.length === 1) {
        const row = await store.history.get(ids[0] as string);
        if (row !== null) found.set(row.id, jobOfHistory(row));
      } else {
        for await (const rows of store.history.pages({ ids })) for (const row of rows) found.set(row.id, jobOfHistory(row));
      }
      core((running) => running.historyRead(token, found, Date.now()));
    },

    async page(token: number, walk: HistoryWalk): Promise<void> {
      for await (const rows of store.history.pages(walk, PAGE_ROWS)) {
        if (!isOpen(token)) break;
        core((running) => running.historyPage(token, rows.map(jobOfHistory), false, Date.now()));
        await taken(token);
      }
      core((running) => running.historyPage(token, [], true, Date.now()));
    },

    async purge(before_s: number): Promise<void> {
      for (;;) {
        const gone = await store.history.purge(before_s);
        core((running) => running.historyPurged(gone.length));
        if (gone.length === 0) return;
      }
    },

    /** Tells the core how many records there are. */
    async count(): Promise<void> {
      const records = await store.history.count();
      core((running) => running.historyCounted(records));
    },
  };
}
