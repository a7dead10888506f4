// Virtual time: a queue of events, a clock that jumps from event to event, and a trace of the events. Everything in the
// simulator happens in an event of this queue.
//
// W1. Events run in the order of their times. Events of the same time run in the order of their creation. Everything
//     therefore happens in the same way again when a seed is repeated.
// W2. No code here reads the machine's clock.

import { heapPop, heapPush } from "#support/heap.ts";
import type { Prng } from "#support/prng.ts";

/** Friday, 20 November 2026, 09:26:28 UTC */
export const START_MS = 1_795_166_788_000;

type Event = { readonly at_ms: number; readonly order: number; readonly act: () => void | Promise<void> };

/** One line of the trace. detail: text, data, or a function that returns one of these. It is converted to text only when the line is printed. */
export type TraceLine = {
  readonly step: number;
  readonly now_ms: number;
  readonly who: string;
  readonly what: string;
  readonly detail: unknown;
};

export type World = {
  readonly random: Prng;
  /** the time in epoch milliseconds by the steady clock, which moms and their starters use */
  readonly now_ms: number;
  /** the time in epoch milliseconds by the wall clock of server and schedulers */
  readonly wall_ms: number;
  /** Sets the wall clock to this difference from now_ms. */
  setWall(ahead_ms: number): void;
  /** number of events so far */
  readonly step: number;
  readonly trace: Trace;
  /** Schedules `act` after a delay. */
  after(delay_ms: number, act: () => void | Promise<void>): void;
  /** Carries out the next event. Returns false if there is none before the time. */
  next(until_ms: number): Promise<boolean>;
  /** Lets time pass without an event. */
  sleepUntil(time_ms: number): void;
};

export type Trace = {
  add(who: string, what: string, detail?: unknown): void;
  /** the latest lines, oldest first */
  readonly lines: readonly TraceLine[];
};

/** Creates the queue, the clocks and the trace. keep: number of lines of the trace that are kept. onLine: called with each line at once. */
export function createWorld(random: Prng, keep: number, onLine: ((line: TraceLine) => void) | null): World {
  const queue: Event[] = [];
  let now_ms = START_MS;
  let ahead_ms = 0;
  let order = 0;
  let step = 0;
  const lines: TraceLine[] = [];
  const trace: Trace = {
    add(who, what, detail) {
      const line = { step, now_ms, who, what, detail };
      if (lines.length >= 2 * keep) lines.splice(0, lines.length - keep + 1);
      lines.push(line);
      onLine?.(line);
    },
    get lines() {
      return lines.slice(-keep);
    },
  };
  return {
    random,
    trace,
    get now_ms() {
      return now_ms;
    },
    get wall_ms() {
      return now_ms + ahead_ms;
    },
    setWall(by_ms) {
      ahead_ms = by_ms;
    },
    get step() {
      return step;
    },
    after(delay_ms, act) {
      heapPush(queue, { at_ms: now_ms + Math.max(0, delay_ms), order: order++, act }, before);
    },
    async next(until_ms) {
      const first = queue[0];
      if (first === undefined || first.at_ms > until_ms) return false;
      heapPop(queue, before);
      now_ms = Math.max(now_ms, first.at_ms);
      step++;
      const done = first.act();
      if (done !== undefined) await done;
      return true;
    },
    sleepUntil(time_ms) {
      now_ms = Math.max(now_ms, time_ms);
    },
  };
}

/** Returns the time of the steady clock of all hosts: the milliseconds since the simulation began. */
export const steadyMs = (world: World): number => world.now_ms - START_MS;

/** Returns a function that calls actions later, one after the other in the order in which they were given, like a pipe. */
export function pipe(world: World, random: Prng, delay_ms_max: number): (act: () => void) => void {
  let free_ms = 0;
  return (act) => {
    free_ms = Math.max(free_ms, world.now_ms + random.int(0, delay_ms_max));
    world.after(free_ms - world.now_ms, act);
  };
}

const before = (a: Event, b: Event): boolean => a.at_ms < b.at_ms || (a.at_ms === b.at_ms && a.order < b.order);

/** Returns a line of the trace as a text: `  412   13.037 svr          commit       {...}` (README.md explains the columns). */
export function traceText(line: TraceLine): string {
  const seconds = ((line.now_ms - START_MS) / 1000).toFixed(3);
  const told = typeof line.detail === "function" ? (line.detail as () => unknown)() : line.detail;
  const detail = told === undefined ? "" : typeof told === "string" ? told : JSON.stringify(told);
  return `${String(line.step).padStart(6)} ${seconds.padStart(10)} ${line.who.padEnd(14)} ${line.what.padEnd(16)} ${detail}`.trimEnd();
}
