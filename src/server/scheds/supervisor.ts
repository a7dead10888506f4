// Decides when a scheduler that has crashed is started again (docs/schedulers.md). Pure: the decision follows from the times
// of the crashes.
//
// I1. After the first crashes the scheduler is started again at once. When there have been crashes_max crashes within the
//     window, the comment becomes NEEDS_ATTENTION, and the delay before the next start grows with each crash.
// I2. The server overwrites only comments that it wrote itself.

import { ATTRS_FAULT, LOG_FAULT, NO_PARTITION, NOT_REACHED, PRIV_FAULT } from "#protocol/sched-link.ts";
import type { Silence } from "../engine/sched-runtime.ts";

export type SupervisionPolicy = {
  /** number of crashes within the window at which the scheduler needs attention */
  readonly crashes_max: number;
  readonly window_ms: number;
  /** each crash after crashes_max adds this to the delay */
  readonly delay_step_ms: number;
  readonly delay_max_ms: number;
};

/** The defaults. pbs.conf can change them: PARTITA_SCHED_CRASHES_MAX, _CRASH_WINDOW, _RESTART_DELAY, _RESTART_DELAY_MAX (seconds). */
export const SUPERVISION: SupervisionPolicy = { crashes_max: 3, window_ms: 3_600_000, delay_step_ms: 10_000, delay_max_ms: 300_000 };

export const NEEDS_ATTENTION = "NEEDS_ATTENTION";
export const READY_TO_USE = "READY_TO_USE";
/** Beginning of the comment about a problem of a scheduler's modules. */
export const PROBLEM = `${NEEDS_ATTENTION}: `;
export const isProblem = (comment: unknown): boolean => typeof comment === "string" && comment.startsWith(PROBLEM);

/** The text about a scheduler that does not answer: in the log, and after PROBLEM in the comment. */
export function silentText({ pid, stopped, heard_ms }: Silence, now_ms: number): string {
  const seconds = Math.round((now_ms - heard_ms) / 1000);
  return `has not answered for ${seconds} seconds, process ${pid}${stopped ? " is stopped" : ""}`;
}

export type AfterCrash = {
  /** times of the crashes that still count; the last is the present crash */
  readonly crashes: number[];
  readonly attention: boolean;
  /** delay before the scheduler is started again */
  readonly delay_ms: number;
};

/** What follows from a crash now. crashes: the times of earlier crashes. */
export function afterCrash(crashes: readonly number[], now_ms: number, policy: SupervisionPolicy = SUPERVISION): AfterCrash {
  const counted = [...crashes.filter((time) => now_ms - time < policy.window_ms), now_ms];
  const over = counted.length - policy.crashes_max;
  if (over < 0) return { crashes: counted, attention: false, delay_ms: 0 };
  return { crashes: counted, attention: true, delay_ms: Math.min((over + 1) * policy.delay_step_ms, policy.delay_max_ms) };
}

/** Faults that a scheduler reports (docs/reference/scheduler.md 2). The server writes them into the comment and removes them again. */
const FAULTS: ReadonlySet<string> = new Set([
  PRIV_FAULT,
  LOG_FAULT,
  "Unable to change the sched_priv directory",
  "Unable to change the sched_logs directory",
  "scheduler can not access it's priv directory",
  "scheduler can not access it's log directory",
  ATTRS_FAULT,
]);

/** Whether a comment is one of FAULTS. */
export const isFault = (comment: unknown): boolean => FAULTS.has(String(comment));

/** Whether the server may replace or remove this comment. given: the last fault that the scheduler reported. */
export function isServersComment(comment: unknown, given: string | null = null): boolean {
  return (
    comment === undefined ||
    comment === NEEDS_ATTENTION ||
    comment === READY_TO_USE ||
    comment === given ||
    comment === NO_PARTITION ||
    isProblem(comment) ||
    String(comment).startsWith(NOT_REACHED) ||
    isFault(comment)
  );
}
