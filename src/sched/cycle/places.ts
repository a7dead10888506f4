// Finds vnodes for the jobs of a cycle: vnodes that are free now, or those that a job had before. Also finds out whether
// only bookings are in the way.

import { chunkTexts, readSelect } from "#model/request/select.ts";
import type { SchedJob, Why } from "#protocol/sched-link.ts";
import { LOG_EVENT } from "#support/log-event.ts";
import { isDue, publishedPlace } from "../calendar/published-place.ts";
import { windowAt } from "../calendar/start-search.ts";
import { reachesBooked } from "../place/outlook.ts";
import type { PlaceContext, PlaceResult } from "../place/placement.ts";
import { couldPlaceAt, findPlace, placeAt, placeJob, usesNodeBuckets } from "../place/placement.ts";
import type { LogRecord } from "../shapes/log-record.ts";
import type { Candidate } from "../shapes/module.ts";
import type { Placed, PlacedChunks } from "../shapes/placed.ts";
import type { Policy } from "../shapes/policy.ts";
import type { Universe } from "../shapes/universe.ts";
import type { NodeSet } from "../shapes/vnode.ts";

export type CyclePlaces = {
  /** Returns what placement must know besides the request and the vnodes, for a start now with the run time of the candidate. */
  context(candidate: Candidate): PlaceContext;
  /** Takes vnodes for a job and moves their hosts to other buckets, or returns the reason why it cannot. */
  place(candidate: Candidate): PlaceResult;
  /** Takes the vnodes that the job had before, whatever is booked there, because the job left them only for another job. */
  placeBack(candidate: Candidate): PlaceResult;
  /** Returns why no vnodes are free, without taking any; null: they are free. */
  whyNone(candidate: Candidate): Why | null;
  /** Returns the reason `why`, or a reason that names bookings if only they are in the way. */
  whyBooked(candidate: Candidate, why: Why): Why;
  /** Records a placement. With smp_cluster_dist round_robin the next placement begins after it. */
  note(placed: Placed): void;
};

export type PlacesOf = {
  readonly universe: Universe;
  readonly policy: Policy;
  readonly now_s: number;
  /** Returns the jobs that this cycle has started on a vnode. */
  startedOn(vnode: string): readonly SchedJob[];
  /** the position of the host used last, for each node set */
  readonly last_host: Map<string, number>;
  /** receives log records about the search for vnodes; null: they are not logged */
  readonly trace: ((record: LogRecord) => void) | null;
};

export function createPlaces({ universe, policy, now_s, startedOn, last_host, trace }: PlacesOf): CyclePlaces {
  const isRound = policy.smp_cluster_dist === "round_robin";

  function context(candidate: Candidate): PlaceContext {
    const { job } = candidate.entry;
    const window = universe.calendar.on.size === 0 ? null : windowAt(candidate, now_s);
    const found: PlaceContext = { universe, policy, startedOn, after: null, window };
    if (trace === null) return found;
    return { ...found, log: (text) => trace({ event: LOG_EVENT.DEBUG3, class: "Node", object: job.id, text }) };
  }

  /** Returns the published place of a top job whose start is due; null: there is none. */
  function promised({ entry: { job, request }, set, array }: Candidate): PlacedChunks | null {
    const top = array?.job ?? job;
    if (set === undefined || !isDue(top, now_s)) return null;
    return publishedPlace(universe, top, { set, request, job })?.chunks ?? null;
  }

  function place(candidate: Candidate): PlaceResult {
    const { entry, set } = candidate;
    const { request } = entry;
    const due = promised(candidate);
    const placed = due === null || set === undefined ? null : placeAt(context(candidate), set, entry, due);
    if (placed !== null) return { placed };
    const after = isRound ? (of: NodeSet): number => last_host.get(of.key) ?? -1 : null;
    const here = context(candidate);
    if (trace !== null && set !== undefined && usesNodeBuckets(set, request)) for (const record of chunkRecords(entry.job)) trace(record);
    const from = (begin: PlaceContext["after"]): PlaceResult => placeJob({ ...here, after: begin }, set, request, entry.job);
    const result = from(after);
    if (!("why" in result) || after === null) return result;
    // With round_robin, the host at which the round begins is only a preference. A job that fits if the round begins with the first host, or without a round,
    // does not wait.
    for (const begin of set === undefined || after(set) < 0 ? [null] : [FIRST_HOST, null]) {
      const again = from(begin);
      if (!("why" in again)) return again;
    }
    return result;
  }

  function whyBooked(candidate: Candidate, why: Why): Why {
    const here = context(candidate);
    const { entry, set } = candidate;
    if (here.window === null || set === undefined || !reachesBooked(set.booked, here.window)) return why;
    const otherwise = findPlace({ ...here, window: null }, set, entry.request, entry.job);
    return "why" in otherwise ? otherwise.why : { code: "RESERVATION_CONFLICT", module: "calendar" };
  }

  return {
    context,
    place,
    placeBack: (candidate) =>
      placeJob({ ...context(candidate), window: null }, candidate.set, candidate.entry.request, candidate.entry.job),
    whyNone(candidate) {
      const due = promised(candidate);
      if (due !== null && candidate.set !== undefined && couldPlaceAt(context(candidate), candidate.set, candidate.entry, due)) return null;
      const found = findPlace(context(candidate), candidate.set, candidate.entry.request, candidate.entry.job);
      return "why" in found ? whyBooked(candidate, found.why) : null;
    },
    whyBooked,
    note(placed) {
      if (isRound) last_host.set(placed.set.key, placed.last?.order ?? -1);
    },
  };
}

/** Returns the position before the first host, so that the round begins with the first host. */
const FIRST_HOST = (): number => -1;

/** Returns log records with the chunks of a job's request, as requested. */
function chunkRecords({ id, schedselect }: SchedJob): LogRecord[] {
  const asked = readSelect(schedselect);
  const texts = asked === null ? [schedselect] : chunkTexts(asked);
  return texts.map((text) => ({ event: LOG_EVENT.DEBUG3, class: "Job", object: id, text: `Chunk: ${text}` }));
}
