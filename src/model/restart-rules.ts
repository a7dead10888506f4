// When a daemon that has crashed is started again: a scheduler by its server, or by its keeper on another host
// (docs/schedulers.md). Pure: the decision follows from the times of the crashes.
//
// R1. After the first crashes the daemon is started again at once. When there have been crashes_max crashes within the window, it
//     needs attention, and the delay before the next start grows with each crash.

type RestartRules = {
  /** number of crashes within the window at which the daemon needs attention */
  readonly crashes_max: number;
  readonly window_ms: number;
  /** each crash after crashes_max adds this to the delay */
  readonly delay_step_ms: number;
  readonly delay_max_ms: number;
};

const RESTARTS: RestartRules = { crashes_max: 3, window_ms: 3_600_000, delay_step_ms: 10_000, delay_max_ms: 300_000 };

type AfterCrash = {
  /** times of the crashes that still count; the last is the present crash */
  readonly crashes: number[];
  readonly attention: boolean;
  /** delay before the daemon is started again */
  readonly delay_ms: number;
};

/** What follows from a crash now. crashes: the times of earlier crashes. */
export function afterCrash(crashes: readonly number[], now_ms: number, rules: RestartRules = RESTARTS): AfterCrash {
  const counted = [...crashes.filter((time) => now_ms - time < rules.window_ms), now_ms];
  const over = counted.length - rules.crashes_max;
  if (over < 0) return { crashes: counted, attention: false, delay_ms: 0 };
  return { crashes: counted, attention: true, delay_ms: Math.min((over + 1) * rules.delay_step_ms, rules.delay_max_ms) };
}
