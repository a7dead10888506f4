// Turns a store, whose methods return promises, into the port that the driver uses.

import { isStoreError, type Store, type StoreFault } from "#store/store.ts";
import { shared } from "../state/intern.ts";
import { stateOfRows } from "../state/load.ts";
import { dueRecords, jobOfHistory } from "../state/rows.ts";
import type { Job } from "../state/state.ts";
import type { Done, HistoryPort, LoadedState, StorePort } from "./ports.ts";

/**
 * Calls ask, which returns a promise, and calls done with the promise's outcome. The daemon calls ask at once, the simulator
 * after a delay. An error in done ends the program.
 */
export type Settle = <T>(ask: () => Promise<T>, done: Done<T>) => void;

export const atOnce: Settle = (ask, done) =>
  void ask().then(
    (value) => done({ ok: true, value }),
    (error: Error) => done({ ok: false, error }),
  );

/**
 * The port for a store. name: the present name of the server, which a loaded state gets. fenced: another server may take over, so that this one does nothing
 * before it knows that it leads (if the store can tell).
 */
export function storePort(store: Store, name: string, settle: Settle, fenced = false): StorePort {
  let is_closed = false;
  const { shared } = store;
  const load: StorePort["load"] = (done) =>
    settle(
      () => loadFromStore(store, name),
      (result) => {
        if (is_closed && !result.ok) return;
        if (!result.ok && !mayPass(result.error)) throw result.error;
        done(result);
      },
    );
  return {
    commit(rows, done) {
      settle(
        () => store.commit(rows),
        (result) => {
          if (result.ok) return done(null);
          if (!isStoreError(result.error)) throw result.error;
          done(result.error);
        },
      );
    },
    ...(fenced && shared !== undefined
      ? {
          lease: {
            holds: () => shared.isConfirmed(),
            confirm: (done) =>
              settle(
                () => shared.confirm(),
                (result) => done(result.ok ? null : result.error),
              ),
            order: (order, role, done) =>
              settle(
                () => shared.order(order, role),
                (result) => done(result.ok ? null : result.error),
              ),
          },
        }
      : {}),
    load,
    history: historyPort(store, settle),
    backup: (file, done) => settle(() => store.backup(file), done),
    ...(store.hurry === undefined ? {} : { hurry: () => store.hurry?.() }),
    close(done) {
      is_closed = true;
      settle(() => store.close(), done);
    },
  };
}

/** The faults of a store with which a server must not go on. */
const LASTING: ReadonlySet<StoreFault> = new Set(["corrupt", "newer", "lost", "deposed"]);

/**
 * Whether the store may work later without a new start of the server: for example because the database answers again, the
 * disk has room again, or the administrator has corrected a permission.
 */
const mayPass = (error: Error): boolean => isStoreError(error) && !LASTING.has(error.fault);

/** Loads the state from the store, and the accounting records that may be missing in the accounting file. */
export async function loadFromStore(store: Store, name: string): Promise<LoadedState> {
  const loaded = await store.load(shared);
  const history_count = await store.history.count();
  return { state: stateOfRows(name, loaded, history_count), due: dueRecords(loaded) };
}

function historyPort({ history }: Store, settle: Settle): HistoryPort {
  const read = async (ids: readonly string[], page_rows: number): Promise<ReadonlyMap<string, Job | null>> => {
    const found = new Map<string, Job | null>(ids.map((id) => [id, null]));
    if (ids.length === 1) {
      const [id = ""] = ids;
      const row = await history.get(id);
      return found.set(id, row && jobOfHistory(row));
    }
    for await (const rows of history.pages({ ids }, page_rows)) for (const row of rows) found.set(row.id, jobOfHistory(row));
    return found;
  };
  return {
    read: (ids, page_rows, done) => settle(() => read(ids, page_rows), done),
    pages(walk, page_rows) {
      const pages = history.pages(walk, page_rows);
      const next = async (): Promise<readonly Job[] | null> => {
        const page = await pages.next();
        return page.done === true ? null : page.value.map(jobOfHistory);
      };
      return { next: (done) => settle(next, done) };
    },
    purge: (before_s, done) => settle(async () => (await history.purge(before_s)).length, done),
    count: (done) => settle(() => history.count(), done),
  };
}
