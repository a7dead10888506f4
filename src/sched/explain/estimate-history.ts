// The history of the estimated starts of waiting jobs: the published estimates of each job with their times. Kept only in memory.
//
// H1. The number of estimates per job and the number of jobs are limited. The job whose latest estimate is oldest is dropped
//     first.

import type { Estimate } from "#protocol/explanation.ts";
import type { Decision, Verdict } from "#protocol/sched-link.ts";
import { present } from "#support/assert.ts";

export type EstimateHistory = Map<string, Estimate[]>;

const ENTRIES_MAX = 20;
const JOBS_MAX = 10_000;

/** Adds the estimates of a cycle that the server has accepted, and drops the jobs that have started. */
export function noteEstimates(
  history: EstimateHistory,
  {
    decisions,
    verdicts,
    now_s,
  }: { readonly decisions: readonly Decision[]; readonly verdicts: readonly Verdict[]; readonly now_s: number },
): void {
  decisions.forEach((decision, at) => {
    if (verdicts[at]?.ok !== true) return;
    if (decision.kind === "run") history.delete(decision.job);
    if (decision.kind === "estimate") note(history, decision.job, { at_s: now_s, start_s: decision.start_s });
  });
}

function note(history: EstimateHistory, job: string, estimate: Estimate): void {
  const known = history.get(job) ?? [];
  if (known.at(-1)?.start_s === estimate.start_s) return;
  history.delete(job);
  // The first estimate stays, because it is what the user was told first.
  history.set(job, known.length < ENTRIES_MAX ? [...known, estimate] : [present(known[0], "estimate"), ...known.slice(2), estimate]);
  if (history.size <= JOBS_MAX) return;
  const [oldest] = history.keys();
  if (oldest !== undefined) history.delete(oldest);
}

/** Drops the jobs that no longer exist. */
export function forgetEstimates(history: EstimateHistory, isKnown: (job: string) => boolean): void {
  for (const job of history.keys()) if (!isKnown(job)) history.delete(job);
}

/** Returns the estimates of a job, oldest first. */
export function estimatesOf(history: EstimateHistory, job: string): readonly Estimate[] {
  return history.get(job) ?? [];
}
