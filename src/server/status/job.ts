// Status of jobs (docs/reference/commands.md 2). Live jobs are in memory, finished and moved jobs in the history in the store.
//
// I1. Items have the order of the requested ids; without ids, the order of queue rank.
// I2. A finished job gives an error item (15139), unless finished jobs are requested. If the server keeps no history, such a
//     request is refused (15140).
// I3. While query_other_jobs is False, users see only their own jobs; the id of another user's job counts as unknown.

import { type IndexRange, indexAt, indexCount } from "#model/array-indices.ts";
import { jobIdText, parseJobId, subjobId, withServer } from "#model/job-id.ts";
import { limitOf } from "#model/limits/server-limits.ts";
import { PBSE, reject, rejectNaming } from "#model/pbse.ts";
import { JOB_ATTRIBUTES } from "#model/tables/job-attributes.ts";
import { briefItems } from "#protocol/brief-items.ts";
import type { StatusItem, StatusRequest, WireAttrs } from "#protocol/messages.ts";
import { mustGet, nth } from "#support/assert.ts";
import { type Columns, columnsOf, encoder } from "../attributes/encode.ts";
import { isOwner } from "../attributes/permission.ts";
import type { Answer, Stream, Transaction } from "../engine/transaction.ts";
import { shownEligible } from "../jobs/eligible-time.ts";
import type { Attrs, Job, ServerState } from "../state/state.ts";
import { namedIndices } from "../state/subjobs.ts";
import { localQueue } from "../submit/admission.ts";
import { listJobs, SLICE_JOBS } from "./job-listing.ts";
import { type Expansion, expansionOf, hasRecords, type Shown, type ShownArray, shownArray, shownAttrs } from "./subjob.ts";

/** The largest number of items in one frame of a reply. */
const PART_ITEMS_MAX = 500;

export function jobStatus(tx: Transaction, request: StatusRequest): Answer {
  const { state, who } = tx;
  checkHistory(tx, request.history);
  const jobs_max = limitOf(state, "max_status_jobs");
  if (request.ids.length > jobs_max) throw rejectNaming(PBSE.IVALREQ, `more than ${jobs_max} jobs in one request (max_status_jobs)`);
  const columns = columnsOf(state, who, JOB_ATTRIBUTES, request.attrs);
  if (request.ids.length > 0) return namedJobs(tx, request, columns);
  const queue = request.queue === undefined || request.queue === "" ? undefined : localQueue(tx, request.queue).name;
  const live = request.history === "only" ? [] : liveJobs(state, queue);
  return listJobs(tx, live, {
    give: (page, shown) => giveJobs(page, columns, shown, request.brief === true),
    expand: request.subjobs === true,
    history: request.history !== undefined,
    ...(queue === undefined ? {} : { queue }),
  });
}

/** Refuses with 15140 a request for finished jobs while the server keeps no history. */
export function checkHistory(tx: Transaction, history: "with" | "only" | undefined): void {
  if (history !== undefined && tx.state.server["job_history_enable"] !== true) throw reject(PBSE.JOBHISTNOTSET);
}

/** The live jobs and arrays of one queue or of all queues, in order of queue rank. Subjobs are not in the list. */
export function liveJobs(state: ServerState, queue?: string): Job[] {
  const all =
    queue === undefined ? [...state.jobs.values()] : [...(state.queues.get(queue)?.jobs ?? [])].map((id) => mustGet(state.jobs, id));
  const jobs = all.filter((job) => job.attrs["array_id"] === undefined);
  const sorted = jobs.every((job, at) => at === 0 || nth(jobs, at - 1).attrs.queue_rank <= job.attrs.queue_rank);
  return sorted ? jobs : jobs.sort((a, b) => a.attrs.queue_rank - b.attrs.queue_rank);
}

/** Whether the caller may see a job (query_other_jobs). */
export function mayQuery(tx: Transaction, { attrs }: { readonly attrs: Attrs }): boolean {
  return tx.who.level !== "user" || tx.state.server["query_other_jobs"] !== false || isOwner(tx, String(attrs["Job_Owner"]));
}

