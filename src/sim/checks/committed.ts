// What was committed of one kind of object, against what a restarted server finds: what was committed is there until it has ended, and does not live again.

import { fail } from "./violation.ts";

type Objects = { has(id: string): boolean };

export class Committed {
  readonly #invariant: string;
  /** true: it lives */
  readonly #live = new Map<string, boolean>();
  /** how the batch under way will change that */
  #pending: readonly (readonly [id: string, live: boolean])[] = [];

  /** invariant: that a violation is of. */
  constructor(invariant: string) {
    this.#invariant = invariant;
  }

  /** Whether it was committed once. */
  has(id: string): boolean {
    return this.#live.has(id);
  }

  ids(): Iterable<string> {
    return this.#live.keys();
  }

  /** A batch leaves the core. */
  take(changed: ReadonlySet<string>, objects: Objects): void {
    this.#pending = [...changed].map((id) => [id, objects.has(id)] as const);
  }

  /** The batch is on the disk. */
  commit(): void {
    for (const [id, live] of this.#pending) {
      if (this.#live.get(id) === false && live) fail(`${this.#invariant} ${id} had ended and lives again`);
      this.#live.set(id, live);
    }
    this.#pending = [];
  }

  /** A server came up from the disk with these. */
  load(objects: Objects): void {
    this.#pending = [];
    for (const [id, live] of this.#live)
      if (live !== objects.has(id))
        fail(`${this.#invariant} ${id} was committed as ${live ? "live" : "ended"} and is ${live ? "gone" : "there"} after a start`);
  }
}
