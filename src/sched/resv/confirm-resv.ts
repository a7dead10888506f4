// Answers whether a reservation about which the server asks can have vnodes, and which. Each occurrence is placed in the universe as it will be at that
// time (docs/reference/scheduler.md 9). Running jobs hold their vnodes until their walltime ends; other reservations and top jobs hold what they were
// promised.
//
// R1. A standing reservation is confirmed only if every occurrence can have vnodes.
// R2. A reservation stays on its vnodes if possible (resv-place.ts). While other vnodes are searched for it, those that it was promised count as free.
// R3. Afterwards the universe is as it was before.

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
  /** periods in which no reservation may be; empty if resv_confirm_ignore allows reservations in dedicated time */
  readonly dedicated: readonly DedicatedTime[];
};

/** Answers what the server asks about one reservation. */
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

/** A job that stands for a reservation: it has no owner whose jobs limits of vnodes could count. */
const NOBODY = { id: "", user: "", group: "", project: "" } as SchedJob;

const NO_NODES: Why = { code: "NO_FREE_NODES", module: "reservations" };

/** Returns the reason that a denial shows. It names the resource that is missing, without the amount. An alteration that does not fit is always a conflict. */
function plainWhy({ kind }: ResvAsk, { want: _want, have: _have, total: _total, never: _never, ...why }: Why): Why {
  return kind === "alter" ? { code: "RESERVATION_CONFLICT", module: "reservations" } : { ...why, module: "reservations" };
}

/** Returns the partitions that this scheduler serves; "": the partition of the default scheduler. */
export function partitionsOf({ sched }: Universe): readonly string[] {
  const { partition } = sched.attrs;
  if (sched.name === "default") return [""];
  return (Array.isArray(partition) ? partition : [partition]).filter((name) => typeof name === "string" && name !== "").map(partitionOf);
}

// --- occurrences at given times

function everyTime(asking: Asking, resv: ResvInfo, ask: ResvAsk, set: NodeSet): readonly PlacedOccurrence[] | Why {
  const { universe, now_s } = asking;
  const found: Found = { occurrences: [], places: new Map(), booked: [] };
  let forecast = createForecast(universe, set, now_s);
  try {
    for (const occurrence of ask.occurrences) {
      // Overlapping occurrences must not get the same vnodes. While an occurrence is placed, the earlier ones are therefore
      // booked.
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
  /** the amounts that each exec_vnode takes, by its text; several occurrences may have the same text */
  readonly places: Map<string, Holding>;
  readonly booked: string[];
};
type Search = { readonly resv: ResvInfo; readonly ask: ResvAsk; readonly set: NodeSet; readonly forecast: Forecast; readonly found: Found };

/** Finds vnodes for an occurrence and adds them to the result. Returns the reason if there are none. */
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

/**
 * Returns the present exec_vnode of an occurrence; null: it has none. In an alteration it is the exec_vnode of the occurrence with the
 * same number, for a degraded reservation the exec_vnode of the occurrence with the same times.
 */
function heldThen(resv: ResvInfo, { kind }: ResvAsk, { start_s, end_s }: Occurrence, at: number): string | null {
  const held = kind === "alter" ? resv.held[at] : resv.held.find((other) => other.start_s === start_s && other.end_s === end_s);
  return held?.exec_vnode ?? null;
}

/** Returns a reason if the occurrence would be in dedicated time. */
function dedicatedConflict({ dedicated }: Asking, from_s: number, to_s: number): Why | null {
  const conflict = dedicated.find((time) => time.from_s < to_s && time.to_s > from_s);
  if (conflict === undefined) return null;
  return { code: conflict.from_s <= from_s ? "DED_TIME" : "CROSS_DED_TIME_BOUNDARY", module: "reservations" };
}

// --- one occurrence as soon as possible

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