/** Sends items of jobs. Waiting subjobs that share one record of attributes are encoded once. */
function giveJobs(tx: Transaction, columns: Columns, shown: readonly Shown[], brief: boolean): void {
  const encodeNext = encoder(columns);
  const commentNow = tx.commentNow();
  let last: Attrs | null = null;
  let wire: WireAttrs = {};
  for (let at = 0; at < shown.length; at += PART_ITEMS_MAX) {
    const items: StatusItem[] = [];
    for (const { id, attrs } of shown.slice(at, at + PART_ITEMS_MAX)) {
      if (last !== attrs) {
        if (!mayQuery(tx, { attrs })) continue;
        last = attrs;
        wire = encodeNext(commentNow(attrs), shownEligible(tx.state, attrs, tx.now_s));
      }
      items.push({ id, attrs: wire });
    }
    if (items.length > 0) tx.part(brief ? briefItems(items) : items);
  }
}

// --- jobs by id

/** What an id names: an error, jobs, or subjobs of an array. walk: the records of these subjobs must be read from the history. */
type Asked =
  | { readonly kind: "refused"; readonly code: number }
  | { readonly kind: "jobs"; readonly shown: readonly Shown[] }
  | { readonly kind: "walk"; readonly shown: readonly Shown[]; readonly expansion: Expansion };
/** The job or array that an id names at the time of the request. */
type Named = { readonly id: string } & (
  | { readonly kind: "refused"; readonly code: number }
  | { readonly kind: "hidden" }
  | { readonly kind: "found"; readonly job: Job; readonly live: boolean; readonly reads: boolean }
);

/** If ranges name at most this number of subjobs, their records are read by id; otherwise page by page. */
const RECORDS_BY_ID_MAX = 500;

function namedJobs(tx: Transaction, request: StatusRequest, columns: Columns): Answer {
  const ids = request.ids.map((text) => fullJobId(tx.state, text) ?? text);
  const read = new Set<string>();
  if (tx.state.history_count > 0) {
    const budget = { records: RECORDS_BY_ID_MAX };
    tx.historyOf(ids.flatMap((id) => recordsNeeded(tx, id, budget, read)));
  }
  const named = ids.map((id) => namedJob(tx, request, id, read.has(id)));
  const giving: Giving = { columns, named, subjobs: request.subjobs === true, next: 0, walk: null };
  if (giveSome(tx, giving)) return { stream: goOn(giving) };
  return {};
}

/** A reply to a list of ids that is being sent. next: the index of the next id. walk: the items that are still missing for the previous id. */
type Giving = {
  readonly columns: Columns;
  readonly named: readonly Named[];
  readonly subjobs: boolean;
  next: number;
  walk: Expansion | null;
};

/** Sends about one slice of items. Stops at an id whose records must be read from the history. Returns whether more items follow. */
function giveSome(tx: Transaction, giving: Giving): boolean {
  for (let left = SLICE_JOBS; giving.next < giving.named.length && giving.walk === null && left > 0; ) {
    const named = nth(giving.named, giving.next++);
    const part = askedFor(tx, named, giving.subjobs);
    if (part.kind === "refused") tx.part([errorItem(named.id, part.code)]);
    else giveJobs(tx, giving.columns, part.shown, false);
    if (part.kind === "walk") giving.walk = part.expansion;
    left -= 1 + (part.kind === "refused" ? 0 : part.shown.length);
  }
  return giving.walk !== null || giving.next < giving.named.length;
}

/** The stream of all further items: slices of items that are available, and walks through records of arrays in the history. */
function goOn(giving: Giving): Stream {
  const { walk } = giving;
  if (walk === null)
    return {
      slice: (tx) => giveSome(tx, giving) && giving.walk === null,
      next: () => (giving.walk === null ? null : goOn(giving)),
    };
  return {
    seqs: [walk.array.job.seq],
    subjobs: true,
    page(page, records, last) {
      for (const record of records) giveJobs(page, giving.columns, walk.record(record), false);
      if (!last) return;
      giveJobs(page, giving.columns, walk.rest(), false);
      giving.walk = null;
    },
    next: () => (giving.next < giving.named.length ? goOn(giving) : null),
  };
}

/**
 * The ids of records that must be read from the history for an id of a request. Records of subjobs in ranges are included
 * until the budget is used up. read: gets the ids of subjobs and ranges whose records are included.
 */
