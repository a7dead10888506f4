// Status of jobs: live ones from memory, finished and moved ones from the store's history (pbs/commands.md 2).
//
// I1. Items come in the order of the ids asked for, else in the order of queue rank.
// I2. A job that has finished is an error item (15139) unless the history is asked for; asking for it while the server keeps none is refused (15140).
// I3. While query_other_jobs is False users see only their own jobs.

import { type IndexRange, indexAt, indexCount } from "#model/array-indices.ts";
import { JOB_ATTRIBUTES } from "#model/job-attributes.ts";
import { jobIdText, parseJobId, subjobId, withServer } from "#model/job-id.ts";
import { PBSE, reject } from "#model/pbse.ts";
import { briefItems } from "#protocol/brief-items.ts";
import type { StatusItem, StatusRequest, WireAttrs } from "#protocol/messages.ts";
import { shownEligible } from "../accrual/eligible-time.ts";
import { type Columns, columnsOf, encoder } from "../attributes/encode.ts";
import { isOwner } from "../attributes/permission.ts";
import { localQueue } from "../routing.ts";
import type { Attrs, Job, ServerState } from "../state.ts";
import { namedIndices } from "../subjobs.ts";
import type { Answer, HistoryStream, Transaction } from "../transaction.ts";
import { listJobs } from "./job-listing.ts";
import { type Expansion, expansionOf, hasRecords, type Shown, type ShownArray, shownArray, shownAttrs } from "./subjob-status.ts";

/** Items of one part frame. */
const PART_ITEMS_MAX = 500;

