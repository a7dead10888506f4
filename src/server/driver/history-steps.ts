// Long work that the core requests. It is done in steps, so that other requests are answered in between: reading records of
// the history by id, reading the history page by page, long listings in slices, and purges of the history.
//
// H1. A step of a request is done when the turn of its user comes (turns.ts). The next step begins when the client has
//     received the parts of the answer so far.

import type { Core } from "../core/core.ts";
import type { HistoryWalk } from "../engine/batch.ts";
import { createShares } from "./connections.ts";
import type { HistoryPort, Result } from "./ports.ts";

type Surroundings = {
  readonly history: HistoryPort;
  /** does something in the core, at the time of the call */
  core(work: (core: Core, now_ms: number) => void): void;
  /** Does work for a request when its turn comes. is_open: whether the request still waits for an answer. */
  turn(token: number, work: (is_open: boolean) => void): void;
  /** calls `then` when the client of the request has received the parts of the answer so far */
  taken(token: number, then: () => void): void;
  /** the uid of the request's user; undefined: the request is not open any more */
  uidOf(token: number): number | undefined;
  /** number of rows that are read at once */
  rows_max(): number;
  /** reports an error. token: the request that fails; 0: no client waits */
  failed(token: number, error: Error): void;
};

export type HistorySteps = {
  read(token: number, ids: readonly string[]): void;
  page(token: number, walk: HistoryWalk): void;
  /** makes a long answer slice by slice (core.slice), for example a listing of live jobs */
  slices(token: number): void;
  purge(before_s: number): void;
  /** reports to the core how many records the history has */
  count(): void;
};

/** How many lists of ids are read from the history at the same time for one user. A list is the ids of one request. */
const READS_PER_USER = 2;

export function historySteps({ history, core, turn, taken, uidOf, rows_max, failed }: Surroundings): HistorySteps {
  const reads = createShares<number>(() => READS_PER_USER);

  /** Reads records by id. over: called when the core has the answer, or when the core will get no answer. */
  const readNow = (token: number, ids: readonly string[], over: () => void): void => {
    const tell = (result: Result<Parameters<Core["historyRead"]>[1]>): void => {
      if (!result.ok) {
        failed(token, result.error);
        return over();
      }
      turn(token, (is_open) => {
        if (is_open) core((running, now_ms) => running.historyRead(token, result.value, now_ms));
        over();
      });
    };
    if (uidOf(token) === undefined) over();
    else history.read(ids, rows_max(), tell);
  };

  const forTurn = <T>(token: number, result: Result<T>, give: (value: T) => void): void => {
    if (!result.ok) return failed(token, result.error);
    turn(token, (is_open) => {
      if (is_open) give(result.value);
    });
  };

  return {
    read(token, ids) {
      const uid = uidOf(token);
      if (uid === undefined) return;
      if (ids.length === 1) return readNow(token, ids, () => undefined);
      reads.take(uid, token, () => readNow(token, ids, () => reads.over(uid)));
    },

    page(token, walk) {
      const pages = history.pages(walk, rows_max());
      const next = (): void =>
        pages.next((result) =>
          forTurn(token, result, (jobs) => {
            core((running, now_ms) => running.historyPage(token, jobs ?? [], jobs === null, now_ms));
            if (jobs !== null) taken(token, next);
          }),
        );
      next();
    },

    slices(token) {
      const next = (): void =>
        turn(token, (is_open) => {
          let more = false;
          if (is_open)
            core((running, now_ms) => {
              more = running.slice(token, now_ms);
            });
          if (more) taken(token, next);
        });
      next();
    },

    purge(before_s) {
      const next = (): void =>
        history.purge(before_s, (result) => {
          if (!result.ok) return failed(0, result.error);
          core((running) => running.historyPurged(result.value));
          if (result.value > 0) next();
        });
      next();
    },

    count() {
      history.count((result) => {
        if (result.ok) core((running) => running.historyCounted(result.value));
        else failed(0, result.error);
      });
    },
  };
}
