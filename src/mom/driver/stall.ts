// Finds out whether the mom has stood still (SIGSTOP, a host that hangs). Its server may then have given it up, so the mom
// looks at its clock before it does anything else.
//
// L1. The server gives a mom up after a time of silence, in which it asks the mom four times (src/server/moms/heartbeat.ts H1). So a mom that it has given up has
//     stood still for at least three quarters of that time. The limit is a third of the time of silence: a mom that stood still for less has answered the server, or
//     will answer before the server gives it up.

/** The time after which the server gives a mom up, until the server has sent its own value. */
const SILENCE_S_DEFAULT = 45;

export type StallWatch = {
  /**
   * Must be called at every event, and at intervals while there are no events. Returns the time in ms since the last call if the mom has stood still for too
   * long; otherwise 0.
   */
  look(now_ms: number): number;
  /** Sets the time after which the server gives this mom up. silence_s: the value in the server's mom-ping; 0: the server does not ask */
  setSilence(silence_s: number): void;
  /** the time of the last call of look() */
  readonly looked_ms: number;
  /** how often look() must be called */
  readonly period_ms: number;
};

/** Makes a stall watch. now_ms: the time of a monotonic clock, which nobody can adjust. look() takes the time of the same clock. */
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
    get looked_ms() {
      return last_ms;
    },
    get period_ms() {
      return Math.min(1000, limit_ms / 4);
    },
  };
}
