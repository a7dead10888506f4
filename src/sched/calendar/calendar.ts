// The calendar knows which job or reservation holds which amounts of which vnode, and until when. Running entries
// (shapes/running.ts) are the jobs that have vnodes now, and the reservations whose period has begun; the assigned amounts
// of vnodes include them. Bookings begin later: they are plans of top jobs, occurrences of reservations, or maintenance.
// Deltas update the calendar: the start or end of a job is one insertion or removal, and nothing is rebuilt while the
// resources and the policy stay the same. Dedicated and prime time do not belong to vnodes; see time-bounds.ts.
//
// K3. A booking is in `bookings`, on each of its vnodes in `on`, and in the outlook of their hosts (place/outlook.ts), and
//     nowhere else. The code that makes a booking also removes it: a cycle removes its plans at its end, the mirror removes
//     reservations that no longer exist.
//
//   running jobs          putRunningJob, dropRunning (mirror)    jobs a cycle starts      putBeside, dropBeside (cycle)
//   running reservations  putBeside, dropBeside                  plans, occurrences       book, unbook
//   state at a time       Forecast (forecast.ts)                 first possible start     findStart (start-search.ts)

import type { SchedJob } from "#protocol/sched-link.ts";
import { present } from "#support/assert.ts";
import { moveHost } from "../place/node-sets.ts";
import { outlookOf } from "../place/outlook.ts";
import type { Booking, Calendar, Held, Holding, Part, Running } from "../shapes/booking.ts";
import { type Durations, durationsOf } from "../shapes/durations.ts";
import { addBeside, addRunning, holdingOf, LIFTED, removeBeside, removeRunning, sortEnds } from "../shapes/running.ts";
import type { Universe } from "../shapes/universe.ts";
import type { Host } from "../shapes/vnode.ts";

export function createCalendar(): Calendar {
  return {
    running: new Map(),
    ends: [],
    in_order: true,
    gone_count: 0,
    besides: new Map(),
    freed_s: Number.NEGATIVE_INFINITY,
    soft: new Set(),
    loosened: true,
    away: new Map(),
    bookings: new Map(),
    resv_ends: null,
    on: new Map(),
    outlooks: new Map(),
    next_outlook: 0,
    part_ids: new Map(),
    next_part: 0,
  };
}

// --- running entries

/** The states in which a job has its vnodes. */
const HOLDS = new Set(["R", "E"]);

/** Enters a job with its new state, or removes it if it no longer has vnodes. */
export function putRunningJob(universe: Universe, job: SchedJob): void {
  const { calendar } = universe;
  if (!HOLDS.has(job.state) || job.exec_vnode === undefined || job.array !== undefined) return dropRunning(universe, job.id);
  // Time in which the job was suspended is not part of its walltime.
  const from_s = (job.stime_s ?? job.qtime_s) + (job.paused_s ?? 0);
  const durations = durationsOf(universe, job);
  const old = calendar.running.get(job.id);
  const times = runningTimes(from_s, durations);
  if (old?.exec_vnode === job.exec_vnode && old.from_s === from_s && old.last_s === times.last_s && old.soft_s === times.soft_s) return;
  putRunning(universe, { id: job.id, ...times, exec_vnode: job.exec_vnode, holding: null, counted: true, gone: false });
}

/**
 * Returns the expected end of a job that began at from_s, and the latest time at which it must have left its vnodes (after its walltime and its kill_delay).
 */
export function runningTimes(
  from_s: number,
  { expected_s, most_s, grace_s }: Durations,
): Pick<Running, "from_s" | "to_s" | "last_s" | "grace_s" | "soft_s"> {
  const last_s = from_s + most_s + grace_s;
  return expected_s < most_s
    ? { from_s, to_s: from_s + expected_s, last_s, grace_s, soft_s: expected_s }
    : { from_s, to_s: last_s, last_s, grace_s };
}

/** Adds a running entry; it replaces an entry with the same id. */
export function putRunning(universe: Universe, running: Running): void {
  dropRunning(universe, running.id);
  addRunning(universe.calendar, running);
  renewFor(universe, running);
}

export function dropRunning(universe: Universe, id: string): void {
  const running = universe.calendar.running.get(id);
  if (running === undefined) return;
  removeRunning(universe.calendar, id);
  renewFor(universe, running);
}

/** Adds a running reservation, or a job that this cycle starts. The `jobs` of the vnodes do not contain its id. */
export function putBeside(universe: Universe, running: Running): void {
  dropBeside(universe, running.id);
  addBeside(universe.calendar, running);
  renewFor(universe, running);
}

export function dropBeside(universe: Universe, id: string): void {
  const running = universe.calendar.running.get(id);
  if (running === undefined) return;
  removeBeside(universe.calendar, id);
  renewFor(universe, running);
}

/** Takes a job off its vnodes. holding: the amounts that it gives up. Returns a function that puts it back. */
export function putAway(universe: Universe, id: string, holding: Holding): () => void {
  const { calendar } = universe;
  const running = calendar.running.get(id);
  if (running === undefined) return () => undefined;
  calendar.away.set(id, { ...running, to_s: LIFTED, last_s: LIFTED, holding });
  dropRunning(universe, id);
  return () => {
    calendar.away.delete(id);
    putRunning(universe, { ...running, gone: false });
  };
}

