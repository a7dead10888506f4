// Enters the end of a runner as a booking (docs/runners.md) that begins at this end: from then on, nothing can be on the runner's vnode. Jobs that could run
// longer, and reservations that end later, are therefore placed elsewhere, by the same rules as beside a reservation.

import type { SchedNode } from "#protocol/sched-link.ts";
import type { Universe } from "../shapes/universe.ts";
import { book, unbook } from "./calendar.ts";

/** The end of the booking: later than any job can end. */
const NEVER_S = Number.MAX_SAFE_INTEGER;
/** The state word of the vnode during the booking. */
const CLOSED = "runner-ended";

const bookingId = (name: string): string => `runner ${name}`;

/** Enters the end of a runner if it has changed. before: the vnode as it was; undefined: it is new. */
export function bookRunnerEnd(universe: Universe, { name, attrs }: SchedNode, before: SchedNode | undefined): void {
  const end_s = attrs["runner_end"];
  if (end_s === before?.attrs["runner_end"]) return;
  dropRunnerEnd(universe, name);
  if (typeof end_s !== "number") return;
  const holding = new Map([[name, { amounts: [], closes: CLOSED, own: true }]]);
  book(universe, { id: bookingId(name), kind: "resv", from_s: end_s, to_s: NEVER_S, holding });
}

export function dropRunnerEnd(universe: Universe, name: string): void {
  if (universe.calendar.bookings.has(bookingId(name))) unbook(universe, bookingId(name));
}
