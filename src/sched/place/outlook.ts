// The outlook of a host: the bookings on it. It is part of what distinguishes buckets. Hosts with equal vnodes in equal states and with equal outlooks are in
// one bucket. Whether a job would run into a plan or a reservation is therefore checked once for a bucket, not for each host.
//
// K4. A window is half-open: [from, to). For each resource, the amounts shown for a vnode in a window are those taken at the worst moment of the window. This
//     moment is the beginning of the window or of a booking, because at other times entries only end.
// K5. Equal outlooks of one calendar are the same object.
// K6. Running entries count until their ends: besides the bookings, an outlook says what running entries still take when a booking begins.

import { present } from "#support/assert.ts";
import { firstPlace } from "#support/search.ts";
import type { Left, Outlook, Part, Running, VnodeOutlook, Window } from "../shapes/booking.ts";
import { amountAt } from "../shapes/resource-space.ts";
import { holdingOf, jobsOn } from "../shapes/running.ts";
import type { Universe } from "../shapes/universe.ts";
import type { HostBucket, Vnode, VnodeState } from "../shapes/vnode.ts";

/** Largest number of outlooks that are kept. Above this, the table is emptied. */
const OUTLOOKS_KEPT = 4096;

/** Returns the outlook of these vnodes of one host; null: nothing is booked there. */
export function outlookOf(universe: Universe, vnodes: readonly Vnode[]): Outlook | null {
  const { calendar } = universe;
  if (calendar.on.size === 0) return null;
  let key = "";
  const booked: VnodeOutlook[] = [];
  for (let at = 0; at < vnodes.length; at++) {
    const vnode = present(vnodes[at], "vnode");
    const parts = calendar.on.get(vnode.name);
    if (parts === undefined) continue;
    const lefts = leftsOf(universe, vnode, parts);
    booked.push({ at, parts, lefts });
    key += keyOf(at, parts, lefts);
  }
  if (booked.length === 0) return null;
  let outlook = calendar.outlooks.get(key);
  if (outlook === undefined) {
    // Hosts keep their outlooks when the table is emptied. An equal outlook that is made later is another object, so it only
    // gives another bucket.
    if (calendar.outlooks.size > OUTLOOKS_KEPT) calendar.outlooks.clear();
    const first_s = Math.min(...booked.map(({ lefts }) => lefts[0]?.from_s ?? Number.POSITIVE_INFINITY));
    const own = booked.map((one) => ({ ...one, parts: [...one.parts] }));
    calendar.outlooks.set(
      key,
      (outlook = { id: calendar.next_outlook++, vnodes: own, first_s, ncpus: universe.space.ncpus, seen: null, seen_key: "" }),
    );
  }
  return outlook;
}

function keyOf(at: number, parts: readonly Part[], lefts: readonly Left[]): string {
  let key = `${at}:`;
  for (const { id } of parts) key += `${id},`;
  for (const { from_s, used, jobs } of lefts) {
    key += `@${from_s}:${jobs}`;
    for (let index = 0; index < used.length; index++) if (used[index] !== 0) key += `,${index}=${used[index]}`;
  }
  return key;
}

// --- running entries

function leftsOf(universe: Universe, vnode: Vnode, parts: readonly Part[]): Left[] {
  const first_s = nextBegin(parts, Number.NEGATIVE_INFINITY);
  const times = new Set([first_s]);
  for (const { to_s } of runningOn(universe, vnode)) if (to_s > first_s) times.add(nextBegin(parts, to_s));
  times.delete(Number.POSITIVE_INFINITY);
  return [...times].sort((a, b) => a - b).map((from_s) => leftAt(universe, vnode, from_s));
}

/** Returns the earliest time, not before from_s, at which a booking begins; Infinity: there is none. */
function nextBegin(parts: readonly Part[], from_s: number): number {
  let next_s = Number.POSITIVE_INFINITY;
  for (const { times } of parts) {
    const span = times.length === 1 ? times[0] : times[firstPlace(times, (one) => one.from_s >= from_s)];
    if (span !== undefined && span.from_s >= from_s && span.from_s < next_s) next_s = span.from_s;
  }
  return next_s;
}

