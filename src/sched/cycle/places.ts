// Places for the jobs of a cycle: now, where they were before, and where only bookings are in the way.

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
  /** the context of a placement for the candidate's time, beside the bookings */
  context(candidate: Candidate): PlaceContext;
  /** takes a place and moves its hosts, or returns the reason */
  place(candidate: Candidate): PlaceResult;
  /** takes the place that the job had before, whatever is booked there, because the job left it only for another job */
  placeBack(candidate: Candidate): PlaceResult;
  /** why a place is not free, without taking one; null: it is free */
  whyNone(candidate: Candidate): Why | null;
  /** the reason `why`, or that bookings are in the way if only they are */
  whyBooked(candidate: Candidate, why: Why): Why;
  /** records a placement: with smp_cluster_dist round_robin the next one begins after it */
  note(placed: Placed): void;
};

export type PlacesOf = {
  readonly universe: Universe;
  readonly policy: Policy;
  readonly now_s: number;
  /** jobs that this cycle has started on a vnode */
  startedOn(vnode: string): readonly SchedJob[];
  /** order of the host used last, by node set */
  readonly last_host: Map<string, number>;
  /** receives the records of placement about its search; null: they are not logged */
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

  /** The published place of a top job whose start is due. */
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
    // The beginning of the round is only a preference: a job that fits in a round from the first host on, or without a round, does not wait for its turn.
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

/** A round that begins with the first host. */
const FIRST_HOST = (): number => -1;

/** The chunks of a job's request, as requested. */
function chunkRecords({ id, schedselect }: SchedJob): LogRecord[] {
  const asked = readSelect(schedselect);
  const texts = asked === null ? [schedselect] : chunkTexts(asked);
  return texts.map((text) => ({ event: LOG_EVENT.DEBUG3, class: "Job", object: id, text: `Chunk: ${text}` }));
}
