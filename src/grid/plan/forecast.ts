// When a campaign will end: from the throughput of the last hour, or, while the campaign is young, from the mean run time of
// its jobs. Pure.

/** Throughput is measured over this time. */
export const WINDOW_S = 3600;

/** What is known about a campaign. remaining: tasks without a result. running: jobs that run now. */
export type Progress = {
  readonly begun_s: number;
  readonly now_s: number;
  readonly remaining: number;
  readonly running: number;
  /** mean run time of the jobs that ended well; 0: none has ended */
  readonly mean_s: number;
  /** jobs that ended well within the last WINDOW_S seconds */
  readonly ended_in_window: number;
};

/** Returns the time at which the campaign will end; null: unknown, because no job has ended well yet or lately, or because no job runs. */
export function endOf({ begun_s, now_s, remaining, running, mean_s, ended_in_window }: Progress): number | null {
  if (remaining === 0) return now_s;
  const age_s = now_s - begun_s;
  if (mean_s === 0) return null;
  if (age_s < 2 * mean_s) return running === 0 ? null : now_s + (remaining * mean_s) / running;
  const rate = ended_in_window / Math.min(WINDOW_S, age_s);
  return rate === 0 ? null : now_s + remaining / rate;
}
