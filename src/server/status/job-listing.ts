// Lists all jobs, or those of a queue, in order of queue rank. The finished jobs are read from the history page by page and
// merged with the live jobs. If subjobs are requested, they follow their array.
//
// L1. A job is listed once. A job that ends during the listing may be found as live and in the history: it is listed where
//     it is found first.
// L2. A long listing is made in slices (SLICE_JOBS), and other requests are served in between. Jobs that end during the
//     listing are left out, unless finished jobs are requested.
// L3. The history gives the records of subjobs in order of index, after the record of their array if that is in the history.

import { nth } from "#support/assert.ts";
import type { Answer, HistoryStream, Slices, Transaction } from "../engine/transaction.ts";
import type { Job } from "../state/state.ts";
import { type Expansion, expansionOf, hasRecords, type Shown, shownArray, shownAttrs } from "./subjob.ts";

export type Listing = {
  readonly queue?: string;
  /** whether arrays are listed with their subjobs */
  readonly expand: boolean;
  /** whether finished jobs are also listed */
  readonly history: boolean;
  readonly give: (tx: Transaction, shown: readonly Shown[]) => void;
  /** the value of the reply */
  readonly value?: () => unknown;
};

/** Number of jobs and subjobs in a slice. */
export const SLICE_JOBS = 2000;

/** live: the live jobs to list, in order of queue rank. */
export function listJobs(tx: Transaction, live: readonly Job[], listing: Listing): Answer {
  const merge = mergeOf(live, listing);
  const { queue, value } = listing;
  const reply = value === undefined ? {} : { value };
  const seqs = listing.history || !listing.expand || tx.state.history_count === 0 ? [] : arraysWithRecords(live);
  const slices: Slices = {
    slice(part) {
      listing.give(part, merge.some(part, SLICE_JOBS));
      return !merge.done;
    },
    ...reply,
  };
  if (!listing.history && seqs.length === 0) {
    if (slices.slice(tx)) return { stream: slices };
    return value === undefined ? {} : { value: value() };
  }
  const stream: HistoryStream = {
    subjobs: listing.expand,
    ...(queue === undefined ? {} : { queue }),
    ...(listing.history ? {} : { seqs }),
    page(page, records) {
      listing.give(
        page,
        records.flatMap((record) => merge.record(page, record)),
      );
    },
    next: () => slices,
  };
  return { stream };
}

function arraysWithRecords(live: readonly Job[]): number[] {
  return live.flatMap((job) => {
    const array = shownArray(job, true);
    return array !== null && hasRecords(array) ? [job.seq] : [];
  });
}

type Merge = {
  record(tx: Transaction, record: Job): Shown[];
  /** returns about `count` of the jobs that have not been shown yet */
  some(tx: Transaction, count: number): Shown[];
  readonly done: boolean;
};

function mergeOf(live: readonly Job[], { expand, history }: Listing): Merge {
  // Without the history no job can be found twice.
  const live_ids = new Set(history || expand ? live.map((job) => job.id) : []);
  const given = new Set<string>();
  let next = 0;
  /** the array whose subjobs are shown next */
  let open: Expansion | null = null;

  const close = (): Shown[] => {
    const rest = open?.rest() ?? [];
    open = null;
    return rest;
  };

  const add = (tx: Transaction, job: Job, is_live: boolean): Shown[] => {
    if (live_ids.has(job.id)) {
      if (given.has(job.id)) return [];
      given.add(job.id);
    }
    const before = close();
    const array = expand ? shownArray(job, is_live) : null;
    open = array === null ? null : expansionOf(tx.state, array);
    before.push({ id: job.id, attrs: shownAttrs(job) });
    return before;
  };

  const liveUntil = (tx: Transaction, isThere: (job: Job) => boolean): Shown[] => {
    const shown: Shown[] = [];
    for (; next < live.length && !isThere(nth(live, next)); next++) for (const each of add(tx, nth(live, next), true)) shown.push(each);
    return shown;
  };

  return {
    record(tx, record) {
      const array_id = record.attrs["array_id"];
      if (typeof array_id !== "string") {
        const before = liveUntil(tx, (job) => job.attrs.queue_rank >= record.attrs.queue_rank);
        return [...before, ...add(tx, record, false)];
      }
      let before: Shown[] = [];
      if (live_ids.has(array_id) && !given.has(array_id)) {
        before = liveUntil(tx, (job) => job.id === array_id);
        before = before.concat(add(tx, nth(live, next++), true));
      }
      return open?.array.job.id === array_id ? [...before, ...open.record(record)] : before;
    },
    some(tx, count) {
      const shown: Shown[] = [];
      for (; next < live.length && shown.length < count; next++) {
        const job = nth(live, next);
        // The job has ended during the listing, and finished jobs are not requested.
        if (!history && !tx.state.jobs.has(job.id)) continue;
        for (const each of add(tx, job, true)) shown.push(each);
      }
      if (next === live.length) for (const each of close()) shown.push(each);
      return shown;
    },
    get done() {
      return next === live.length && open === null;
    },
  };
}