/** Returns the running entries in the order of their ends. now_s: entries that should have ended by then get a later end (K2). */
export function endsInOrder(universe: Universe, now_s: number): readonly Running[] {
  return sortEnds(universe.calendar, now_s, (running) => renewFor(universe, running));
}

/** Computes again the outlooks of the hosts of a running entry, because the amounts left there have changed. Hosts without bookings have no outlook. */
export function renewFor(universe: Universe, running: Running): void {
  if (universe.calendar.on.size > 0) renewOutlooks(universe, holdingOf(universe.space, running).keys());
}

// --- bookings

/** Enters a booking, such as a plan or an occurrence. It replaces a booking with the same id. */
export function book(universe: Universe, booking: Booking): void {
  const { calendar } = universe;
  unbook(universe, booking.id);
  const parts = new Map<string, Part>();
  const { from_s, to_s, times = [{ from_s, to_s }], firm_to_s = to_s } = booking;
  const kept = { firm: booking.kind === "resv", times, grace_s: to_s - firm_to_s };
  calendar.bookings.set(booking.id, { ...booking, times, parts });
  if (booking.kind === "resv") calendar.resv_ends = null;
  const made = new Map<Held, Part>();
  for (const [name, held] of booking.holding) {
    let part = made.get(held);
    if (part === undefined) made.set(held, (part = partOf(calendar, kept, held)));
    parts.set(name, part);
    const others = calendar.on.get(name);
    if (others === undefined) calendar.on.set(name, [part]);
    else insertById(others, part);
  }
  renewOutlooks(universe, parts.keys());
}

/** Removes bookings. */
export function unbook(universe: Universe, ...ids: readonly string[]): void {
  const { calendar } = universe;
  const names = new Set<string>();
  for (const id of ids) {
    const booking = calendar.bookings.get(id);
    if (booking === undefined) continue;
    calendar.bookings.delete(id);
    if (booking.kind === "resv") {
      calendar.resv_ends = null;
      calendar.loosened = true;
    }
    for (const [name, part] of booking.parts) {
      names.add(name);
      const parts = calendar.on.get(name) ?? [];
      parts.splice(parts.indexOf(part), 1);
      if (parts.length === 0) calendar.on.delete(name);
    }
  }
  renewOutlooks(universe, names);
}

/** Largest number of entries in part_ids, where parts of bookings with equal contents find their number. If there are more entries, all are dropped. */
const PARTS_KEPT = 10_000;

/**
 * Inserts a part of a booking into the parts on a vnode, in the order of their numbers (id). Equal hosts therefore have equal outlooks, in whatever order the
 * bookings were made.
 */
function insertById(parts: Part[], part: Part): void {
  let at = parts.length;
  while (at > 0 && present(parts[at - 1], "part").id > part.id) at--;
  parts.splice(at, 0, part);
}

/** Largest number of periods for which bookings are compared by their contents. A booking with more periods counts as different from all others. */
const TIMES_COMPARED = 4;

function partOf(calendar: Calendar, kept: Pick<Part, "times" | "firm" | "grace_s">, { amounts, closes, own }: Held): Part {
  const { times, firm, grace_s } = kept;
  if (times.length > TIMES_COMPARED) return { id: calendar.next_part++, ...kept, amounts, closes, own };
  const when = times.map(({ from_s, to_s }) => `${from_s}-${to_s}`).join("&");
  const key = `${when}${firm ? "!" : `/${grace_s}`}${own ? "+" : ""}${closes ?? ""}:${amounts.map(({ index, amount }) => `${index}=${amount}`).join()}`;
  let id = calendar.part_ids.get(key);
  if (id === undefined) {
    // Parts that exist keep their numbers. An equal part that is made after this gets another number.
    if (calendar.part_ids.size > PARTS_KEPT) calendar.part_ids.clear();
    calendar.part_ids.set(key, (id = calendar.next_part++));
  }
  return { id, ...kept, amounts, closes, own };
}

/** Returns the ends of booked reservations in order. */
export function resvEnds(calendar: Calendar): readonly number[] {
  if (calendar.resv_ends === null) {
    const ends = [...calendar.bookings.values()].flatMap(({ kind, times }) => (kind === "resv" ? times.map(({ to_s }) => to_s) : []));
    calendar.resv_ends = ends.sort((a, b) => a - b);
  }
  return calendar.resv_ends;
}

function renewOutlooks(universe: Universe, names: Iterable<string>): void {
  let last: Host | null = null;
  for (const name of names) {
    const vnode = universe.vnodes.get(name);
    if (vnode === undefined || vnode.host === last) continue;
    last = vnode.host;
    renewOutlook(universe, last);
  }
}

function renewOutlook(universe: Universe, host: Host): void {
  const outlook = outlookOf(universe, host.vnodes);
  if (host.outlook === outlook) return;
  host.outlook = outlook;
  if (host.bucket !== null) moveHost(universe, universe.policy, host, host.bucket.states);
}
