// Compares the committed objects of one kind (jobs or reservations) with those that a restarted server finds. A committed
// object exists until it has ended, and an ended object does not come back.

import { fail } from "./violation.ts";

type Objects = { has(id: string): boolean };

export class Committed {
  readonly #invariant: string;
  /** for each object that was ever committed, whether it still exists */
  readonly #live = new Map<string, boolean>();
  /** what the batch that is being committed changes */
  #pending: readonly (readonly [id: string, live: boolean])[] = [];

  /** invariant: the number that a violation names, such as K2. */
  constructor(invariant: string) {
    this.#invariant = invariant;
  }

  /** Returns whether the object was ever committed. */
  has(id: string): boolean {
    return this.#live.has(id);
  }

  ids(): Iterable<string> {
    return this.#live.keys();
  }

  /** Must be called when the server sends a batch of changes to its disk. */
  take(changed: ReadonlySet<string>, objects: Objects): void {
    this.#pending = [...changed].map((id) => [id, objects.has(id)] as const);
  }

  /** Must be called when the batch has been written to the disk. */
  commit(): void {
    for (const [id, live] of this.#pending) {
      if (this.#live.get(id) === false && live) fail(`${this.#invariant} ${id} had ended and lives again`);
      this.#live.set(id, live);
    }
    this.#pending = [];
  }

  /** Must be called when a server has started from the disk with these objects. */
  load(objects: Objects): void {
    this.#pending = [];
    for (const [id, live] of this.#live)
      if (live !== objects.has(id))
        fail(`${this.#invariant} ${id} was committed as ${live ? "live" : "ended"} and is ${live ? "gone" : "there"} after a start`);
  }
}
