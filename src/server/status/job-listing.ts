// All jobs, or those of a queue: live ones by queue rank, between them the history page by page, and behind each array its subjobs if they are requested.
//
// L1. A job comes once. A job that ends meanwhile is live and in the history: the first occurrence counts.
// L2. A long listing is given in slices (SLICE_JOBS), with other requests served in between. Jobs that end meanwhile are left out, unless finished jobs are
//     requested.
// L3. Records of subjobs follow one another in order of index, behind the record of their array or among the live ones.

import { nth } from "#support/assert.ts";
import type { Answer, HistoryStream, Slices, Transaction } from "../engine/transaction.ts";
import type { Job } from "../state/state.ts";
import { type Expansion, expansionOf, hasRecords, type Shown, shownArray, shownAttrs } from "./subjob.ts";

export type Listing = {
  readonly queue?: string;
  /** arrays with their subjobs */
  readonly expand: boolean;
  /** finished jobs, too */
  readonly history: boolean;
  readonly give: (tx: Transaction, shown: readonly Shown[]) => void;
  /** the value of the reply */
  readonly value?: () => unknown;
};

/** Jobs and subjobs that are shown at a time. */
export const SLICE_JOBS = 2000;

/** live: by queue rank. */
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
  /** the number of jobs that have not been shown yet, approximately */
  some(tx: Transaction, count: number): Shown[];
  readonly done: boolean;
};

function mergeOf(live: readonly Job[], { expand, history }: Listing): Merge {
  // Without the history no job can come a second time.
  const live_ids = new Set(history || expand ? live.map((job) => job.id) : []);
  const given = new Set<string>();
  let next = 0;
  /** the array whose subjobs come next */
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
        // The job has ended since the listing began, and finished jobs are not requested.
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
