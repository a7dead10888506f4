// What a scheduler tells the server by the clock: that it wants a cycle, now that something has come or comes at a time, and what its problem is.

const WAKE_MS = 1000;
const PROBLEM_MS = 3000;
/** timers cannot wait longer; the cycle in between sets the next one */
const TIMER_MS_MAX = 2 ** 31 - 1;

export type Reminders = {
  /** a wish for a cycle; wishes are gathered */
  wake(): void;
  /** dedicated or prime time changes then (epoch seconds): what waits for it is not left to the next scheduler_iteration. null: nothing waits */
  wakeAt(bound_s: number | null): void;
  /**
   * The comment says what the host says. The same is told again after a while only: a server that cannot write it (its disk is full) sends a snapshot
   * without it, which is a reason to tell it again.
   */
  tellProblem(): void;
};

export type RemindersOptions = {
  sendWake(): void;
  sendProblem(problem: string | null): void;
  problem(): string | null;
};

export function createReminders({ sendWake, sendProblem, problem }: RemindersOptions): Reminders {
  let wish: NodeJS.Timeout | null = null;
  let bound: NodeJS.Timeout | undefined;
  let telling: NodeJS.Timeout | null = null;
  let told: string | null = null;

  function wakeNow(): void {
    wish = null;
    sendWake();
  }

  return {
    wake: () => void (wish ??= setTimeout(wakeNow, WAKE_MS)),
    wakeAt(bound_s) {
      clearTimeout(bound);
      if (bound_s !== null) bound = setTimeout(wakeNow, Math.min(TIMER_MS_MAX, Math.max(0, bound_s * 1000 - Date.now()))).unref();
    },
    tellProblem() {
      const now = problem();
      const wait_ms = now === told ? PROBLEM_MS : 0;
      told = now;
      if (telling === null)
        telling = setTimeout(() => {
          telling = null;
          sendProblem(problem());
        }, wait_ms).unref();
    },
  };
}