function runningOn({ calendar }: Universe, vnode: Vnode): Running[] {
  const all: Running[] = [];
  for (const id of jobsOn(vnode)) {
    const running = calendar.running.get(id) ?? calendar.away.get(id);
    if (running !== undefined) all.push(running);
  }
  for (const running of calendar.besides.get(vnode.name) ?? []) all.push(running);
  return all;
}

function leftAt(universe: Universe, vnode: Vnode, from_s: number): Left {
  const used = [...vnode.state.used];
  const running = runningOn(universe, vnode);
  // Jobs whose end is unknown count as staying.
  let jobs = new Set(jobsOn(vnode)).size + (universe.calendar.besides.get(vnode.name)?.length ?? 0);
  for (const one of running) {
    const over = one.to_s <= from_s;
    if (over) jobs--;
    if (over !== one.counted) continue;
    for (const { index, amount } of holdingOf(universe.space, one).get(vnode.name)?.amounts ?? [])
      used[index] = amountAt(used, index) + (over ? -amount : amount);
  }
  return { from_s, used, jobs };
}

// --- windows

/** Largest number of states for windows that a bucket keeps (`during`). If there are more, all are dropped: the windows change as time goes on. */
const SHOWN_KEPT = 64;

/**
 * Returns the states of a bucket's vnodes for a window. The window must begin at the time to which the states of the bucket belong. window null: returns the
 * present states.
 */
export function statesDuring(bucket: HostBucket, window: Window | null): readonly VnodeState[] {
  const { outlook, states, during } = bucket;
  if (outlook === null || window === null) return states;
  if (outlook.first_s >= window.to_s && outlook.first_s >= window.firm_to_s) return states;
  const key = keyDuring(outlook, window);
  if (key === "") return states;
  let shown = during.get(key);
  if (shown === undefined) {
    if (during.size >= SHOWN_KEPT) during.clear();
    const worst = [...states];
    for (const booked of outlook.vnodes)
      worst[booked.at] = worstOf(present(states[booked.at], "state"), booked, { window, ncpus: outlook.ncpus });
    during.set(key, (shown = worst));
  }
  return shown;
}

/** Returns whether a booking on the hosts of these buckets overlaps a window. */
export function reachesBooked(buckets: Iterable<HostBucket>, window: Window): boolean {
  for (const { outlook } of buckets) {
    if (outlook === null || (outlook.first_s >= window.to_s && outlook.first_s >= window.firm_to_s)) continue;
    if (keyDuring(outlook, window) !== "") return true;
  }
  return false;
}

/**
 * Returns a key of the booked periods that overlap a window. The key also says which of the first periods began before the window, and which begin with it.
 * An empty key: no booked period keeps a job with this window off.
 */
function keyDuring(outlook: Outlook, window: Window): string {
  if (outlook.seen !== null && isSameWindow(outlook.seen, window)) return outlook.seen_key;
  let key = "";
  let any = false;
  for (const { parts } of outlook.vnodes) {
    for (const part of parts) {
      const [low, high] = spansDuring(part, window);
      if (low < high) {
        const { from_s } = present(part.times[low], "time");
        if (concerns(part, from_s, window)) any = true;
        key += `${part.firm ? firstPlace(part.times, (span) => span.from_s >= window.firm_to_s) : ""}:${low}-${high}${present(part.times[low], "time").from_s <= window.from_s ? (present(part.times[low], "time").from_s < window.from_s ? "<" : "=") : ""}`;
      }
      key += ",";
    }
  }
  outlook.seen = window;
  outlook.seen_key = any ? key : "";
  return outlook.seen_key;
}

/** Returns whether two windows are the same. Jobs of a cycle often have equal windows. */
const isSameWindow = (a: Window, b: Window): boolean =>
  a === b || (a.from_s === b.from_s && a.to_s === b.to_s && a.firm_to_s === b.firm_to_s);

/** Returns which periods of a booking overlap a window: the index of the first one, and the index after the last one. */
function spansDuring({ times }: Part, { from_s, to_s }: Window): readonly [low: number, high: number] {
  return [firstPlace(times, (span) => span.to_s > from_s), firstPlace(times, (span) => span.from_s >= to_s)];
}

/**
 * Returns whether a period that begins at from_s keeps a job with this window off the vnode. A reservation that begins only in the job's kill_delay does not
 * keep the job off by itself, but worstOf counts it together with a plan that has begun.
 */
