// Shows the vnodes of a set as they will be at a later time. The time can be changed step by step. Running entries that will have ended by then are removed and
// hosts are moved to the buckets of their states at that time, so that placement works as usual. Bookings are in the outlook of hosts. A step in time moves
// only the hosts of entries that end in between.
//
// F1. While a forecast shows another time than now, no other code moves hosts of its set. close() shows the present again, with the bookings made meanwhile.
// F2. Jobs whose end is unknown (jobs of another scheduler, suspended jobs) stay on their vnodes.

import { present } from "#support/assert.ts";
import { moveHost, undoMoves } from "../place/node-sets.ts";
import type { Running } from "../shapes/booking.ts";
import type { Amount } from "../shapes/request.ts";
import { amountAt } from "../shapes/resource-space.ts";
import { endOf, holdingOf, jobsOn } from "../shapes/running.ts";
import type { Universe } from "../shapes/universe.ts";
import type { Host, HostBucket, NodeSet, Vnode, VnodeState } from "../shapes/vnode.ts";
import { isChecked } from "../shapes/vnode-fit.ts";
import { stateWords } from "../shapes/vnode-state.ts";
import { endsInOrder } from "./calendar.ts";

export type Forecast = {
  /** the time that the forecast shows */
  readonly at_s: number;
  /** running entries by their ends; the first `over` of them have ended by at_s */
  readonly ends: readonly Running[];
  readonly over: number;
  /** Changes the time that the forecast shows. A time before now counts as now. */
  goTo(at_s: number): void;
  /** Returns whether a job that runs now has ended by at_s. */
  isOver(id: string): boolean;
  /** Returns the time before which the whole set has too little of some resource; Infinity: it never has enough. */
  enoughFrom(totals: readonly Amount[]): number;
  /** whether enoughFrom() was called before, so that further calls are cheap */
  readonly knowsEnough: boolean;
  /** Sets the function that is called for each host that moves from now on. */
  listen(onMove: MoveListener): void;
  close(): void;
};

/** A function that is called when a host has moved from one bucket to another. */
export type MoveListener = (from: HostBucket, to: HostBucket) => void;

/** Creates a forecast, which at first shows the present. */
export function createForecast(universe: Universe, set: NodeSet, now_s: number): Forecast {
  const { calendar, space } = universe;
  const ends = endsInOrder(universe, now_s);
  /** the bucket of each moved host before the forecast moved it */
  const found = new Map<Host, HostBucket>();
  let [at_s, over] = [now_s, 0];
  let onMove: MoveListener = () => undefined;
  const sums = new Map<number, Float64Array>();

  function show(host: Host): void {
    const from = host.bucket;
    const now = found.get(host) ?? from;
    if (from === null || now === null) return;
    const states = statesAt(universe, host, now.states, { now_s, at_s });
    for (const [moved, bucket] of moveHost(universe, universe.policy, host, states)) if (!found.has(moved)) found.set(moved, bucket);
    if (host.bucket !== null && host.bucket !== from) onMove(from, host.bucket);
  }

  /** Shows again the hosts on which entries end between two positions in `ends`. */
  function showBetween(from: number, to: number): void {
    const shown = new Set<Host>();
    for (let at = from; at < to; at++) {
      for (const name of holdingOf(space, present(ends[at], "run")).keys()) {
        const vnode = universe.vnodes.get(name);
        if (vnode === undefined || vnode.set !== set || shown.has(vnode.host)) continue;
        shown.add(vnode.host);
        show(vnode.host);
      }
    }
  }

  return {
    ends,
    get at_s() {
      return at_s;
    },
    get over() {
      return over;
    },
    goTo(wanted_s) {
      const before = over;
      at_s = Math.max(now_s, wanted_s);
      while (over < ends.length && endOf(present(ends[over], "run"), now_s) <= at_s) over++;
      while (over > 0 && endOf(present(ends[over - 1], "run"), now_s) > at_s) over--;
      if (over !== before) showBetween(Math.min(before, over), Math.max(before, over));
    },
    isOver(id) {
      const running = calendar.running.get(id);
      return running !== undefined && endOf(running, now_s) <= at_s;
    },
    enoughFrom(totals) {
      let enough = 0;
      for (const { index, amount } of totals) {
        if (!isBound(universe, index)) continue;
        let left = sums.get(index);
        if (left === undefined) sums.set(index, (left = sumsOf(universe, set, { ends, over }, index)));
        while (enough < left.length && present(left[enough], "amount") + ROUNDING < amount) enough++;
      }
      if (enough === 0) return now_s;
      return enough > ends.length ? Number.POSITIVE_INFINITY : endOf(present(ends[enough - 1], "run"), now_s);
    },
    get knowsEnough() {
      return sums.size > 0;
    },
    listen(listener) {
      onMove = listener;
    },
    close() {
      undoMoves(universe, found);
      found.clear();
      [at_s, over] = [now_s, 0];
    },
  };
}

/**
 * Returns how much of a resource a set has left after the first 0, 1, 2, ... entries have ended. Vnodes whose state
 * keeps jobs off are included.
 */
