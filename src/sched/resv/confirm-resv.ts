// Answers the server's question about a reservation: where it can be placed, at every occurrence, in the universe at that time (docs/reference/scheduler.md
// 9). Running jobs hold their vnodes until their walltime ends; other reservations and top jobs hold what they were promised.
//
// R1. All occurrences or none: a standing reservation is confirmed with a place for each.
// R2. It stays where it is if possible (resv-place.ts). While another place is searched for it, its own promise does not count.
// R3. The universe is left as it was found.

import type { Occurrence, ResvAsk, SchedJob, Why } from "#protocol/sched-link.ts";
import { unbook } from "../calendar/calendar.ts";
import type { Forecast } from "../calendar/forecast.ts";
import { createForecast } from "../calendar/forecast.ts";
import { isPlaceFree } from "../calendar/kept-place.ts";
import { findStart } from "../calendar/start-search.ts";
import { placedText } from "../place/placement.ts";
import { checkTotals } from "../place/set-totals.ts";
import type { Holding } from "../shapes/booking.ts";
import type { DedicatedTime } from "../shapes/dedicated-time.ts";
import { JOB_INFINITY_S } from "../shapes/durations.ts";
import type { ResvInfo } from "../shapes/reservation.ts";
import { readHolding } from "../shapes/running.ts";
import type { Universe } from "../shapes/universe.ts";
import type { NodeSet } from "../shapes/vnode.ts";
import { nodeSetKey, partitionOf } from "../shapes/vnode-state.ts";
import type { PlacedOccurrence } from "./resv-calendar.ts";
import { bookAnswer, withoutOwn } from "./resv-calendar.ts";
import { placeAgain } from "./resv-place.ts";
import { serverShortage } from "./server-share.ts";

export type Answer =
  | { readonly kind: "confirm"; readonly partition: string; readonly occurrences: readonly PlacedOccurrence[] }
  | { readonly kind: "deny"; readonly why: Why };

export type Asking = {
  readonly universe: Universe;
  readonly now_s: number;
  /** times in which no reservation may lie; none if resv_confirm_ignore allows them */
  readonly dedicated: readonly DedicatedTime[];
};

/** Answers one question. */
export function answerAsk(asking: Asking, resv: ResvInfo, ask: ResvAsk): Answer {
  const { universe } = asking;
  if (resv.request.fault !== undefined) return { kind: "deny", why: { code: "NOT_SUPPORTED", where: resv.request.fault } };
  const partitions = resv.partition === undefined ? partitionsOf(universe) : [resv.partition];
  return withoutOwn(universe, resv, ask, () => {
    let why: Why | null = null;
    for (const partition of partitions) {
      const set = universe.sets.get(nodeSetKey(partition, ""));
      const found =
        set === undefined ? NO_NODES : ask.occurrences.length === 0 ? soonest(asking, resv, ask, set) : everyTime(asking, resv, ask, set);
      if (!("code" in found)) return { kind: "confirm", partition: partition === "" ? "pbs-default" : partition, occurrences: found };
      why ??= found;
    }
    return { kind: "deny", why: plainWhy(ask, why ?? NO_NODES) };
  });
}

/** A reservation has no owner that limits of vnodes could count. */
const NOBODY = { id: "", user: "", group: "", project: "" } as SchedJob;

const NO_NODES: Why = { code: "NO_FREE_NODES", module: "reservations" };

/** A denial names the resource that is missing, without the amount; an alteration that does not fit conflicts with something. */
function plainWhy({ kind }: ResvAsk, { want: _want, have: _have, total: _total, never: _never, ...why }: Why): Why {
  return kind === "alter" ? { code: "RESERVATION_CONFLICT", module: "reservations" } : { ...why, module: "reservations" };
}

/** The partitions that this scheduler serves; "": the default scheduler's. */
export function partitionsOf({ sched }: Universe): readonly string[] {
  const { partition } = sched.attrs;
  if (sched.name === "default") return [""];
  return (Array.isArray(partition) ? partition : [partition]).filter((name) => typeof name === "string" && name !== "").map(partitionOf);
}

// --- at given times

