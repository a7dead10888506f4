// What jobs need, estimated from what earlier jobs have used, and how a request grows after a failure. The rules are those of wr, but the percentile counts jobs, not distinct
// values. Pure.

/** Requests for memory are rounded up to this step: 100 MB. */
export const MEM_STEP_KB = 100 * 1024;
/** Peaks up to this size are doubled; larger ones grow by GROWTH_LARGE. */
const DOUBLED_KB_MAX = 8192 * 1024;
const GROWTH_LARGE = 1.3;
const GROWTH_LEAST_KB = 1000 * 1024;
/** What a job gets more after it has exceeded its time. */
const GROWTH_S = 3600;
/** The share of the jobs whose use a request must cover. */
const COVERED = 0.95;

const roundedUp = (value: number, step: number): number => Math.ceil(Math.round(value * 1000) / 1000 / step) * step;

/** Returns the memory that a job asks for after it needed more than it had: twice the peak (1.3 times from 8 GB on), but at least 1000 MB more. In kilobytes. */
export function grownMemory(peak_kb: number): number {
  return roundedUp(Math.max(peak_kb * (peak_kb <= DOUBLED_KB_MAX ? 2 : GROWTH_LARGE), peak_kb + GROWTH_LEAST_KB), MEM_STEP_KB);
}

/** Returns the walltime that a job asks for after it was ended at its walltime: an hour more than it ran. In seconds. */
export const grownTime = (ran_s: number): number => Math.ceil(ran_s) + GROWTH_S;

/**
 * Returns an amount that covers 95 % of the jobs with these uses, rounded up to a step; undefined: there are none. If the largest use is less than a step above it, or there are
 * too few jobs for a percentile, the amount covers all.
 */
export function learnedAmount(uses: readonly number[], step: number): number | undefined {
  if (uses.length === 0) return undefined;
  const sorted = [...uses].sort((a, b) => a - b);
  const most = sorted.at(-1) ?? 0;
  const at = sorted[Math.ceil(COVERED * sorted.length) - 1] ?? most;
  return Math.max(step, roundedUp(most - at < step ? most : at, step));
}

/**
 * Returns the walltime for a learned run time. PBS ends a job at its walltime, so that the walltime must be longer than the runs that it was learned from: by a quarter, and at
 * least by a minute. In seconds.
 */
export const walltimeFor = (learned_s: number): number => Math.ceil(learned_s + Math.max(60, learned_s / 4));

/** How a learned amount counts beside the amount that a job asks for. no: it counts alone; higher: the larger one counts; always: the job's own counts, if it has one. */
export type Override = "no" | "higher" | "always";

/** Returns the amount that a job gets. own: what it asks for; undefined: nothing. */
export function decidedAmount(override: Override, own: number | undefined, learned: number | undefined): number | undefined {
  if (learned === undefined) return own;
  if (own === undefined) return learned;
  return override === "always" ? own : override === "higher" ? Math.max(own, learned) : learned;
}