const concerns = ({ firm }: Part, from_s: number, { firm_to_s }: Window): boolean => !firm || from_s < firm_to_s;

/**
 * A change in the bookings during a window: a period begins (sign 1) or ends (sign -1). to_s: the end of the period. begins:
 * the period begins during the window, not before it.
 */
type Change = { readonly at_s: number; readonly to_s: number; readonly sign: 1 | -1; readonly part: Part; readonly begins: boolean };
type Look = { readonly window: Window; readonly ncpus: number };

/** Returns the worst state of a vnode during a window. The bookings are added up from change to change, and the running entries are added to them. */
function worstOf(state: VnodeState, { parts, lefts }: VnodeOutlook, { window, ncpus }: Look): VnodeState {
  const changes = changesDuring(parts, window);
  if (changes.length === 0) return state;
  const worst = { used: [...state.used], jobs: state.jobs };
  const now = state.used.map(() => 0);
  const avail = amountAt(state.spec.avail, ncpus);
  let jobs = 0;
  let cpus_of_plans = 0;
  let begins_without_cpus = false;
  let closes: string | undefined;
  let busy = false;
  let concerned = false;
  // The latest end of a walltime among the plans that have begun.
  let planned_to_s = Number.NEGATIVE_INFINITY;
  changes.forEach(({ at_s, to_s, sign, part, begins }, at) => {
    for (const { index, amount } of part.amounts) now[index] = amountAt(now, index) + sign * amount;
    if (part.own) jobs += sign;
    if (!part.firm) cpus_of_plans += sign * cpusOf(part, ncpus);
    if (sign === 1 && !part.firm) planned_to_s = Math.max(planned_to_s, to_s - part.grace_s);
    if (sign === 1 && concerns(part, at_s, window)) {
      concerned = true;
      closes ??= part.closes;
    }
    // A planned job also needs its amounts while reservations that begin during its walltime have theirs.
    if (sign === 1 && part.firm && at_s < planned_to_s) concerned = true;
    if (begins && part.own && !part.firm && cpusOf(part, ncpus) === 0) begins_without_cpus = true;
    if (sign === -1 || changes[at + 1]?.at_s === at_s || !concerned) return;
    concerned = false;
    const first = at_s <= window.from_s;
    const left = first ? state : (lefts.findLast(({ from_s }) => from_s <= at_s) ?? state);
    for (let index = 0; index < now.length; index++)
      worst.used[index] = Math.max(amountAt(worst.used, index), amountAt(left.used, index) + amountAt(now, index));
    busy ||= first && avail > 0 && cpus_of_plans > 0 && amountAt(left.used, ncpus) + cpus_of_plans >= avail;
    // A job that requests no cpus on the vnode still needs one cpu to be free, because a vnode without a free cpu is job-busy.
    if (begins_without_cpus && avail > 0)
      worst.used[ncpus] = Math.max(amountAt(worst.used, ncpus), amountAt(left.used, ncpus) + cpus_of_plans + 1);
    begins_without_cpus = false;
    worst.jobs = Math.max(worst.jobs, state.spec.max_running === undefined ? Math.min(1, left.jobs + jobs) : left.jobs + jobs);
  });
  return { spec: state.spec, closed: state.closed ?? closes, ...worst, ...(busy ? { busy } : {}) };
}

function cpusOf({ amounts }: Part, ncpus: number): number {
  let cpus = 0;
  for (const { index, amount } of amounts) if (index === ncpus) cpus += amount;
  return cpus;
}

/**
 * Returns the starts and ends of booked periods within a window, in order of time. If an end and a start have the same time, the end comes first, so that a
 * period does not overlap with the next one.
 */
function changesDuring(parts: readonly Part[], window: Window): Change[] {
  const changes: Change[] = [];
  for (const part of parts) {
    const [low, high] = spansDuring(part, window);
    for (let at = low; at < high; at++) {
      const { from_s, to_s } = present(part.times[at], "time");
      const begins = from_s >= window.from_s;
      changes.push(
        { at_s: Math.max(window.from_s, from_s), to_s, sign: 1, part, begins },
        { at_s: to_s, to_s, sign: -1, part, begins: false },
      );
    }
  }
  return changes.sort((a, b) => a.at_s - b.at_s || a.sign - b.sign);
}
