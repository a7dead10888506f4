// The comments of the server about schedulers that have crashed, do not answer or report a fault (docs/schedulers.md).
//
// I1. A scheduler that has crashed too often (#model/restart-rules.ts) has the comment NEEDS_ATTENTION.
// I2. The server overwrites only comments that it wrote itself.

import { ATTRS_FAULT, LOG_FAULT, NO_PARTITION, NOT_REACHED, PRIV_FAULT } from "#protocol/sched-link.ts";
import type { Silence } from "../engine/sched-runtime.ts";

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
