// How often a job is told to write a checkpoint. Pure.

/** How often: at a fixed interval, or often enough for the cost of a checkpoint and the mean time between failures. */
export type CheckpointPace = { readonly period_s: number } | { readonly cost_s: number; readonly mtbf_s: number };

/**
 * Returns the time between two checkpoints: sqrt(2 * cost * MTBF) loses least time to checkpoints and to work that must be done again (Young, "A first order approximation
 * to the optimum checkpoint interval", 1974). It is at least the cost.
 */
export function periodOf(pace: CheckpointPace): number {
  return "period_s" in pace ? pace.period_s : Math.max(pace.cost_s, Math.sqrt(2 * pace.cost_s * pace.mtbf_s));
}
