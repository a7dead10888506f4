// All jobs, or those of a queue: live ones by queue rank, between them the history page by page, and behind each array its subjobs where they are asked for.
//
// L1. A job comes once. One that ends meanwhile is live and in the history: the first place counts.
// L2. Records of subjobs follow one another in order of index, behind the record of their array or in the midst of the live ones.

import type { Job } from "../state.ts";
import type { Answer, HistoryStream, Transaction } from "../transaction.ts";
import { type Expansion, expansionOf, hasRecords, type Shown, shownArray, shownAttrs } from "./subjob-status.ts";

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

/** live: by queue rank. */
export function listJobs(tx: Transaction, live: readonly Job[], listing: Listing): Answer {
  const merge = mergeOf(live, listing);
  const seqs = listing.history || !listing.expand || tx.state.history_count === 0 ? [] : arraysWithRecords(live);
  if (!listing.history && seqs.length === 0) {
    listing.give(tx, merge.last(tx));
    const value = listing.value?.();
    return value === undefined ? {} : { value };
  }
  const { queue, value } = listing;
  const stream: HistoryStream = {
    subjobs: listing.expand,
    ...(queue === undefined ? {} : { queue }),
    ...(listing.history ? {} : { seqs }),
    page(page, records, last) {
      listing.give(page, [...records.flatMap((record) => merge.record(page, record)), ...(last ? merge.last(page) : [])]);
    },
    ...(value === undefined ? {} : { value }),
  };
  return { stream };
}

function arraysWithRecords(live: readonly Job[]): number[] {
  return live.flatMap((job) => {
    const array = shownArray(job, true);
    return array !== null && hasRecords(array) ? [job.seq] : [];
  });
}

type Merge = { record(tx: Transaction, record: Job): Shown[]; last(tx: Transaction): Shown[] };

function mergeOf(live: readonly Job[], { expand }: Listing): Merge {
  const live_ids = new Set(live.map((job) => job.id));
  const given = new Set<string>();
  let next = 0;
  /** the array whose subjobs come now */
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
    for (; next < live.length && !isThere(live[next] as Job); next++) for (const each of add(tx, live[next] as Job, true)) shown.push(each);
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
        before = before.concat(add(tx, live[next++] as Job, true));
      }
      return open?.array.job.id === array_id ? [...before, ...open.record(record)] : before;
    },
    last: (tx) => [...liveUntil(tx, () => false), ...close()],
  };
}
