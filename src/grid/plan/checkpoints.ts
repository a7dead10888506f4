// How often a job is told to write a checkpoint. Pure.

/** How often a job writes checkpoints: at a fixed interval, or at an interval that follows from the cost of a checkpoint and the mean time between failures (MTBF). */
export type CheckpointPace = { readonly period_s: number } | { readonly cost_s: number; readonly mtbf_s: number };

/**
 * Returns the time between two checkpoints. With sqrt(2 * cost * MTBF), the time that is lost to checkpoints and to work that must be done again is smallest (Young, "A
 * first order approximation to the optimum checkpoint interval", 1974). The result is at least the cost.
 */
export function periodOf(pace: CheckpointPace): number {
  return "period_s" in pace ? pace.period_s : Math.max(pace.cost_s, Math.sqrt(2 * pace.cost_s * pace.mtbf_s));
}
