// Enters reservations in the calendar. The present occurrence of a running reservation is a running entry; later occurrences are bookings.
//
// V3. Occurrences with the same exec_vnode are one booking with several periods. Only changes are entered: a booking with the same holding and the
//     same periods stays as it is.
// V4. A running reservation is expected to leave its vnodes at its end. It may keep them longer because of its jobs, but at most for the
//     kill_delay of its queue.

import type { Occurrence, ResvAsk } from "#protocol/sched-link.ts";
import { book, dropBeside, putBeside, renewFor, unbook } from "../calendar/calendar.ts";
import type { Holding, Running, Span } from "../shapes/booking.ts";
import { killDelayOf } from "../shapes/durations.ts";
import type { HeldOccurrence, ResvInfo } from "../shapes/reservation.ts";
import { LIFTED } from "../shapes/running.ts";
import type { Universe } from "../shapes/universe.ts";
import { resvHolding } from "./resv-info.ts";

/** An occurrence and the vnodes that it was given. */
export type PlacedOccurrence = Occurrence & { readonly exec_vnode: string };

/** Enters a reservation, and removes what its previous state had entered. */
export function bookResv(universe: Universe, resv: ResvInfo, before: ResvInfo | undefined): void {
  changeBookings(universe, resv.id, toCome(before), toCome(resv));
  if (resv.present?.holding === before?.present?.holding && resv.present?.end_s === before?.present?.end_s) return;
  dropBeside(universe, resv.id);
  if (resv.present === null) return;
  const { start_s, end_s, exec_vnode, holding } = resv.present;
  // At the end of the reservation its jobs are ended, which may take the kill_delay of its queue.
  const grace_s = killDelayOf(universe.queues.get(resv.queue));
  putBeside(universe, {
    id: resv.id,
    from_s: start_s,
    to_s: end_s,
    last_s: end_s + grace_s,
    grace_s,
    exec_vnode,
    holding,
    counted: true,
    gone: false,
  });
}

export function unbookResv(universe: Universe, resv: ResvInfo): void {
  changeBookings(universe, resv.id, toCome(resv), []);
  dropBeside(universe, resv.id);
}

/**
 * Calls `look` while the calendar is without those occurrences of a reservation about which the server asks. A running
 * reservation is removed together with its jobs.
 */
export function withoutOwn<T>(universe: Universe, resv: ResvInfo, ask: ResvAsk, look: () => T): T {
  const { calendar } = universe;
  const own = toCome(resv);
  const left = ask.kind === "alter" ? own.slice(resv.present === null ? 1 : 0) : [];
  changeBookings(universe, resv.id, own, left);
  const ended: { readonly running: Running; readonly to_s: number; readonly last_s: number }[] = [];
  const insiders = resv.present === null ? [] : [...universe.insiders.values()].filter(({ job }) => job.resv === resv.id);
  for (const id of resv.present === null ? [] : [resv.id, ...insiders.map(({ job }) => job.id)]) {
    const running = calendar.running.get(id);
    if (running === undefined) continue;
    ended.push({ running, to_s: running.to_s, last_s: running.last_s });
    Object.assign(running, { to_s: LIFTED, last_s: LIFTED });
  }
  const renew = (): void => {
    if (ended.length > 0) calendar.in_order = false;
    for (const { running } of ended) renewFor(universe, running);
  };
  renew();
  try {
    return look();
  } finally {
    for (const { running, to_s, last_s } of ended) Object.assign(running, { to_s, last_s });
    renew();
    changeBookings(universe, resv.id, left, own);
  }
}

/** Books the vnodes that a cycle has found for a reservation, so that no other reservation gets them. Returns the ids of the bookings. */
export function bookAnswer(universe: Universe, { id, request }: ResvInfo, placed: readonly PlacedOccurrence[]): string[] {
  const holdings = new Map<string, Holding>();
  const occurrences = placed.map(({ start_s, end_s, exec_vnode }): HeldOccurrence => {
    let holding = holdings.get(exec_vnode);
    if (holding === undefined) holdings.set(exec_vnode, (holding = resvHolding(universe, request, exec_vnode)));
    return { start_s, end_s, exec_vnode, holding };
  });
  return changeBookings(universe, `answer ${id}`, [], occurrences);
}

/** The occurrences with one exec_vnode. turn: overlapping occurrences have different turns, so the periods of one turn do not overlap. */
type Place = { readonly exec_vnode: string; readonly turn: number; readonly holding: Holding; readonly times: Span[] };

/** Removes the old bookings that have changed, and makes the new ones. Returns the ids of the present bookings. */
function changeBookings(universe: Universe, resv: string, before: readonly HeldOccurrence[], now: readonly HeldOccurrence[]): string[] {
  const [old, next] = [placesOf(before), placesOf(now)];
  const bookingId = ({ exec_vnode, turn }: Place): string => `${resv} ${turn} ${exec_vnode}`;
  for (const [key, place] of old) if (!isSame(place, next.get(key))) unbook(universe, bookingId(place));
  for (const [key, place] of next) {
    if (isSame(place, old.get(key))) continue;
    const { holding, times } = place;
    const [from_s, to_s] = [times[0]?.from_s ?? 0, times.at(-1)?.to_s ?? 0];
    book(universe, { id: bookingId(place), kind: "resv", from_s, to_s, times, holding });
  }
  return [...next.values()].map(bookingId);
}

function placesOf(occurrences: readonly HeldOccurrence[]): Map<string, Place> {
  const places = new Map<string, Place>();
  for (const { start_s, end_s, exec_vnode, holding } of occurrences) {
    const time = { from_s: start_s, to_s: end_s };
    for (let turn = 0; ; turn++) {
      const key = turn === 0 ? exec_vnode : `${turn} ${exec_vnode}`;
      const place = places.get(key);
      if (place === undefined) places.set(key, { exec_vnode, turn, holding, times: [time] });
      else if ((place.times.at(-1)?.to_s ?? 0) <= start_s) place.times.push(time);
      else continue;
      break;
    }
  }
  return places;
}

function isSame(a: Place, b: Place | undefined): boolean {
  return (
    a.holding === b?.holding &&
    a.times.length === b.times.length &&
    a.times.every(({ from_s, to_s }, at) => from_s === b.times[at]?.from_s && to_s === b.times[at]?.to_s)
  );
}

function toCome(resv: ResvInfo | undefined): readonly HeldOccurrence[] {
  return resv === undefined ? [] : resv.present === null ? resv.held : resv.held.slice(1);
}
