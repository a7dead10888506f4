// Timers by name, in a heap. The core never waits: the shell asks for the time of the next timer and calls the core at that
// time.
//
// I1. A name has at most one time. If the name is set again, the new time replaces the old one.

import { heapPop, heapPush } from "#support/heap.ts";

export type Timers = {
  /** at: the time, in the unit of the caller (in the core: epoch milliseconds) */
  set(name: string, at: number): void;
  clear(name: string): void;
  at(name: string): number | undefined;
  /** the time of the next timer; null: there is none */
  next(): number | null;
  /** moves the times of all timers, except those for which stays returns true */
  shift(by: number, stays: (name: string) => boolean): void;
  /** removes and returns the names whose time has come, earliest first */
  due(now: number): string[];
};

type Entry = { readonly name: string; readonly at: number };

export function createTimers(): Timers {
  const times = new Map<string, number>();
  // Entries of replaced and cleared names stay in the heap until they reach its top.
  const heap: Entry[] = [];
  const isStale = (entry: Entry): boolean => times.get(entry.name) !== entry.at;
  const settle = (): void => {
    for (let top = heap[0]; top !== undefined && isStale(top); top = heap[0]) heapPop(heap, earlier);
  };
  return {
    set(name, at) {
      if (times.get(name) === at) return;
      times.set(name, at);
      heapPush(heap, { name, at }, earlier);
    },
    clear: (name) => void times.delete(name),
    at: (name) => times.get(name),
    next() {
      settle();
      return heap[0]?.at ?? null;
    },
    shift(by, stays) {
      for (const [name, at] of [...times]) if (!stays(name)) this.set(name, at + by);
    },
    due(now) {
      const names: string[] = [];
      for (settle(); heap[0] !== undefined && heap[0].at <= now; settle()) {
        const { name } = heap[0];
        heapPop(heap, earlier);
        times.delete(name);
        names.push(name);
      }
      return names;
    },
  };
}

const earlier = (a: Entry, b: Entry): boolean => a.at < b.at;
