// Jobs whose preemption failed. The next cycles leave them alone for a while and look for others (modules/preemption.ts V4).

import { PBSE } from "#model/pbse.ts";
import type { Decision, Verdict } from "#protocol/sched-link.ts";

/** How long such a job is left alone. */
export const FAILED_VICTIM_WAIT_S = 60;

/** Whether a verdict says that a job is still in the way. One that was gone by then is not. */
export function hasFailed(decision: Decision, verdict: Verdict | undefined): boolean {
  return decision.kind === "preempt" && verdict?.ok === false && verdict.code !== PBSE.UNKJOBID;
}

/** Until when jobs are left alone, after the verdicts on a cycle's decisions. */
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

/** Jobs for which somebody should have made room who did not: their starts are refused for that reason, which is no news to their owners. */
export function leftWithoutRoom(decisions: readonly Decision[], verdicts: readonly Verdict[]): ReadonlySet<string> {
  return new Set(
    decisions.flatMap((decision, at) => (decision.kind === "preempt" && hasFailed(decision, verdicts[at]) ? [decision.for] : [])),
  );
}