function recordsNeeded(tx: Transaction, id: string, budget: { records: number }, read: Set<string>): string[] {
  const parsed = parseJobId(id);
  if (parsed === null || (parsed.kind !== "subjob" && parsed.kind !== "range")) return tx.state.jobs.has(id) ? [] : [id];
  const array_id = jobIdText({ ...parsed, kind: "array" });
  const needed = tx.state.jobs.has(array_id) ? [] : [array_id];
  // Records of single subjobs are always read by id: a request has at most max_status_jobs of them, and a walk through all records of an array for each would
  // take much longer.
  const ranges = parsed.kind === "subjob" ? [oneIndex(parsed.index)] : parsed.ranges;
  const count = parsed.kind === "subjob" ? 0 : ranges.reduce((sum, range) => sum + indexCount(range), 0);
  if (count > budget.records) return needed;
  budget.records -= count;
  read.add(id);
  for (const range of ranges) for (let at = 0; at < indexCount(range); at++) needed.push(subjobId(array_id, indexAt(range, at)));
  return needed;
}

/** Finds what an id names. reads: whether the records of the subjobs that it names have been read. */
function namedJob(tx: Transaction, { history }: StatusRequest, id: string, reads: boolean): Named {
  const parsed = parseJobId(id);
  const array_id = parsed?.kind === "subjob" || parsed?.kind === "range" ? jobIdText({ ...parsed, kind: "array" }) : id;
  const live = tx.state.jobs.get(array_id);
  const job = live ?? finishedJob(tx, array_id);
  if (job === undefined) return { id, kind: "refused", code: PBSE.UNKJOBID };
  if (!mayQuery(tx, job)) return { id, kind: "refused", code: PBSE.UNKJOBID };
  if (live === undefined && history === undefined) return { id, kind: "refused", code: PBSE.HISTJOBID };
  if (live !== undefined && history === "only") return { id, kind: "hidden" };
  return { id, kind: "found", job, live: live !== undefined, reads };
}

function askedFor(tx: Transaction, named: Named, subjobs: boolean): Asked {
  if (named.kind === "refused") return named;
  if (named.kind === "hidden") return { kind: "jobs", shown: [] };
  const { id, job, live } = named;
  const array = job.id === id && !subjobs ? null : shownArray(job, live);
  const whole = { id: job.id, attrs: shownAttrs(job) };
  if (array === null) return job.id === id ? { kind: "jobs", shown: [whole] } : { kind: "refused", code: PBSE.UNKJOBID };
  return subjobsAsked(tx, array, named, job.id === id ? [whole] : []);
}

/** What an id names if it names an array with its subjobs, a subjob, or a range. */
function subjobsAsked(
  tx: Transaction,
  array: ShownArray,
  { id, reads }: Extract<Named, { kind: "found" }>,
  whole: readonly Shown[],
): Asked {
  const parsed = parseJobId(id);
  const ranges = parsed?.kind === "subjob" ? [oneIndex(parsed.index)] : parsed?.kind === "range" ? parsed.ranges : null;
  const indices = ranges === null ? null : namedIndices(array.subjobs, ranges);
  if (indices?.length === 0) return { kind: "refused", code: PBSE.UNKJOBID };
  const expansion = indices === null ? expansionOf(tx.state, array) : expansionOf(tx.state, array, indices);
  if (!hasRecords(array) || tx.state.history_count === 0) return { kind: "jobs", shown: [...whole, ...expansion.rest()] };
  if (indices === null || !reads) return { kind: "walk", shown: whole, expansion };
  const shown = indices.flatMap((index) => {
    const record = tx.history(subjobId(array.job.id, index));
    return record === undefined ? [] : expansion.record(record);
  });
  return { kind: "jobs", shown: [...shown, ...expansion.rest()] };
}

const oneIndex = (index: number): IndexRange => ({ first: index, last: index, step: 1 });

/** The job with this id in the history; undefined: there is none. */
export function finishedJob(tx: Transaction, id: string): Job | undefined {
  return tx.state.history_count === 0 ? undefined : tx.history(id);
}

function errorItem(id: string, code: number): StatusItem {
  const { text } = reject(code);
  return { id, code, text };
}

/** The full form of an id, with the server's name. Returns null if the text is not a job id. */
export function fullJobId(state: ServerState, text: string): string | null {
  if (state.jobs.has(text)) return text;
  const id = parseJobId(text);
  return id === null ? null : jobIdText(withServer(id, state.name));
}