function sumsOf(universe: Universe, set: NodeSet, forecast: Pick<Forecast, "ends" | "over">, index: number): Float64Array {
  const { ends, over } = forecast;
  const left = new Float64Array(ends.length + 1);
  for (let at = 0; at < ends.length; at++) {
    let sum = present(left[at], "amount");
    for (const [name, { amounts }] of holdingOf(universe.space, present(ends[at], "run"))) {
      if (universe.vnodes.get(name)?.set !== set) continue;
      for (const one of amounts) if (one.index === index) sum += one.amount;
    }
    left[at + 1] = sum;
  }
  const now = leftIn(set, index) - present(left[over], "amount");
  for (let at = 0; at < left.length; at++) left[at] = present(left[at], "amount") + now;
  return left;
}

function leftIn(set: NodeSet, index: number): number {
  let left = 0;
  for (const { count, states } of set.buckets.values()) {
    if (count === 0) continue;
    for (const { spec, used } of states) left += count * Math.max(0, amountAt(spec.avail, index) - amountAt(used, index));
  }
  return left;
}

/** Returns whether a resource is checked, and does not count as infinite when it is unset. */
function isBound({ checks, policy, space }: Universe, index: number): boolean {
  return isChecked(checks, index) && !policy.resource_unset_infinite.has(space.consumed[index]?.name ?? "");
}

/** Tolerance for sums: fractions are added in another order than they were taken, so the results differ slightly. */
const ROUNDING = 1e-6;

type Times = { readonly now_s: number; readonly at_s: number };

/** Computes the states of a host's vnodes at a time from their present states. */
function statesAt(universe: Universe, host: Host, states: readonly VnodeState[], times: Times): readonly VnodeState[] {
  const then = host.vnodes.map((vnode) => thenOn(universe, vnode, times));
  if (then.every(({ ended }, at) => ended.length === 0 && states[at]?.closed === undefined)) return states;
  return host.vnodes.map((vnode, at) => {
    const state = present(states[at], "state");
    const there = present(then[at], "state");
    const { ended, left } = there;
    if (ended.length === 0 && state.closed === undefined) return state;
    const used = [...state.used];
    for (const running of ended)
      for (const { index, amount } of holdingOf(universe.space, running).get(vnode.name)?.amounts ?? [])
        used[index] = amountAt(used, index) - amount;
    const jobs = state.spec.max_running === undefined ? Math.min(1, left) : left;
    return { spec: state.spec, used, jobs, closed: closedAt(universe, vnode, { ...there, state, used, host: then }) };
  });
}

/** A vnode at a later time: the entries that have ended by then, and how many jobs and reservations remain. */
type Then = {
  readonly ended: readonly Running[];
  readonly left: number;
  /** number of running reservations among the entries that remain (`left`) */
  readonly resvs: number;
  /** whether jobs are on the vnode now */
  readonly had_jobs: boolean;
  /** whether reservations are on the vnode now */
  readonly had_resvs: boolean;
};

function thenOn({ calendar }: Universe, vnode: Vnode, { now_s, at_s }: Times): Then {
  const ended: Running[] = [];
  let left = 0;
  let resvs = 0;
  const look = (running: Running | undefined): void => {
    if (running !== undefined && endOf(running, now_s) <= at_s) ended.push(running);
    else left++;
  };
  let [had_jobs, had_resvs] = [false, false];
  for (const id of jobsOn(vnode)) {
    had_jobs = true;
    look(calendar.running.get(id));
  }
  const besides = calendar.besides.get(vnode.name);
  for (const running of besides ?? []) {
    look(running);
    if (!running.counted) had_jobs = true;
    else {
      had_resvs = true;
      if (endOf(running, now_s) > at_s) resvs++;
    }
  }
  return { ended, left, resvs, had_jobs, had_resvs };
}

type Closing = Then & {
  readonly state: VnodeState;
  readonly used: readonly number[];
  /** each vnode of the host at the later time */
  readonly host: readonly Then[];
};

/**
 * Returns the state word that keeps jobs off a vnode at a later time; undefined: none. A state word that is due to running
 * jobs disappears when they end; one that is due to a reservation disappears when the reservation ends.
 */
function closedAt({ space }: Universe, vnode: Vnode, { state, used, left, resvs, had_jobs, had_resvs, host }: Closing): string | undefined {
  const { closed, spec } = state;
  const avail = amountAt(spec.avail, space.ncpus);
  const busy = avail > 0 && amountAt(used, space.ncpus) >= avail ? "job-busy" : undefined;
  if (closed === undefined || closed === "job-busy") return busy;
  if (closed !== "job-exclusive" && closed !== "resv-exclusive") return closed;
  // Will a job still be on this vnode? If no job is on it now, a job on another vnode of the host has closed it: will such a job still be there?
  const jobs = had_jobs ? left > resvs : host.some((other) => other.left > other.resvs);
  if (closed === "job-exclusive" && jobs) return closed;
  const reserved = closed === "resv-exclusive" || stateWords(vnode.node).includes("resv-exclusive");
  const there = had_resvs ? resvs > 0 : host.some((other) => other.resvs > 0);
  return reserved && there ? "resv-exclusive" : busy;
}
