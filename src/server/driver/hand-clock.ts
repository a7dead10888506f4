// A clock that advances only when the program moves it. It is for what-if and tests, in which everything happens at once.
// Wall clock and steady clock are the same, because no one sets the wall clock.

import type { ClockPort } from "./ports.ts";

type Timer = { readonly at_ms: number; readonly work: () => void };

export class HandClock implements ClockPort {
  /** epoch milliseconds */
  now_ms: number;
  readonly #timers = new Set<Timer>();
  #soon: (() => void)[] = [];

  constructor(now_ms: number) {
    this.now_ms = now_ms;
  }

  wall_ms = (): number => this.now_ms;
  steady_ms = (): number => this.now_ms;

  after(delay_ms: number, work: () => void): () => void {
    const timer = { at_ms: this.now_ms + delay_ms, work };
    this.#timers.add(timer);
    return () => void this.#timers.delete(timer);
  }

  soon(work: () => void): void {
    this.#soon.push(work);
  }

  /** Does the work that was given to soon(). Timers run only in ring(). */
  settle(): void {
    while (this.#soon.length > 0) for (const work of this.#soon.splice(0)) work();
  }

  /** The time of the next timer; Infinity: there is none. */
  get next_ms(): number {
    let next_ms = Number.POSITIVE_INFINITY;
    for (const { at_ms } of this.#timers) next_ms = Math.min(next_ms, at_ms);
    return next_ms;
  }

  /** Runs the timers that are due. */
  ring(): void {
    for (const timer of [...this.#timers].filter(({ at_ms }) => at_ms <= this.now_ms)) if (this.#timers.delete(timer)) timer.work();
  }
}
