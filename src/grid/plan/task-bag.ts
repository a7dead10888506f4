// The tasks of a campaign that are not submitted and not done. Tasks that came back are taken first, those with the higher priority
// before the others. Then follow the tasks that were never submitted, of which only the next number is kept, and then those that came back with the lowest priority.

import { heapPop, heapPush } from "#support/heap.ts";

/** A task that was submitted before, and must be submitted again. */
export type Returned = { readonly task: number; readonly priority: number };
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
  readonly #returned: Returned[] = [];

  /** rest: what is left of an earlier bag of the same tasks; absent: nothing was taken yet. */
  constructor(count: number, rest: BagRest = { next: 0, returned: [] }) {
    this.#count = count;
    this.#next = rest.next;
    for (const { task, priority } of rest.returned) this.giveBack(task, priority);
  }

  get rest(): BagRest {
    return { next: this.#next, returned: [...this.#returned] };
  }

  /** Adds tasks behind all others. */
  grow(count: number): void {
    this.#count += count;
  }

  get size(): number {
    return this.#count - this.#next + this.#returned.length;
  }

  /** Takes the next task. null: the bag is empty. */
  take(): number | null {
    const [first] = this.#returned;
    if (this.#next < this.#count && (first === undefined || first.priority === PRIORITY_LAST)) return this.#next++;
    return heapPop(this.#returned, before)?.task ?? null;
  }

  giveBack(task: number, priority = PRIORITY_AGAIN): void {
    heapPush(this.#returned, { task, priority }, before);
  }
}
