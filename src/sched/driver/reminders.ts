// Messages of a scheduler that depend on the clock: a request for a cycle now or at a later time, and the present problem.

import type { ClockPort } from "./ports.ts";

const WAKE_MS = 1000;
const PROBLEM_MS = 3000;
/** Longest wait of a timer in ms. Before a longer wait is over, another cycle sets the timer again. */
const TIMER_MS_MAX = 2 ** 31 - 1;

export type RemindersOptions = {
  readonly clock: ClockPort;
  sendWake(): void;
  sendProblem(problem: string | null): void;
  problem(): string | null;
};

export class Reminders {
  readonly #options: RemindersOptions;
  #is_wish_set = false;
  #cancelBound: () => void = () => undefined;
  #bound_s: number | null = null;
  #is_telling = false;
  #told: string | null = null;

  constructor(options: RemindersOptions) {
    this.#options = options;
  }

  /** when a cycle is wanted, in epoch seconds; null: at no certain time */
  get bound_s(): number | null {
    return this.#bound_s;
  }

  /** Requests a cycle. Several requests within a short time are sent as one. */
  wake(): void {
    if (this.#is_wish_set) return;
    this.#is_wish_set = true;
    this.#options.clock.after(WAKE_MS, () => {
      this.#is_wish_set = false;
      this.#options.sendWake();
    });
  }

  /**
   * Requests a cycle at this time (epoch seconds), when dedicated or prime time changes. Jobs that wait for the change then
   * start at once and not only after scheduler_iteration. null: no job waits for a change.
   */
  wakeAt(bound_s: number | null): void {
    const { clock, sendWake } = this.#options;
    this.#cancelBound();
    this.#bound_s = bound_s;
    if (bound_s === null) return;
    this.#cancelBound = clock.after(Math.min(TIMER_MS_MAX, Math.max(0, bound_s * 1000 - clock.wall_ms())), () => {
      this.#bound_s = null;
      sendWake();
    });
  }

  /**
   * Sends the problem of modules to the server, which shows it in the comment. The same problem is sent again only after a while: if the server cannot store it
   * (its disk is full), it sends a snapshot without the problem, and the scheduler would otherwise send the problem again at once.
   */
  tellProblem(): void {
    const { clock, problem, sendProblem } = this.#options;
    const now = problem();
    const wait_ms = now === this.#told ? PROBLEM_MS : 0;
    this.#told = now;
    if (this.#is_telling) return;
    this.#is_telling = true;
    clock.after(wait_ms, () => {
      this.#is_telling = false;
      sendProblem(problem());
    });
  }
}
