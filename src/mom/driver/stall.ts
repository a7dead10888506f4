// A mom that stood still (SIGSTOP, a host that hangs) may count as lost at its server. The mom finds this out by its
// own clock before it does anything else.
//
// L1. The limit is a third of the time after which the server gives up on a mom (src/server/moms/heartbeat.ts H1). The
//     server asks four times in that time: a mom it has given up has stood still for three quarters of the time at least.
//     A mom that is under the limit has answered, or will before the server gives up.

/** The default until the server has sent its own value. */
const SILENCE_S_DEFAULT = 45;

export type StallWatch = {
  /**
   * Must be called at every event, and at intervals while there are none. If the mom stood still for too long,
   * returns that time in ms; otherwise 0.
   */
  look(now_ms: number): number;
  /** silence_s: the value in the server's mom-ping; 0: the server does not ask */
  setSilence(silence_s: number): void;
  /** how often to look */
  readonly period_ms: number;
};

/** now_ms: of a clock that is never set, as in look(). */
export function stallWatch(now_ms: number): StallWatch {
  let last_ms = now_ms;
  let limit_ms = (1000 * SILENCE_S_DEFAULT) / 3;
  return {
    look(at_ms) {
      const stood_ms = at_ms - last_ms;
      last_ms = at_ms;
      return stood_ms > limit_ms ? stood_ms : 0;
    },
    setSilence(silence_s) {
      limit_ms = silence_s === 0 ? Number.POSITIVE_INFINITY : (1000 * silence_s) / 3;
    },
    get period_ms() {
      return Math.min(1000, limit_ms / 4);
    },
  };
}
