// The tasks of a campaign that are not submitted and not done. They are taken in this order: first the tasks that came back, by descending priority; then the tasks
// that were never submitted; last the tasks that came back with the lowest priority. Of the tasks that were never submitted, the bag keeps only the next number.
//
// B1. A task that must run on one cluster is never taken for another one, unless the first cluster was given up (giveUp).
// B2. A task that should avoid a cluster is taken for that cluster only when no other task is left for it.

import { heapPop, heapPush } from "#support/heap.ts";

/** Where a task that came back runs again. only: on this cluster. avoid: if possible, on a cluster other than this one. */
export type Place = { readonly only: string } | { readonly avoid: string };

/** A task that was submitted before, and must be submitted again. place absent: anywhere. */
type Returned = { readonly task: number; readonly priority: number; readonly place?: Place };
const before = (a: Returned, b: Returned): boolean => a.priority > b.priority || (a.priority === b.priority && a.task < b.task);

/** Priority of a task that is taken after all others. */
export const PRIORITY_LAST = 0;
/** Priority of a task whose job was ended by its cluster or taken back. */
const PRIORITY_AGAIN = 20;

/** What is left of a bag, as a store keeps it. next: the first task that was never taken. */
export type BagRest = { readonly next: number; readonly returned: readonly Returned[] };

export class TaskBag {
  #count: number;
  #next: number;
  /** tasks that came back, by their place (keyOf) */
  readonly #returned = new Map<string, Returned[]>();

  /** rest: what is left of an earlier bag of the same tasks; absent: nothing was taken yet. */
  constructor(count: number, rest: BagRest = { next: 0, returned: [] }) {
    this.#count = count;
    this.#next = rest.next;
    for (const { task, priority, place } of rest.returned) this.giveBack(task, priority, place);
  }

  get rest(): BagRest {
    return { next: this.#next, returned: [...this.#returned.values()].flat() };
  }

  /** Adds tasks, with numbers after those of all other tasks. */
  grow(count: number): void {
    this.#count += count;
  }

  get size(): number {
    let size = this.#count - this.#next;
    for (const heap of this.#returned.values()) size += heap.length;
    return size;
  }

  /** Returns how many tasks may be taken for a cluster. */
  sizeFor(cluster: string): number {
    let size = this.size;
    for (const [key, heap] of this.#returned) if (key.startsWith(ONLY) && key !== ONLY + cluster) size -= heap.length;
    return size;
  }

  /** Takes the next task for a cluster. Returns null if the bag has no task for this cluster. */
  take(cluster = ""): number | null {
    const own = AVOID + cluster;
    let heap = ANYWHERE;
    let first: Returned | undefined;
    for (const [key, [top]] of this.#returned) {
      if (key === own || (key.startsWith(ONLY) && key !== ONLY + cluster) || top === undefined) continue;
      if (first === undefined || before(top, first)) [heap, first] = [key, top];
    }
    if (this.#next < this.#count && (first === undefined || first.priority === PRIORITY_LAST)) return this.#next++;
    return this.#pop(first === undefined ? own : heap);
  }

  giveBack(task: number, priority = PRIORITY_AGAIN, place?: Place): void {
    const key = keyOf(place);
    const heap = this.#returned.get(key) ?? [];
    this.#returned.set(key, heap);
    heapPush(heap, { task, priority, ...(place === undefined ? {} : { place }) }, before);
  }

  /** Lets tasks that must run on a cluster run anywhere. */
  giveUp(cluster: string): void {
    const heap = this.#returned.get(ONLY + cluster) ?? [];
    this.#returned.delete(ONLY + cluster);
    for (const { task, priority } of heap) this.giveBack(task, priority);
  }

  #pop(key: string): number | null {
    const heap = this.#returned.get(key);
    if (heap === undefined) return null;
    const task = heapPop(heap, before)?.task ?? null;
    if (heap.length === 0) this.#returned.delete(key);
    return task;
  }
}

const ANYWHERE = "";
const ONLY = "=";
const AVOID = "!";
const keyOf = (place: Place | undefined): string =>
  place === undefined ? ANYWHERE : "only" in place ? ONLY + place.only : AVOID + place.avoid;
