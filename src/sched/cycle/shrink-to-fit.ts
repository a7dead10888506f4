// Shrink-to-fit (docs/reference/scheduler.md 5): a job with min_walltime that cannot run for its whole time is tried with less time. It is tried with an
// end at the bound of prime or dedicated time that it would cross, then with ends at the beginnings of bookings that are in its way, and at last with its
// shortest time.

import { renderDuration } from "#model/values/duration.ts";
import type { SchedJob, Why } from "#protocol/sched-link.ts";
import { LOG_EVENT } from "#support/log-event.ts";
import { isDue } from "../calendar/published-place.ts";
import { timeLeft } from "../modules/time.ts";
import { shortestOf } from "../shapes/durations.ts";
import type { LogRecord } from "../shapes/log-record.ts";
import type { Candidate, Cycle } from "../shapes/module.ts";

export type Attempt = {
  /** Starts the job with the run time of its candidate. Returns null if the job has started, otherwise the reason. */
  start(candidate: Candidate): Why | null;
  /** Returns whether the job could be started with the run time of its candidate. Changes nothing. */
  could(candidate: Candidate): boolean;
};

const CROSSES: ReadonlySet<string> = new Set(["CROSS_DED_TIME_BOUNDARY", "CROSS_PRIME_BOUNDARY"]);

/** Tries a job with less time if it cannot run for its whole time because of `why`. Returns null if it has started, otherwise the reason. */
export function shrink(cycle: Cycle, whole: Candidate, why: Why, attempt: Attempt): Why | null {
  const min_s = shortestOf(cycle.universe.space, whole.entry.job);
  if (min_s === null) return why;
  const { job } = whole.entry;
  let last: Candidate = whole;
  let reason: Why | null = why;
  if (CROSSES.has(why.code)) {
    const most_s = timeLeft(cycle, whole);
    if (most_s < min_s) return why;
    cycle.log(considering(job, `duration=${renderDuration(most_s)}, due to a prime/dedicated time conflict`));
    last = lasting(whole, most_s);
    reason = attempt.start(last);
  }
  // A top job was planned with its shortest time. When its start is due it starts with that time, even if something prevents a longer time.
  if (reason === null || (reason.code !== "RESERVATION_CONFLICT" && !isDue(whole.array?.job ?? job, cycle.now_s))) return reason;
  cycle.log(considering(job, "it's minimum walltime"));
  const shortest = lasting(whole, min_s);
  if (!attempt.could(shortest)) return reason;
  for (const most_s of begins(cycle, min_s, last)) {
    cycle.log(considering(job, `duration=${renderDuration(most_s)}, due to a reservation/top job conflict`));
    if (attempt.start(lasting(whole, most_s)) === null) return null;
  }
  return attempt.start(shortest);
}

const lasting = (candidate: Candidate, most_s: number): Candidate => ({ ...candidate, expected_s: most_s, most_s });

const considering = ({ id }: SchedJob, text: string): LogRecord => ({
  event: LOG_EVENT.SCHED,
  class: "Job",
  object: id,
  text: `Considering shrinking job to ${text}`,
});

/**
 * Returns the run times that would end at the beginnings of bookings, the longest first. They are longer than the shortest time and shorter than the time that
 * was too long.
 */
function begins({ universe, now_s }: Cycle, min_s: number, { most_s, grace_s }: Candidate): number[] {
  const all = new Set<number>();
  for (const { kind, times } of universe.calendar.bookings.values()) {
    // When a plan begins, the job must have left its vnodes, even if it uses its whole kill_delay.
    const before_s = now_s + (kind === "plan" ? grace_s : 0);
    for (const { from_s } of times) if (from_s - before_s > min_s && from_s - before_s < most_s) all.add(from_s - before_s);
  }
  return [...all].sort((a, b) => b - a);
}
