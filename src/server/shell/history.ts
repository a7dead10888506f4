// What the core asks for in steps, so that others are answered between them: records of the history by id, walks through it page by page, long listings
// slice by slice, purges.
//
// H1. A step of a request is done in its user's turn (turns.ts); the next one begins when its reader has taken the parts before.

import type { Store } from "#store/store.ts";
import type { Core } from "../core/core.ts";
import type { HistoryWalk } from "../engine/batch.ts";
import { jobOfHistory } from "../state/rows.ts";
import type { Job } from "../state/state.ts";
import { createShares } from "./listings.ts";

type Surroundings = {
  readonly store: Store;
  /** does something in the core, as it is then */
  core(work: (core: Core) => void): void;
  /** Does a piece of a request's work in its turn. Resolves with whether the request is still open then. */
  turn(token: number, work: () => void): Promise<boolean>;
  /** resolves when the reader of a page has taken it in */
  taken(token: number): Promise<void>;
  /** undefined: the request is not open any more */
  uidOf(token: number): number | undefined;
  /** rows read at once */
  rows_max(): number;
};

/** Lists of ids of one user that are read from the history at a time. */
const READS_PER_USER = 2;

export function historyWork({ store, core, turn, taken, uidOf, rows_max }: Surroundings) {
  const reads = createShares<number>(() => READS_PER_USER);

  const recordsOf = async (ids: readonly string[]): Promise<Map<string, Job | null>> => {
    const found = new Map<string, Job | null>(ids.map((id) => [id, null]));
    for await (const rows of store.history.pages({ ids }, rows_max())) for (const row of rows) found.set(row.id, jobOfHistory(row));
    return found;
  };

  return {
    async read(token: number, ids: readonly string[]): Promise<void> {
      const [id = ""] = ids;
      if (ids.length === 1) {
        const row = await store.history.get(id);
        await turn(token, () => core((running) => running.historyRead(token, new Map([[id, row && jobOfHistory(row)]]), Date.now())));
        return;
      }
      const uid = uidOf(token);
      if (uid === undefined) return;
      await new Promise<void>((resolve) => reads.take(uid, token, resolve));
      try {
        if (uidOf(token) === undefined) return;
        const found = await recordsOf(ids);
        await turn(token, () => core((running) => running.historyRead(token, found, Date.now())));
      } finally {
        reads.over(uid);
      }
    },

    async page(token: number, walk: HistoryWalk): Promise<void> {
      for await (const rows of store.history.pages(walk, rows_max())) {
        const give = (): void => core((running) => running.historyPage(token, rows.map(jobOfHistory), false, Date.now()));
        if (!(await turn(token, give))) return;
        await taken(token);
      }
      await turn(token, () => core((running) => running.historyPage(token, [], true, Date.now())));
    },

    /** A listing of live jobs. */
    async slices(token: number): Promise<void> {
      for (let more = true; more; ) {
        more = false;
        const give = (): void =>
          core((running) => {
            more = running.slice(token, Date.now());
          });
        if (!(await turn(token, give))) return;
        await taken(token);
      }
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
