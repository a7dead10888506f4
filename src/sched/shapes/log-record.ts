// A line of the scheduler's log as data. If the text depends on the server's verdict on a decision, the record refers to the
// decision.

import { PBSE } from "#model/pbse.ts";
import type { Decision, Verdict } from "#protocol/sched-link.ts";
import type { LogClass } from "#support/log-event.ts";
import { LOG_EVENT } from "#support/log-event.ts";
import { refusedLogText } from "./reasons.ts";

export type LogRecord = { readonly event: number; readonly class: LogClass; readonly object: string; readonly text: string };
/** The log of a cycle. decision: index of a decision in the cycle's list. */
export type CycleLog = readonly (LogRecord | { readonly decision: number })[];

/** Returns whether the log reports the outcome of a decision. */
export function isToldByVerdict({ kind }: Decision): boolean {
  return kind === "run" || kind === "confirm-resv" || kind === "preempt";
}

const PREEMPTED_BY = { S: "suspension", C: "checkpointing", R: "requeuing", D: "deletion" } as const;

/**
 * Returns the line about a decision: `Job run`, the method of a preemption, or the server's reason for a refusal. null:
 * nothing is logged about this decision.
 */
export function verdictRecord(decision: Decision, verdict: Verdict): LogRecord | null {
  switch (decision.kind) {
    case "run": {
      const text = verdict.ok ? "Job run" : refusedLogText(verdict.text, verdict.code);
      return { event: LOG_EVENT.SCHED, class: "Job", object: decision.job, text };
    }
    case "confirm-resv": {
      const text = verdict.ok ? "Reservation Confirmed" : `PBS Failed to confirm resv: ${verdict.text}`;
      return { event: LOG_EVENT.RESV, class: "Resv", object: decision.resv, text };
    }
    case "preempt": {
      // A job that had ended by itself was not preempted.
      if (verdict.ok ? verdict.method === undefined : verdict.code === PBSE.UNKJOBID) return null;
      const text = verdict.ok ? `Job preempted by ${PREEMPTED_BY[verdict.method ?? "S"]}` : "Job failed to be preempted";
      return { event: LOG_EVENT.SCHED, class: "Job", object: decision.job, text };
    }
    default:
      return null;
  }
}
