// The thread of a simulated process. Its work takes simulated time: input that arrives meanwhile waits, and output leaves at the end of the work. The
// thread can be stopped and continued (SIGSTOP, SIGCONT), and killed.
//
// T1. Input is handled in the order of its arrival. Output leaves in the order in which it was made, before further input is handled.

import type { World } from "./world.ts";

type Act = () => void;

export class BusyThread {
  readonly #world: World;
  #is_alive = true;
  #is_stopped = false;
  #is_draining = false;
  #busy_until_ms = 0;
  #in: Act[] = [];
  #out: Act[] = [];

  constructor(world: World) {
    this.#world = world;
  }

  /** Whether the thread has no work, and nothing waits. */
  get isFree(): boolean {
    return this.#isRunning && this.#in.length === 0 && this.#out.length === 0;
  }

  get #isRunning(): boolean {
    return this.#is_alive && !this.#is_stopped && this.#world.now_ms >= this.#busy_until_ms;
  }

  /** Handles input now or, if the thread is not free, as soon as it is free. */
  do(act: Act): void {
    this.#in.push(act);
    this.#drain();
  }

  /** Sends output now or, if the thread is working, at the end of the work. */
  send(act: Act): void {
    this.#out.push(act);
    this.#drain();
  }

  /** Makes the present work take for_ms milliseconds of simulated time. */
  work(for_ms: number): void {
    const whole_ms = Math.ceil(for_ms);
    if (whole_ms <= 0) return;
    this.#busy_until_ms = Math.max(this.#busy_until_ms, this.#world.now_ms) + whole_ms;
    this.#world.after(this.#busy_until_ms - this.#world.now_ms, () => this.#drain());
  }

  stop(): void {
    this.#is_stopped = true;
  }

  goOn(): void {
    this.#is_stopped = false;
    this.#drain();
  }

  kill(): void {
    this.#is_alive = false;
    this.#in = [];
    this.#out = [];
  }

  #drain(): void {
    if (this.#is_draining) return;
    this.#is_draining = true;
    try {
      while (this.#isRunning) {
        const act = this.#out.shift() ?? this.#in.shift();
        if (act === undefined) break;
        act();
      }
    } finally {
      this.#is_draining = false;
    }
  }
}
