// Module `prioritizer`: job_sort_formula with its threshold, and job_sort_key (docs/reference/scheduler.md 3, 4). order/ranking.ts and order/job-order.ts order
// the jobs; this module logs the values of the formula, the jobs at or below the threshold, and errors in the formula.

import { formulaText } from "#model/formula/formula.ts";
import { LOG_EVENT } from "#support/log-event.ts";
import { noteComment, UNDER_WHY } from "../order/job-lines.ts";
import { rankBefore, worth } from "../order/ranking.ts";
import { settleTrack } from "../order/track-cursor.ts";
import type { JobEntry, JobLine } from "../shapes/job-line.ts";
import type { Cycle, PolicyModule } from "../shapes/module.ts";

export const prioritizer: PolicyModule = {
  name: "prioritizer",
  begin(cycle) {
    const { formula, threshold } = cycle.universe.ranking;
    if (formula === null || cycle.qrun) return;
    const lines = [...cycle.universe.lines.values()].flatMap((set) => [...set]);
    if (threshold !== null)
      for (const line of lines) for (const track of line.tracks.values()) settleTrack(track, threshold, cycle.ranks, noteComment);
    if ((Number(cycle.universe.sched.attrs["log_events"] ?? 0) & LOG_EVENT.DEBUG2) !== 0) logValues(cycle);
    else for (const line of lines) tellUnder(cycle, line);
  },
  end: logErrors,
};

/** Logs the value of every job if log_events asks for it. Only here the formula is evaluated for all jobs. */
function logValues(cycle: Cycle): void {
  const { universe, ranks } = cycle;
  const { threshold } = universe.ranking;
  const entries = [...universe.entries.values()].filter((entry) => entry.line !== null);
  entries.sort((a, b) => (rankBefore(a, b) ? -1 : 1));
  for (const entry of entries) {
    const { id } = entry.job;
    const { value, error } = worth(ranks, entry.job);
    const log = (text: string): void => cycle.log({ event: LOG_EVENT.DEBUG2, class: "Job", object: id, text });
    if (error !== undefined) log(errorText(error));
    log(`Formula Evaluation = ${formulaText(value)}`);
    if (!entry.under || threshold === null) continue;
    log(`Job's formula value ${formulaText(value)} is under threshold ${formulaText(threshold)}`);
    if (isToldNow(cycle, entry)) cycle.tell(entry, UNDER_WHY);
  }
}

function tellUnder(cycle: Cycle, line: JobLine): void {
  for (const entry of line.differ_under) if (isToldNow(cycle, entry)) cycle.tell(entry, UNDER_WHY);
}

/** Returns whether a job gets the comment about the threshold. Jobs of queues that are not started get a comment about that instead. */
function isToldNow({ universe }: Cycle, entry: JobEntry): boolean {
  const queue = universe.queues.get(entry.job.queue);
  return entry.line?.differ_under.has(entry) === true && queue?.started === true && queue.execution;
}

/** Logs each error once while the formula stays the same. When values are logged, errors are logged each time with them. */
function logErrors(cycle: Cycle): void {
  const { told } = cycle.universe.ranking;
  for (const [error, job] of cycle.ranks.errors) {
    if (told.has(error)) continue;
    told.add(error);
    cycle.log({ event: LOG_EVENT.SCHED, class: "Job", object: job, text: errorText(error) });
  }
}

const errorText = (error: string): string => `Formula evaluation for job had an error.  Zero value will be used: ${error}`;
