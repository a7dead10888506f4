// Things to do at a time: a heap of named times. The core never waits; the shell asks for the next time and calls the core then.
//
// I1. A name has one time at most; setting it again replaces it.

export type Timers = {
  /** at: in the unit of the caller (the core: epoch milliseconds) */
  set(name: string, at: number): void;
  clear(name: string): void;
  at(name: string): number | undefined;
  /** the earliest time; null: nothing to do */
  next(): number | null;
  /** moves all times except those that stay */
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
    for (let top = heap[0]; top !== undefined && isStale(top); top = heap[0]) pop(heap);
  };
  return {
    set(name, at) {
      if (times.get(name) === at) return;
      times.set(name, at);
      push(heap, { name, at });
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
        const { name } = pop(heap);
        times.delete(name);
        names.push(name);
      }
      return names;
    },
  };
}

function push(heap: Entry[], entry: Entry): void {
  let at = heap.length;
  heap.push(entry);
  while (at > 0) {
    const parent = (at - 1) >> 1;
    if ((heap[parent] as Entry).at <= entry.at) break;
    heap[at] = heap[parent] as Entry;
    at = parent;
  }
  heap[at] = entry;
}

function pop(heap: Entry[]): Entry {
  const top = heap[0] as Entry;
  const last = heap.pop() as Entry;
  if (heap.length === 0) return top;
  let at = 0;
  for (;;) {
    let child = 2 * at + 1;
    if (child >= heap.length) break;
    if (child + 1 < heap.length && (heap[child + 1] as Entry).at < (heap[child] as Entry).at) child++;
    if ((heap[child] as Entry).at >= last.at) break;
    heap[at] = heap[child] as Entry;
    at = child;
  }
  heap[at] = last;
  return top;
}
