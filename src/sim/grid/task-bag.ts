// The tasks of a campaign that are not submitted and not done. Tasks that came back are taken first, those with the higher priority
// before the others. Then follow the tasks that were never submitted; of these only the next number is kept.

import { heapPop, heapPush } from "#support/heap.ts";

type Returned = { readonly task: number; readonly priority: number };
const before = (a: Returned, b: Returned): boolean => a.priority > b.priority || (a.priority === b.priority && a.task < b.task);

/** Priority of a task whose job was ended by its cluster or taken back. */
const PRIORITY_AGAIN = 20;

export class TaskBag {
  readonly #count: number;
  #next = 0;
  readonly #returned: Returned[] = [];

  constructor(count: number) {
    this.#count = count;
  }

  get size(): number {
    return this.#count - this.#next + this.#returned.length;
  }

  /** Takes the next task. null: the bag is empty. */
  take(): number | null {
    const back = heapPop(this.#returned, before);
    if (back !== undefined) return back.task;
    return this.#next < this.#count ? this.#next++ : null;
  }

  giveBack(task: number, priority = PRIORITY_AGAIN): void {
    heapPush(this.#returned, { task, priority }, before);
  }
}