export function jobStatus(tx: Transaction, request: StatusRequest): Answer {
  const { state, who } = tx;
  checkHistory(tx, request.history);
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

/** Refuses with 15140 when finished jobs are asked for and not kept. */
export function checkHistory(tx: Transaction, history: "with" | "only" | undefined): void {
  if (history !== undefined && tx.state.server["job_history_enable"] !== true) throw reject(PBSE.JOBHISTNOTSET);
}

/** Live jobs and arrays, of one queue or all, by queue rank. Subjobs come with their array only. */
export function liveJobs(state: ServerState, queue?: string): Job[] {
  const all =
    queue === undefined ? [...state.jobs.values()] : [...(state.queues.get(queue)?.jobs ?? [])].map((id) => state.jobs.get(id) as Job);
  const jobs = all.filter((job) => job.attrs["array_id"] === undefined);
  const sorted = jobs.every((job, at) => at === 0 || (jobs[at - 1] as Job).attrs.queue_rank <= job.attrs.queue_rank);
  return sorted ? jobs : jobs.sort((a, b) => a.attrs.queue_rank - b.attrs.queue_rank);
}

/** Whether the asker may see a job (query_other_jobs). */
export function mayQuery(tx: Transaction, { attrs }: { readonly attrs: Attrs }): boolean {
  return tx.who.level !== "user" || tx.state.server["query_other_jobs"] !== false || isOwner(tx, String(attrs["Job_Owner"]));
}

/** Jobs with equal attributes (subjobs that wait) are encoded once. */
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

/** What an id asks for. walk: subjobs of an array, records of which have to be read. */
type Asked =
  | { readonly kind: "refused"; readonly code: number }
  | { readonly kind: "jobs"; readonly shown: readonly Shown[] }
  | { readonly kind: "walk"; readonly shown: readonly Shown[]; readonly expansion: Expansion };

/** Records of so many subjobs are read by their ids; more are read page by page. */
const RECORDS_BY_ID_MAX = 500;

function namedJobs(tx: Transaction, request: StatusRequest, columns: Columns): Answer {
  const ids = request.ids.map((text) => fullJobId(tx.state, text) ?? text);
  if (tx.state.history_count > 0) tx.historyOf(ids.flatMap((id) => recordsNeeded(tx, id)));
  const asked = ids.map((id) => askedFor(tx, request, id));
  const next = giveUntilWalk(tx, columns, ids, asked, 0);
  return next === null ? {} : { stream: next };
}

/** Gives what is at hand, beginning with the id at a place. Returns the walk that is due then; null: that was all. */
function giveUntilWalk(
  tx: Transaction,
  columns: Columns,
  ids: readonly string[],
  asked: readonly Asked[],
  from: number,
): HistoryStream | null {
  for (let at = from; at < asked.length; at++) {
    const part = asked[at] as Asked;
    if (part.kind === "refused") tx.part([errorItem(ids[at] as string, part.code)]);
    else giveJobs(tx, columns, part.shown, false);
    if (part.kind !== "walk") continue;
    const { expansion } = part;
    let following: HistoryStream | null = null;
    return {
      seqs: [expansion.array.job.seq],
      subjobs: true,
      page(page, records, last) {
        for (const record of records) giveJobs(page, columns, expansion.record(record), false);
        if (!last) return;
        giveJobs(page, columns, expansion.rest(), false);
        following = giveUntilWalk(page, columns, ids, asked, at + 1);
      },
      next: () => following,
    };
  }
  return null;
}

/** Ids whose records must be at hand to say what an id asks for: of what is not live itself and its array. */
function recordsNeeded(tx: Transaction, id: string): string[] {
  if (tx.state.jobs.has(id)) return [];
  const parsed = parseJobId(id);
  if (parsed === null || (parsed.kind !== "subjob" && parsed.kind !== "range")) return [id];
  const array_id = jobIdText({ ...parsed, kind: "array" });
  const needed = tx.state.jobs.has(array_id) ? [] : [array_id];
  if (parsed.kind === "subjob") return [...needed, id];
  const few = parsed.ranges.reduce((sum, range) => sum + indexCount(range), 0) <= RECORDS_BY_ID_MAX;
  if (!few) return needed;
  return [
    ...needed,
    ...parsed.ranges.flatMap((range) => Array.from({ length: indexCount(range) }, (_, at) => subjobId(array_id, indexAt(range, at)))),
  ];
}

function askedFor(tx: Transaction, { history, subjobs }: StatusRequest, id: string): Asked {
  const parsed = parseJobId(id);
  const array_id = parsed?.kind === "subjob" || parsed?.kind === "range" ? jobIdText({ ...parsed, kind: "array" }) : id;
  const live = tx.state.jobs.get(array_id);
  const job = live ?? finishedJob(tx, array_id);
  if (job === undefined) return { kind: "refused", code: PBSE.UNKJOBID };
  if (!mayQuery(tx, job)) return { kind: "refused", code: PBSE.PERM };
  if (live === undefined && history === undefined) return { kind: "refused", code: PBSE.HISTJOBID };
  if (live !== undefined && history === "only") return { kind: "jobs", shown: [] };
  const array = array_id === id && subjobs !== true ? null : shownArray(job, live !== undefined);
  const whole = { id: job.id, attrs: shownAttrs(job) };
  if (array === null) return array_id === id ? { kind: "jobs", shown: [whole] } : { kind: "refused", code: PBSE.UNKJOBID };
  return subjobsAsked(tx, array, id, array_id === id ? [whole] : []);
}

/** An array with its subjobs, or those an id names. */
function subjobsAsked(tx: Transaction, array: ShownArray, id: string, whole: readonly Shown[]): Asked {
  const parsed = parseJobId(id);
  const ranges = parsed?.kind === "subjob" ? [oneIndex(parsed.index)] : parsed?.kind === "range" ? parsed.ranges : null;
  const indices = ranges === null ? null : namedIndices(array.subjobs, ranges);
  if (indices?.length === 0) return { kind: "refused", code: PBSE.UNKJOBID };
  const expansion = indices === null ? expansionOf(tx.state, array) : expansionOf(tx.state, array, indices);
  if (!hasRecords(array) || tx.state.history_count === 0) return { kind: "jobs", shown: [...whole, ...expansion.rest()] };
  if (indices === null || indices.length > RECORDS_BY_ID_MAX) return { kind: "walk", shown: whole, expansion };
  const shown = indices.flatMap((index) => {
    const record = tx.history(subjobId(array.job.id, index));
    return record === undefined ? [] : expansion.record(record);
  });
  return { kind: "jobs", shown: [...shown, ...expansion.rest()] };
}

const oneIndex = (index: number): IndexRange => ({ first: index, last: index, step: 1 });

/** A job of the history. */
export function finishedJob(tx: Transaction, id: string): Job | undefined {
  return tx.state.history_count === 0 ? undefined : tx.history(id);
}

function errorItem(id: string, code: number): StatusItem {
  const { text } = reject(code);
  return { id, code, text };
}

/** The name under which a job is kept: the server's name is added. null: no job id. */
export function fullJobId(state: ServerState, text: string): string | null {
  if (state.jobs.has(text)) return text;
  const id = parseJobId(text);
  return id === null ? null : jobIdText(withServer(id, state.name));
}
