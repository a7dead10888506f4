// Jobs whose preemption failed. For a while, cycles choose other jobs in their place (modules/preemption.ts V4). The present cycle tries again at once, but
// only for the jobs that needed the room.
//
// F1. A cycle has at most PREEMPT_TRIES_MAX passes.
// F2. If a job was suspended for another job that then does not start, it resumes in the same cycle, unless another pass needs the room.

import { PBSE } from "#model/pbse.ts";
import type { Decision, Verdict } from "#protocol/sched-link.ts";
import { LOG_EVENT } from "#support/log-event.ts";
import type { LogRecord } from "../shapes/log-record.ts";

/** Number of seconds during which a job whose preemption failed is not chosen again. */
export const FAILED_VICTIM_WAIT_S = 60;

/** Returns whether a verdict says that a job that was to be preempted is still in the way. A job that had ended by then is not. */
function hasFailed(decision: Decision, verdict: Verdict | undefined): boolean {
  return decision.kind === "preempt" && verdict?.ok === false && verdict.code !== PBSE.UNKJOBID;
}

/** Returns the times until which jobs are spared, after the verdicts on a cycle's decisions. */
export function failedVictims(
  before: ReadonlyMap<string, number>,
  decisions: readonly Decision[],
  verdicts: readonly Verdict[],
  now_s: number,
): ReadonlyMap<string, number> {
  const failed = decisions.filter((decision, at) => hasFailed(decision, verdicts[at]));
  if (failed.length === 0) return before;
  const until = new Map(before);
  for (const decision of failed) if ("job" in decision) until.set(decision.job, now_s + FAILED_VICTIM_WAIT_S);
  return until;
}

/** Returns the jobs that did not get room because a preemption failed. Their starts are refused for that reason, and their comments stay. */
export function leftWithoutRoom(decisions: readonly Decision[], verdicts: readonly Verdict[]): ReadonlySet<string> {
  return new Set(
    decisions.flatMap((decision, at) => (decision.kind === "preempt" && hasFailed(decision, verdicts[at]) ? [decision.for] : [])),
  );
}

/** How often a cycle tries to make room for a job if a preemption failed. */
const PREEMPT_TRIES_MAX = 5;

export type Outcome = {
  /** the jobs that are tried again, in their order */
  readonly again: readonly string[];
  /** decisions to resume the jobs whose preemption was of no use */
  readonly rerun: readonly Decision[];
  readonly log: readonly LogRecord[];
};

/** Returns what follows from the verdicts on a pass of a cycle. pass: the number of the pass; the first one is 1. */
export function outcomeOf(decisions: readonly Decision[], verdicts: readonly Verdict[], pass: number): Outcome {
  const missed = leftWithoutRoom(decisions, verdicts);
  if (pass < PREEMPT_TRIES_MAX) return { again: [...missed], ...letGo(decisions, verdicts, (job) => !missed.has(job)) };
  const { rerun, log } = letGo(decisions, verdicts, () => true);
  return { again: [], rerun, log: [...[...missed].map((job) => line(job, TOO_OFTEN)), ...log] };
}

const TOO_OFTEN = "Maximum number of preemption tries exceeded - cannot run job";
const IN_VAIN = "Preempted work didn't run job - rerun it";
const line = (object: string, text: string): LogRecord => ({ event: LOG_EVENT.DEBUG, class: "Job", object, text });

/**
 * Returns decisions to resume the jobs that were suspended without use, because the job that needed the room was not started. Also returns log records about
 * all preemptions that were of no use.
 */
function letGo(decisions: readonly Decision[], verdicts: readonly Verdict[], counts: (job: string) => boolean): Omit<Outcome, "again"> {
  const refused = new Set(decisions.flatMap((one, at) => (one.kind === "run" && verdicts[at]?.ok === false ? [one.job] : [])));
  const rerun: Decision[] = [];
  const log: LogRecord[] = [];
  for (const [at, decision] of decisions.entries()) {
    const verdict = verdicts[at];
    if (decision.kind !== "preempt" || !refused.has(decision.for) || !counts(decision.for)) continue;
    if (verdict?.ok !== true || verdict.method === undefined) continue;
    log.push(line(decision.job, IN_VAIN));
    if (verdict.method === "S") rerun.push({ kind: "run", job: decision.job, exec_vnode: "" });
  }
  return { rerun, log };
}
