// Messages of a scheduler that depend on the clock: a request for a cycle now or at a later time, and the present problem.

import type { ClockPort } from "./ports.ts";

const WAKE_MS = 1000;
const PROBLEM_MS = 3000;
/** timers cannot wait longer; the cycle in between sets the next one */
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

  /** when a cycle is wanted (epoch seconds); null: at no certain time */
  get bound_s(): number | null {
    return this.#bound_s;
  }

  /** requests a cycle; several requests are sent as one */
  wake(): void {
    if (this.#is_wish_set) return;
    this.#is_wish_set = true;
    this.#options.clock.after(WAKE_MS, () => {
      this.#is_wish_set = false;
      this.#options.sendWake();
    });
  }

  /**
   * requests a cycle at this time (epoch seconds), when dedicated or prime time changes: jobs that wait for the
   * change must not wait for the next scheduler_iteration. null: no job waits for it
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
   * The comment shows the host's problem. The same problem is sent again only after a while: a server that cannot store it (its
   * disk is full) sends a snapshot without it, which would cause it to be sent again at once.
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