function everyTime(asking: Asking, resv: ResvInfo, ask: ResvAsk, set: NodeSet): readonly PlacedOccurrence[] | Why {
  const { universe, now_s } = asking;
  const found: Found = { occurrences: [], places: new Map(), booked: [] };
  let forecast = createForecast(universe, set, now_s);
  try {
    for (const occurrence of ask.occurrences) {
      // Overlapping occurrences must not get the same place: while one is searched for, the earlier ones are booked.
      if (occurrence.start_s < (found.occurrences.at(-1)?.end_s ?? 0)) {
        forecast.close();
        found.booked.splice(0).forEach((id) => unbook(universe, id));
        found.booked.push(...bookAnswer(universe, resv, found.occurrences));
        forecast = createForecast(universe, set, now_s);
      }
      const why = placeOccurrence(asking, { resv, ask, set, forecast, found }, occurrence);
      if (why !== null) return why;
    }
  } finally {
    forecast.close();
    for (const id of found.booked) unbook(universe, id);
  }
  return found.occurrences;
}

type Found = {
  readonly occurrences: PlacedOccurrence[];
  /** the holdings of its places, by their texts: several occurrences may have one place */
  readonly places: Map<string, Holding>;
  readonly booked: string[];
};
type Search = { readonly resv: ResvInfo; readonly ask: ResvAsk; readonly set: NodeSet; readonly forecast: Forecast; readonly found: Found };

/** Finds a place for an occurrence and adds it to the result; otherwise returns the reason. */
function placeOccurrence(asking: Asking, { resv, ask, set, forecast, found }: Search, occurrence: Occurrence): Why | null {
  const { universe, now_s } = asking;
  const from_s = Math.max(occurrence.start_s, now_s);
  const window = { from_s, to_s: occurrence.end_s, firm_to_s: occurrence.end_s };
  forecast.goTo(from_s);
  const refused = dedicatedConflict(asking, from_s, occurrence.end_s) ?? serverShortage(universe, resv, window, now_s);
  if (refused !== null) return refused;
  const old = heldThen(resv, ask, occurrence, found.occurrences.length);
  const wanted = { set, request: resv.request, job: NOBODY, most_s: 0, grace_s: 0 };
  const then = { window, isOver: forecast.isOver };
  const same = old === null ? [...found.places].find(([, holding]) => isPlaceFree(universe, wanted, { holding }, then)) : undefined;
  const place = same?.[0] ?? placeAgain({ universe, set, window, forecast }, resv, old);
  if (typeof place !== "string") return place;
  if (!found.places.has(place)) found.places.set(place, readHolding(universe.space, place));
  found.occurrences.push({ ...occurrence, exec_vnode: place });
  return null;
}

/** The present place of an occurrence: an altered one is the present occurrence, a degraded one is found by its time. */
function heldThen(resv: ResvInfo, { kind }: ResvAsk, { start_s, end_s }: Occurrence, at: number): string | null {
  const held = kind === "alter" ? resv.held[at] : resv.held.find((other) => other.start_s === start_s && other.end_s === end_s);
  return held?.exec_vnode ?? null;
}

/** A reservation may not lie in dedicated time. */
function dedicatedConflict({ dedicated }: Asking, from_s: number, to_s: number): Why | null {
  const conflict = dedicated.find((time) => time.from_s < to_s && time.to_s > from_s);
  if (conflict === undefined) return null;
  return { code: conflict.from_s <= from_s ? "DED_TIME" : "CROSS_DED_TIME_BOUNDARY", module: "reservations" };
}

// --- as soon as possible

function soonest(asking: Asking, resv: ResvInfo, { duration_s = 0 }: ResvAsk, set: NodeSet): readonly PlacedOccurrence[] | Why {
  const { universe, now_s, dedicated } = asking;
  const short = checkTotals(universe.checks, set, resv.request);
  if (short?.never === true) return short;
  const wanted = { set, request: resv.request, job: NOBODY, most_s: duration_s, grace_s: 0, resv: true };
  const found = findStart(universe, wanted, {
    now_s,
    from_s: now_s,
    until_s: now_s + JOB_INFINITY_S,
    bounds: dedicated.map(({ to_s }) => to_s),
    admits: ({ at_s }) => {
      const window = { from_s: at_s, to_s: at_s + duration_s, firm_to_s: at_s + duration_s };
      return dedicatedConflict(asking, at_s, at_s + duration_s) ?? serverShortage(universe, resv, window, now_s);
    },
  });
  if (found.start_s === null) return found.why ?? short ?? NO_NODES;
  return [{ start_s: found.start_s, end_s: found.start_s + duration_s, exec_vnode: placedText(universe, found.chunks) }];
}
